"""Outputs of vLLM, in the shapes that its source has (0.32: RequestOutput, BeamSearchOutput)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

import rangevote as rv
from rangevote.engines.vllm import hypotheses_of
from rangevote.errors import DataError

END = 2
PROMPT = [1, 8, 9]
WORDS = {5: "the", 6: "cat", 7: "sat"}


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: list[dict[int, Any]] | None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class RequestOutput:
    outputs: list[CompletionOutput]
    prompt: str | None = None
    request_id: str = "0"


@dataclass
class BeamSearchSequence:
    orig_prompt: dict[str, Any]
    tokens: list[int]
    logprobs: list[dict[int, Any]]
    lora_request: None = None
    cum_logprob: float = 0.0
    text: str | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class BeamSearchOutput:
    sequences: list[BeamSearchSequence] = field(default_factory=list)


def decode(tokens: list[int]) -> str:
    return " ".join(WORDS[token] for token in tokens)


def sample(text: str, tokens: list[int], logprob: float | None, reason: str = "stop") -> CompletionOutput:
    return CompletionOutput(0, text, tokens, logprob, None if logprob is None else [{}] * len(tokens), reason)


def beam(tokens: list[int], logprob: float) -> BeamSearchSequence:
    """Behind a prompt of three tokens, which its text and its tokens begin with."""
    prompt = {"type": "token", "prompt_token_ids": PROMPT}
    return BeamSearchSequence(
        prompt, [*PROMPT, *tokens], [{}] * len(tokens), cum_logprob=logprob, text="<s> p q ..."
    )


def ranked(beams: list[BeamSearchSequence], length_penalty: float) -> list[BeamSearchSequence]:
    """As vLLM orders them: the prompt is in the length, the end is not."""

    def score(beam: BeamSearchSequence) -> float:
        return beam.cum_logprob / (len(beam.tokens) - (beam.tokens[-1] == END)) ** length_penalty

    return sorted(beams, key=score, reverse=True)


def test_samples_keep_their_sum_and_lose_their_end():
    outputs = [
        RequestOutput([sample("the cat", [5, 6, END], -1.5), sample("the", [5], -0.5, "length")]),
        RequestOutput([sample("", [END], -2.0)]),
    ]
    [[first, second], [empty]] = hypotheses_of(outputs, ends=[END])
    assert first == rv.Hypothesis("the cat", tokens=(5, 6), logprob=-1.5, sampled=True)
    assert second == rv.Hypothesis("the", tokens=(5,), logprob=-0.5, finished=False, sampled=True)
    assert empty == rv.Hypothesis("", tokens=(), logprob=-2.0, sampled=True)


def test_without_logprobs_samples_count():
    [[only]] = hypotheses_of([RequestOutput([sample("the cat", [5, 6, END], None)])], ends=[END])
    assert only.logprob is None
    assert rv.elect([only]).signature.count("w:count")


def test_beams_are_without_their_prompt_and_keep_the_total_of_all_tokens():
    outputs = [BeamSearchOutput([beam([5, 6, END], -3.0), beam([5, 7, 7], -2.5), beam([END], -4.0)])]
    [[first, cut, empty]] = hypotheses_of(outputs, ends=[END], decode=decode)
    assert first == rv.Hypothesis("the cat", tokens=(5, 6), logprob=-3.0)
    assert cut == rv.Hypothesis("the sat sat", tokens=(5, 7, 7), logprob=-2.5, finished=False)
    assert empty == rv.Hypothesis("", tokens=(), logprob=-4.0)


def test_the_order_by_a_score_with_the_prompt_in_its_length_is_kept_and_means_nothing():
    short, long = beam([5, END], -2.0), beam([5, 6, 7, 5, END], -2.5)
    assert ranked([short, long], 1.0) == [long, short]  # -2 / 4 is below -2.5 / 7
    [listed] = hypotheses_of([BeamSearchOutput(ranked([short, long], 1.0))], ends=[END], decode=decode)
    assert [one.logprob for one in listed] == [-2.5, -2.0]
    assert rv.elect(listed, rule="most_likely").winner == "the"


def test_ends_may_be_several_and_an_end_that_is_not_one_of_them_is_a_token():
    """Only the tokenizer's own end closes a beam of vLLM; others stand in the middle of it."""
    outputs = [BeamSearchOutput([beam([5, 3], -1.0), beam([5, END], -1.0)])]
    [[cut, closed]] = hypotheses_of(outputs, ends=[END])
    assert (cut.tokens, cut.finished, closed.tokens, closed.finished) == ((5, 3), False, (5,), True)
    [[first, second]] = hypotheses_of(outputs, ends=[END, 3])
    assert first.tokens == second.tokens == (5,)


def test_beams_that_are_not_decoded_are_voted_on_by_their_tokens():
    outputs = [BeamSearchOutput([beam([5, 6, END], -1.0), beam([5, 7, END], -1.1), beam([7, 6, END], -1.2)])]
    [listed] = hypotheses_of(outputs, ends=[END])
    assert [one.text for one in listed] == [None, None, None]
    assert rv.elect(listed, similarity="overlap_1", tokenize="tokens").index == 0


def test_what_is_no_output_is_refused():
    with pytest.raises(DataError, match="expected a RequestOutput or BeamSearchOutput, got str"):
        hypotheses_of(["text"], ends=[END])
    with pytest.raises(DataError, match=r"outputs\[0\].logprob: nan is not a log-probability"):
        hypotheses_of([RequestOutput([sample("the", [5], math.nan)])], ends=[END])
