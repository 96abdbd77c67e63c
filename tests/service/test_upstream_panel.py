"""Several servers as a panel: shares, members by name, and what happens when one fails."""

from __future__ import annotations

import pytest

from tests.engines.openai.upstream import Upstream
from tests.service.running import MESSAGES, Running, ending, error_of, texts


@pytest.fixture
def small():
    with Upstream(models=("small",), answer=texts("at ten")) as upstream:
        yield upstream


@pytest.fixture
def large():
    with Upstream(models=("other", "large"), answer=texts("at noon", "at noon", "at ten")) as upstream:
        yield upstream


@pytest.fixture
def service(small, large):
    members = {"small": small.url, "large": large.url}
    with Running(small.url, members=members, options={"similarity": "exact"}) as service:
        yield service


def test_the_members_vote_together_with_equal_shares_or_those_given(service, small, large):
    client = service.client()
    assert [model.id for model in client.models.list()] == ["panel", "small", "large"]
    answer = client.chat.completions.create(model="panel", messages=MESSAGES, seed=0)
    assert answer.choices[0].message.content == "at ten"  # 1/2 + 1/2 * 1/3
    assert answer.rangevote["panel"] == {"shares": {"large": 0.5, "small": 0.5}, "left_out": []}
    assert "|panel:large=0.5,small=0.5|" in answer.rangevote["signature"]
    assert [asked.n for asked in small.asked] == [asked.n for asked in large.asked] == [3]
    assert (small.asked[0].body["model"], large.asked[0].body["model"]) == ("small", "large")
    weighed = service.ask(model="panel", seed=0, rangevote={"shares": {"small": 0.1, "large": 0.9}}).json()
    assert weighed["choices"][0]["message"]["content"] == "at noon"


def test_one_member_can_be_asked_alone(service, small, large):
    answer = service.ask(model="large", seed=0).json()
    assert (answer["model"], answer["choices"][0]["message"]["content"]) == ("large", "at noon")
    assert "panel" not in answer["rangevote"]
    assert (len(small.asked), large.asked[0].body["model"]) == (0, "large")
    assert service.ask(model="huge").status_code == 404


@pytest.mark.filterwarnings("ignore:of the panel")
def test_a_member_that_fails_is_left_out_and_named(service, small, large):
    large.answer, large.mode = None, "broken"
    answer = service.ask(model="panel").json()
    assert answer["choices"][0]["message"]["content"] == "at ten"
    assert answer["rangevote"]["panel"] == {"shares": {"small": 1.0}, "left_out": ["large"]}
    assert "|panel:small=1|out:large|" in answer["rangevote"]["signature"]
    assert answer["rangevote"]["samples"]["failed"] == 3
    assert service.http.get("/readyz").status_code == 200
    small.answer, small.mode = None, "broken"
    assert service.ask(model="panel").status_code == 502


def test_a_member_whose_samples_were_all_cut_off_keeps_its_share(service, large):
    large.answer = ending(*3 * ["length"])
    answer = service.ask(model="panel", seed=0).json()
    assert answer["rangevote"]["panel"]["shares"] == {"large": 0.5, "small": 0.5}
    assert answer["rangevote"]["samples"]["length"] == 3


def test_what_a_panel_cannot_do_is_refused(service, small):
    for options, param in (
        ({"adaptive": True}, "rangevote.adaptive"),
        ({"candidates": "beam:4"}, "rangevote.candidates"),
        ({"shares": {"huge": 1.0}}, "rangevote.shares"),
    ):
        refused = service.ask(model="panel", rangevote=options)
        assert (refused.status_code, error_of(refused)["param"]) == (400, param)
    assert small.asked == []
