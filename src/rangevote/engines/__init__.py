"""Engines and servers that search themselves: what they give back, as hypotheses.

Every engine has a function `hypotheses_of` that reads its own objects, without importing it: the hypotheses
of each input, with the natural log of P summed over all tokens, or without it where the engine does not tell.
Files that engines write are read by `rangevote.formats`; batch output of OpenAI and vLLM is among them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from rangevote.errors import UsageError, choose

#: Makes text of token ids.
Decode = Callable[[list[int]], str]

#: engine -> what reads its outputs
SOURCES = {
    "ctranslate2": "rangevote.engines.ctranslate2:hypotheses_of",
    "llama_cpp": "rangevote.engines.llama_cpp:hypotheses_of",
    "openai": "rangevote.engines.openai:hypotheses_of",
    "transformers": "rangevote.engines.transformers:hypotheses_of",
    "vllm": "rangevote.engines.vllm:hypotheses_of",
}


def get_source(name: str) -> Callable[..., Any]:
    """The function `hypotheses_of` of an engine."""
    module, _, function = choose("source", name, SOURCES).partition(":")
    reader: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return reader


def each(outputs: Iterable[Any]) -> Iterable[Any]:
    """The outputs, one for each input; one alone is what gets passed by mistake."""
    if isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes, dict)):
        return outputs
    raise UsageError(
        f"expected a list with one output for each input, got {type(outputs).__name__}; a single one goes "
        f"into a list, as [output]."
    )
