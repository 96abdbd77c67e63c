"""Beams of a server that can search, and samples that vote for them: the paper's setting over HTTP."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from rangevote import Hypothesis, elect
from tests.service.running import Running, error_of
from tests.sources.openai.upstream import SENTENCES, Asked, Reply, Upstream, choice, completion

BEAMS = {"the train": -0.5, "the train leaves at ten": -1.5, "a train leaves at ten": -2.0}


def searching(asked: Asked) -> Reply:
    """As vLLM answers: beams where they are asked for, with the log-probabilities of their tokens."""
    if not asked.body.get("use_beam_search"):
        return completion(asked, [choice(asked, i) for i in range(asked.n)])
    listed = [
        {
            "index": i,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "logprobs": {
                "content": [{"token": "a", "logprob": -0.25}, {"token": "b", "logprob": total + 0.25}]
            },
        }
        for i, (text, total) in enumerate(BEAMS.items())
    ]
    return completion(asked, listed[: asked.n])


@pytest.fixture
def service():
    with Upstream(answer=searching) as upstream, Running(upstream.url, source="vllm") as running:
        running.upstream = upstream
        yield running


def slate() -> list[Hypothesis]:
    return [Hypothesis(text, logprob=logprob) for text, logprob in BEAMS.items()]


def test_beams_stand_and_samples_vote(service):
    answer = service.ask(seed=0, temperature=0.7, rangevote={"candidates": "beam:3"}).json()
    voters = [Hypothesis(text, sampled=True) for text in SENTENCES]
    expected = elect(slate(), voters=voters)
    assert answer["choices"][0]["message"]["content"] == expected.winner == "the train leaves at ten"
    assert answer["rangevote"]["signature"] == expected.signature
    beams, samples = service.upstream.asked
    assert (beams.n, beams.body["use_beam_search"], beams.body["temperature"]) == (3, True, 0.0)
    assert "seed" not in beams.body
    assert (samples.n, samples.body["temperature"], samples.body["seed"]) == (6, 0.7, 0)
    assert answer["usage"]["completion_tokens"] == 3 * 3 + 6 * 3


def test_beams_vote_for_themselves_by_their_probability(service):
    answer = service.ask(rangevote={"candidates": "beam:3", "voters": "candidates"}).json()
    expected = elect(slate())
    assert answer["choices"][0]["message"]["content"] == expected.winner
    assert answer["rangevote"]["signature"] == expected.signature
    assert "|w:probability|" in expected.signature
    assert len(service.upstream.asked) == 1


def test_all_samples_are_voters_of_which_only_enough_are_drawn(service):
    service.upstream.answer = lambda asked: searching(
        asked
        if asked.body.get("use_beam_search")
        else Asked(asked.path, {}, {**asked.body, "seed": 0, "n": 1}, 0)
    )
    options = {"candidates": "beam:3", "samples": 64, "adaptive": 0.99, "similarity": "exact"}
    told = service.ask(rangevote=options).json()["rangevote"]
    assert told["certain"] is True
    assert told["samples"] == {"asked": 16, "saved": 48, "usable": 16}


def test_servers_that_pass_over_what_they_do_not_know_are_found_out(service):
    service.upstream.answer = lambda asked: completion(asked, [{**choice(asked, 0), "logprobs": None}])
    refused = service.ask(rangevote={"candidates": "beam:3"})
    assert (refused.status_code, error_of(refused)["code"]) == (502, "upstream_beams")


@pytest.mark.parametrize("candidates", ["beam:65", "sample:3", "beam:3,copy_filter=0.5", "diverse_beam:4"])
def test_other_searches_are_refused(service, candidates):
    refused = service.ask(rangevote={"candidates": candidates})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "rangevote.candidates")
    assert service.upstream.asked == []


def test_more_winners_than_beams_are_refused(service):
    refused = service.ask(n=4, rangevote={"candidates": "beam:3"})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "n")
