"""Engines and servers that search themselves: what they give back, as hypotheses.

Every engine has a function `hypotheses_of` that reads its own objects, without importing it: the hypotheses
of each input, with the natural log of P summed over all tokens, or without it where the engine does not tell.
Files that engines write are read by `rangevote.formats`; batch output of OpenAI and vLLM is among them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rangevote.errors import choose

#: engine -> what reads its outputs
SOURCES = {
    "ctranslate2": "rangevote.sources.ctranslate2:hypotheses_of",
    "llama_cpp": "rangevote.sources.llama_cpp:hypotheses_of",
    "openai": "rangevote.sources.openai:hypotheses_of",
    "transformers": "rangevote.sources.transformers:hypotheses_of",
    "vllm": "rangevote.sources.vllm:hypotheses_of",
}


def get_source(name: str) -> Callable[..., Any]:
    """The function `hypotheses_of` of an engine."""
    module, _, function = choose("source", name, SOURCES).partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
