"""A filter for lm-evaluation-harness that keeps the elected one of a document's `repeats` responses.

In a task's YAML, among the steps of a filter; the options are those of `rangevote.elect`:

    repeats: 16
    generation_kwargs: {do_sample: true, temperature: 0.8}
    filter_list:
      - name: elected
        filter:
          - function: !function rangevote.integrations.lm_eval.ElectFilter
            similarity: exact:last_number
          - function: take_first
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval.api.filter import Filter

from rangevote.election.elect import elect
from rangevote.election.settings import ElectionOptions, settings_of
from rangevote.errors import DataError, warn

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ElectFilter(Filter):
    """Keeps the elected response of each document, as a list of one."""

    def __init__(self, **options: Unpack[ElectionOptions]) -> None:
        settings_of(options)  # refuses wrong options before anything is generated
        self.options = options

    def apply(self, resps: Iterable[Sequence[Any]], docs: Sequence[dict[str, Any]]) -> list[list[Any]]:
        """The elected response of each document."""
        documents = [list(responses) for responses in resps]
        equal = sum(
            len(responses) > 1 and responses.count(responses[0]) == len(responses) for responses in documents
        )
        if 2 * equal > len(documents):
            warn(
                f"in {equal:,} of {len(documents):,} documents all responses are equal, so the vote decides "
                f"nothing. Sample at a temperature above 0 and with different seeds; lm-eval's API models "
                f"send the same seed on every repeat, so use a local model or sample with rangevote generate."
            )
        return [[self._elected(responses)] for responses in documents]

    def _elected(self, responses: list[Any]) -> Any:
        for response in responses:
            if not isinstance(response, str):
                raise DataError(
                    f"ElectFilter elects texts, got {type(response).__name__} {response!r}; use it in tasks "
                    f"with output_type generate_until, before steps that convert the texts."
                )
        return responses[elect(responses, **self.options).leader]
