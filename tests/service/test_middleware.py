"""Who may ask (case 49), how much may be sent and how slowly (cases 45 to 47), and what is logged."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import time
from contextlib import suppress

import pytest
from starlette.routing import Route

from rangevote.errors import DataError
from rangevote.service import middleware
from rangevote.service.app import Service
from rangevote.service.metrics import Metrics
from rangevote.service.middleware import Keys, read_keys
from tests.service.running import HEAD, MESSAGES, Running, error_of, read_all

KEY, OTHER = "a-key-of-more-than-16-letters", "schlüssel-mit-umlaut"
PATHS = ("/v1/models", "/readyz", "/metrics", "/elections/x/", "/static/base.css", "/v1/x/models", "/nothing")


@pytest.fixture(scope="module")
def locked(session_upstream):
    with Running(session_upstream.url, keys=(KEY, OTHER), keep_elections=4) as running:
        yield running


def code_in(answer: bytes) -> str:
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"])


def head(method: str, path: str, *authorization: bytes) -> bytes:
    lines = b"".join(b"Authorization: " + value + b"\r\n" for value in authorization)
    start = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    return start.encode() + lines + b"\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b"Bearer "],
        [b"Bearer " + KEY[:-1].encode()],
        [b"Bearer " + KEY.encode() + b"x"],
        [b"Basic " + KEY.encode()],
        [KEY.encode()],
        [b"Bearer \xff\xfe\xff"],
        [b"Bearer " + b"k" * 200_000],
        [b"Bearer wrong", b"Bearer " + KEY.encode()],
    ],
)
def test_without_a_key_every_path_but_healthz_is_401(locked, upstream, headers):
    for method, path in (*(("GET", path) for path in PATHS), ("POST", "/v1/chat/completions")):
        answer = locked.raw(head(method, path, *headers))
        assert answer.startswith(b"HTTP/1.1 401 "), path
        assert code_in(answer) == "invalid_api_key"
    assert locked.raw(head("GET", "/healthz", *headers)).startswith(b"HTTP/1.1 200 ")
    assert upstream.asked == []


def test_every_key_opens_and_goes_no_further(locked, upstream):
    for key in (KEY, OTHER):
        answer = locked.http.get("/v1/models", headers={"authorization": b"bearer " + key.encode()})
        assert answer.status_code == 200
    assert locked.client().chat.completions.create(model="tiny", messages=MESSAGES).choices
    assert "authorization" not in upstream.asked[0].headers


def test_healthz_is_answered_under_any_host_name(service):
    assert service.http.get("/healthz", headers={"host": "10.0.0.7:8720"}).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"sec-fetch-site": "cross-site"}, "cross_site"),
        ({"origin": "http://evil.example"}, "cross_site"),
        ({"host": "evil.example"}, "invalid_host"),
        ({"content-type": "text/plain"}, "not_json"),
    ],
)
def test_no_route_lets_another_site_elect(service, upstream, headers, code):
    routes = Service(None, service.settings, Metrics(), False).routes()
    paths = [route.path for route in routes if isinstance(route, Route) and "POST" in (route.methods or ())]
    assert len(paths) == 6
    for path in paths:
        body = json.dumps({"model": "tiny", "messages": MESSAGES, "input": "q", "prompt": "q"})
        answer = service.http.post(
            path.replace("{profile}", "many"),
            content=body,
            headers={"content-type": "application/json", **headers},
        )
        assert error_of(answer)["code"] == code, path
        assert "access-control-allow-origin" not in answer.headers
    assert upstream.asked == []


def test_all_keys_are_compared_and_kept_as_digests_alone(monkeypatch):
    compared, genuine = [], hmac.compare_digest

    def compare(expected, digest):
        compared.append(expected)
        return genuine(expected, digest)

    keys = Keys([KEY, OTHER])
    assert KEY not in repr(keys) + repr(vars(keys))
    monkeypatch.setattr(middleware.hmac, "compare_digest", compare)
    assert keys.client(b"Bearer " + OTHER.encode()) == 1
    assert keys.client(b"Bearer \xff wrong") is None
    assert compared == 2 * [hashlib.sha256(key.encode()).digest() for key in (KEY, OTHER)]


def test_keys_are_separated_by_line_ends_or_commas_and_long():
    assert read_keys(f"# of the team\n{KEY}\n\n{OTHER}\n", "keys") == [KEY, OTHER]
    assert read_keys(f"{KEY}, {OTHER}", "keys") == [KEY, OTHER]
    for text, problem in (("# x\n", "no key"), ("short", "shorter than 16")):
        with pytest.raises(DataError, match=problem):
            read_keys(text, "keys")


def test_bodies_are_refused_by_their_length_or_as_they_come(service):
    for length in (2**20 + 1, 10**10):
        answer = service.raw(HEAD + f"Content-Length: {length}\r\n\r\n".encode())
        assert (answer[:13], code_in(answer)) == (b"HTTP/1.1 413 ", "too_large")
    chunk, sent = b"10000\r\n" + b"x" * 65536 + b"\r\n", 0
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        with suppress(OSError):
            while sent < 200 * 2**20:
                connection.sendall(chunk)
                sent += len(chunk)
        answer = read_all(connection)
    assert sent < 20 * 2**20  # what the system's buffers hold, not what we were sent
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_end_is_408(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        with suppress(OSError):  # it was closed meanwhile
            for _ in range(8):
                connection.sendall(b"{")
                time.sleep(0.1)
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_no_client_can_forge_a_line_of_the_log_and_prompts_are_not_in_it(service):
    service.http.get('/v1/%0a{"event": "forged"}', headers={"user-agent": "x"})
    service.ask(model='other" \\ name')
    service.ask(user="sec\u2028ret")
    assert service.log
    for line in service.log:
        assert line.isascii()
        assert len(line.splitlines()) == 1
        assert json.loads(line)["event"] in ("request", "election", "problem")
        for private in ("forged", "train", "2028", "unused"):
            assert private not in line
