"""The election page over HTTP: what it answers, to whom, and how it refuses bad requests."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import rangevote as rv
from rangevote.election.elect import elect_ballot
from rangevote.web.app import NotFound, election_app
from rangevote.web.serving import assets
from tests.figure1 import CAPTIONS, WINNER
from tests.web.samples import FIGURE, ballot, page_of

EMPTY = rv.Ballot([], id="é/?")


@pytest.fixture(scope="module")
def client() -> TestClient:
    app = election_app(page_of([FIGURE, EMPTY], [EMPTY], similarity="overlap_2"), hosts=["box.example"])
    return TestClient(app, base_url="http://127.0.0.1:8000")


def test_the_page_loads_only_its_own_files_and_has_no_scripts_or_styles_inside(client):
    page = client.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\bsrc=)", page.text)
    files = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    for name, asset in assets("rangevote.web").items():
        if name.endswith(".js"):
            files += [f"/static/{needed}" for needed in re.findall(r'from "\./([^"]*)"', asset.text)]
    assert files
    for path in {*files, "/api/election", "/api/ballots/77", "/nothing"}:
        answer = client.get(path)
        assert (answer.status_code == 200) == (path not in ("/api/ballots/77", "/nothing")), path
        assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_only_names_of_this_machine_and_allowed_ones_are_answered(client):
    for host, status in (("attacker.example", 400), ("box.example:80", 200), ("localhost", 200)):
        assert client.get("/api/election", headers={"host": host}).status_code == status


def test_the_answers_are_those_of_the_library(client):
    about = client.get("/api/election").json()
    assert about["lists"] == [{"name": "k1", "ballots": 2}, {"name": "k2", "ballots": 1}]
    assert (about["ballots"], about["kept"], about["measure"]) == (2, 2, "overlap_2")
    assert "chrf" in about["measures"]
    election = client.get("/api/ballots/0?list=0").json()
    assert election["candidates"]["rows"][0]["text"] == WINNER
    assert election["score"] == rv.elect(FIGURE, similarity="overlap_2").score
    assert election["stability"]["tried"] == 10
    assert client.get("/api/ballots/0").json() == election
    assert len(client.get("/api/ballots/0/grades").json()["grades"]) == 10
    assert (
        client.get("/api/ballots/0/candidates/3").json()["score"]
        == election["candidates"]["rows"][5]["score"]
    )
    assert client.get("/api/ballots/0/text?role=voters&index=1").json()["text"] == CAPTIONS[1]
    assert client.get("/api/ballots/0/winners").json()["measures"][1]["text"] == WINNER
    missing = client.get("/api/ballots/0/winners?list=1").json()
    assert {row["why"] for row in missing["measures"]} == {"the list k2 has no such ballot."}


def test_ballots_are_found_by_any_id(client):
    assert client.get("/api/find", params={"id": "é/?"}).json() == {"number": 1}
    assert client.get("/api/find", params={"id": "x"}).json() == {"number": None}
    first, second = client.get("/api/ballots?page=0").json()["ballots"]
    assert (first["id"], first["winner"], first["changed"], first["same"]) == ("figure 1", WINNER, True, 2)
    assert (second["id"], second["winner"]) == ("é/?", None)
    assert "there are no candidates" in second["error"]


MISSING = {
    "/api/ballots/2": "there is no number 2 among the 2 ballots",
    "/api/ballots/999999999": "there is no number 999999999",
    "/api/ballots/0?list=2": "there is no number 2 among the 2 lists",
    "/api/ballots/0?list=1": "the list k2 has no such ballot",
    "/api/ballots/0/candidates/10": "there is no number 10 among the 10 candidates",
    "/api/ballots/0/text?role=nobody": "a role is candidates or voters, not 'nobody'",
    "/api/ballots/0/text?index=10": "there is no number 10",
    "/api/ballots?page=1": "there is no page 1; pages go from 0 to 0",
}
NOT_NUMBERS = [
    *("/api/ballots/-1", "/api/ballots/1.5", "/api/ballots/٣", "/api/ballots/1234567890"),
    *("/api/ballots/0?list=x", "/api/ballots/0?list=", "/api/ballots?page=1e3"),
    *("/api/ballots/0/candidates/%00", "/api/ballots/0/text?index=0x1"),
]


def test_what_is_not_there_is_404_what_is_no_number_400_what_cannot_be_voted_on_422(client):
    for path, message in MISSING.items():
        answer = client.get(path)
        assert (answer.status_code, message in answer.json()["error"]) == (404, True), path
    for path in ("/api/nothing", "/static/election.html", "/static/../app.py", "/static/%2e%2e/app.py"):
        assert client.get(path).status_code == 404, path
    for path in NOT_NUMBERS:
        answer = client.get(path)
        assert answer.status_code == 400, path
        assert "must be a whole number from 0" in answer.json()["error"]
    answer = client.get("/api/ballots/1")
    assert (answer.status_code, "there are no candidates" in answer.json()["error"]) == (422, True)
    assert client.post("/api/election", json={}).status_code == 405


def test_answers_are_plain_json_of_any_text():
    nasty = "</script>\x00\u2028 é 💡"
    client = TestClient(election_app(page_of([ballot([nasty], [-1.0])])), base_url="http://localhost")
    answer = client.get("/api/ballots/0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["candidates"]["rows"][0]["text"] == nasty


def test_nothing_is_elected_before_it_is_asked_for_and_few_elections_are_kept(monkeypatch):
    held = []
    monkeypatch.setattr(
        "rangevote.web.api.elect_ballot", lambda *given: held.append(given) or elect_ballot(*given)
    )
    page = page_of([ballot([f"a {i}", "a"], [-1.0, -2.0]) for i in range(500)])
    assert (page.about()["ballots"], held) == (500, [])
    assert page.page(4)["pages"] == 5
    last = page.page(4)["ballots"][-1]
    assert (last["number"], last["title"], last["candidates"]) == (499, "a 499", 2)
    held.clear()
    for ask in (page.election, page.grades):
        ask(7, 0)
    page.parts(7, 0, 1)
    assert len(held) == 1
    for number in (*range(20), 7):
        page.election(number, 0)
    assert len(held) == 21


def test_an_export_has_the_ballots_that_are_kept():
    page = page_of([FIGURE, ballot([]), FIGURE], kept=2)
    paths = [
        path for answers in (page.general(), *(page.everything(n, 1) for n in (0, 1))) for path, _ in answers
    ]
    assert len(paths) == len(set(paths))
    assert not [path for path in paths if path.startswith("api/ballots/2")]
    with pytest.raises(NotFound):
        page.election(2, 0)
