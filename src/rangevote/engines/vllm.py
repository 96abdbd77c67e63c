"""Hypotheses from the outputs of vLLM's `LLM.generate` and `LLM.beam_search`.

    hypotheses_of(llm.generate(prompts, SamplingParams(n=32, logprobs=0)), ends=[tokenizer.eos_token_id])
    hypotheses_of(llm.beam_search(prompts, BeamSearchParams(beam_width=10, max_tokens=50)),
                  ends=[tokenizer.eos_token_id], decode=tokenizer.decode)

Both have the natural log of P, summed over all tokens including the end; samples only if `logprobs` was set
(0 is enough), and then before temperature and truncation (`logprobs_mode="raw_logprobs"`). Beams are ordered
by a score that counts the prompt in its length; it is not used here. More than 10 of them need
`LLM(..., max_logprobs=2 * beam_width)`. vLLM's server is read by `rangevote.engines.openai`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rangevote.engines import Decode, each
from rangevote.errors import DataError
from rangevote.formats.choices import ended
from rangevote.formats.logprobs import checked
from rangevote.hypothesis import Hypothesis


def hypotheses_of(
    outputs: Iterable[Any], *, ends: Collection[int], decode: Decode | None = None
) -> list[list[Hypothesis]]:
    """The hypotheses of each `RequestOutput` or `BeamSearchOutput`, in its order.

    `ends` are the tokens that end a sequence. `decode` turns the tokens of a beam into text (the text that
    vLLM gives includes the prompt); without it, beams have tokens only.
    """
    return [_of(output, frozenset(ends), decode) for output in each(outputs)]


def _of(output: Any, ends: Collection[int], decode: Decode | None) -> list[Hypothesis]:
    if hasattr(output, "sequences"):
        return [_beam(beam, i, ends, decode) for i, beam in enumerate(output.sequences)]
    if hasattr(output, "outputs"):
        return [_sample(sample, i, ends) for i, sample in enumerate(output.outputs)]
    raise DataError(f"expected a RequestOutput or BeamSearchOutput, got {type(output).__name__}.")


def _sample(sample: Any, index: int, ends: Collection[int]) -> Hypothesis:
    value = sample.cumulative_logprob
    return Hypothesis(
        sample.text,
        tokens=_without_end(sample.token_ids, ends),
        logprob=None if value is None else checked(value, index, "outputs"),
        finished=ended(sample.finish_reason),
        sampled=True,
        token_logprobs=_token_logprobs(sample),
    )


def _token_logprobs(sample: Any) -> list[float] | None:
    """The log-probabilities of the tokens that were drawn, if vLLM was asked for them."""
    logprobs = getattr(sample, "logprobs", None)
    if not logprobs or len(logprobs) != len(sample.token_ids):
        return None
    drawn = [at.get(token) for at, token in zip(logprobs, sample.token_ids, strict=True)]
    values = [min(float(one.logprob), 0.0) for one in drawn if one is not None]
    return values if len(values) == len(drawn) and all(map(math.isfinite, values)) else None


def _beam(beam: Any, index: int, ends: Collection[int], decode: Decode | None) -> Hypothesis:
    """A beam's tokens begin with the prompt; it has a log-probability for each token after it."""
    output = beam.tokens[len(beam.tokens) - len(beam.logprobs) :]
    tokens = _without_end(output, ends)
    return Hypothesis(
        None if decode is None else decode(list(tokens)),
        tokens=tokens,
        logprob=checked(beam.cum_logprob, index, "sequences"),
        finished=len(tokens) < len(output),
    )


def _without_end(tokens: Sequence[int], ends: Collection[int]) -> Sequence[int]:
    return tuple(tokens[:-1] if tokens and tokens[-1] in ends else tokens)
