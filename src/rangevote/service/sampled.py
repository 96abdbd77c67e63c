"""The samples of one request as they come in: which of them can vote, and what became of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rangevote.errors import DataError
from rangevote.hypothesis import Hypothesis
from rangevote.service.outcome import too_few
from rangevote.service.problem import Problem, of_upstream
from rangevote.sources.openai.endpoint import Samples, UpstreamError
from rangevote.sources.openai.messages import Choice, Usage, hypothesis_of

#: Outcomes of a sample, for metrics and replies.
OUTCOMES = ("usable", "length", "null", "refusal", "tool_calls", "filtered", "too_long", "failed")


class Sampled:
    """Choices of several rounds, with `size` characters in all. Usable are texts that the model ended itself;
    if it ended none, those that were cut off are, and keep their finish reason."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._whole: list[Choice] = []
        self._cut: list[Choice] = []
        self.counts: Counter[str] = Counter()
        self.failed: list[UpstreamError] = []
        self.usage = Usage()
        self.asked = self.size = 0

    def add(self, samples: Samples, asked: int) -> None:
        """Take in a round."""
        self.asked += asked
        self.usage += samples.usage
        self.size += characters(samples)
        for choice in samples.choices:
            outcome = self._outcome(choice)
            self.counts[outcome] += 1
            if outcome == "usable":
                self._whole.append(choice)
            elif outcome == "length":
                self._cut.append(choice)
        self.fail(samples.failed, max(0, asked - len(samples.choices)))

    def fail(self, errors: Sequence[UpstreamError], missing: int) -> None:
        """Samples that did not come."""
        self.failed += errors
        self.counts["failed"] += missing

    def _outcome(self, choice: Choice) -> str:
        if choice.kind != "text" or choice.text is None:
            return "null" if choice.text is None and choice.kind == "text" else choice.kind
        size = len(choice.text.split()) if choice.tokens is None else choice.tokens
        if size > self._longest:
            return "too_long"
        if choice.finish_reason == "content_filter":
            return "filtered"
        return "length" if choice.finish_reason == "length" else "usable"

    @property
    def usable(self) -> list[Choice]:
        """Who may stand and vote."""
        return self._whole or self._cut

    def hypotheses(self, *, sampled: bool = True) -> list[Hypothesis]:
        """The same for an election; beams are not `sampled`."""
        try:
            return [hypothesis_of(choice, sampled=sampled) for choice in self.usable]
        except DataError as error:
            raise Problem(
                502, "the model's server failed to answer", code="upstream_shape", note=str(error)
            ) from None

    def check_quorum(self, least: int) -> None:
        """Refuse to answer for fewer than `least`; if nothing came at all, by the reason for that."""
        if len(self.usable) >= least:
            return
        if not self.usable and self.failed and not any(self.counts[o] for o in OUTCOMES if o != "failed"):
            raise of_upstream(self.failed[0])
        problem = too_few(len(self.usable), self.asked, least)
        problem.note = f"{dict(self.counts)} {[error.kind for error in self.failed][:3]}"
        raise problem


def characters(samples: Samples) -> int:
    """How long all texts are together."""
    return sum(len(choice.text or "") for choice in samples.choices)
