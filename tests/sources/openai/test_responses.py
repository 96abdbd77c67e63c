"""Responses that somebody else asked for: dictionaries, and the objects of the official client."""

from __future__ import annotations

from typing import Any

import pytest

import rangevote as rv
from rangevote.errors import DataError
from rangevote.sources.openai import hypotheses_of


def chat(*texts: str | None, **more: object) -> dict[str, Any]:
    """A response of chat, in which every token of a text has a log-probability of -0.5."""
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": {
                "refusal": None,
                "content": [
                    {"token": word, "logprob": -0.5, "bytes": None, "top_logprobs": []}
                    for word in (text or "").split()
                ],
            },
            "finish_reason": "length" if text is None else "stop",
        }
        for i, text in enumerate(texts)
    ]
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny"}
    return {**head, "choices": choices, **more}


def completion(text: str, *logprobs: float) -> dict[str, Any]:
    listed = {
        "tokens": ["t"] * len(logprobs),
        "token_logprobs": list(logprobs),
        "text_offset": [],
        "top_logprobs": [],
    }
    choice = {"index": 0, "text": text, "logprobs": listed, "finish_reason": "length"}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
    }


def test_every_input_has_the_choices_of_its_response_or_of_several():
    found = hypotheses_of([chat("a b", "c"), [chat("d"), chat("e", None)]])
    assert [[one.text for one in listed] for listed in found] == [["a b", "c"], ["d", "e"]]
    assert [one.logprob for one in found[0]] == [-1.0, -0.5]
    assert all(one.sampled and one.finished for listed in found for one in listed)


def test_plain_completions_are_told_by_what_they_call_themselves():
    [[only]] = hypotheses_of([completion(" ten", -0.5, -0.25)])
    assert only == rv.Hypothesis(" ten", logprob=-0.75, finished=False, sampled=True)


def test_the_objects_of_the_official_client_are_read():
    types = pytest.importorskip("openai.types", reason="needs the client: pip install openai")
    from openai.types.chat import ChatCompletion

    given = chat("the train leaves at ten", "the train leaves at noon")
    assert hypotheses_of([ChatCompletion.model_validate(given)]) == hypotheses_of([given])
    plain = completion(" ten", -0.5)
    assert hypotheses_of([types.Completion.model_validate(plain)]) == hypotheses_of([plain])


def test_beams_of_a_vllm_server_are_no_samples_and_weigh_what_is_likely():
    [beams] = hypotheses_of([chat("a b c", "a b", "x")], sampled=False)
    assert [one.sampled for one in beams] == [False] * 3
    assert "w:probability" in rv.elect(beams).signature


def test_what_is_no_response_is_refused():
    with pytest.raises(DataError, match="expected a response or a list of them for each input, got int"):
        hypotheses_of([7])
    with pytest.raises(DataError, match=r"the call failed: slow down$"):
        hypotheses_of([{"error": {"message": "slow\n down", "code": 429}}])
    with pytest.raises(DataError, match=r"the call failed: overloaded$"):
        hypotheses_of([{"error": "overloaded"}])
    with pytest.raises(DataError, match="missing required field choices"):
        hypotheses_of([{"object": "chat.completion", "error": None}])
