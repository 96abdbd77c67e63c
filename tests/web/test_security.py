"""Who may ask, how much may be sent, and what a page may load."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rangevote.web.security import HEADERS, POLICY, Guard, host_name

JSON = {"content-type": "application/json"}


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"read {len(await request.body())}")


def client(**options):
    app = Guard(Starlette(routes=[Route("/", echo, methods=["GET", "POST"])]), **options)
    return TestClient(app, base_url="http://127.0.0.1:8000")


def test_only_names_of_this_machine_and_allowed_ones_are_answered_since_dns_can_be_made_to_lie():
    for host in ("127.0.0.1", "127.0.0.1:80", "localhost:5000", "LOCALHOST", "[::1]:1", "study.example:443"):
        assert client(hosts=["Study.example"]).get("/", headers={"host": host}).status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "127.0.0.1@evil"):
        answer = client().get("/", headers={"host": host})
        assert (answer.status_code, "--allow-host" in answer.json()["error"]) == (400, True)
    assert [host_name(host) for host in ("127.0.0.1:80", "[::1]:80", "a:b")] == ["127.0.0.1", "[::1]", "a:b"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8000"}, 403),
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"origin": "http://127.0.0.1:8001"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({}, 200),
    ],
)
def test_only_our_own_page_and_programs_may_write(headers, status):
    assert client().post("/", content=b"{}", headers={**JSON, **headers}).status_code == status


def test_a_foreign_page_may_ask_but_gets_no_permission_to_read():
    answer = client().get("/", headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_only_json_may_be_posted_and_bodies_are_bounded():
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"):
        assert client().post("/", content=b"{}", headers={"content-type": kind}).status_code == 415
    headers = {"content-type": "application/JSON; charset=utf-8"}
    assert client().post("/", content=b"{}", headers=headers).text == "read 2"
    for size, status in ((100, 200), (101, 413), (10**6, 413)):
        answer = client(max_body=100).post("/", content=b"x" * size, headers=JSON)
        assert answer.status_code == status
    for length in ("-1", "1e3", "x", "²", "9" * 40):
        answer = client().post("/", content=b"{}", headers={**JSON, "content-length": length.encode("utf-8")})
        assert answer.status_code in (400, 413)


def test_a_body_without_a_length_is_counted_as_it_arrives():
    sent = 0

    def pieces():
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 50

    answer = client(max_body=100).post("/", content=pieces(), headers=JSON)
    assert answer.status_code == 413
    assert answer.json() == {"error": "the request is longer than 100 bytes"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/none"), ("DELETE", "/"), ("POST", "/")])
def test_every_answer_carries_the_policy_also_a_refusal(method, path):
    answer = client().request(method, path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value


def test_the_policy_lets_nothing_in_but_our_own_files():
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in POLICY
    assert rules["require-trusted-types-for"] == "'script'"
    assert {value for name, value in rules.items() if name.endswith("-src")} == {"'none'", "'self'"}
