"""Servers that speak OpenAI's API: their responses as hypotheses, and `client` that calls them.

    responses = [client.chat.completions.create(model=..., messages=m, n=16, logprobs=True) for m in inputs]
    hypotheses_of(responses)

Responses are dictionaries or the official client's own objects, of chat or of plain completions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rangevote.engines import each
from rangevote.errors import DataError
from rangevote.formats.choices import choices_of, error_text, hypotheses_in
from rangevote.hypothesis import Hypothesis


def hypotheses_of(responses: Iterable[Any], *, sampled: bool = True) -> list[list[Hypothesis]]:
    """The hypotheses of each input, from a response or a list of them; choices without text are left out.

    `sampled=False` is for the beams of a vLLM server (`use_beam_search`).
    """
    return [
        [
            hypothesis
            for response in (given if isinstance(given, (list, tuple)) else [given])
            for hypothesis in _hypotheses(response, sampled)
        ]
        for given in each(responses)
    ]


def _hypotheses(response: Any, sampled: bool) -> list[Hypothesis]:
    body = response.model_dump() if hasattr(response, "model_dump") else response
    if not isinstance(body, Mapping):
        raise DataError(f"expected a response or a list of them for each input, got {type(body).__name__}.")
    if (error := body.get("error")) is not None:
        raise DataError(f"the call failed: {error_text(error)}")
    return hypotheses_in(choices_of(dict(body)), sampled=sampled)
