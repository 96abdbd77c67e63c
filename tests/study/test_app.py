"""What the page's server answers: blind, strict, quick to refuse."""

from __future__ import annotations

import io
import json
import sqlite3

import pytest

pytest.importorskip("starlette", reason="pip install rangevote[web]")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from rangevote.study.access import MOST_WRONG, WINDOW, Doorkeeper, Unknown
from rangevote.study.app import study_app
from rangevote.study.archive import create
from rangevote.study.images import import_picture
from rangevote.study.message import _HANDLE, _KEY, _TIME
from rangevote.study.openapi import description
from rangevote.study.plan import Annotator, Pair
from rangevote.study.snapshot import take
from rangevote.study.store import Store
from tests.study.making import TIME, pairs, study_of

KEY = "0123456789abcdef0123456789abcdef"


class Page:
    """A browser's page, by its messages."""

    def __init__(self, path, annotator=0):
        self.path = path
        self.store = Store(path)
        self.client = TestClient(study_app(self.store), base_url="http://127.0.0.1:8710")
        self.token = self.store.study.annotators[annotator].token

    def headers(self):
        return {"authorization": f"Bearer {self.token}"}

    def session(self):
        answer = self.client.get("/api/session", headers=self.headers())
        assert answer.status_code == 200
        return answer.json()

    def post(self, what, body, **headers):
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        named = {"content-type": "application/json", **self.headers(), **headers}
        return self.client.post(f"/api/{what}", content=content, headers=named)

    def judge(self, item, value, key=KEY):
        return self.post("judgement", message(item, value=value, key=key))


def message(item, **fields):
    return {
        "item": item,
        "value": 1,
        "key": KEY,
        "time": TIME,
        "duration": 900,
        "image_missing": False,
        **fields,
    }


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "study.db"
    create(place, study_of(pairs(4, source="the source"), annotators=2, checks=2), {})
    return place


@pytest.fixture
def page(path):
    found = Page(path)
    yield found
    found.store.close()


def test_the_browser_learns_nothing_but_texts_and_opaque_ids(page):
    session = page.session()
    assert session.keys() == {
        *("study", "opened", "annotator", "title", "question", "instructions", "scale", "items", "judged"),
        "finished",
    }
    assert all(item.keys() == {"id", "left", "right", "source"} for item in session["items"])
    assert len(session["items"]) == 6
    text = json.dumps(session)
    for secret in ("beam", "voted", "expected", "check", "swapped", "seed", "annotator-2", page.token):
        assert secret not in text


def test_sides_are_as_the_study_says(page):
    dealt = {a.handle: a for a in page.store.study.assignments}
    for item in page.session()["items"]:
        pair = page.store.study.pairs[dealt[item["id"]].pair]
        sides = [pair.first, pair.second]
        assert [item["left"], item["right"]] == (sides[::-1] if dealt[item["id"]].swapped else sides)


def test_a_judgement_is_saved_and_resumed(page, path):
    item = page.session()["items"][0]["id"]
    answer = page.judge(item, -2)
    assert (answer.status_code, answer.json()) == (200, {"value": -2, "replaced": None})
    assert page.session()["judged"] == [[item, -2]]
    other = Page(path, 1)
    assert other.session()["judged"] == []
    other.store.close()


def test_an_undo_and_a_finish_are_saved(page):
    items = [item["id"] for item in page.session()["items"]]
    page.judge(items[0], 1)
    undone = page.post("undo", {"item": items[0], "key": "u" * 16, "time": TIME})
    assert undone.json() == {"value": None, "replaced": 1}
    assert page.post("finish", {}).status_code == 400
    for number, item in enumerate(items):
        page.judge(item, 0, f"{number:016}")
    assert page.post("finish", {"now": 1}).status_code == 400
    assert not page.session()["finished"]
    assert page.post("finish", {}).status_code == 200
    assert page.session()["finished"]


BAD = [
    *({"value": value} for value in (3, -3, "2", None, True, 1.0, [1], {}, 10**30)),
    *({"item": item} for item in ("0" * 31, "0" * 33, "G" * 32, "../../etc/passwd", None, 5, "")),
    *({"key": key} for key in ("short", "x" * 65, "key with spaces in it", None, 5, "k" * 16 + "\n")),
    *({"duration": value} for value in (-1, 1.5, "9", None, True, 86_400_001)),
    *({"time": value} for value in ("now", None, 5, TIME + "\n", "2026-01-31T12:00:00+01:00")),
    {"image_missing": 1},
    {"extra": 1},
]


@pytest.mark.parametrize("fields", BAD, ids=str)
def test_case_63_what_cannot_be_meant_is_400_and_leaves_no_row(page, path, fields):
    item = page.session()["items"][0]["id"]
    answer = page.post("judgement", message(item) | fields)
    assert answer.status_code == 400
    assert "error" in answer.json()
    assert take(path).rows == []


BODIES = [b"", b"null", b"[]", b"{", b"NaN", b'"x"', b"\xff\xfe", b"[" * 3000, b'{"item": NaN}']


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:12]))
def test_case_63_what_is_no_object_is_400_and_leaves_no_row(page, path, body):
    for what in ("judgement", "undo", "finish"):
        assert page.post(what, body).status_code == 400
    assert take(path).rows == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from(["item", "value", "key", "time", "duration", "image_missing"]), value=JSON)
def test_case_63_whatever_a_field_holds_there_is_an_answer_and_no_crash(page, field, value):
    """The client of the tests raises what the application does not catch."""
    item = page.store.study.assignments[0].handle
    answer = page.post("judgement", message(item) | {field: value})
    assert answer.status_code in (200, 400, 403)


def test_case_63_nan_and_doubled_keys_are_400(page, path):
    text = json.dumps(message(page.session()["items"][0]["id"]))
    for broken in (text.replace('"value": 1', '"value": NaN'), text.replace("{", '{"value": 2, ')):
        assert page.post("judgement", broken).status_code == 400
    assert take(path).rows == []


def test_case_63_another_annotators_item_is_403(page, path):
    other = Page(path, 1)
    item = other.session()["items"][0]["id"]
    other.store.close()
    assert page.judge(item, 1).status_code == 403
    assert page.judge("0" * 32, 1).status_code == 403
    assert take(path).rows == []


def test_case_62_a_locked_file_is_503_and_tells_no_path(page, path):
    page.session()
    item = page.session()["items"][0]["id"]
    page.store._db.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = page.judge(item, 1)
    assert answer.status_code == 503
    assert answer.json() == {"error": "not saved: the study's file cannot be used at the moment"}
    other.execute("ROLLBACK")
    other.close()
    assert page.judge(item, 1).status_code == 200


def test_case_72_a_wrong_link_is_404_and_many_are_429(page):
    right, page.token = page.token, "A" * 22
    statuses = [
        page.client.get("/api/session", headers=page.headers()).status_code for _ in range(MOST_WRONG + 3)
    ]
    assert statuses == [404] * MOST_WRONG + [429] * 3
    assert int(page.client.get("/api/session", headers=page.headers()).headers["retry-after"]) > 0
    page.token = right
    assert page.client.get("/api/session", headers=page.headers()).status_code == 429  # never seen from here


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic abc", "Bearer \xe9", "Bearer " + "x" * 20000])
def test_case_72_what_is_no_link_is_404(page, header):
    headers = {} if header is None else {"authorization": header.encode("latin-1")}
    assert page.client.get("/api/session", headers=headers).status_code == 404


def test_case_72_those_at_work_are_not_disturbed_by_a_guesser():
    now = [0.0]
    door = Doorkeeper([Annotator("one", "right"), Annotator("two", "other")], clock=lambda: now[0])
    assert door.annotator("Bearer right", "here") == 0
    for _ in range(MOST_WRONG):
        with pytest.raises(Unknown):
            door.annotator("Bearer wrong", "here")
    assert door.annotator("Bearer right", "here") == 0
    with pytest.raises(Unknown) as refused:
        door.annotator("Bearer other", "here")
    assert 0 < refused.value.wait <= WINDOW + 1
    assert door.annotator("Bearer other", "elsewhere") == 1
    now[0] += WINDOW + 1
    assert door.annotator("bearer other", "here") == 1


def test_case_72_links_stay_out_of_the_referrer_and_of_addresses(page):
    answer = page.client.get("/")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert page.token not in answer.text
    assert page.client.get(f"/{page.token}").status_code == 404


def test_a_foreign_page_cannot_judge(page, path):
    item = page.session()["items"][0]["id"]
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}):
        assert page.post("judgement", message(item), **headers).status_code == 403
    assert page.client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert page.post("judgement", message(item), **{"content-type": "text/plain"}).status_code == 415
    assert page.post("judgement", message(item, extra="x" * 5000)).status_code == 413
    assert take(path).rows == []


@pytest.fixture
def pictured(tmp_path):
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.new("RGB", (8, 8), "red").save(out, "PNG")
    name, picture = import_picture(out.getvalue(), "x")
    place = tmp_path / "study.db"
    create(place, study_of([Pair("1", "a", "b", image=name)]), {name: picture})
    found = Page(place)
    yield found
    found.store.close()


def test_a_picture_is_served_by_its_hash(pictured):
    [item] = pictured.session()["items"]
    answer = pictured.client.get(item["image"])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.content.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "path",
    [
        *("/img/" + "0" * 64, "/img/../study.db", "/img/%2e%2e/study.db", "/img/..%2fstudy.db", "/img/a%00b"),
        *("/img/", "/study.db", "/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/study.html"),
    ],
)
def test_case_64_paths_lead_nowhere(pictured, path):
    assert pictured.client.get(path).status_code == 404


def test_the_description_names_every_route_with_its_method(page):
    starlette = study_app(page.store)._app
    routes = {
        (route.path, method.lower()) for route in starlette.routes for method in route.methods - {"HEAD"}
    }
    named = {(path, method) for path, methods in description()["paths"].items() for method in methods}
    assert named == routes
    assert page.client.get("/openapi.json").json() == json.loads(json.dumps(description()))


@pytest.mark.parametrize("field", ["item", "key", "time"])
def test_the_description_has_the_patterns_that_are_asked_for(field):
    """Written twice, since browsers and tools read it: what passes there passes here."""
    posted = description()["paths"]["/api/undo"]["post"]["requestBody"]["content"]["application/json"]
    told = posted["schema"]["properties"][field]["pattern"]
    asked = {"item": _HANDLE, "key": _KEY, "time": _TIME}[field]
    assert told == f"^{asked.pattern}$"


def test_the_description_of_a_judgement_is_what_is_asked_for():
    schema = description()["paths"]["/api/judgement"]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    assert set(schema["required"]) == set(message("x"))
    assert schema["additionalProperties"] is False
