"""Several servers as a panel: shares, members by name, and what happens when one fails."""

from __future__ import annotations

import pytest

from rangevote.service.config import profile_options
from tests.engines.openai.upstream import Upstream
from tests.service.running import MESSAGES, Running, error_of, texts


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
    with Running(small.url, upstreams=members, options={"similarity": "exact"}) as service:
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


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
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


def test_samples_are_divided_and_the_first_of_all_members_stand(service, small, large):
    options = {"samples": 5, "candidates": 3, "explain": True}
    answer = service.ask(model="panel", seed=0, rangevote=options).json()["rangevote"]
    assert [asked.n for asked in (*small.asked, *large.asked)] == [3, 2]
    assert (answer["samples"]["asked"], answer["votes"]) == (5, 5)
    assert answer["members"] == {"small": 3, "large": 2}
    assert sorted(one["member"] for one in answer["scores"]) == ["large", "small", "small"]
    assert answer["member"] == answer["scores"][0]["member"]
    assert len(service.ask(model="panel", temperature=0).json()["rangevote"]["members"]) == 2
    assert [asked.n for asked in (small.asked[-1], large.asked[-1])] == [1, 1]


def test_one_model_listed_twice_does_not_say_the_same_twice(small):
    small.answer = None
    with Running(small.url, upstreams={"a": small.url, "b": small.url}) as service:
        service.ask(model="panel", seed=7)
        service.ask(model="panel", seed=7)
    seeds = [asked.body["seed"] for asked in small.asked]
    assert len(set(seeds)) == 2
    assert sorted(seeds[:2]) == sorted(seeds[2:])


def test_sampling_stops_where_the_panel_is_certain(service, small, large):
    large.answer = texts("at ten")
    options = {"samples": 60, "adaptive": 0.99}
    answer = service.ask(model="panel", rangevote=options).json()["rangevote"]
    assert (answer["certain"], answer["samples"]["asked"] + answer["samples"]["saved"]) == (True, 60)
    assert answer["members"] == {"small": 8, "large": 8}  # as many as of one model
    unequal = {**options, "shares": {"small": 0.2, "large": 0.8}}
    slower = service.ask(model="panel", rangevote=unequal).json()["rangevote"]
    assert slower["certain"]
    assert slower["samples"]["asked"] >= 16


def test_the_next_member_is_asked_only_where_those_before_do_not_agree(service, small, large):
    stages = {"samples": 8, "escalate": "share<1"}
    reply = service.ask(model="panel", seed=0, rangevote=stages)
    answer = reply.json()["rangevote"]
    assert large.asked == []
    assert (answer["members"], answer["samples"]["saved"]) == ({"small": 4, "large": 0}, 4)
    assert (answer["member"], answer["panel"]) == ("small", {"shares": {"small": 1.0}, "left_out": []})
    assert reply.headers["x-rangevote-members"] == "small=4, large=0"
    assert reply.headers["x-rangevote-saved"] == "4"
    small.answer = texts("at ten", "at noon")
    reply = service.ask(model="panel", seed=0, rangevote=stages)
    answer = reply.json()["rangevote"]
    assert (answer["members"], answer["samples"]["saved"]) == ({"small": 4, "large": 4}, 0)
    assert answer["panel"]["shares"] == {"small": 0.5, "large": 0.5}
    assert reply.headers["x-rangevote-members"] == "small=4, large=4"
    assert service.ask(model="panel", rangevote={**stages, "samples": 2}).json()["rangevote"]["members"] == {
        "small": 1,  # one vote alone agrees with nobody
        "large": 1,
    }
    counts = service.http.get("/metrics").text
    for line in ('{member="small",outcome="asked"} 3', '{member="large",outcome="spared"} 1'):
        assert f"rangevote_members_total{line}" in counts
    assert 'rangevote_member_wins_total{member="small"} 3' in counts


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
def test_a_first_member_that_fails_is_named_and_the_next_one_asked(service, small, large):
    small.answer, small.mode, large.answer = None, "broken", texts("at noon")
    reply = service.ask(model="panel", rangevote={"escalate": "share<1"}).json()
    assert reply["choices"][0]["message"]["content"] == "at noon"
    assert reply["rangevote"]["panel"] == {"shares": {"large": 1.0}, "left_out": ["small"]}
    large.answer, large.mode = None, "broken"
    assert service.ask(model="panel", rangevote={"escalate": "share<1"}).status_code == 502


def test_stages_go_on_while_the_winner_is_not_certain(service, small, large):
    stages = {"samples": 40, "adaptive": 0.95, "escalate": "undecided"}
    answer = service.ask(model="panel", rangevote=stages).json()["rangevote"]
    assert (answer["certain"], answer["members"]["large"]) == (True, 0)
    small.answer = texts("at ten", "at noon")
    answer = service.ask(model="panel", rangevote=stages).json()["rangevote"]
    assert answer["members"]["large"] > 0


def test_shares_of_a_profile_are_used(small, large, tmp_path):
    profile = '[election]\nsimilarity = "exact"\n[election.shares]\nsmall = 0.1\nlarge = 0.9\n'
    (tmp_path / "tuned.toml").write_text(profile, encoding="utf-8")
    options = profile_options(str(tmp_path / "tuned.toml"))
    members = {"small": small.url, "large": large.url}
    with Running(small.url, upstreams=members, profiles={"tuned": options}) as service:
        answer = service.ask("/v1/tuned/chat/completions", model="panel", seed=0).json()
        assert answer["choices"][0]["message"]["content"] == "at noon"
        assert answer["rangevote"]["panel"]["shares"] == pytest.approx({"small": 0.1, "large": 0.9})
        assert service.ask("/v1/tuned/chat/completions", model="small").status_code == 200


def test_what_a_panel_cannot_do_is_refused(service, small):
    for options, param in (
        ({"samples": 1}, "rangevote.samples"),
        ({"escalate": "share<2"}, "rangevote.escalate"),
        ({"escalate": "undecided"}, "rangevote.escalate"),
        ({"candidates": "beam:4"}, "rangevote.candidates"),
        ({"shares": {"huge": 1.0}}, "rangevote.shares"),
    ):
        refused = service.ask(model="panel", rangevote=options)
        assert (refused.status_code, error_of(refused)["param"]) == (400, param)
    assert small.asked == []
