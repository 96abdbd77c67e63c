"""Who may ask (case 49): keys, host names, pages of other sites."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import MESSAGES, Running, error_of

pytestmark = pytest.mark.usefixtures("well")
KEY = "a-key-of-more-than-16-letters"


@pytest.fixture(scope="module")
def locked(upstream):
    keys = (KEY, "another-key-of-many-letters", "schlüssel-mit-umlaut")
    with Running(upstream.url, keys=keys, kept=4) as running:
        yield running


PATHS = ("/v1/models", "/readyz", "/metrics", "/elections/x/", "/static/base.css", "/v1/x/models", "/nothing")


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer wrong",
        b"Bearer " + KEY[:-1].encode(),
        b"Bearer " + KEY.encode() + b"x",
        b"Basic " + KEY.encode(),
        b"Basic !!!",
        KEY.encode(),
        "Bearer schlüssel".encode(),
        b"Bearer \xff\xfe\xff",
        b"Bearer " + b"k" * 20_000,
    ],
)
def test_case_49_without_a_key_nothing_is_said_but_that_the_process_is_there(locked, upstream, given):
    def get(method: str, path: str) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n".encode()
        return locked.raw(head + (b"Authorization: " + given + b"\r\n" if given else b"") + b"\r\n")

    for path in PATHS:
        answer = get("GET", path)
        assert answer.startswith(b"HTTP/1.1 401 "), path
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_api_key"
    assert get("POST", "/v1/chat/completions").startswith(b"HTTP/1.1 401 ")
    assert get("GET", "/healthz").startswith(b"HTTP/1.1 200 ")
    assert upstream.asked == []


def test_case_49_every_key_opens_even_one_beyond_ascii(locked, upstream):
    for key in (KEY, "another-key-of-many-letters", "schlüssel-mit-umlaut"):
        answer = locked.http.get("/v1/models", headers={"authorization": b"bearer " + key.encode()})
        assert answer.status_code == 200
    assert locked.client().chat.completions.create(model="tiny", messages=MESSAGES).choices
    assert "authorization" not in upstream.asked[0].headers  # a client's key goes no further


def test_case_49_a_key_of_200_kilobytes_is_431(locked):
    head = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
    answer = locked.raw(head + b"k" * 200_000 + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "headers_too_long"


def test_case_49_two_headers_with_keys_open_nothing(locked):
    head = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    both = b"Authorization: Bearer wrong\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n\r\n"
    assert locked.raw(head + both).startswith(b"HTTP/1.1 401 ")


def test_a_foreign_host_and_a_foreign_page_are_refused(service, upstream):
    foreign = service.http.get("/v1/models", headers={"host": "evil.example"})
    assert (foreign.status_code, error_of(foreign)["code"]) == (400, "invalid_host")
    page = service.http.post(
        "/v1/chat/completions",
        json={"model": "tiny", "messages": MESSAGES},
        headers={"origin": "http://evil.example"},
    )
    assert (page.status_code, error_of(page)["code"]) == (403, "cross_site")
    assert "access-control-allow-origin" not in page.headers
    assert upstream.asked == []


def test_whether_the_process_is_there_may_be_asked_under_any_name(locked):
    answer = locked.http.get("/healthz", headers={"host": "10.0.0.7:8720", "authorization": ""})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
