"""What servers say: choices with the sum of their log-probabilities, or honestly without."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import pytest

import rangevote as rv
from rangevote import Hypothesis
from rangevote.engines.openai import hypotheses_of
from rangevote.errors import DataError
from rangevote.formats.choices import (
    ServerChoice,
    Usage,
    choices_of,
    error_text,
    hypothesis_of,
    usage_of,
)

# The example of the OpenAI API reference for chat completions with logprobs, shortened to two tokens.
HELLO = {
    "id": "chatcmpl-123",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello!", "refusal": None},
            "logprobs": {
                "content": [
                    {"token": "Hello", "logprob": -0.31725305, "bytes": [72], "top_logprobs": []},
                    {"token": "!", "logprob": -0.02380986, "bytes": [33], "top_logprobs": []},
                ]
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 9,
        "total_tokens": 18,
        "completion_tokens_details": {},
    },
}
#: A beam as vLLM 0.32 writes it with include_stop_str_in_output: the end is listed, the text is without.
BEAM = {
    "index": 0,
    "message": {"role": "assistant", "content": "Ten.", "tool_calls": [], "reasoning_content": None},
    "logprobs": {
        "content": [
            {"token": "Ten", "logprob": -0.5},
            {"token": ".", "logprob": -0.25},
            {"token": "<|im_end|>", "logprob": -0.125},
        ]
    },
    "finish_reason": "stop",
    "stop_reason": 151645,
}


def read(**choice: object) -> ServerChoice:
    """The one choice of a response, in which it has these fields."""
    [choice_read] = choices_of({"choices": [{"index": 0, "finish_reason": "stop", **choice}]})
    return choice_read


def tokens(*values: object) -> dict[str, object]:
    return {"content": [{"token": "t", "logprob": value} for value in values]}


@pytest.mark.parametrize(
    ("body", "choice"),
    [
        (HELLO, ServerChoice("Hello!", math.fsum([-0.31725305, -0.02380986]), 2, "stop", "text")),
        ({"choices": [BEAM], "prompt_logprobs": None}, ServerChoice("Ten.", -0.875, 3, "stop")),
        (
            {"choices": [{"text": " ten", "logprobs": {"tokens": ["a"], "token_logprobs": [-0.5, -0.25]}}]},
            ServerChoice(" ten", -0.75, 2),
        ),
    ],
)
def test_a_choice_has_its_text_and_the_sum_of_its_tokens(body, choice):
    [choice_read] = choices_of(body)
    assert choice_read._replace(raw=None, token_logprobs=None) == choice


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "4", "reasoning_content": "2 + 2"}, "4", "2 + 2"),
        ({"content": "4", "reasoning": "2 + 2"}, "4", "2 + 2"),
        ({"content": "4", "reasoning": {"effort": "low"}, "reasoning_content": None}, "4", ""),
        ({"content": "<think>2 + 2</think>\n4"}, "4", "2 + 2"),
        ({"content": [{"type": "text", "text": "<think>2 + 2</think>4"}]}, "4", "2 + 2"),
        ({"content": "<think>a</think>4", "reasoning_content": "b"}, "<think>a</think>4", "b"),
    ],
)
def test_the_answer_is_told_from_the_reasoning_before_it(message, text, reasoning):
    choice = read(message=message, logprobs=tokens(-0.5))
    assert (choice.text, choice.reasoning, choice.logprob) == (text, reasoning, -0.5)
    assert hypothesis_of(choice).logprob == (None if reasoning else -0.5)  # P of both is not P of the answer
    assert hypothesis_of(choice, sampled=False).logprob == -0.5


def test_reasoning_that_was_cut_off_leaves_no_answer():
    cut = read(message={"content": "<think>2 + "}, finish_reason="length")
    assert (cut.text, cut.reasoning) == ("", "2 +")
    plain = read(text="2\n</think>\n4")
    assert (plain.text, plain.reasoning) == ("4", "2")


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, -9999.0, -10000, 0.5, "-1", True])
def test_a_sum_with_a_token_that_is_not_known_is_not_known(value):
    choice = read(message={"content": "hi"}, logprobs=tokens(-0.5, value, -0.25))
    assert (choice.text, choice.logprob, choice.tokens) == ("hi", None, 3)


@pytest.mark.parametrize(
    ("logprobs", "total"),
    [
        *((none, None) for none in (None, {}, {"content": None}, {"content": []}, [], "x", {"content": [7]})),
        (tokens(1e-9), 0.0),  # noise above zero is a probability of one
    ],
)
def test_without_log_probabilities_there_is_no_sum(logprobs, total):
    choice = read(message={"content": "hi"}, logprobs=logprobs)
    assert (choice.text, choice.logprob) == ("hi", total)


@pytest.mark.parametrize(
    ("message", "text", "kind"),
    [
        ({"content": ""}, "", "text"),
        ({"content": None}, None, "null"),
        ({}, None, "null"),
        ({"content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}, "a b", "text"),
        ({"content": None, "refusal": "No."}, "No.", "refusal"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, None, "tool_calls"),
        ({"content": "", "tool_calls": [{"id": "1"}]}, None, "tool_calls"),
        ({"content": "hi", "tool_calls": []}, "hi", "text"),
        ({"content": None, "function_call": {"name": "f"}}, None, "tool_calls"),
    ],
)
def test_what_is_no_text_is_told_apart(message, text, kind):
    choice = read(message=message)
    assert (choice.text, choice.kind) == (text, kind)
    broken = read(message=message, finish_reason="error")  # what came before is no answer
    assert (broken.text, broken.kind) == (None, "null")


def test_a_choice_said_twice_is_one_choice():
    choices = [
        {"index": i, "message": {"content": text}} for i, text in [(0, "a"), (1, "b"), (1, "b"), (2, "b")]
    ]
    assert [choice.text for choice in choices_of({"choices": choices})] == ["a", "b", "b"]


@pytest.mark.parametrize("number", [{}, {"index": 0}])
def test_equal_samples_of_a_server_that_does_not_number_them_all_count(number):
    choices = [{**number, "message": {"content": text}} for text in "aab"]
    assert [choice.text for choice in choices_of({"choices": choices})] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ([], "expected an object, got an array"),
        (None, "expected an object, got null"),
        ({}, "missing required field choices"),
        ({"choices": None}, "choices: expected an array, got null"),
        ({"choices": ["hi"]}, r"choices\[0\]: expected an object, got a string"),
        ({"choices": [{}]}, r"choices\[0\]: has neither message nor text"),
        ({"choices": [{"message": {"content": 7}}]}, r"choices\[0\].message.content: expected a string"),
    ],
)
def test_another_shape_is_an_error_that_names_the_place(body, problem):
    with pytest.raises(DataError, match=problem):
        choices_of(body)


def test_a_choice_is_a_hypothesis_drawn_by_chance():
    expected = Hypothesis("hi", logprob=-0.5, finished=True, sampled=True)
    assert hypothesis_of(ServerChoice("hi", -0.5, 1, "stop")) == expected
    assert not hypothesis_of(ServerChoice("hi", finish_reason="length")).finished
    assert not hypothesis_of(ServerChoice("hi"), sampled=False).sampled
    with pytest.raises(DataError, match="a choice of kind 'tool_calls' has no text to vote on"):
        hypothesis_of(ServerChoice(None, kind="tool_calls"))


def test_usage_adds_up_and_is_nothing_where_it_is_not_reported():
    assert usage_of(HELLO) + usage_of(HELLO) == Usage(18, 18, 36)
    assert usage_of({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}) == Usage(3, 4, 7)
    for body in ({}, {"usage": None}, {"usage": {"prompt_tokens": "7", "total_tokens": -1}}):
        assert usage_of(body) == Usage()


@pytest.mark.parametrize(("listed", "completion"), [(True, 4 * (1 + 2 + 3)), (False, 4 * (1 + 3 + 5))])
def test_every_choice_counts_where_llama_cpp_counts_the_first(listed, completion):
    body = response("a", "b c", "d e f")
    body |= {"usage": {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}}
    if not listed:
        body["choices"] = [{**one, "logprobs": None} for one in body["choices"]]
    assert usage_of(body, choices_of(body)) == Usage(5, 4, 9)
    body["timings"] = {"predicted_n": 4}
    assert usage_of(body, choices_of(body)) == Usage(5, completion, 5 + completion)
    assert usage_of(body, choices_of(body), 6).completion == 4 + 6 + 6  # none had more than was allowed


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "slow\x1b[31m\n down"}, "slow\\x1b[31m down"),
        ({"code": 7}, "{'code': 7}"),
        ("x" * 1000, "x" * 300),
        (None, "None"),
        ({"message": 10**5000}, "(an error that cannot be shown)"),
        ({"message": reduce(lambda deep, _: [deep], range(100_000), [])}, "(an error that cannot be shown)"),
    ],
    ids=range(6),
)
def test_what_a_server_says_of_an_error_is_one_short_line(error, words):
    assert error_text(error) == words


def response(*texts: str | None, chat: bool = True) -> dict[str, Any]:
    """A response in which every word has a log-probability of -0.5."""
    listed = []
    for i, text in enumerate(texts):
        words = (text or "").split()
        tokens = [{"token": word, "logprob": -0.5, "bytes": None, "top_logprobs": []} for word in words]
        if chat:
            shown: dict[str, Any] = {"message": {"role": "assistant", "content": text, "refusal": None}}
            shown["logprobs"] = {"content": tokens, "refusal": None}
        else:
            shown = {"text": text, "logprobs": {"tokens": words, "token_logprobs": [-0.5] * len(words)}}
        listed.append({"index": i, "finish_reason": "length" if text is None else "stop", **shown})
    kind = "chat.completion" if chat else "text_completion"
    return {"id": "1", "object": kind, "created": 1, "model": "tiny", "choices": listed}


def test_every_input_has_the_hypotheses_of_its_response_or_of_several():
    given = [response("a b", "c"), [response("d"), response("e", None)], response(" ten", chat=False)]
    hypotheses = hypotheses_of(given)
    assert [[one.text for one in some] for some in hypotheses] == [["a b", "c"], ["d", "e"], [" ten"]]
    assert [one.logprob for one in hypotheses[0]] == [-1.0, -0.5]
    assert all(one.sampled and one.finished for some in hypotheses for one in some)
    [beams] = hypotheses_of([response("a b c", "a b", "x")], sampled=False)
    assert [one.sampled for one in beams] == [False] * 3
    assert "w:probability" in rv.elect(beams).signature


def test_the_objects_of_the_official_client_are_read():
    types = pytest.importorskip("openai.types", reason="needs the client: pip install openai")
    from openai.types.chat import ChatCompletion

    given = response("the train leaves at ten", "the train leaves at noon")
    assert hypotheses_of([ChatCompletion.model_validate(given)]) == hypotheses_of([given])
    plain = response(" ten", chat=False)
    assert hypotheses_of([types.Completion.model_validate(plain)]) == hypotheses_of([plain])


def test_what_is_no_response_is_refused():
    for given, problem in [
        (7, "expected a response or a list of them for each input, got int"),
        ({"error": {"message": "slow\n down", "code": 429}}, r"the call failed: slow down$"),
        ({"error": "overloaded"}, r"the call failed: overloaded$"),
        ({"object": "chat.completion", "error": None}, "missing required field choices"),
    ]:
        with pytest.raises(DataError, match=problem):
            hypotheses_of([given])
