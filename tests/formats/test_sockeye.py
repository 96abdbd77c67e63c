from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

LINE = (
    b'{"score": 0.4, "scores": [[0.4], [0.55]], "sentence_id": 1, "translation": "a b", '
    b'"translations": ["a b", "a b c"]}\n'
)


def logprobs(ballot: Ballot) -> list[float | None]:
    return [h.logprob for h in ballot.candidates]


def test_a_penalty_that_is_not_told_is_asked_for(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"--normalisation length \(Sockeye's default.*alpha 0"):
        entries(LINE)


def test_the_default_penalty_is_undone_with_the_end_counted(ballots: Ballots) -> None:
    (ballot,) = ballots(LINE, normalisation="length")
    assert ballot.id == 1
    assert [h.text for h in ballot.candidates] == ["a b", "a b c"]
    assert logprobs(ballot) == pytest.approx([-0.4 * 3, -0.55 * 4])


def test_another_alpha_is_undone(ballots: Ballots) -> None:
    (ballot,) = ballots(LINE, normalisation=0.5)
    assert logprobs(ballot) == pytest.approx([-0.4 * math.sqrt(3), -0.55 * 2])


def test_scores_made_without_penalty_are_negated(ballots: Ballots) -> None:
    line = LINE.replace(b"0.4", b"1.4").replace(b"0.55", b"2.5")
    assert logprobs(ballots(line, normalisation="none")[0]) == [-1.4, -2.5]


def test_scores_may_be_ignored(ballots: Ballots) -> None:
    assert logprobs(ballots(LINE, score_scale="count")[0]) == [None, None]


def test_a_single_translation_needs_no_list(ballots: Ballots) -> None:
    line = b'{"sentence_id": "x", "translation": "a b", "score": 2.0}\r\n\r\n'
    (ballot,) = ballots(line, normalisation="none")
    assert (ballot.id, logprobs(ballot)) == ("x", [-2.0])


def test_without_scores_nothing_needs_settling(ballots: Ballots) -> None:
    assert logprobs(ballots(b'{"sentence_id": 1, "translations": ["", "b"]}')[0]) == [None, None]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"translations": ["a"], "scores": [[1], [2]]}', "scores: has 1 translations but 2 scores"),
        (b'{"translations": ["a"], "scores": [[]]}', r"scores\[0\]: is empty"),
        (b'{"translations": ["a"], "scores": [[-1]]}', r"logprob: 1.0 is not a log-probability.*--sign"),
        (b'{"translations": ["a"], "scores": [[NaN]]}', r"nan is not a log-probability"),
        (
            b'{"translations": ["a", 5], "scores": [[1], [2]]}',
            r"translations\[1\]: expected a string, got an integer",
        ),
        (b'{"sentence_id": 3, "translation": null}', "has no translations"),
        (b'{"translations": ["a"], "sc', "not valid JSON.*cut off"),
    ],
)
def test_bad_lines_are_named(fault: Callable[..., DataError], line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"input:1: .*{message}"):
        raise fault(line, normalisation="none")


def test_a_score_that_is_no_number_cannot_be_weighed(fault: Callable[..., DataError]) -> None:
    line = b'{"translations": ["a", "b"], "scores": [1, NaN]}'
    assert str(fault(line, score_scale=1.0)) == "input:1: scores cannot be weighed: one of them is NaN"


def test_a_power_that_makes_lengths_infinite_is_refused(fault: Callable[..., DataError]) -> None:
    line = b'{"translations": ["a b c"], "scores": [1]}'
    message = "a length of 4 to the power 999 (--normalisation) is beyond all numbers"
    assert str(fault(line, normalisation=999.0)) == f"input:1: candidates[0]: {message}"
