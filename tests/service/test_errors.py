"""What upstreams do wrong, and what the service's clients get for it."""

from __future__ import annotations

import socket

import openai
import pytest

from tests.engines.openai.upstream import Reply
from tests.service.running import MESSAGES, Running, error_of
from tests.waiting import until


@pytest.mark.parametrize("kind", ["refused", "no such name", "no TLS"])
def test_an_upstream_that_cannot_be_reached_is_502(upstream, kind):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    url = {
        "refused": f"http://127.0.0.1:{closed}/v1",
        "no such name": "http://nobody.invalid/v1",
        "no TLS": upstream.url.replace("http:", "https:"),
    }[kind]
    with Running(url, allow_models=("tiny",)) as service:
        answer, ready = service.ask(), service.http.get("/readyz")
        assert service.http.get("/healthz").status_code == 200
    assert (answer.status_code, error_of(answer)["type"]) == (502, "upstream_error")
    assert error_of(answer)["message"] == "the model's server failed to answer"
    assert (ready.status_code, error_of(ready)["code"]) == (503, "not_ready")


def test_an_upstream_that_stalls_is_504_at_the_deadline(upstream):
    upstream.mode = "stalls"
    with Running(upstream.url, limits={"total_seconds": 0.5}) as service:
        answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (504, "timeout")
    until(upstream.left.is_set)


@pytest.mark.parametrize(
    ("mode", "status", "code"),
    [
        ("busy", 429, "upstream_rate"),
        ("denied", 502, "upstream_status"),
        ("refuses", 400, "upstream_refused"),
        ("hangs_up", 502, "upstream_connect"),
        ("redirects", 502, "upstream_redirect"),
    ],
)
def test_failures_of_the_upstream_get_a_status_and_its_words_stay_inside(
    service, upstream, mode, status, code
):
    upstream.mode = mode
    answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (status, code)
    assert answer.headers.get("retry-after") == ("1" if status == 429 else None)
    log = "\n".join(service.log)
    for secret in ("Incorrect API key", "slow down", "prompt is too long", "meta-data"):
        assert secret not in answer.text + log


def test_what_an_upstream_writes_is_logged_if_wanted_but_never_its_key(upstream):
    upstream.mode = ["denied", "broken", "well"]
    key = "sk-of-the-upstream"
    with Running(upstream.url, upstream_key=key, details=True, limits={"retries": 1}) as service:
        service.ask()
        assert service.ask().status_code == 200  # a broken upstream is asked again
        log = "\n".join(service.log)
    assert upstream.asked[0].headers["authorization"] == f"Bearer {key}"
    assert "Incorrect API key provided" in log
    assert key not in log


def test_when_the_election_of_one_prompt_fails_the_calls_for_the_others_are_cancelled(upstream):
    upstream.mode = lambda asked: "stalls" if asked.body["prompt"] == "a" else "broken"
    with Running(upstream.url, limits={"read_seconds": 600, "total_seconds": 600}) as service:
        answer = service.ask("/v1/completions", prompt=["a", "b"])
        assert (answer.status_code, error_of(answer)["code"]) == (502, "upstream_status")
        until(upstream.left.is_set)


def test_a_busy_upstream_is_not_asked_again_and_clients_are_told_when_to_come_back(upstream):
    upstream.mode = "busy_for_long"
    with (
        Running(upstream.url, allow_models=("tiny",), limits={"retries": 2}) as service,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        service.client().chat.completions.create(model="tiny", messages=MESSAGES)
    assert caught.value.response.headers["retry-after"] == "3600"
    assert len(upstream.asked) == 1


@pytest.mark.parametrize(
    ("status", "code", "passed"),
    [
        (400, {"type": "exceed_context_size_error", "code": 400}, "context_length_exceeded"),
        (400, "context_length_exceeded", "context_length_exceeded"),
        (400, "content_filter", "content_filter"),
        (429, "insufficient_quota", "insufficient_quota"),
        (400, "secret_of_the_upstream", "upstream_refused"),
        (400, 400, "upstream_refused"),
        (400, ["context_length_exceeded"], "upstream_refused"),
        (401, "context_length_exceeded", "upstream_status"),
        (500, "context_length_exceeded", "upstream_status"),
    ],
)
def test_codes_of_the_upstream_that_clients_know_are_passed_on(service, upstream, status, code, passed):
    error = {"message": "secret words", "type": "invalid_request_error", "param": None, "code": code}
    error |= code if isinstance(code, dict) else {}
    upstream.answer = lambda asked: Reply({"error": error}, status)
    answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (502 if status in (401, 500) else status, passed)
    assert "secret" not in answer.text
