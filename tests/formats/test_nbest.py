from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry
from rangevote.formats.nbest import row_of
from rangevote.hypothesis import Ballot

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]

MARIAN = b"""\
0 ||| Das ist gut . ||| F0= -2.41205 ||| -0.48241
0 ||| Das ist fein . ||| F0= -3.5 ||| -0.7
1 ||| Ja . ||| F0= -0.9 ||| -0.3
"""
MOSES = b"""\
0 ||| the house  ||| LM0= -12.3 Distortion0= 0 TM0= -1 -2 -0.5 ||| -4.5
0 ||| a house  ||| LM0= -13.1 Distortion0= 0 TM0= -1 -2 -0.9 ||| -5.5
"""


def test_marians_feature_is_the_log_probability(ballots: Ballots) -> None:
    first, second = ballots(MARIAN)
    assert (first.id, second.id) == (0, 1)
    assert [(h.text, h.logprob) for h in first.candidates] == [
        ("Das ist gut .", -2.41205),
        ("Das ist fein .", -3.5),
    ]
    assert len(second.candidates) == 1


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("a b ||| F0= -1 ||| -1", "a b"),
        ("a ||| b ||| F0= -1 ||| -1", "a ||| b"),
        ("a ||| b ||| c ||| F0= -1 ||| -1", "a ||| b ||| c"),
        ("||| ||| F0= -1 ||| -1", ""),
        ("||| a ||| F0= -1 ||| -1", "||| a"),
        (" ||| F0= -1 ||| -1", ""),
        ("a ||| 0-0 1-1 ||| F0= -1 ||| -1", "a"),
        ("a ||| 0-0 ||| WordScores= -0.1 -0.9 ||| F0= -1 ||| -1", "a"),
        ("a ||| WordScores= -0.1 ||| F0= -1 ||| -1", "a"),
        ("a b ||| 0.6,0.4 0.1,0.9 1.2e-05,0.99999 ||| F0= -1 ||| -1", "a b"),
        ("a ||| 0.6,0.4 1,0 ||| WordScores= -0.1 -0.9 ||| F0= -1 ||| -1", "a"),
        ("a ||| 1 1 ||| F0= -1 ||| -1", "a"),  # the source is empty, and its end has the whole share
        ("a ||| 3 5 ||| F0= -1 ||| -1", "a ||| 3 5"),
        ("0.6,0.4 ||| F0= -1 ||| -1", "0.6,0.4"),
        ("a b |||  ||| F0= -1 ||| -1", "a b"),
        ("a b |||  ||| WordScores= -0.1 ||| F0= -1 ||| -1", "a b"),
        ("0-0 1-1 ||| F0= -1 ||| -1", "0-0 1-1"),
        ("a ||| b ||| LM= -1 ||| -1 ||| 0-0 1-1", "a ||| b"),
        ("a ||| LM= -1 ||| -1 ||| 0-1=0-1 2-2=2-2 ||| 0-0 1-1", "a"),
        ("-1 ||| F0= -1 ||| -1e-05", "-1"),
        ("x= 1 ||| F0= -1 ||| -inf", "x= 1"),
        ("a ||| -1.5 -2 3 ||| -4", "a"),
        ("a ||| cdec_lm=-1.5 Glue=2 ||| -4", "a"),
    ],
)
def test_bars_and_other_columns_do_not_break_the_text(rest: str, text: str) -> None:
    assert row_of(f" {rest}").text == text


def test_a_score_may_follow_its_name_without_a_space(ballots: Ballots) -> None:
    assert ballots(b"0 ||| a ||| F0=-1.5 ||| -1.5\n")[0].candidates[0].logprob == -1.5


def test_weighted_scores_are_refused_with_the_option_that_settles_it(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"input:1: the features 'LM0= -12.3 .* --score-scale X"):
        entries(MOSES)


def test_an_ensemble_is_refused(entries: Entries) -> None:
    with pytest.raises(UsageError, match=r"'F0= -1 F1= -2' are not Marian's single F0"):
        entries(b"0 ||| a ||| F0= -1 F1= -2 ||| -1.5\n")


def test_a_scale_weighs_by_softmax(ballots: Ballots) -> None:
    (ballot,) = ballots(MOSES, score_scale=2)
    weights = [math.exp(h.logprob or 0) for h in ballot.candidates]
    # softmax of (-9, -11)
    assert weights == pytest.approx([1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))])
    assert ballot.candidates[0].text == "the house"


def test_counting_ignores_scores(ballots: Ballots) -> None:
    (ballot,) = ballots(MOSES, score_scale="count")
    assert [h.logprob for h in ballot.candidates] == [None, None]
    assert ballots(b"0 ||| no scores here\n", score_scale="count")[0].candidates[0].text == ("no scores here")


def test_bases_and_lengths_are_as_the_options_say(ballots: Ballots) -> None:
    line = b"0 ||| a b c ||| F0= -2 ||| -2\n"
    assert ballots(line, log_base="2")[0].candidates[0].logprob == -2 * math.log(2)
    assert ballots(line, normalisation="length")[0].candidates[0].logprob == -8.0


def test_crlf_empty_texts_blank_lines_and_lists_of_any_length_are_read(ballots: Ballots) -> None:
    data = b"3 |||  ||| F0= -1 ||| -1\r\n3 ||| a ||| F0= -2 ||| -2\r\n5 ||| b ||| F0= -1 ||| -1\r\n\r\n"
    found = ballots(data)
    assert [[h.text for h in ballot.candidates] for ballot in found] == [["", "a"], ["b"]]
    assert [ballot.id for ballot in found] == [3, 5]


def test_ids_that_are_no_numbers_are_kept_as_text(ballots: Ballots) -> None:
    names = ["doc1.s2", "007", "\u0664", "1" * 5000]
    data = "".join(f"{name} ||| a ||| F0= -.5e0 ||| -1\n" for name in names).encode()
    assert [ballot.id for ballot in ballots(data)] == names


def test_an_id_that_comes_back_later_is_refused(entries: Entries) -> None:
    data = MARIAN + b"0 ||| noch eins ||| F0= -4 ||| -1\n"
    assert [entry.ballot is not None for entry in entries(data)] == [True, True, False]
    assert "input:4: id: the id 0 was used before" in str(entries(data)[2].error)


def test_a_bad_line_spoils_its_list_and_no_other(entries: Entries) -> None:
    data = MARIAN.replace(b"F0= -3.5 ||| -0.7", b"F0= -3.5") + b"2 ||| a ||| F0= x ||| -1\n"
    found = entries(data)
    assert [entry.ballot is not None for entry in found] == [False, True, False]
    assert str(found[0].error) == "input:2: expected 'id ||| text ||| features ||| score'"


def test_a_line_without_an_id_spoils_the_list_it_stands_in(entries: Entries) -> None:
    found = entries(MARIAN.replace(b"0 ||| Das ist fein", b"Das ist fein"))
    assert [entry.ballot is not None for entry in found] == [False, True]
    assert "input:2: expected 'id" in str(found[0].error)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"0 ||| a ||| F0= nan ||| -1", "F0: NaN is not a score"),
        (b"0 ||| a ||| F0= 1 ||| -1", r"candidates\[0\].logprob: 1.0 is not a log-probability"),
        (b"0 ||| caf\xe9 ||| F0= -1 ||| -1", r"invalid UTF-8 at byte 10 of the line \(0xe9\)"),
        (b" ||| a ||| F0= -1 ||| -1", "expected 'id"),
    ],
)
def test_bad_lines_are_named(fault: Callable[..., DataError], line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        raise fault(line + b"\n", format="moses")


@pytest.mark.parametrize(
    "text",
    ["1-" + "111-" * 20_000 + "x", "1 " * 50_000 + "x", "0.5," * 50_000, "a=" * 50_000, "-" * 100_000],
)
def test_no_text_takes_long_to_tell_from_a_column(text: str) -> None:
    assert row_of(f" {text} ||| {text} ||| F0= -1 ||| -1").text.startswith(text.strip())
    with pytest.raises(DataError, match="expected 'id"):
        row_of(f" a ||| {text} ||| -1 x ||| {text}")


@pytest.mark.parametrize(
    "line", ["0 ||| a ||| {} ||| -1", "0 ||| a ||| F0= -1 ||| {}", "0 ||| a ||| x={} ||| 1"]
)
def test_many_digits_take_no_longer_than_other_signs(fault: Callable[..., DataError], line: str) -> None:
    """Where digits could be told apart in many ways, this would take hours."""
    assert "expected 'id ||| text ||| features ||| score'" in str(
        fault(line.format("1" * 100_000 + "x").encode())
    )
