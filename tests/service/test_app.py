"""Paths, election pages, metrics and bugs; clients that leave or are too many, and the end of the service
(cases 54, 55 and 57)."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from rangevote.service.upstream import count_votes
from tests.engines.openai.upstream import SENTENCES, Asked, Reply, Upstream, well
from tests.service.running import HEAD, MESSAGES, Running, error_of, texts
from tests.waiting import until

KEY = "a-key-of-more-than-16-letters"


def test_unknown_addresses_and_methods_are_errors_in_the_same_shape(service):
    assert error_of(service.http.get("/nothing"))["code"] == "unknown_address"
    refused = service.http.get("/v1/chat/completions")
    assert (refused.status_code, error_of(refused)["code"]) == (405, "unknown_address")


def test_an_answer_has_the_page_of_its_election_and_the_oldest_is_dropped(service):
    answer = service.ask(seed=0, rangevote={"candidates": 3}).json()
    path = answer["rangevote"]["election"]
    assert path == f"/elections/{answer['id']}/"
    page, moved = service.http.get(path), service.http.get(path.rstrip("/"))
    assert "text/html" in page.headers["content-type"]
    assert "require-trusted-types-for" in page.headers["content-security-policy"]
    assert (moved.status_code, moved.headers["location"]) == (307, f"{service.url}{path}")
    shown = service.http.get(f"{path}api/ballots/0?list=0").json()
    assert shown["signature"] == answer["rangevote"]["signature"]
    assert shown["candidates"]["rows"][0]["text"] == answer["choices"][0]["message"]["content"]
    assert {row["text"] for row in shown["voters"]["rows"]} == set(SENTENCES)
    assert service.http.get("/static/election.js").status_code == 200
    later = [service.ask().json()["rangevote"]["election"] for _ in range(3)]
    assert [service.http.get(path).status_code for path in (path, *later)] == [404, 200, 200, 200]
    for id in ("x", "..%2f..%2fetc", "%00", "chatcmpl-" + "0" * 32):
        assert service.http.get(f"/elections/{id}/").status_code == 404


def test_pages_are_kept_only_if_asked_for_and_a_browser_gives_the_key_as_a_password(upstream):
    with Running(upstream.url) as service:
        answer = service.ask().json()
        assert "election" not in answer["rangevote"]
        assert error_of(service.http.get(f"/elections/{answer['id']}/"))["code"] == "unknown_address"
    with Running(upstream.url, keep_elections=2, keys=(KEY,)) as service:
        path = service.ask().json()["rangevote"]["election"]
        service.http.headers.pop("authorization")
        locked = service.http.get(path, headers={"accept": "text/html"})
        part = service.http.get("/static/election.js", headers={"sec-fetch-site": "same-origin"})
        client = service.http.get("/static/election.js")
        login = base64.b64encode(b"anyone:" + KEY.encode()).decode()
        opened = service.http.get(path, headers={"authorization": f"Basic {login}"})
    assert locked.status_code == 401
    assert locked.headers["www-authenticate"].startswith("Basic ")
    assert part.headers["www-authenticate"].startswith("Basic ")
    assert client.headers["www-authenticate"] == "Bearer"
    assert opened.status_code == 200


def test_a_client_sees_a_list_of_its_own_elections_alone(upstream):
    other = {"authorization": f"Bearer {KEY[::-1]}"}
    with Running(upstream.url, keep_elections=2, keys=(KEY, KEY[::-1])) as service:
        for question in ("<b>first</b>", "second"):
            service.ask(messages=[{"role": "user", "content": question}], seed=0)
        page = service.http.get("/elections/")
        link = page.text.partition('<td><a href="')[2].partition('"')[0]
        assert service.http.get(link).status_code == 200
        assert "none yet" in service.http.get("/elections/", headers=other).text
        refused = service.http.get(link, headers=other)
    assert (refused.status_code, error_of(refused)["code"]) == (404, "election_not_found")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (page.headers["cache-control"], page.headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert page.text.index("second") < page.text.index("&lt;b&gt;first&lt;/b&gt;")
    assert "<b>" not in page.text
    assert page.text.count("6 of 6") == page.text.count(">tiny<") == 2


def test_metrics_are_text_that_prometheus_reads(service):
    service.ask()
    answer = service.http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {"rangevote_requests_total", "rangevote_election_seconds", "rangevote_upstream_seconds"} <= names
    assert any(line.startswith('rangevote_requests_total{route="chat",status="200"} ') for line in lines)
    for line in lines:
        if not line.startswith("#"):
            float(line.rpartition(" ")[2])
    inf = next(line for line in lines if line.startswith('rangevote_election_seconds_bucket{le="+Inf"}'))
    assert inf.split()[-1] == str(int(service.metric("rangevote_election_seconds_count")))


@pytest.mark.parametrize("where", ["app.read_request", "upstream.Upstream.elect"])
def test_a_bug_is_500_without_a_traceback(upstream, monkeypatch, where):
    def broken(*arguments):
        raise RuntimeError("secret/path.py")

    monkeypatch.setattr(f"rangevote.service.{where}", broken)
    with Running(upstream.url) as service:
        answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (500, "internal_error")
    assert any('"error": "RuntimeError"' in line for line in service.log)
    log = "\n".join(service.log)
    assert "secret" not in answer.text + log
    assert answer.headers["x-request-id"] in log


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_cancels_the_upstream_calls(upstream, stream):
    upstream.mode = "stalls"
    body = json.dumps({"model": "tiny", "messages": MESSAGES, "stream": stream}).encode()
    with Running(upstream.url, limits={"read_seconds": 600, "total_seconds": 600}) as service:
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
            connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: upstream.asked)
            assert service.metric("rangevote_in_flight") == 1
            if stream:
                assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        until(upstream.left.is_set)
        until(lambda: service.metric("rangevote_in_flight") == 0)
        assert service.metric("rangevote_cancelled_total") == 1
        assert any('"event": "cancelled"' in line for line in service.log)


@pytest.mark.parametrize("options", [{}, {"similarity": "chrf"}, {"adaptive": True, "candidates": 4}])
def test_counting_the_votes_of_long_samples_leaves_the_process_responsive(
    service, upstream, monkeypatch, options
):
    """While votes are counted, which here takes as long as the test likes, others are answered."""
    upstream.answer = texts(*(" ".join(f"w{(i * j) % 977}" for i in range(1500)) for j in range(1, 9)))
    counting, counted = threading.Event(), threading.Event()

    def slowly(ballot, settings):
        counting.set()
        assert counted.wait(60)
        return count_votes(ballot, settings)

    monkeypatch.setattr("rangevote.service.upstream.count_votes", slowly)
    with ThreadPoolExecutor(1) as one:
        answer = one.submit(service.ask, seed=0, rangevote={"samples": 8, **options})
        assert counting.wait(60)
        assert service.http.get("/healthz").status_code == 200
        assert not answer.done()
        counted.set()
        assert answer.result(60).status_code == 200


class Gate:
    """An upstream whose answers wait until the gate is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self, asked: Asked) -> Reply:
        assert self.opened.wait(120)
        return well(asked)


async def post(port: int, content: bytes, refused: Counter[str]) -> tuple[int, bytes]:
    """Status and headers, over a connection of its own; a refusal is counted as soon as it is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        body = json.loads(await reader.readexactly(int(length.split()[1])))
    finally:
        writer.close()
    if "error" in body:
        refused[body["error"]["code"]] += 1
    return int(head.split()[1]), head


def test_of_many_at_once_as_many_are_answered_as_the_queue_takes():
    """Speed is measured by `make bench NAME=service`; here it is how many, and how much is kept for them."""
    many, most = 200, 20
    body = json.dumps({"model": "tiny", "messages": MESSAGES, "user": "u" * 50_000}).encode()
    content = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    gate, refused = Gate(), Counter[str]()
    limits = {"in_flight": 4, "queue": most - 4, "total_seconds": 120, "body_seconds": 120}
    limits |= {"connect_seconds": 120, "read_seconds": 120}
    with (
        Upstream(answer=gate) as upstream,
        Running(upstream.url, limits=limits, allow_models=("tiny",)) as service,
    ):

        async def everyone() -> list[tuple[int, bytes]]:
            asking = [asyncio.create_task(post(service.port, content, refused)) for _ in range(many)]
            while refused["overloaded"] < many - most:  # nobody is answered yet, so all others must be
                await asyncio.sleep(0.02)
            await asyncio.to_thread(look)
            gate.opened.set()
            return await asyncio.gather(*asking)

        def look() -> None:
            """While the queue is full."""
            until(lambda: service.metric("rangevote_in_flight") == 4)
            assert service.metric("rangevote_queue") == most - 4
            assert service.http.get("/healthz").status_code == 200
            until(lambda: len(upstream.asked) == 4)
            unread = service.raw(HEAD + b"Content-Length: 900000\r\nConnection: close\r\n\r\n", 60)
            assert unread.startswith(b"HTTP/1.1 503 ")  # the queue comes before the body

        answers = asyncio.run(everyone())
        until(lambda: service.metric("rangevote_queue") == 0)
        assert service.metric("rangevote_in_flight") == 0
    assert Counter(status for status, _ in answers) == {200: most, 503: many - most}
    assert refused == {"overloaded": many - most}
    assert upstream.most_open == 4
    assert all(b"retry-after: 1" in head for status, head in answers if status == 503)


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_that_stops_finishes_what_it_has(upstream, stream):
    upstream.delay = 0.8
    before = threading.active_count()
    with Running(upstream.url) as service, ThreadPoolExecutor(1) as one:
        asked = one.submit(service.ask, stream=stream)
        until(lambda: upstream.asked)
        service.stop()
        until(lambda: refuses(service))
        answer = asked.result()
    assert answer.status_code == 200
    assert "[DONE]" in answer.text if stream else answer.json()["choices"]
    until(lambda: threading.active_count() <= before + 1)


def refuses(service: Running) -> bool:
    """Whether nobody listens any more."""
    try:
        socket.create_connection(("127.0.0.1", service.port), timeout=60).close()
    except ConnectionRefusedError:
        return True
    return False


def test_what_cannot_be_finished_in_time_ends_with_an_error(upstream):
    upstream.mode = "stalls"
    question = {"model": "tiny", "messages": MESSAGES, "stream": True}
    limits = {"drain": 1, "read_seconds": 60, "total_seconds": 60}
    with Running(upstream.url, limits=limits) as service, ThreadPoolExecutor(1) as one:
        plain = one.submit(service.ask)
        with service.http.stream("POST", "/v1/chat/completions", json=question) as stream:
            parts = stream.iter_text()
            assert next(parts) == ": keep-alive\n\n"
            until(lambda: len(upstream.asked) == 2)
            service.stop()
            last = "".join(parts).removesuffix("\n\n").split("\n\n")[-1]
        refused = plain.result()
    assert stream.status_code == 200
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "stopping"
    assert (refused.status_code, error_of(refused)["code"]) == (503, "stopping")
    until(upstream.left.is_set)
