"""The election page over HTTP: what it answers, to whom, and how it refuses bad requests."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import rangevote as rv
from rangevote.election.elect import elect_ballot
from rangevote.election.settings import Settings
from rangevote.errors import DataError
from rangevote.formats import read
from rangevote.web.app import Ballots, ElectionPage, election_app
from rangevote.web.clusters import WhatIf
from rangevote.web.export_html import export_answers
from rangevote.web.serving import assets
from tests.figure1 import CAPTIONS, WINNER
from tests.study.samples import png
from tests.web.samples import FIGURE, ballot, page_of, panel

EMPTY = rv.Ballot([], id="é/?")


def client_of(page: ElectionPage) -> TestClient:
    return TestClient(election_app(page), base_url="http://127.0.0.1:8000")


@pytest.fixture(scope="module")
def client() -> TestClient:
    return client_of(page_of([FIGURE, EMPTY], [EMPTY], similarity="overlap_2"))


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
    rows = election["candidates"]["rows"]
    assert client.get(f"/api/ballots/0/candidates/{rows[5]['index']}").json()["score"] == rows[5]["score"]
    assert client.get("/api/ballots/0/text?role=voters&index=1").json()["text"] == CAPTIONS[1]
    assert client.get("/api/ballots/0/winners").json()["measures"][1]["text"] == WINNER
    missing = client.get("/api/ballots/0/winners?list=1").json()
    assert {row["why"] for row in missing["measures"]} == {"the list k2 has no such ballot."}


def test_ballots_are_found_by_any_id(client):
    assert client.get("/api/find", params={"id": "é/?"}).json() == {"number": 1}
    assert client.get("/api/find", params={"id": "x"}).json() == {"number": None}
    first, second = client.get("/api/ballots?page=0").json()
    assert (first["id"], first["winner"], first["changed"], first["stays"]) == ("figure 1", WINNER, True, 0.2)
    assert (second["id"], second["winner"]) == ("é/?", None)
    assert "there are no candidates" in second["error"]


MISSING = {
    "/api/ballots/2": "there is no number 2 among the 2 ballots",
    "/api/ballots/999999999": "there is no number 999999999",
    "/api/ballots/0?list=2": "there is no number 2 among the 2 lists",
    "/api/ballots/0?list=1": "the list k2 has no such ballot",
    "/api/ballots/0/candidates/10": "there is no number 10 among the 10 candidates",
    "/api/ballots/0/text?index=10": "there is no number 10",
    "/api/ballots?page=1": "there is no number 1 among the 1 pages",
}
MALFORMED = [
    *("/api/ballots/-1", "/api/ballots/1.5", "/api/ballots/٣", "/api/ballots/1234567890"),
    *("/api/ballots/0?list=x", "/api/ballots?page=-1", "/api/ballots/0/text?role=nobody"),
    *("/api/ballots/0/candidates/%00", "/api/ballots/0/text?index=0x1"),
    "/api/ballots/0?similarity=embedding:any/model",  # it would be loaded
    f"/api/ballots/0?similarity={'x' * 5000}",
    *(f"/api/ballots/0?{one}" for one in ("temperature=0", "temperature=nan", "likelihood=-1")),
    *(f"/api/ballots/0?{one}" for one in ("likelihood=1e999", "without=-1", f"without={'9' * 50}")),
    *(f"/api/ballots/0?{one}" for one in ("weights=importance; drop", "voters=nobody")),
]


def test_what_is_not_there_is_404_what_is_malformed_400_what_cannot_be_voted_on_422(client):
    for path, message in MISSING.items():
        answer = client.get(path)
        assert (answer.status_code, message in answer.json()["error"]) == (404, True), path
    for path in ("/api/nothing", "/static/election.html", "/static/../app.py", "/static/%2e%2e/app.py"):
        assert client.get(path).status_code == 404, path
    for path in MALFORMED:
        answer = client.get(path)
        assert answer.status_code == 400, path
        assert len(answer.json()["error"]) < 6000
    for path, why in (("1", "there are no candidates"), ("0?without=10", "there is no voter 10")):
        answer = client.get(f"/api/ballots/{path}")
        assert (answer.status_code, why in answer.json()["error"]) == (422, True)
    assert client.post("/api/election", json={}).status_code == 405


def test_nothing_is_elected_before_it_is_asked_for_and_few_elections_are_kept(monkeypatch):
    held = []
    monkeypatch.setattr(
        "rangevote.web.api.elect_ballot", lambda *given: held.append(given) or elect_ballot(*given)
    )
    page = page_of([ballot([f"a {i}", "a"], [-1.0, -2.0]) for i in range(500)])
    assert (page.about().ballots, held) == (500, [])
    last = page.page(4)[-1]
    assert (last.number, last.title) == (499, "a 499")
    held.clear()
    for ask in (page.election, page.grades):
        ask(7, 0)
    page.parts(7, 0, 1)
    assert len(held) == 1
    for number in (*range(20), 7):
        page.election(number, 0)
    assert len(held) == 21


PAPER = {"similarity": "overlap_2", "temperature": 1.0}


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ({"similarity": "chrf"}, {"similarity": "chrf"}),
        ({"temperature": "4"}, {"temperature": 4.0}),
        ({"likelihood": "0.5"}, {"likelihood": 0.5}),
        ({"weights": "count"}, {"weights": "count", "temperature": None}),
        ({"similarity": "overlap_1", "likelihood": "0.1"}, {"similarity": "overlap_1", "likelihood": 0.1}),
        ({"similarity": "", "temperature": ""}, {}),
    ],
)
def test_changed_settings_give_the_election_with_them(query, options):
    shown = client_of(page_of([FIGURE], **PAPER)).get("/api/ballots/0", params=query).json()
    expected, before = rv.elect(FIGURE, **(PAPER | options)), rv.elect(FIGURE, **PAPER)
    assert shown["signature"] == expected.signature
    assert [row["index"] for row in shown["candidates"]["rows"]] == list(expected.ranking)
    if options:
        assert shown["original_winner"] == before.index
        ranks = {row["index"]: row["original_rank"] for row in shown["candidates"]["rows"]}
        assert [ranks[index] for index in before.ranking] == list(range(1, 11))
    else:
        assert shown["original_winner"] is None


def test_a_voter_can_be_left_out_and_candidates_can_vote_instead_of_the_voters():
    given = ballot(CAPTIONS[:4], voters=ballot(CAPTIONS[4:]).candidates)
    page = page_of([given], similarity="overlap_2")
    without = page.election(0, 0, WhatIf(without=2))
    voters = [text for i, text in enumerate(CAPTIONS[4:]) if i != 2]
    assert without.signature == rv.elect(CAPTIONS[:4], voters=voters, similarity="overlap_2").signature
    assert sorted(row.text for row in without.voters.rows) == sorted(voters)
    own = page.election(0, 0, WhatIf(voters="candidates"))
    assert own.score == rv.elect(CAPTIONS[:4], similarity="overlap_2").score
    assert own.voters.same


@pytest.mark.filterwarnings("error:no voter supports")
def test_elections_that_the_page_tries_do_not_warn():
    page = page_of([ballot(["a b c", "a b d"])], similarity="overlap_1")
    assert page.election(0, 0, WhatIf(similarity="bleu_4")).no_support
    assert page.winners(0, 0).candidates == 2
    with pytest.warns(rv.RangevoteWarning, match="no_support"):
        page_of([ballot(["a", "b"])], similarity="overlap_1").election(0, 0)


PANEL = [
    panel(("b", "it is 3"), ("a", "3"), ("c", "4"), id=1),
    panel(("b", "7"), ("c", "7"), id=2),
    EMPTY,
]


def test_a_panel_has_its_members_on_candidates_voters_and_in_a_table_of_the_file():
    page = page_of(PANEL, [panel(("d", "5"))], similarity="exact:last_number")
    client = client_of(page)
    assert client.get("/api/election").json()["members"] == ["a", "b", "c", "d"]
    election = client.get("/api/ballots/0").json()
    assert [row["member"] for row in election["candidates"]["rows"]] == ["b", "a", "c"]
    assert election["voters"] == {"total": 3, "same": True, "rows": []}
    assert election["shares"] == pytest.approx(dict.fromkeys("abc", 1 / 3))
    assert [row["member"] for row in client.get("/api/ballots").json()] == ["b", "b", None]
    counted = client.get("/api/members?list=0").json()
    assert (counted["ballots"], counted["total"]) == (2, 3)  # the empty one has no election
    wins = {member["name"]: member["wins"] for member in counted["members"]}
    assert wins == {"a": 1, "b": 2, "c": 1}
    assert [member["name"] for member in client.get("/api/members?list=1").json()["members"]] == ["d"]
    assert client.get("/api/members?list=2").status_code == 404


@pytest.mark.filterwarnings("ignore::rangevote.errors.RangevoteWarning")
def test_shares_by_agreement_are_found_over_the_whole_list():
    ballots = [
        panel(("a", "1"), ("b", "1"), ("c", f"{i}")) if i % 3 else panel(("a", "2"), ("b", "3"), ("c", "2"))
        for i in range(12)
    ]
    page = page_of([*ballots, EMPTY], similarity="exact:last_number", shares="agreement")
    expected = rv.agreement_shares(ballots, similarity="exact:last_number")
    assert page.election(0, 0).shares == pytest.approx(expected.shares)
    shown = {member.name: (member.agreement_share, member.share) for member in page.members(0).members}
    assert shown == {name: (share, pytest.approx(share)) for name, share in expected.shares.items()}


def test_lists_without_members_have_no_panel(client):
    assert client.get("/api/election").json()["members"] == []
    election = client.get("/api/ballots/0").json()
    assert (election["shares"], election["candidates"]["rows"][0]["member"]) == (None, None)
    assert not [path for path in dict(export_answers(page_of([FIGURE])))[""] if "members" in path]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_colours_of_members_stand_out_on_the_light_and_on_the_dark_ground():
    """WCAG 2.1, 1.4.11: at least 3 to 1 for what carries meaning beside text."""
    colours = dict(re.findall(r"--(cluster-\d): (#\w{6})", assets("rangevote.web")["election.css"].text))
    assert len(colours) == 8
    grounds = re.findall(r"--(?:ground|panel): (#\w{6})", assets("rangevote.web")["base.css"].text)
    assert len(grounds) == 4
    for name, colour in colours.items():
        for ground in grounds:
            low, high = sorted([luminance(colour), luminance(ground)])
            assert (high + 0.05) / (low + 0.05) >= 3, (name, ground)


def test_a_picture_is_shown_where_source_or_id_names_one_below_the_folder(tmp_path: Path):
    (tmp_path / "in").mkdir()
    for name in ("in/a.png", "outside.png"):
        (tmp_path / name).write_bytes(png())
    (tmp_path / "in" / "text.png").write_text("not an image")
    ids = ["a.png", "../outside.png", str(tmp_path / "outside.png"), "text.png", "none.png", "a"]
    ballots = Ballots("k", [ballot(["a b", "a c"], id=id) for id in ids])
    page = ElectionPage([ballots], Settings(similarity="overlap_2"), images=tmp_path / "in")
    client = client_of(page)
    paths = [page.election(number, 0).ballot.image for number in range(len(ids))]
    assert paths == ["api/ballots/0/image?list=0", None, None, None, None, None]
    answer = client.get("/api/ballots/0/image")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/png", png())
    for number in (1, 2, 3, 5, 99):
        assert client.get(f"/api/ballots/{number}/image").status_code == 404
    exported = dict(export_answers(page))["api/ballots/0"]["api/ballots/0?list=0"]
    assert exported.ballot.image.startswith("data:image/png;base64,iVBOR")


def test_ballots_come_back_as_they_were_by_number_and_by_id():
    many = [
        ballot([f"text {i}", "é\u2028\x00"], [-1.0, -math.inf], id=i if i % 2 else None) for i in range(50)
    ]
    kept = Ballots("x", many)
    assert len(kept) == 50
    assert [kept[i] for i in (49, 0, 17)] == [many[49], many[0], many[17]]
    assert (kept.ids["17"], "16" in kept.ids) == (17, False)
    with pytest.raises(IndexError):
        kept[50]


def test_a_file_without_ballots_and_one_with_a_bad_ballot_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    for content, where in (("", "x: holds no ballots"), ('{"candidates": ["a"]}\n{}\n', r"x\.jsonl:2")):
        path.write_text(content)
        with read(path) as entries, pytest.raises(DataError, match=where):
            Ballots.read("x", entries)


def test_lists_are_matched_by_id_or_else_by_place():
    a, b, c = (ballot([name], id=name) for name in "abc")
    x, y = ballot(["x"]), ballot(["y"])
    for first, second, partners, unmatched in (
        ([a, b], [c, b], [None, b], 1),
        ([x, y], [y], [y, None], 0),
        ([a], [x, y], [None], 2),
    ):
        page = page_of(first, second)
        assert [page._ballot(number, 1) for number in range(len(first))] == partners
        assert list(page.unmatched()) == ([("k2", unmatched)] if unmatched else [])
