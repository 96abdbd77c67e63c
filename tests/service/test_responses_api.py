"""The Responses API: requests become those of a chat, and the elected answer a response."""

from __future__ import annotations

import json

import pytest

from rangevote import elect
from tests.engines.openai.upstream import SENTENCES, saying
from tests.service.running import error_of, texts
from tests.service.test_chat_api import CALLS, calling

TOOL = {"type": "function", "name": "trains", "parameters": {"type": "object"}, "strict": False}


def test_a_text_is_answered_by_the_elected_sample(service, upstream):
    response = service.client().responses.create(
        model="tiny", input="When?", instructions="Be brief.", max_output_tokens=9, metadata={"a": "b"},
        extra_body={"seed": 0},
    )  # fmt: skip
    assert response.output_text == elect(SENTENCES, weights="count").winner
    assert (response.status, response.object, response.metadata) == ("completed", "response", {"a": "b"})
    assert response.id.startswith("resp_")
    assert response.usage.output_tokens == 18
    assert response.rangevote["votes"] == 6
    sent = upstream.asked[0].body
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When?"},
    ]
    assert (sent["max_completion_tokens"], sent["metadata"]) == (9, {"a": "b"})
    assert not {"input", "instructions", "max_output_tokens"} & sent.keys()


def test_a_conversation_with_pictures_calls_and_results_becomes_a_chat(service, upstream):
    picture = "data:image/png;base64,AAAA"
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": picture}]
    asked = [
        {"role": "user", "content": parts},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "trains", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "buses", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "10:00"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "At ten."}]},
        {"role": "user", "content": "Sure?"},
    ]  # fmt: skip
    service.client().responses.create(model="tiny", input=asked, tools=[TOOL], tool_choice="auto")
    messages = upstream.asked[0].body["messages"]
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert messages[0]["content"][1] == {"type": "image_url", "image_url": {"url": picture}}
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["c1", "c2"]
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "10:00"}
    function = {name: value for name, value in TOOL.items() if name != "type"}
    assert upstream.asked[0].body["tools"] == [{"type": "function", "function": function}]


def test_calls_of_tools_are_items_of_the_output(service, upstream):
    upstream.answer = calling(*CALLS)
    choice = {"type": "function", "name": "trains"}
    response = service.client().responses.create(
        model="tiny", input="When?", tools=[TOOL], tool_choice=choice
    )
    [call] = response.output
    assert (call.type, call.call_id, call.name, call.arguments) == ("function_call", "call_0", *CALLS[0])
    sent = upstream.asked[0].body["tool_choice"]
    assert sent == {"type": "function", "function": {"name": "trains"}}


def test_a_stream_has_the_events_of_its_items(service, upstream):
    with service.client().responses.stream(model="tiny", input="When?", extra_body={"seed": 0}) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    winner = elect(SENTENCES, weights="count").winner
    assert final.output_text == winner
    assert final.rangevote["votes"] == 6
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds
    upstream.answer = calling(*CALLS)
    with service.client().responses.stream(model="tiny", input="When?", tools=[TOOL]) as stream:
        kinds = [event.type for event in stream]
        [call] = stream.get_final_response().output
    assert "response.function_call_arguments.done" in kinds
    assert json.loads(call.arguments) == {"to": "Bonn", "from": "Ulm"}


def test_reasoning_and_refusals_are_items_of_the_output(service, upstream):
    upstream.mode = "reasons_apart"
    asked = {"model": "tiny", "input": "q", "reasoning": {"effort": "low"}, "extra_body": {"seed": 1}}
    reasoning, message = service.client().responses.create(**asked).output
    assert upstream.asked[0].body["reasoning_effort"] == "low"
    assert (reasoning.summary[0].text, message.content[0].text) == (
        "I said 2 to /v1/chat/completions as 2",
        "42",
    )
    with service.client().responses.stream(**asked) as stream:
        deltas = [event.delta for event in stream if event.type == "response.reasoning_summary_text.delta"]
        assert stream.get_final_response().output[0].summary == reasoning.summary
    assert deltas == [reasoning.summary[0].text]
    upstream.answer = saying(refusing := {"message": {"role": "assistant", "refusal": "No."}})
    parts = [{"type": "refusal", **refusing["message"]}]
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": parts}]
    with service.client().responses.stream(model="tiny", input=turns) as stream:
        kinds = [event.type for event in stream]
        [message] = stream.get_final_response().output
    assert (message.content[0].refusal, "response.refusal.done" in kinds) == ("No.", True)
    assert upstream.asked[-1].body["messages"][1]["content"] == [{"type": "refusal", "refusal": "No."}]


def test_json_is_asked_for_as_in_a_chat_and_an_answer_that_is_cut_off_is_incomplete(service, upstream):
    upstream.answer = texts('{"a": 1}', "no")
    schema = {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "strict": True}
    response = service.client().responses.create(model="tiny", input="q", text={"format": schema})
    assert response.output_text == '{"a": 1}'
    assert upstream.asked[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True},
    }
    upstream.answer = texts("a b", reason="length")
    cut = service.client().responses.create(model="tiny", input="q")
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": 7}, "input"),
        ({"input": []}, "messages"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0]"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"text": 7}, "text"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"messages": []}, "messages"),
        ({"metadata": {"api_base": "x"}}, "api_base"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(service, upstream, fields, param):
    refused = service.http.post("/v1/responses", json={"model": "tiny", "input": "q", **fields})
    assert (refused.status_code, error_of(refused)["param"]) == (400, param)
    assert upstream.asked == []
