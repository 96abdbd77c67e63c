"""The election page over HTTP: what it answers, to whom, and what it says of bad questions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.web.answers import Answers
from rangevote.web.app import election_app
from rangevote.web.assets import assets
from rangevote.web.ballots import Ballots, Lists
from tests.figure1 import CAPTIONS, WINNER
from tests.web.samples import FIGURE

EMPTY = rv.Ballot([], id="é/?")


def answers() -> Answers:
    return Answers(Lists([Ballots.of("k10", [FIGURE, EMPTY]), Ballots.of("k0", [EMPTY])]), Settings.of())


@pytest.fixture
def client() -> TestClient:
    return TestClient(election_app(answers()), base_url="http://127.0.0.1:8000")


def test_the_page_loads_only_what_it_has(client):
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert named
    for path in named:
        assert client.get(path).status_code == 200, path
    for name, asset in assets("rangevote.web").items():
        if name.endswith(".js"):
            for needed in re.findall(r'from "\./([^"]*)"', asset.text):
                assert client.get(f"/static/{needed}").headers["content-type"].startswith("text/javascript")


def test_every_answer_forbids_scripts_and_styles_from_elsewhere(client):
    for path in ("/", "/api/election", "/api/ballots/77", "/static/election.js", "/nothing"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_scripts_or_styles_of_its_own_inside(client):
    page = client.get("/").text
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\bsrc=)", page)


def test_hosts_of_others_are_refused_and_named_ones_are_not():
    app = election_app(answers(), hosts=["box.example"])
    assert TestClient(app, base_url="http://attacker.example").get("/api/election").status_code == 400
    assert TestClient(app, base_url="http://box.example:80").get("/api/election").status_code == 200
    assert TestClient(app, base_url="http://localhost").get("/").status_code == 200


def test_the_answers_are_those_of_the_library(client):
    about = client.get("/api/election").json()
    assert about["lists"] == [{"name": "k10", "ballots": 2}, {"name": "k0", "ballots": 1}]
    assert (about["ballots"], about["kept"], about["measure"]) == (2, 2, "overlap_2")
    election = client.get("/api/ballots/0?list=0").json()
    assert election["candidates"]["rows"][0]["text"] == WINNER
    assert election["score"] == rv.elect(FIGURE).score
    assert client.get("/api/ballots/0").json() == election
    assert len(client.get("/api/ballots/0/grades").json()["grades"]) == 10
    assert client.get("/api/ballots/0/candidates/3").json()["score"] == rv.elect(FIGURE).scores[3]
    assert client.get("/api/ballots/0/text?role=voters&index=1").json()["text"] == CAPTIONS[1]
    assert client.get("/api/ballots/0/stability").json()["tried"] == 10
    assert client.get("/api/ballots/0/winners").json()["measures"][1]["text"] == WINNER


def test_ballots_are_found_by_any_id(client):
    assert client.get("/api/find", params={"id": "é/?"}).json() == {"number": 1}
    assert client.get("/api/find", params={"id": "x"}).json() == {"number": None}
    assert [one["id"] for one in client.get("/api/ballots?page=0").json()["ballots"]] == ["figure 1", "é/?"]


def test_a_list_without_the_ballot_has_no_winners_and_says_so(client):
    found = client.get("/api/ballots/0/winners?list=1").json()
    assert {row["why"] for row in found["measures"]} == {"the list k0 has no such ballot."}


@pytest.mark.parametrize(
    "path",
    [
        "/api/ballots/2",
        "/api/ballots/999999999",
        "/api/ballots/0?list=2",
        "/api/ballots/0?list=1",
        "/api/ballots/0/candidates/10",
        "/api/ballots/0/text?role=nobody",
        "/api/ballots/0/text?index=10",
        "/api/ballots?page=1",
        "/api/nothing",
        "/static/election.html",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
    ],
)
def test_what_is_not_there_is_404(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/ballots/-1",
        "/api/ballots/1.5",
        "/api/ballots/x",
        "/api/ballots/٣",
        "/api/ballots/1234567890",
        "/api/ballots/0?list=x",
        "/api/ballots/0?list=",
        "/api/ballots?page=1e3",
        "/api/ballots/0/candidates/%00",
        "/api/ballots/0/text?index=0x1",
    ],
)
def test_a_number_that_is_none_is_told(client, path):
    answer = client.get(path)
    assert answer.status_code == 400
    assert "must be a whole number from 0" in answer.json()["error"]


def test_a_ballot_that_cannot_be_voted_on_says_why(client):
    answer = client.get("/api/ballots/1")
    assert answer.status_code == 422
    assert "there are no candidates" in answer.json()["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(client, method):
    answer = client.request(method, "/api/election", json={})
    assert answer.status_code == 405


def test_answers_are_plain_json_of_any_text():
    nasty = rv.Ballot([rv.Hypothesis(text="</script>\x00\u2028 é 💡", logprob=-1.0)])
    client = TestClient(
        election_app(Answers(Lists([Ballots.of("x", [nasty])]), Settings.of())), base_url="http://localhost"
    )
    answer = client.get("/api/ballots/0")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(answer.content)
    assert found["candidates"]["rows"][0]["text"] == "</script>\x00\u2028 é 💡"
