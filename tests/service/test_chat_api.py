"""What clients of OpenAI's API send and get: streams, tools, formats, log-probabilities, lists of prompts."""

from __future__ import annotations

import json

import openai
import pytest

from tests.engines.openai.upstream import message, saying
from tests.service.running import MESSAGES, error_of, texts

TOOLS = [{"type": "function", "function": {"name": "trains", "parameters": {"type": "object"}}}]


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


def calling(*calls: tuple[str, str] | str):
    """An upstream whose samples are these calls of tools, or texts."""

    def sample(i: int, call: tuple[str, str] | str) -> dict[str, object]:
        if isinstance(call, str):
            return message(call)
        function = {"name": call[0], "arguments": call[1]}
        sent = {"id": f"call_{i}", "type": "function", "function": function}
        return message(reason="tool_calls", tool_calls=[sent])

    return saying(*(sample(i, call) for i, call in enumerate(calls)))


CALLS = (
    ("trains", '{"to": "Bonn", "from": "Ulm"}'),
    ("buses", '{"to": "Bonn"}'),
    ("trains", '{"from": "Ulm",  "to": "Bonn"}'),
    ("trains", '{"to": "Kiel"}'),
    ("trains", "no JSON"),
    "I do not know",
)


def test_calls_of_tools_are_elected_by_name_and_then_by_arguments(service, upstream):
    upstream.answer = calling(*CALLS)
    answer = service.client().chat.completions.create(
        model="tiny", messages=MESSAGES, tools=TOOLS, tool_choice="auto", parallel_tool_calls=False
    )
    [call] = answer.choices[0].message.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == ("call_0", *CALLS[0])
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("tool_calls", None)
    assert "|calls:name,arguments|" in answer.rangevote["signature"]
    assert answer.rangevote["samples"] == {"asked": 6, "saved": 0, "usable": 6}
    sent = upstream.asked[0].body
    assert (sent["tools"], sent["tool_choice"], sent["parallel_tool_calls"]) == (TOOLS, "auto", False)


def test_calls_are_streamed_and_text_wins_where_most_answer(service, upstream):
    upstream.answer = calling(*CALLS)
    asked = {"model": "tiny", "messages": MESSAGES, "tools": TOOLS, "stream": True}
    deltas = [chunk.choices[0] for chunk in service.client().chat.completions.create(**asked)]
    [call] = [call for one in deltas for call in one.delta.tool_calls or ()]
    assert (call.index, call.function.name, call.function.arguments) == (0, *CALLS[0])
    assert deltas[-1].finish_reason == "tool_calls"
    upstream.answer = calling("at ten", "at ten", "at noon", CALLS[0])
    answer = service.client().chat.completions.create(model="tiny", messages=MESSAGES, tools=TOOLS)
    assert (answer.choices[0].message.content, answer.choices[0].message.tool_calls) == ("at ten", None)


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
def test_what_is_no_json_abstains_where_json_is_asked_for_and_equal_json_is_one_answer(
    service, upstream, kind
):
    samples = ['{"a": 1, "b": 2}', "no", "{", '{"b": 2.0, "a": 1}', '{"a": 3}', '{"a": 3, "b": 4}']
    upstream.answer = texts(*samples)
    wanted = {"type": kind, **({"json_schema": {"name": "x", "schema": {}}} if kind != "json_object" else {})}
    answer = service.client().chat.completions.create(
        model="tiny", messages=MESSAGES, seed=0, response_format=wanted
    )
    assert json.loads(answer.choices[0].message.content) == {"a": 1, "b": 2}
    assert answer.rangevote["samples"] == {"asked": 6, "saved": 0, "usable": 4, "invalid_json": 2}
    assert "|on:json|" in answer.rangevote["signature"]
    assert upstream.asked[0].body["response_format"] == wanted
    upstream.answer = texts("no", "no", "not")
    fallen = service.ask(response_format=wanted).json()
    message = fallen["choices"][0]["message"]
    assert message["content"] is None
    assert "so that all abstain" in message["refusal"]


def test_json_is_merged_field_by_field_if_the_request_asks_for_it(service, upstream):
    upstream.answer = texts('{"a": 1, "b": 1}', "no", '{"a": 1, "b": 2}', '{"a": 2, "b": 2}', "no", "no")
    wanted = {"type": "json_object"}
    asked = {"response_format": wanted, "rangevote": {"rule": "merge"}}
    answer = service.ask(**asked).json()
    assert answer["choices"][0]["message"]["content"] == '{"a":1,"b":2}'
    merged = answer["rangevote"]["merged"]
    assert merged["shares"] == pytest.approx({"a": 2 / 3, "b": 2 / 3})
    assert (merged["left_out"], merged["abstained"]) == ([], 0)
    refused = service.ask(**asked, n=2)
    assert (refused.status_code, error_of(refused)["param"]) == (400, "n")


@pytest.mark.parametrize("required", [["a"], ["a", "c"]])
def test_merged_json_fits_the_schema_of_the_request(service, upstream, required):
    samples = ['{"a": 1, "c": 1}', '{"a": 1, "c": 2}', '{"a": 1, "c": 3}']
    upstream.answer = texts(*samples, *samples)
    schema = {"type": "object", "required": required}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    asked = {"response_format": wanted, "rangevote": {"rule": "merge", "min_share": 0.6}}
    answer = service.ask(**asked).json()
    content = answer["choices"][0]["message"]["content"]
    assert content == ('{"a":1}' if required == ["a"] else samples[0])
    assert ("whole" in answer["rangevote"]["merged"]) == (required != ["a"])


def test_a_schema_of_a_request_that_is_none_is_refused_and_one_without_bounds_not_checked(service, upstream):
    upstream.answer = texts(*['{"a": 1}'] * 6)

    def ask(schema):
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return service.ask(response_format=wanted, rangevote={"rule": "merge"})

    refused = ask({"type": "nonsense"})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "response_format.json_schema")
    for schema in ({"$ref": "http://localhost:1/x.json"}, {"properties": {"a": {"pattern": "(a+)+$"}}}):
        answer = ask(schema).json()
        assert answer["choices"][0]["message"]["content"] == '{"a":1}'
        assert "|schema:" not in answer["rangevote"]["signature"]


def test_log_probabilities_of_the_winners_tokens_come_back_if_they_are_asked_for(service, upstream):
    client = service.client()
    answer = client.chat.completions.create(
        model="tiny", messages=MESSAGES, seed=0, logprobs=True, top_logprobs=0
    )
    assert [token.logprob for token in answer.choices[0].logprobs.content] == [-0.25, -0.5, -1.25]
    assert upstream.asked[0].body["logprobs"] is True
    chunks = client.chat.completions.create(
        model="tiny", messages=MESSAGES, seed=0, logprobs=True, stream=True
    )
    logprobs = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs]
    assert [token.logprob for token in logprobs[0].content] == [-0.25, -0.5, -1.25]
    unasked = service.ask(rangevote={"weights": "probability"}).json()
    assert unasked["choices"][0]["logprobs"] is None
    plain = client.completions.create(model="tiny", prompt="q", logprobs=1, seed=0)
    assert plain.choices[0].logprobs is not None


def test_of_a_list_of_prompts_each_has_its_election(service, upstream):
    answer = service.client().completions.create(model="tiny", prompt=["a", "b", "c"], seed=0, n=2)
    assert [one.index for one in answer.choices] == list(range(6))
    assert sorted(asked.body["prompt"] for asked in upstream.asked) == ["a", "b", "c"]
    elections = answer.rangevote["elections"]
    assert [election["votes"] for election in elections] == [6, 6, 6]
    assert answer.usage.total_tokens == 3 * (7 + 6 * 3)
    assert len({election["election"] for election in elections}) == 3


def test_one_model_can_be_looked_up(service):
    client = service.client()
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("large/one")
