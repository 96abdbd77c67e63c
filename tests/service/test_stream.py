"""Streams: the answer in events once it is elected, and signs of life until then."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="the extra 'web' is not installed")
pytest.importorskip("openai", reason="the official client is not installed")

import openai

from tests.service.running import MESSAGES, Running, error_of
from tests.sources.openai.upstream import Upstream


def events(text: str) -> list[str]:
    return text.removesuffix("\n\n").split("\n\n")


def test_the_official_client_reads_a_stream():
    with Upstream() as upstream, Running(upstream.url) as service:
        stream = service.client().chat.completions.create(
            model="tiny", messages=MESSAGES, seed=0, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "the train leaves at ten"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, None, "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 6 * 3
    assert chunks[-2].rangevote["votes"] == 6


def test_a_stream_of_a_completion_has_its_text_and_no_usage_unless_asked_for():
    with Upstream() as upstream, Running(upstream.url) as service:
        chunks = list(service.client().completions.create(model="tiny", prompt="q", seed=0, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == "the train leaves at ten"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_shows_that_it_lives_while_samples_are_drawn():
    with Upstream(delay=0.6) as upstream, Running(upstream.url) as service:
        answer = service.ask(stream=True)
    parts = events(answer.text)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert parts[0] == parts[1] == ": keep-alive"
    assert parts[-1] == "data: [DONE]"
    told = [part for part in parts if part != ": keep-alive"]
    assert [part[:6] for part in told] == ["data: "] * 4
    assert json.loads(told[1][6:])["choices"][0]["delta"]["content"]


def test_the_official_client_does_not_mind_signs_of_life():
    with Upstream(delay=0.5) as upstream, Running(upstream.url) as service:
        stream = service.client().chat.completions.create(
            model="tiny", messages=MESSAGES, stream=True, extra_body={"rangevote": {"samples": 2}}
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream)


def test_an_early_failure_has_its_status_and_a_late_one_is_an_event():
    with Upstream("broken") as upstream, Running(upstream.url) as service:
        early = service.ask(stream=True)
        upstream.delay = 0.5
        late = service.ask(stream=True)
        with pytest.raises(openai.APIError, match="failed to answer"):
            list(service.client().chat.completions.create(model="tiny", messages=MESSAGES, stream=True))
    assert (early.status_code, error_of(early)["code"]) == (502, "upstream_status")
    assert late.status_code == 200
    parts = events(late.text)
    assert json.loads(parts[-1].removeprefix("data: "))["error"]["code"] == "upstream_status"
    assert "data: [DONE]" not in parts
