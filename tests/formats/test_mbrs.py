from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry, ReadOptions, read
from rangevote.hypothesis import Ballot

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

TEXT = b"a b\na c\n\nd\ne f\nd\n"


def texts(ballot: Ballot) -> list[str | None]:
    return [h.text for h in ballot.candidates]


def test_every_n_lines_are_one_ballot(ballots: Ballots) -> None:
    first, second = ballots(TEXT, per_source=3)
    assert (first.id, texts(first)) == (0, ["a b", "a c", ""])
    assert (second.id, texts(second)) == (1, ["d", "e f", "d"])


def test_log_probabilities_come_from_a_second_file(ballots: Ballots, tmp_path: Path) -> None:
    path = tmp_path / "lprobs"
    path.write_bytes(b"-1.5\r\n-2\r\n-3\r\n-4\r\n-5\r\n-6e0\r\n\r\n")
    found = ballots(TEXT, per_source=3, logprobs=path)
    assert [h.logprob for h in found[1].candidates] == [-4.0, -5.0, -6.0]
    found = ballots(TEXT, per_source=3, logprobs=path, log_base="10")
    assert found[0].candidates[0].logprob == pytest.approx(-1.5 * math.log(10))
    found = ballots(TEXT, per_source=3, logprobs=path, score_scale="count")
    assert found[0].candidates[0].logprob is None


def test_the_number_of_lines_must_be_told(entries: Entries) -> None:
    with pytest.raises(UsageError, match="the format 'mbrs' needs --per-source N"):
        entries(TEXT, format="mbrs")


def test_crlf_and_a_blank_end_are_no_trouble(ballots: Ballots) -> None:
    assert [texts(b) for b in ballots(b"a\r\nb\r\n\r\n", per_source=2)] == [["a", "b"]]


def test_bars_in_flat_text_are_text(ballots: Ballots) -> None:
    assert texts(ballots(b"0 ||| a ||| b\nc\n", per_source=2)[0]) == ["0 ||| a ||| b", "c"]


def test_lines_that_are_missing_are_named(entries: Entries) -> None:
    found = entries(TEXT + b"g\n", per_source=3)
    assert [entry.ballot is not None for entry in found] == [True, True, False]
    assert str(found[2].error) == "input:7: source 2 has 1 lines where --per-source says 3"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (b"-1\n-2\n-3\n-4\n-5\n", "input:4: source 1 has 2 log-probabilities in .*lprobs"),
        (b"-1\n-2\n-3\n-4\n-5\n-6\n-7\n", "there are more lines in .*lprobs than in input"),
        (b"-1\n-2\n-3\n-4\nx\n-6\n", "lprobs:5: expected a number, got 'x'"),
        (b"-1\n-2\n-3\n-4\n1_0\n-6\n", "lprobs:5: expected a number, got '1_0'"),
        (b"-1\n-2\n-3\n-4\n\n-6\n", "lprobs:5: expected a number, got ''"),
        (b"-1\n-2\n-3\n-4\nnan\n-6\n", "lprobs:5: NaN is not a score"),
        (b"-1\n-2\n-3\n-4\n5\n-6\n", r"candidates\[1\].logprob: 5.0 is not a log-probability"),
    ],
)
def test_scores_that_do_not_fit_are_named(
    fault: Callable[..., DataError], tmp_path: Path, scores: bytes, message: str
) -> None:
    path = tmp_path / "lprobs"
    path.write_bytes(scores)
    with pytest.raises(DataError, match=message):
        raise fault(TEXT, per_source=3, logprobs=path)


def test_a_reading_that_is_left_lets_both_files_go(tmp_path: Path) -> None:
    text, scores = tmp_path / "text", tmp_path / "lprobs"
    text.write_bytes(TEXT)
    scores.write_bytes(b"-1\n" * 6)
    with read(text, ReadOptions(per_source=1, logprobs=scores, strict=True)) as reading:
        assert next(reading).get().candidates[0].logprob == -1.0
    assert list(reading) == []
