"""What upstreams do wrong (cases 50 to 52)."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

from tests.service.running import Running, error_of, until

pytestmark = pytest.mark.usefixtures("well")


def refused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.mark.parametrize("kind", ["refused", "no such name", "no TLS"])
def test_case_50_an_upstream_that_cannot_be_reached_is_502(upstream, kind):
    port = upstream.url.rpartition(":")[2]
    url = {
        "refused": f"http://127.0.0.1:{refused_port()}/v1",
        "no such name": "http://nobody.invalid/v1",
        "no TLS": f"https://127.0.0.1:{port}",
    }[kind]
    with Running(url, models=("tiny",)) as service:
        answer = service.ask()
        ready = service.http.get("/readyz")
        assert service.http.get("/healthz").status_code == 200
    assert (answer.status_code, error_of(answer)["type"]) == (502, "upstream_error")
    assert error_of(answer)["message"] == "the model's server failed to answer"
    assert (ready.status_code, error_of(ready)["code"]) == (503, "not_ready")


def test_case_50_an_upstream_that_stalls_is_504_at_the_deadline(upstream):
    upstream.mode = "stalls"
    with Running(upstream.url, limits={"total_seconds": 0.5}) as service:
        answer = service.ask()
        assert service.http.get("/readyz").status_code == 200
    assert (answer.status_code, error_of(answer)["code"]) == (504, "timeout")
    until(upstream.left.is_set, 1)


@pytest.mark.parametrize(
    ("mode", "status", "code"),
    [
        ("busy", 429, "upstream_rate"),
        ("denied", 502, "upstream_status"),
        ("broken", 502, "upstream_status"),
        ("refuses", 400, "upstream_refused"),
        ("hangs_up", 502, "upstream_connect"),
    ],
)
def test_case_50_statuses_of_the_upstream_get_a_meaning_and_its_words_stay_inside(
    upstream, mode, status, code
):
    upstream.mode = mode
    with Running(upstream.url, upstream_key="sk-of-the-upstream") as service:
        answer = service.ask()
        log = "\n".join(service.log)
    assert (answer.status_code, error_of(answer)["code"]) == (status, code)
    assert answer.headers.get("retry-after") == ("1" if status == 429 else None)
    for secret in ("sk-of-the-upstream", "Traceback", "/srv/model.py", "slow down", "prompt is too long"):
        assert secret not in answer.text
        assert secret not in log
    assert upstream.asked[0].headers["authorization"] == "Bearer sk-of-the-upstream"


def test_case_50_what_an_upstream_says_is_logged_where_the_operator_wants_it_but_never_its_key(upstream):
    upstream.mode = "denied"
    with Running(upstream.url, upstream_key="sk-of-the-upstream", details=True) as service:
        service.ask()
        log = "\n".join(service.log)
    assert "Incorrect API key provided" in log
    assert "sk-of-the-upstream" not in log


def test_case_50_a_busy_upstream_is_asked_again_within_the_deadline(upstream):
    upstream.mode = ["busy", "well"]
    with Running(upstream.url, limits={"retries": 2}) as service:
        assert service.ask().status_code == 200
    assert len(upstream.asked) == 2


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("html", "upstream_not_json"),
        ("half_json", "upstream_not_json"),
        ("cut_off", "upstream_not_json"),
        ("huge", "upstream_too_large"),
        ("huge_without_length", "upstream_too_large"),
        ("no_choices", "upstream_shape"),
        ("other_shape", "upstream_shape"),
        ("no_object", "upstream_shape"),
        ("compressed", "upstream_shape"),
    ],
)
def test_case_51_an_upstream_that_makes_no_sense_is_502(service, upstream, mode, code):
    upstream.mode = mode
    answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (502, code)


def test_case_51_choices_said_twice_vote_once_and_too_few_are_a_matter_of_quorum(service, upstream):
    upstream.mode = "duplicates"
    assert service.ask().json()["rangevote"]["votes"] == 6
    upstream.mode = ["ignores_n", "well", "broken", "well", "broken", "broken", "broken", "broken"]
    with Running(upstream.url) as fresh:
        upstream.asked.clear()
        some = fresh.ask(rangevote={"samples": 4})
    assert some.status_code == 200
    assert 1 <= some.json()["rangevote"]["votes"] < 4
    assert some.json()["rangevote"]["samples"]["failed"] >= 1


def test_case_51_another_content_type_with_good_json_is_taken(service, upstream):
    upstream.mode = "plain_text"
    assert service.ask().status_code == 200


def test_case_52_a_redirect_is_not_followed(service, upstream):
    upstream.mode = "redirects"
    answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (502, "upstream_redirect")
    assert "meta-data" not in answer.text
    assert len(upstream.asked) == 1


def test_the_last_list_of_models_does_while_there_is_no_other(upstream, monkeypatch):
    monkeypatch.setattr("rangevote.service.upstream.MODELS_KEPT", 0.0)
    with Running(upstream.url) as service:
        assert service.ask().status_code == 200
        upstream.models = (7,)  # no names
        assert service.ask().status_code == 200
        assert service.http.get("/readyz").status_code == 503
