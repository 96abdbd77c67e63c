"""Sampling in rounds: it stops when the election is decided, and says how many samples that saved."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import Running
from tests.service.saying import texts
from tests.sources.openai.upstream import Upstream

ADAPTIVE = {"samples": 64, "adaptive": 0.99}


def test_samples_that_all_agree_are_not_asked_for_again():
    with Upstream(answer=texts("42")) as upstream, Running(upstream.url) as service:
        told = service.ask(rangevote=ADAPTIVE).json()["rangevote"]
        assert service.metric("rangevote_samples_saved_total") == 48
    assert [asked.n for asked in upstream.asked] == [16]
    assert told["certain"] is True
    assert told["samples"] == {"asked": 16, "saved": 48, "usable": 16}


def test_a_clear_lead_is_decided_by_those_who_vote_after_the_candidates_are_fixed():
    mostly = ["the train leaves at ten"] * 5 + ["i do not know"] + ["the train leaves at ten"] * 14
    with Upstream(answer=texts(*mostly)) as upstream, Running(upstream.url) as service:
        answer = service.ask(seed=0, rangevote=ADAPTIVE).json()
    told = answer["rangevote"]
    assert [asked.n for asked in upstream.asked] == [16, 16]
    assert [asked.body["seed"] for asked in upstream.asked] == [0, 16]
    assert answer["choices"][0]["message"]["content"] == "the train leaves at ten"
    assert (told["certain"], told["candidates"], told["votes"]) == (True, 16, 32)
    assert told["samples"] == {"asked": 32, "saved": 32, "usable": 32}
    assert answer["usage"]["total_tokens"] == 2 * 7 + 32 * 3


def test_where_nobody_leads_all_samples_are_drawn():
    with Upstream(answer=texts("a b", "c d")) as upstream, Running(upstream.url) as service:
        told = service.ask(seed=0, rangevote=ADAPTIVE).json()["rangevote"]
    assert [asked.n for asked in upstream.asked] == [16, 16, 32]
    assert told["certain"] is False
    assert told["samples"] == {"asked": 64, "saved": 0, "usable": 64}


def test_the_number_of_candidates_sets_the_first_round():
    with Upstream(answer=texts("a b", "c d")) as upstream, Running(upstream.url) as service:
        told = service.ask(seed=0, rangevote={**ADAPTIVE, "samples": 12, "candidates": 4}).json()["rangevote"]
    assert [asked.n for asked in upstream.asked] == [4, 4, 4]
    assert (told["candidates"], told["votes"]) == (4, 12)


def test_fewer_candidates_than_samples_can_stand_without_rounds_too():
    with Upstream(answer=texts("a b", "c d", "c e")) as upstream, Running(upstream.url) as service:
        told = service.ask(seed=0, rangevote={"samples": 9, "candidates": 2, "explain": True}).json()
    assert [asked.n for asked in upstream.asked] == [9]
    assert {row["text"] for row in told["rangevote"]["scores"]} == {"a b", "c d"}
    assert told["rangevote"]["votes"] == 9


def test_a_round_that_fails_after_others_came_is_no_reason_to_fail():
    with Upstream(["well", "broken"]) as upstream, Running(upstream.url) as service:
        answer = service.ask(seed=0, rangevote={**ADAPTIVE, "samples": 12, "candidates": 6})
    assert answer.status_code == 200
    assert answer.json()["rangevote"]["samples"] == {"asked": 12, "saved": 0, "usable": 6, "failed": 6}


def test_sampling_does_not_stop_below_the_quorum():
    with Upstream(answer=texts("42")) as upstream, Running(upstream.url) as service:
        told = service.ask(rangevote={**ADAPTIVE, "min_votes": 20}).json()["rangevote"]
    assert [asked.n for asked in upstream.asked] == [16, 16]
    assert (told["votes"], told["certain"]) == (32, True)
