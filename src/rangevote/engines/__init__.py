"""Engines and servers that search themselves: what they give back, as hypotheses.

Every engine has a function `hypotheses_of` that reads its own objects, without importing it: the hypotheses
of each input, with the natural log of P summed over all tokens, or without it where the engine does not tell.
Files that engines write are read by `rangevote.formats`; batch output of OpenAI and vLLM is among them.
"""

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
