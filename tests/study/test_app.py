"""The application of a study: blind, strict, quick to refuse."""

from __future__ import annotations

import hashlib
import json
import sqlite3

import pytest

pytest.importorskip("starlette", reason="pip install rangevote[web]")

from starlette.testclient import TestClient

from rangevote.errors import DataError
from rangevote.study.app import MOST_WRONG, WINDOW, LinkAuth, UnknownLink, runner_token, study_app
from rangevote.study.plan import Annotator, Pair
from rangevote.study.store import Store, create_file, take_snapshot
from rangevote.web.images import PageImage
from tests.study.samples import TIME, pairs, png, study_file, study_of

KEY = "0123456789abcdef0123456789abcdef"


class Page:
    """A browser's page, by its messages."""

    def __init__(self, path):
        self.path = path
        self.store = Store(path)
        self.client = TestClient(study_app(self.store), base_url="http://127.0.0.1:8710")
        self.token = self.store.study.annotators[0].token

    def get(self, path):
        return self.client.get(path, headers={"authorization": f"Bearer {self.token}"})

    def session(self):
        answer = self.get("/api/session")
        assert answer.status_code == 200
        return answer.json()

    def first(self):
        return self.store.study.assignments[0].handle

    def post(self, name, body, **headers):
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        sent = {"content-type": "application/json", "authorization": f"Bearer {self.token}", **headers}
        return self.client.post(f"/api/{name}", content=content, headers=sent)

    def judge(self, item, value, key=KEY):
        return self.post("judgement", message(item, value=value, key=key))

    def rows(self):
        return take_snapshot(self.path).rows


def message(item, **fields):
    sent = {"item": item, "value": 1, "key": KEY, "time": TIME, "duration": 900, "image_missing": False}
    return sent | fields


@pytest.fixture
def open_page(tmp_path):
    """`open_page(pairs, **options)` -> the page of a new study's first annotator."""
    opened = []

    def make(listed, **options):
        opened.append(Page(study_file(tmp_path, listed, **options)))
        return opened[-1]

    yield make
    for one in opened:
        one.store.close()


@pytest.fixture
def page(open_page):
    return open_page(pairs(4, source="the source"), annotators=2, checks=2)


def test_the_browser_learns_nothing_but_texts_and_opaque_ids(page):
    session = page.session()
    assert session.keys() == {
        *("study", "opened", "annotator", "title", "question", "instructions", "scale", "items", "judged"),
        *("finished", "code", "practice", "differences"),
    }
    assert all(item.keys() == {"id", "left", "right", "source", "image"} for item in session["items"])
    assert len(session["items"]) == 6
    text = json.dumps(session)
    for secret in ("beam", "voted", "expected", "check", "swapped", "seed", "annotator-2", page.token):
        assert secret not in text
    assignments = {a.handle: a for a in page.store.study.assignments}
    for item in session["items"]:
        pair = page.store.study.pairs[assignments[item["id"]].pair]
        sides = [pair.first, pair.second]
        assert [item["left"], item["right"]] == (sides[::-1] if assignments[item["id"]].swapped else sides)


def test_judgements_undos_and_finishes_are_saved_and_resumed(page):
    items = [item["id"] for item in page.session()["items"]]
    answer = page.judge(items[0], -2)
    assert (answer.status_code, answer.json()) == (200, {"value": -2, "replaced": None})
    assert page.session()["judged"] == [[items[0], -2, None]]
    undone = page.judge(items[0], None, "u" * 16)
    assert undone.json() == {"value": None, "replaced": -2}
    assert page.post("finish", {}).status_code == 400
    for number, item in enumerate(items):
        page.judge(item, 0, f"{number:016}")
    assert page.post("finish", {"now": 1}).status_code == 400
    assert not page.session()["finished"]
    assert page.post("finish", {}).json() == {"finished": True, "code": None}
    assert page.session()["finished"]


def test_who_cannot_judge_says_so_and_a_comment_goes_with_the_answer(page):
    item = page.first()
    answer = page.post("judgement", message(item, value="cannot", comment=" no source \n"))
    assert answer.json() == {"value": "cannot", "replaced": None}
    assert page.session()["judged"] == [[item, "cannot", "no source"]]
    assert page.judge(item, 2, "k" * 16).json() == {"value": 2, "replaced": "cannot"}
    assert [(row.shown, row.resolved is None, row.cannot, row.comment) for row in page.rows()] == [
        (None, True, True, "no source"),
        (2, False, False, None),
    ]


def test_the_completion_code_is_told_after_the_finish_and_not_before(open_page):
    page = open_page(2, completion_code="C0DE-42")
    assert "C0DE-42" not in json.dumps(page.session())
    for number, item in enumerate(page.session()["items"]):
        page.judge(item["id"], 1, f"{number:016}")
    assert page.session()["code"] is None
    assert page.post("finish", {}).json() == {"finished": True, "code": "C0DE-42"}
    assert page.session()["code"] == "C0DE-42"


def test_who_runs_the_study_sees_how_far_everybody_is_and_no_result(page):
    page.judge(page.first(), 2)
    annotator_token, page.token = page.token, runner_token(page.store.study.annotators)
    progress = page.get("/api/progress").json()
    assert progress.keys() == {"title", "time", "people"}
    fields = {"name", "assigned", "judged", "cannot", "comments", "seconds", "opened", "last", "finished"}
    assert all(one.keys() == fields for one in progress["people"])
    people = [(one["judged"], one["assigned"], one["seconds"]) for one in progress["people"]]
    assert people == [(1, 6, 0.9), (0, 6, None)]
    assert page.get("/api/session").status_code == 404  # it is no annotator's link
    for request in ("judgement", "finish"):
        assert page.post(request, message(page.first())).status_code == 404
    page.token = annotator_token
    assert page.get("/api/progress").status_code == 404
    assert page.client.get("/progress").status_code == 200


BAD = [
    *({"value": value} for value in (3, -3, "2", True, 1.5, [1], {}, 10**30)),
    *(
        {"item": item}
        for item in ("0" * 31, "0" * 33, "G" * 32, "../../etc/passwd", None, 5, "0" * 32 + "\n")
    ),
    *({"key": key} for key in ("short", "x" * 65, "key with spaces in it", None, 5, "k" * 16 + "\n")),
    *({"duration": value} for value in (-1, 1.5, "9", True, 86_400_001)),
    *({"time": value} for value in ("now", None, 5, TIME + "\n", "2026-01-31T12:00:00+01:00")),
    *({"comment": value} for value in (None, 5, "x" * 2001)),
    *({"image_missing": 1}, {"extra": 1}),
]
BODIES = [b"", b"null", b"[]", b"{", b"NaN", b'"x"', b"\xff\xfe", b"[" * 3000, b'{"item": NaN}']


def test_what_is_not_valid_is_400_another_annotators_item_403_and_neither_leaves_a_row(page):
    item = page.first()
    other = next(a.handle for a in page.store.study.assignments if a.annotator == 1)
    for foreign in (other, "0" * 32):
        assert page.judge(foreign, 1).status_code == 403
    for fields in BAD:
        answer = page.post("judgement", message(item) | fields)
        assert answer.status_code == 400, fields
        assert next(iter(fields)) in answer.json()["error"]
    without = page.post("judgement", {"item": item, "key": KEY, "time": TIME})  # to undo is to send null
    assert (without.status_code, "`value`" in without.json()["error"]) == (400, True)
    for body in BODIES:
        for name in ("judgement", "finish"):
            assert page.post(name, body).status_code == 400, body
    assert page.rows() == []


def test_a_locked_file_is_503_and_names_no_path(page):
    item = page.session()["items"][0]["id"]
    page.store._db.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(page.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = page.judge(item, 1)
    assert answer.status_code == 503
    assert answer.json() == {"error": "not saved: the study's file cannot be used at the moment"}
    other.execute("ROLLBACK")
    other.close()
    assert page.judge(item, 1).status_code == 200


def test_a_wrong_link_is_404_and_many_are_429(page):
    for header in (None, "", "Bearer", "Basic abc", "Bearer \xe9", "Bearer " + "x" * 20000):
        headers = {} if header is None else {"authorization": header.encode("latin-1")}
        assert page.client.get("/api/session", headers=headers).status_code == 404
    right, page.token = page.token, "A" * 22
    left = MOST_WRONG - 6
    statuses = [page.get("/api/session").status_code for _ in range(left + 3)]
    assert statuses == [404] * left + [429] * 3
    assert int(page.get("/api/session").headers["retry-after"]) > 0
    page.token = right
    assert page.get("/api/session").status_code == 429  # never seen from here


def test_those_at_work_are_not_disturbed_by_a_guesser():
    now = [0.0]
    auth = LinkAuth([Annotator("one", "right"), Annotator("two", "other")], clock=lambda: now[0])
    assert auth.who("Bearer right", "here") == 0
    for _ in range(MOST_WRONG):
        with pytest.raises(UnknownLink):
            auth.who("Bearer wrong", "here")
    assert auth.who("Bearer right", "here") == 0
    with pytest.raises(UnknownLink) as refused:
        auth.who("Bearer other", "here")
    assert 0 < refused.value.wait <= WINDOW + 1
    assert auth.who("Bearer other", "elsewhere") == 1
    now[0] += WINDOW + 1
    assert auth.who("bearer other", "here") == 1


def test_the_item_for_practice_is_swapped_for_some_annotators(open_page):
    page = open_page([*pairs(3), Pair("p", "one", "other", practice=True)], annotators=12)
    left = set()
    for annotator in page.store.study.annotators:
        page.token = annotator.token
        practice = page.session()["practice"]
        assert {practice["left"], practice["right"]} == {"one", "other"}
        left.add(practice["left"])
    assert left == {"one", "other"}


def test_a_foreign_page_cannot_judge_and_a_message_is_bounded(page):
    sent = message(page.first())
    assert page.post("judgement", sent, **{"sec-fetch-site": "cross-site"}).status_code == 403
    assert page.post("judgement", sent | {"comment": "x" * 20_000}).status_code == 413
    assert page.rows() == []


NOWHERE = [
    *("/img/" + "0" * 64, "/img/../study.db", "/img/%2e%2e/study.db", "/img/..%2fstudy.db", "/img/a%00b"),
    *("/img/", "/study.db", "/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/study.html"),
]


def test_an_image_is_served_by_its_hash_and_paths_lead_nowhere(tmp_path):
    path, content = tmp_path / "study.db", png()
    for name in ("ab" * 32, hashlib.sha256(content).hexdigest()):
        study = study_of([Pair("1", "a", "b", image=name)])
        create_file(path, study, {name: PageImage("image/png", content)})
        if name.startswith("abab"):  # an image has the name of its content
            with pytest.raises(DataError, match="was edited after it was made"):
                Store(path)
    page = Page(path)
    [item] = page.session()["items"]
    answer = page.client.get(item["image"])
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    for nowhere in NOWHERE:
        assert page.client.get(nowhere).status_code == 404
    page.store.close()
