"""What the pages are given and what they send: the election page, its export, and the study's judgements."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from starlette.types import ASGIApp

from fuzz import places
from fuzz.asgi import asked, strict_json
from fuzz.formats import entries
from rangevote.election.settings import Settings
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.study.app import FinishMessage, JudgementMessage, UndoMessage, parse_message, study_app
from rangevote.study.create import StudyOptions, make_study
from rangevote.study.store import Store
from rangevote.study.study_file import create_file
from rangevote.study.study_plan import Pair
from rangevote.web.app import ElectionPage, election_app
from rangevote.web.ballots import BallotLists, Ballots
from rangevote.web.single_file import data_block

#: Ballots and candidates of one input that are shown: the page compares all measures for each.
FEW, SHOWN = 2, 6
#: What no block of data may hold: what ends a script, begins a comment, or ends a line of JavaScript alone.
WAYS: tuple[dict[str, Any], ...] = ({}, {"similarity": "0.5*chrf+0.5*exact", "weights": "count"})
UNSAFE = ("<", "\u2028", "\u2029")


def _few(data: bytes) -> Iterator[Ballot]:
    for entry in islice(entries(io.BytesIO(data), None), FEW):
        ballot = entry.get()
        if len(ballot.candidates) <= SHOWN and len(ballot.voters or ()) <= SHOWN:
            yield ballot


def exported(data: bytes) -> None:
    """The block of JSON in an exported page: strict, the same as the answers, and no end of a script."""
    kept = Ballots.of("fuzz", _few(data))
    if not len(kept):
        return
    for options in WAYS:
        answers = ElectionPage(BallotLists([kept, kept]), Settings(**options))
        found = dict(answers.everything(SHOWN))
        block = data_block(found.items())
        assert not any(sign in block for sign in UNSAFE), "a text can end the script"
        assert strict_json(block) == {
            path: strict_json(msgspec.json.encode(told).decode()) for path, told in found.items()
        }
        for path, told in found.items():
            _elected(path, told, kept)


def _elected(path: str, told: Any, kept: Ballots) -> None:
    """Of an election: the winner stands in the ballot, and leads the list."""
    if "winner" not in told:
        return
    ballot = kept[int(path.removeprefix("api/ballots/").partition("?")[0])]
    assert 0 <= told["winner"] < len(ballot.candidates)
    assert told["candidates"]["rows"][0]["index"] == told["winner"]


@lru_cache(maxsize=1)
def _page() -> ASGIApp:
    listed = [Hypothesis("a b </script>", logprob=-1.0), Hypothesis("a b", logprob=-2.0), Hypothesis("")]
    ballots = [Ballot(listed, id="one"), Ballot([Hypothesis("x y")], id=2), Ballot([])]
    return election_app(
        ElectionPage(BallotLists([Ballots.of("k1", ballots), Ballots.of("k2", ballots)]), Settings())
    )


def questions(data: bytes) -> None:
    """Requests to the page's server."""
    reply = asked(_page(), data)
    assert reply.status < 500, (reply.status, reply.content[:300])
    assert reply.headers["x-content-type-options"] == "nosniff"
    if reply.headers.get("content-type", "") == "application/json" and reply.content:
        reply.json()


@lru_cache(maxsize=1)
def _study() -> tuple[Store, ASGIApp, str]:
    path = places.folder() / "study.db"
    listed = [Pair(str(n), f"caption {n}", f"another caption {n}") for n in range(3)]
    create_file(path, make_study(("beam", "voted"), listed, StudyOptions()), {})
    store = Store(path)
    return store, study_app(store), store.study.annotators[0].token


def judgements(data: bytes) -> None:
    """What the study's page sends: `ITEM` stands for the handle of an item that is there."""
    store, app, token = _study()
    data = data.replace(b"ITEM", store.study.assignments[0].handle.encode())
    body = data.partition(b"\n\n")[2]
    for kind in (JudgementMessage, UndoMessage, FinishMessage):
        with suppress(RangevoteError):
            parse_message(body, kind)
    reply = asked(app, data, authorization=f"Bearer {token}", content_type="application/json")
    assert reply.status < 500, (reply.status, reply.content[:300])
    shown = store.judged(0)
    assert all(type(value) is int and -2 <= value <= 2 for value in shown.values()), "an answer that is none"
