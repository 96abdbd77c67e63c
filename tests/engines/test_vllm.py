"""Outputs of vLLM, in the shapes that its source has (0.32: RequestOutput, BeamSearchOutput)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import rangevote as rv
from rangevote.engines.vllm import hypotheses_of
from rangevote.errors import DataError

END = 2
PROMPT = [1, 8, 9]
WORDS = {5: "the", 6: "cat", 7: "sat"}


def decode(tokens: list[int]) -> str:
    return " ".join(WORDS[token] for token in tokens)


def sample(text: str, tokens: list[int], logprob: float | None, reason: str = "stop") -> SimpleNamespace:
    """A `CompletionOutput`."""
    logprobs = None if logprob is None else [{}] * len(tokens)
    return SimpleNamespace(
        text=text, token_ids=tokens, cumulative_logprob=logprob, logprobs=logprobs, finish_reason=reason
    )


def samples(*outputs: SimpleNamespace) -> SimpleNamespace:
    """A `RequestOutput`."""
    return SimpleNamespace(outputs=list(outputs))


def beam(tokens: list[int], logprob: float) -> SimpleNamespace:
    """A `BeamSearchSequence`: its text and its tokens begin with the prompt."""
    logprobs = [{}] * len(tokens)
    return SimpleNamespace(
        tokens=[*PROMPT, *tokens], logprobs=logprobs, cum_logprob=logprob, text="<s> p q ..."
    )


def beams(*sequences: SimpleNamespace) -> SimpleNamespace:
    """A `BeamSearchOutput`."""
    return SimpleNamespace(sequences=list(sequences))


def test_samples_keep_their_sum_and_lose_their_end():
    outputs = [
        samples(sample("the cat", [5, 6, END], -1.5), sample("the", [5], -0.5, "length")),
        samples(sample("", [END], -2.0)),
    ]
    [[first, second], [empty]] = hypotheses_of(outputs, ends=[END])
    assert first == rv.Hypothesis("the cat", tokens=(5, 6), logprob=-1.5, sampled=True)
    assert second == rv.Hypothesis("the", tokens=(5,), logprob=-0.5, finished=False, sampled=True)
    assert empty == rv.Hypothesis("", tokens=(), logprob=-2.0, sampled=True)


def test_without_logprobs_samples_count():
    [[only]] = hypotheses_of([samples(sample("the cat", [5, 6, END], None))], ends=[END])
    assert only.logprob is None
    assert rv.elect([only]).signature.count("w:count")


def test_beams_are_without_their_prompt_and_keep_the_total_of_all_tokens():
    outputs = [beams(beam([5, 6, END], -3.0), beam([5, 7, 7], -2.5), beam([END], -4.0))]
    [[first, cut, empty]] = hypotheses_of(outputs, ends=[END], decode=decode)
    assert first == rv.Hypothesis("the cat", tokens=(5, 6), logprob=-3.0)
    assert cut == rv.Hypothesis("the sat sat", tokens=(5, 7, 7), logprob=-2.5, finished=False)
    assert empty == rv.Hypothesis("", tokens=(), logprob=-4.0)


def test_the_order_of_vllm_is_kept_and_does_not_decide():
    """It ranks by a score with the prompt in the length: -2.5 / 7 is above -2 / 4."""
    [listed] = hypotheses_of(
        [beams(beam([5, 6, 7, 5, END], -2.5), beam([5, END], -2.0))], ends=[END], decode=decode
    )
    assert [one.logprob for one in listed] == [-2.5, -2.0]
    assert rv.elect(listed, rule="most_likely").winner == "the"


def test_ends_may_be_several_and_an_end_that_is_not_one_of_them_is_a_token():
    """Only the tokenizer's own end closes a beam of vLLM; others stand in the middle of it."""
    outputs = [beams(beam([5, 3], -1.0), beam([5, END], -1.0))]
    [[cut, closed]] = hypotheses_of(outputs, ends=[END])
    assert (cut.tokens, cut.finished, closed.tokens, closed.finished) == ((5, 3), False, (5,), True)
    [[first, second]] = hypotheses_of(outputs, ends=[END, 3])
    assert first.tokens == second.tokens == (5,)


def test_beams_that_are_not_decoded_are_voted_on_by_their_tokens():
    outputs = [beams(beam([5, 6, END], -1.0), beam([5, 7, END], -1.1), beam([7, 6, END], -1.2))]
    [listed] = hypotheses_of(outputs, ends=[END])
    assert [one.text for one in listed] == [None, None, None]
    assert rv.elect(listed, similarity="overlap_1", tokenize="tokens").index == 0


def test_what_is_no_output_is_refused():
    with pytest.raises(DataError, match="expected a RequestOutput or BeamSearchOutput, got str"):
        hypotheses_of(["text"], ends=[END])
    with pytest.raises(DataError, match=r"outputs\[0\].logprob: nan is not a log-probability"):
        hypotheses_of([samples(sample("the", [5], math.nan))], ends=[END])
