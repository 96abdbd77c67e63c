"""Streams: the answer in events once it is elected, and comments until then; texts come through unchanged."""

from __future__ import annotations

import json

import openai
import pytest

from tests.service.running import MESSAGES, error_of, texts


def events(text: str) -> list[str]:
    return text.removesuffix("\n\n").split("\n\n")


def test_the_official_client_reads_a_stream(service):
    client = service.client()
    chunks = list(
        client.chat.completions.create(
            model="tiny", messages=MESSAGES, seed=0, stream=True, stream_options={"include_usage": True}
        )
    )
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "the train leaves at ten"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, None, "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 6 * 3
    assert chunks[-2].rangevote["votes"] == 6
    chunks = list(client.completions.create(model="tiny", prompt="q", seed=0, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == "the train leaves at ten"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.usage is None for chunk in chunks)


@pytest.mark.parametrize("mode", ["reasons_apart", "reasons_inline"])
def test_the_answer_votes_and_the_winners_reasoning_is_returned(service, upstream, mode):
    upstream.mode = mode
    client = service.client()
    asked = {"model": "tiny", "messages": MESSAGES, "seed": 1}
    answer = client.chat.completions.create(**asked)
    why = "I said 2 to /v1/chat/completions as 2"  # the first that says 42
    assert (answer.choices[0].message.content, answer.choices[0].message.reasoning_content) == ("42", why)
    assert answer.rangevote["score"] == pytest.approx(4 / 6)
    deltas = [chunk.choices[0].delta for chunk in client.chat.completions.create(**asked, stream=True)]
    assert "".join(delta.content or "" for delta in deltas) == "42"
    assert "".join(getattr(delta, "reasoning_content", "") for delta in deltas) == why
    if mode == "reasons_inline":
        text = client.completions.create(model="tiny", prompt="p", seed=1).choices[0]
        assert (text.text, text.reasoning_content) == ("42", why.replace("chat/", ""))
        [first, *_] = client.completions.create(model="tiny", prompt="p", seed=1, stream=True)
        assert first.choices[0].reasoning_content == text.reasoning_content


def test_a_stream_is_kept_alive_while_samples_are_drawn(service, upstream):
    upstream.delay = 0.6
    answer = service.ask(stream=True)
    parts = events(answer.text)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert parts[0] == parts[1] == ": keep-alive"
    data = [part for part in parts if part != ": keep-alive"]
    assert [part[:6] for part in data] == ["data: "] * 4
    assert json.loads(data[1][6:])["choices"][0]["delta"]["content"]
    assert data[-1] == "data: [DONE]"
    stream = service.client().chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream)


def test_an_early_failure_has_its_status_and_a_late_one_is_an_event(service, upstream):
    upstream.mode = "broken"
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


@pytest.mark.parametrize(
    "text",
    ["\U0001f600 ok", "שלום \u202eevil", "\x00\x07\x1b[31m", "a\u2028b\u0085c", "\ufeffx",
     "e" + "\u0301" * 1900],
)  # fmt: skip
def test_every_text_comes_through_unchanged(service, upstream, text):
    upstream.answer = texts(text)
    create = service.client().chat.completions.create
    question = [{"role": "user", "content": text}]
    whole = create(model="tiny", messages=question).choices[0].message.content
    chunks = create(model="tiny", messages=question, stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert whole == streamed == text
    assert upstream.asked[0].body["messages"] == question


def test_half_a_character_from_the_upstream_is_502(service, upstream):
    upstream.answer = texts("\ud800")
    answer = service.ask()
    assert (answer.status_code, error_of(answer)["code"]) == (502, "upstream_not_json")


def test_a_reply_counts_answers_and_refuses_where_too_few_agree(service, upstream):
    upstream.answer = texts("it is 42", "42!", "so 41", "42", "none", "43")
    asked = {"similarity": "exact:last_number"}
    election = service.ask(rangevote=asked).json()["rangevote"]
    assert election["answers"]["answer"] == "42"
    assert election["answers"]["votes"]["42"] == {"count": 3, "share": 0.5}
    assert (election["answers"]["abstained"], "no_winner" in election) == (1, False)
    client = service.client()
    refused = client.chat.completions.create(
        model="tiny", messages=MESSAGES, extra_body={"rangevote": {**asked, "min_share": 0.6}}
    )
    message, why = refused.choices[0].message, "the best candidate's share 0.5 is below min_share=0.6"
    assert (message.content, why in message.refusal, refused.rangevote["no_winner"]) == (None, True, why)
    chunks = client.chat.completions.create(
        model="tiny", messages=MESSAGES, stream=True, extra_body={"rangevote": {**asked, "min_share": 0.6}}
    )
    assert why in "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks)
    upstream.answer = None
    divided = {"rangevote": {"similarity": "exact:boxed", "min_share": 0.1}}
    text = client.completions.create(model="tiny", prompt="p", extra_body=divided)
    assert (text.choices[0].text, text.rangevote["answers"]["votes"]) == ("", {})
    assert service.ask(rangevote={"min_share": 60}).status_code == 400
