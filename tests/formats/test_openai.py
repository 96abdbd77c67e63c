from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rangevote.election.elect import elect
from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot, Hypothesis, ToolCall
from rangevote.similarity.answers import split_reasoning

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

CHAT = (
    b'{"id":"batch_req_1","custom_id":"r1","response":{"status_code":200,"request_id":"x","body":'
    b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop",'
    b'"logprobs":{"content":[{"token":"Hi","logprob":-0.31,"bytes":[72,105],"top_logprobs":[]},'
    b'{"token":"!","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"!","logprob":-0.5}]}]}},'
    b'{"index":1,"message":{"content":"Hello"},"finish_reason":"length","logprobs":null}]}},'
    b'"error":null}\n'
)


def batch(*choices: dict[str, Any], **row: Any) -> bytes:
    response = {"status_code": 200, "body": {"choices": list(choices)}}
    return json.dumps({"custom_id": "r", "response": response, "error": None, **row}).encode() + b"\n"


def test_choices_are_samples_and_log_probabilities_are_summed(ballots: Ballots) -> None:
    (ballot,) = ballots(CHAT)
    assert ballot.id == "r1"
    first, second = ballot.candidates
    assert first.logprob == pytest.approx(-0.81)
    assert first == Hypothesis("Hi", logprob=first.logprob, sampled=True, token_logprobs=[-0.31, -0.5])
    assert second == Hypothesis("Hello", sampled=True, finished=False)


def test_what_a_model_wrote_to_itself_does_not_vote(ballots: Ballots) -> None:
    thought = {"message": {"content": "<think>2 + 2</think>4"}, "logprobs": {"content": [{"logprob": -0.5}]}}
    assert ballots(batch(thought))[0].candidates == [Hypothesis("4", sampled=True, token_logprobs=[-0.5])]


def test_completions_are_read(ballots: Ballots) -> None:
    line = batch({"text": "a b", "logprobs": {"token_logprobs": [-0.25, -0.5], "tokens": ["a", "b"]}})
    [hypothesis] = ballots(line)[0].candidates
    assert hypothesis == Hypothesis("a b", logprob=-0.75, sampled=True, token_logprobs=[-0.25, -0.5])


def test_a_bare_response_is_read(ballots: Ballots) -> None:
    line = b'{"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"message": {"content": "a"}}]}'
    (ballot,) = ballots(line)
    assert (ballot.id, ballot.candidates[0].text) == ("chatcmpl-1", "a")


@pytest.mark.parametrize(
    "logprobs",
    [
        {"content": [{"logprob": -0.5}, {"logprob": -9999.0}]},
        {"content": [{"logprob": -0.5}, {"token": "b"}]},
        {"content": []},
        {"content": None},
        {"token_logprobs": [None, -0.5]},
        {},
    ],
)
def test_a_sum_with_an_unknown_part_is_unknown(ballots: Ballots, logprobs: dict[str, Any]) -> None:
    line = batch({"message": {"content": "a b"}, "logprobs": logprobs})
    assert ballots(line)[0].candidates[0].logprob is None


def test_no_content_is_an_empty_text(ballots: Ballots) -> None:
    line = batch({"message": {"content": None}, "finish_reason": "length"})
    assert ballots(line)[0].candidates == [Hypothesis("", sampled=True, finished=False)]


REFUSAL = {"message": {"content": None, "refusal": "I cannot help with that."}, "finish_reason": "stop"}
FILTERED = {"message": {"content": ""}, "finish_reason": "content_filter"}
ANSWER = {"message": {"content": "yes", "refusal": None}, "finish_reason": "stop"}


def test_refusals_and_filtered_answers_are_left_out_with_one_warning(ballots: Ballots) -> None:
    lines = [batch(REFUSAL, ANSWER, FILTERED, custom_id=f"r{i}") for i in range(2)]
    with pytest.warns(UserWarning, match=r"^response.body.choices: a refusal, .* is left out") as warned:
        found = ballots(b"".join(lines))
    assert [ballot.candidates for ballot in found] == [[Hypothesis("yes", sampled=True)]] * 2
    assert len(warned) == 1


def test_a_refusal_is_refused_where_strict(fault: Callable[..., DataError]) -> None:
    error = fault(batch(REFUSAL, ANSWER), strict=True)
    assert str(error).startswith("input:1: response.body.choices: a refusal, ")


@pytest.mark.parametrize("choices", [[REFUSAL], [FILTERED, REFUSAL]])
def test_a_request_with_refusals_alone_is_an_error(
    fault: Callable[..., DataError], choices: list[dict[str, Any]]
) -> None:
    message = "every choice is a refusal or was filtered out, so there is nothing to vote on"
    assert str(fault(batch(*choices))) == f"input:1: response.body.choices: {message}"


def test_what_a_filter_left_of_an_answer_is_not_finished(ballots: Ballots) -> None:
    line = batch({"message": {"content": "yes, but"}, "finish_reason": "content_filter"})
    assert ballots(line)[0].candidates == [Hypothesis("yes, but", sampled=True, finished=False)]


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("4", "", "4"),
        ("<think>\na\n</think>\n\n4\n", "a", "4\n"),
        (" <think>a <think> b</think>4", "a <think> b", "4"),
        ("<think>\n\n</think>\n\n4", "", "4"),  # a model that was told not to think
        ("a\n</think>\n\n4 </think>", "a", "4 </think>"),
        ("write </think> here", "", "write </think> here"),
        ("a <think>b</think> c", "", "a <think>b</think> c"),
        ("<think> is a tag", "", "<think> is a tag"),
    ],
)
def test_reasoning_is_cut_from_the_answer(text: str, reasoning: str, answer: str) -> None:
    assert split_reasoning(text) == (reasoning, answer)


def test_reasoning_without_an_end_is_all_there_is_where_it_was_cut_off() -> None:
    assert split_reasoning("<think>a", ended=False) == ("a", "")
    assert split_reasoning("a", ended=False) == ("", "a")


def test_content_in_parts_is_joined(ballots: Ballots) -> None:
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]
    assert ballots(batch({"message": {"content": parts}}))[0].candidates[0].text == "a b"


def test_calls_of_tools_are_voted_on_as_calls(ballots: Ballots) -> None:
    function = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    custom = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "x = 1"}}
    choices = [
        {"message": {"content": None, "tool_calls": [function, custom]}, "finish_reason": "tool_calls"},
        {"message": {"content": "Let me see.", "tool_calls": [function]}},
        {"message": {"content": None, "function_call": {"name": "add", "arguments": '{"a": 1}'}}},
    ]
    [ballot] = ballots(batch(*choices))
    add = ToolCall("add", '{"a": 1}')
    assert [h.tool_calls for h in ballot.candidates] == [(add, ToolCall("run", '"x = 1"')), (add,), (add,)]
    assert [h.text for h in ballot.candidates] == [None, "Let me see.", None]
    assert elect(ballot).index == 1


def test_failed_requests_are_errors_and_reading_goes_on(entries: Entries) -> None:
    failed = (
        b'{"custom_id": "r2", "response": {"status_code": 429, "body": {"error": '
        b'{"message": "Rate limit reached"}}}, "error": null}\n'
        b'{"custom_id": "r3", "response": null, "error": {"code": "expired", "message": "too late"}}\n'
        b'{"custom_id": "r4", "response": null, "error": null}\n'
    )
    found = entries(failed + CHAT)
    assert [str(entry.error) for entry in found[:2]] == [
        "input:1: request 'r2' failed with status 429: Rate limit reached",
        "input:2: request 'r3' failed: too late",
    ]
    assert "input:3: has no response body; expected" in str(found[2].error)
    assert found[3].get().id == "r1"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"message": {"content": 5}}, r"response.body.choices\[0\].message.content: expected"),
        ({"finish_reason": "stop"}, r"choices\[0\]: has neither message nor text"),
        ({"message": {"content": None, "tool_calls": [{}]}}, r"tool_calls\[0\]: has neither function nor"),
        ({"message": {"tool_calls": [{"function": {}}]}}, r"tool_calls\[0\].function: .*missing.* name"),
        (
            {"text": "a", "logprobs": {"token_logprobs": [2.0]}},
            r"choices\[0\].logprob: 2.0 is not a log-probability",
        ),
    ],
)
def test_bad_choices_are_named(fault: Callable[..., DataError], choice: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(batch(choice))


def test_a_body_without_choices_is_named(fault: Callable[..., DataError]) -> None:
    line = b'{"custom_id": "r", "response": {"status_code": 200, "body": {"output": []}}}'
    assert str(fault(line)) == "input:1: response.body: object missing required field choices"


def test_an_id_of_another_kind_is_named(fault: Callable[..., DataError]) -> None:
    assert "custom_id: expected a string" in str(fault(batch(custom_id=["r"])))


def test_scores_may_be_ignored_but_not_reinterpreted(ballots: Ballots) -> None:
    assert ballots(CHAT, score_scale="count")[0].candidates[0].logprob is None
    with pytest.raises(UsageError, match="--log-base does not apply to the format 'openai'"):
        ballots(CHAT, log_base="10")


def test_a_row_that_is_no_object_is_told_what_one_is(fault: Callable[..., DataError]) -> None:
    assert 'expected {"custom_id"' in str(fault(b"[1]\n", format="openai"))
