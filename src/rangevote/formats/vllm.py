"""Outputs of vLLM's `LLM.generate`, dumped one request a line.

    {"prompt": "..", "outputs": [{"text": "..", "token_ids": [5], "cumulative_logprob": -1.2,
                                  "finish_reason": "stop", "stop_reason": null}]}

The last of the `token_ids` is the end of the sequence where the output ended by itself: `finish_reason` is
"stop" and `stop_reason` is null or the id of a stop token, not a stop string.

What scores mean: natural log of P, summed, of the model itself (before temperature); null unless
log-probabilities were asked for. Outputs are samples: each counts once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rangevote.formats.jsonl import decode_as
from rangevote.formats.logprobs import accept, checked, settled
from rangevote.formats.openai import ended
from rangevote.formats.reader import Decode, ReadOptions
from rangevote.hypothesis import Ballot, Hypothesis


class VllmOutput(msgspec.Struct):
    """One sample."""

    text: str
    token_ids: list[int] | None = None
    cumulative_logprob: float | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None


class VllmRequest(msgspec.Struct):
    """One request; `prompt` may be a list of messages or token ids, which is no source text."""

    outputs: list[VllmOutput]
    prompt: Any = None
    id: str | int | None = None
    request_id: str | int | None = None


def decoder(options: ReadOptions) -> Decode:
    scored = settled(options, "vllm")
    return lambda line: _ballot(decode_as(line, VllmRequest), scored, options)


def _ballot(row: VllmRequest, scored: bool, options: ReadOptions) -> Ballot:
    hypotheses = [
        Hypothesis(
            output.text,
            tokens=_tokens(output),
            logprob=_logprob(output, i) if scored else None,
            finished=ended(output.finish_reason),
            sampled=True,
        )
        for i, output in enumerate(row.outputs)
    ]
    ballot = Ballot(
        hypotheses,
        id=row.id if row.id is not None else row.request_id,
        source=row.prompt if isinstance(row.prompt, str) else None,
    )
    return accept(ballot, options)


def _tokens(output: VllmOutput) -> list[int] | None:
    """The tokens without the one that ended the sequence."""
    by_token = output.finish_reason == "stop" and not isinstance(output.stop_reason, str)
    return output.token_ids[:-1] if output.token_ids and by_token else output.token_ids


def _logprob(output: VllmOutput, index: int) -> float | None:
    value = output.cumulative_logprob
    return None if value is None else checked(value, index, "outputs")
