"""What the readers of all engines share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rangevote.errors import UsageError

#: Makes text of token ids.
Decode = Callable[[list[int]], str]


def each(outputs: Iterable[Any]) -> Iterable[Any]:
    """The outputs, one for each input; one alone is what gets passed by mistake."""
    if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes, dict)):
        return outputs
    raise UsageError(
        f"expected a list with one output for each input, got {type(outputs).__name__}; a single one goes "
        f"into a list, as [output]."
    )
