"""What if: turned settings give the elections of `elect` with them; what is not offered is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.errors import UsageError
from rangevote.web.app import ElectionPage, election_app
from rangevote.web.ballots import BallotLists, Ballots
from rangevote.web.what_if import WhatIf
from tests.figure1 import CAPTIONS
from tests.web.samples import FIGURE, ballot, page_of

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
def test_turned_settings_give_the_election_with_them(query, options):
    page = page_of([FIGURE], **PAPER)
    shown = page.election(0, 0, WhatIf.of(query))
    expected = rv.elect(FIGURE, **(PAPER | options))
    assert shown["signature"] == expected.signature
    assert [row["index"] for row in shown["candidates"]["rows"]] == list(expected.ranking)
    before = rv.elect(FIGURE, **PAPER)
    if any(query.values()):
        assert shown["before"]["winner"] == before.index
        assert shown["before"]["ranks"][str(before.ranking[4])] == 5
    else:
        assert shown["before"] is None


def test_a_voter_can_stay_away_and_candidates_can_vote_instead_of_the_voters():
    given = ballot(CAPTIONS[:4], voters=ballot(CAPTIONS[4:]).candidates)
    page = page_of([given], similarity="overlap_2")
    without = page.election(0, 0, WhatIf.of({"without": "2"}))
    voters = [text for i, text in enumerate(CAPTIONS[4:]) if i != 2]
    assert without["signature"] == rv.elect(CAPTIONS[:4], voters=voters, similarity="overlap_2").signature
    assert sorted(row["text"] for row in without["voters"]["rows"]) == sorted(voters)
    own = page.election(0, 0, WhatIf.of({"voters": "candidates"}))
    assert own["score"] == rv.elect(CAPTIONS[:4], similarity="overlap_2").score
    assert own["voters"]["same"]


@pytest.mark.parametrize(
    "query",
    [
        {"similarity": "embedding:any/model"},  # it would be loaded
        {"similarity": "x" * 5000},
        {"temperature": "0"},
        {"temperature": "nan"},
        {"likelihood": "-1"},
        {"likelihood": "1e999"},
        {"without": "-1"},
        {"without": "10"},
        {"without": "9" * 50},
        {"weights": "importance; drop"},
        {"voters": "nobody"},
    ],
)
def test_what_is_not_offered_is_refused(query):
    with pytest.raises(UsageError):
        page_of([FIGURE]).election(0, 0, WhatIf.of(query))
    client = TestClient(election_app(page_of([FIGURE])), base_url="http://localhost")
    answer = client.get("/api/ballots/0", params=query)
    assert answer.status_code == 422
    assert len(answer.json()["error"]) < 6000


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c6360000002000154a24f5d0000000049454e44ae426082"
)


def test_a_picture_is_shown_where_source_or_id_names_one_below_the_folder(tmp_path: Path):
    (tmp_path / "in").mkdir()
    for name in ("in/a.png", "outside.png"):
        (tmp_path / name).write_bytes(PIXEL)
    (tmp_path / "in" / "text.png").write_text("not an image")
    ids = ["a.png", "../outside.png", str(tmp_path / "outside.png"), "text.png", "none.png", "a"]
    ballots = [ballot(["a b", "a c"], id=id) for id in ids]
    page = ElectionPage(
        BallotLists([Ballots.of("k", ballots)]), Settings(similarity="overlap_2"), images=tmp_path / "in"
    )
    client = TestClient(election_app(page), base_url="http://localhost")
    paths = [page.election(number, 0)["ballot"]["image"] for number in range(len(ids))]
    assert paths == ["api/ballots/0/image?list=0", None, None, None, None, None]
    answer = client.get("/api/ballots/0/image")
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/png", PIXEL)
    for number in (1, 2, 3, 5, 99):
        assert client.get(f"/api/ballots/{number}/image").status_code == 404
    exported = dict(page.everything(0, 1))["api/ballots/0?list=0"]
    assert exported["ballot"]["image"].startswith("data:image/png;base64,iVBOR")
