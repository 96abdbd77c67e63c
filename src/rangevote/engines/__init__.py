"""Hypotheses from the outputs of engines and servers that search by themselves.

Each engine has a module with a function `hypotheses_of` that reads its objects without importing it: the
hypotheses of each input, with the natural log of P summed over all tokens, if the engine reports it. Files
that engines write, such as batch outputs of OpenAI and vLLM, are read by `rangevote.formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rangevote.errors import UsageError

#: Turns token ids into text.
Decode = Callable[[list[int]], str]


def each(outputs: Iterable[Any]) -> Iterable[Any]:
    """The outputs, one for each input; refuses a single output, a common mistake."""
    if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes, dict)):
        return outputs
    raise UsageError(
        f"expected a list with one output for each input, got {type(outputs).__name__}; put a single "
        f"output into a list, as [output]."
    )
