from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot, Hypothesis

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

LINE = (
    b'{"request_id": "0", "prompt": "Say hi", "outputs": ['
    b'{"index": 0, "text": "Hi", "token_ids": [5, 2], "cumulative_logprob": -1.2, '
    b'"logprobs": null, "finish_reason": "stop", "stop_reason": null}, '
    b'{"index": 1, "text": "Hello there", "token_ids": [6, 7], "cumulative_logprob": null, '
    b'"finish_reason": "length"}]}\n'
)


def test_outputs_are_samples(ballots: Ballots) -> None:
    (ballot,) = ballots(LINE)
    assert (ballot.id, ballot.source) == ("0", "Say hi")
    assert ballot.candidates == [
        Hypothesis("Hi", [5], -1.2, sampled=True),
        Hypothesis("Hello there", [6, 7], None, sampled=True, finished=False),
    ]


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        (b'"finish_reason": "stop", "stop_reason": null', [5]),  # the end of the sequence
        (b'"finish_reason": "stop"', [5]),
        (b'"finish_reason": "stop", "stop_reason": 2', [5]),  # a stop token
        (b'"finish_reason": "stop", "stop_reason": "\\n"', [5, 2]),  # a stop string
        (b'"finish_reason": "length", "stop_reason": null', [5, 2]),
        (b'"finish_reason": null', [5, 2]),
        (b'"stop_reason": null', [5, 2]),
    ],
)
def test_the_token_that_ends_a_sequence_is_none_of_its_tokens(
    ballots: Ballots, fields: bytes, tokens: list[int]
) -> None:
    (ballot,) = ballots(b'{"outputs": [{"text": "Hi", "token_ids": [5, 2], ' + fields + b"}]}")
    assert ballot.candidates[0].tokens == tokens


def test_a_sequence_that_ended_at_once_has_no_tokens(ballots: Ballots) -> None:
    outputs = [{"text": "", "token_ids": ids, "finish_reason": "stop"} for ids in ([2], [])]
    (ballot,) = ballots(json.dumps({"outputs": outputs}).encode())
    assert [candidate.tokens for candidate in ballot.candidates] == [[], []]


def test_only_texts_are_needed(ballots: Ballots) -> None:
    found = ballots(b'{"outputs": [{"text": ""}]}\r\n{"outputs": []}\r\n\r\n')
    assert [ballot.candidates for ballot in found] == [[Hypothesis("", sampled=True)], []]


def test_a_prompt_of_messages_is_no_source_text(ballots: Ballots) -> None:
    line = b'{"prompt": [{"role": "user", "content": "Hi"}], "outputs": [{"text": "a"}]}'
    assert ballots(line)[0].source is None


def test_scores_may_be_ignored_but_not_reinterpreted(ballots: Ballots) -> None:
    assert ballots(LINE, score_scale="count")[0].candidates[0].logprob is None
    for option in ({"log_base": "2"}, {"normalisation": "length"}, {"sign": 1}, {"score_scale": 2}):
        with pytest.raises(UsageError, match=r"--[a-z-]+ does not apply to the format 'vllm'"):
            ballots(LINE, **option)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"prompt": "a", "outputs": [{"text": 5}]}', r"\[0\].text: expected a string, got an integer"),
        (b'{"outputs": [{"token_ids": [1]}]}', r"outputs\[0\]: object missing required field text"),
        (b'{"outputs": [{"text": "a", "cumulative_logprob": 3}]}', r"outputs\[0\].logprob: 3.0 is not"),
        (b'{"outputs": [{"text": "a", "cumulative_logprob": NaN}]}', "nan is not a log-probability"),
        (b'{"outputs": {"text": "a"}}', r"outputs: expected an array, got an object"),
    ],
)
def test_bad_lines_are_named(fault: Callable[..., DataError], line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"input:1: .*{message}"):
        raise fault(line)
