"""Clients that leave, clients that are too many, and the end of the service (cases 54, 55 and 57)."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

import httpx

from rangevote.service.upstream import count_votes
from tests.service.running import HEAD, MESSAGES, Running, error_of, until
from tests.service.saying import texts
from tests.sources.openai.upstream import Upstream

pytestmark = pytest.mark.usefixtures("well")


@pytest.mark.parametrize("stream", [False, True])
def test_case_54_a_client_that_goes_away_takes_the_upstream_calls_with_it(service, upstream, stream):
    upstream.mode = "stalls"
    before = service.metrics.cancelled.value()
    body = json.dumps({"model": "tiny", "messages": MESSAGES, "stream": stream}).encode()
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: upstream.asked)
        assert service.metric("rangevote_in_flight") == 1
        if stream:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    until(upstream.left.is_set, 4)  # before the service has waited long enough itself
    until(lambda: service.metric("rangevote_in_flight") == 0, 4)
    assert service.metrics.cancelled.value() == before + 1
    assert any('"event": "cancelled"' in line for line in service.log)


@pytest.mark.parametrize(
    "options",
    [{}, {"similarity": "chrf"}, {"adaptive": True, "candidates": 4}],
    ids=["plain", "chrf", "adaptive"],
)
def test_case_55_counting_the_votes_of_long_samples_leaves_the_process_awake(monkeypatch, options):
    """While votes are counted, which here takes as long as the test likes, others are answered."""
    words = [" ".join(f"w{(i * j) % 977}" for i in range(1500)) for j in range(1, 9)]
    counting, counted = threading.Event(), threading.Event()

    def slowly(ballot, settings):
        counting.set()
        assert counted.wait(60)
        return count_votes(ballot, settings)

    monkeypatch.setattr("rangevote.service.upstream.count_votes", slowly)
    with (
        Upstream(answer=texts(*words)) as upstream,
        Running(upstream.url, limits={"total_seconds": 60}) as service,
        ThreadPoolExecutor(1) as one,
    ):
        asked = one.submit(service.ask, seed=0, rangevote={"samples": 8, **options})
        assert counting.wait(60)
        assert [service.http.get("/healthz").status_code for _ in range(3)] == [200] * 3
        assert not asked.done()
        counted.set()
        assert asked.result(60).status_code == 200


def test_few_votes_are_counted_at_once_and_in_no_thread(monkeypatch, upstream):
    where = []

    def noted(ballot, settings):
        where.append(threading.current_thread().name)
        return count_votes(ballot, settings)

    monkeypatch.setattr("rangevote.service.upstream.count_votes", noted)
    with Running(upstream.url) as service:
        for options in ({}, {"similarity": "chrf"}, {"similarity": "overlap_1-8"}, {"tokenize": "13a"}):
            assert service.ask(rangevote=options).status_code == 200
    assert [name.startswith("rangevote-election") for name in where] == [False, True, True, True]


@pytest.mark.parametrize("stream", [False, True])
def test_case_57_a_service_that_stops_finishes_what_it_has(upstream, stream):
    upstream.delay = 0.8
    with Running(upstream.url) as service, ThreadPoolExecutor(1) as one:
        asked = one.submit(service.ask, stream=stream)
        until(lambda: upstream.asked)
        service.stop()
        until(lambda: refuses(service), 20)
        answer = asked.result()
    assert answer.status_code == 200
    assert "[DONE]" in answer.text if stream else answer.json()["choices"]


def refuses(service: Running) -> bool:
    """Whether nobody listens any more."""
    try:
        socket.create_connection(("127.0.0.1", service.port), timeout=10).close()
    except ConnectionRefusedError:
        return True
    return False


def test_case_57_what_cannot_be_finished_in_time_ends_with_an_error_and_never_in_the_middle(upstream):
    upstream.mode = "stalls"
    question = {"model": "tiny", "messages": MESSAGES, "stream": True}
    limits = {"drain": 1, "read_seconds": 60, "total_seconds": 60}
    with Running(upstream.url, limits=limits) as service, ThreadPoolExecutor(1) as one:
        plain = one.submit(service.ask)
        with service.http.stream("POST", "/v1/chat/completions", json=question) as stream:
            parts = stream.iter_text()
            assert next(parts) == ": keep-alive\n\n"
            until(lambda: len(upstream.asked) == 2, 20)
            service.stop()
            last = "".join(parts).removesuffix("\n\n").split("\n\n")[-1]
        refused = plain.result()
    assert stream.status_code == 200
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "stopping"
    assert (refused.status_code, error_of(refused)["code"]) == (503, "stopping")
    until(upstream.left.is_set, 20)


def test_a_mistake_of_ours_is_500_without_a_traceback(upstream, monkeypatch):
    def broken(*given):
        raise RuntimeError("secret/path.py")

    monkeypatch.setattr("rangevote.service.upstream.count_votes", broken)
    with Running(upstream.url) as service:
        answer = service.ask()
        log = "\n".join(service.log)
    assert (answer.status_code, error_of(answer)["code"]) == (500, "internal_error")
    assert "secret" not in answer.text + log
    assert '"error": "RuntimeError"' in log
    assert answer.headers["x-request-id"] in log


def test_a_mistake_before_the_election_is_told_in_the_same_way(upstream, monkeypatch):
    def broken(*given):
        raise RuntimeError("secret/path.py")

    monkeypatch.setattr("rangevote.service.app.read_request", broken)
    with Running(upstream.url) as service:
        answer = service.ask()
        # On a connection of its own: the server closes the other after such a mistake.
        assert httpx.get(service.http.base_url.join("/healthz")).status_code == 200
        log = "\n".join(service.log)
    assert (answer.status_code, error_of(answer)["code"]) == (500, "internal_error")
    assert "secret" not in answer.text + log
    assert '"error": "RuntimeError"' in log


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


def test_threads_and_tasks_end_with_the_service(upstream):
    before = threading.active_count()
    with Running(upstream.url) as service:
        service.ask()
    until(lambda: threading.active_count() <= before + 1)
