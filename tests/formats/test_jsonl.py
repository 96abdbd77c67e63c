from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry, ReadOptions
from rangevote.formats.jsonl import decode_ballot, quickly
from rangevote.hypothesis import Ballot, Hypothesis

Entries = Callable[..., list[Entry]]
Ballots = Callable[..., list[Ballot]]


def test_the_line_of_the_documentation_is_read() -> None:
    line = (
        b'{"id": "42", "source": "a man", "references": ["ein Mann"], '
        b'"candidates": [{"text": "Ein Mann", "logprob": -12.3, "tokens": [5, 9], '
        b'"state": [0.1, 2], "finished": true}], "voters": ["Ein Mann .", {"text": ""}]}'
    )
    assert decode_ballot(line) == Ballot(
        candidates=[Hypothesis("Ein Mann", [5, 9], -12.3, [0.1, 2.0])],
        voters=[Hypothesis("Ein Mann ."), Hypothesis("")],
        id="42",
        source="a man",
        references=["ein Mann"],
    )


def test_hypotheses_are_candidates() -> None:
    assert decode_ballot(b'{"hypotheses": ["a", "b"]}') == Ballot([Hypothesis("a"), Hypothesis("b")])


def test_ids_are_kept_as_given() -> None:
    assert decode_ballot(b'{"id": 7, "candidates": []}').id == 7
    assert decode_ballot(b'{"id": "7", "candidates": []}').id == "7"
    assert decode_ballot(b'{"id": null, "candidates": []}').id is None


def test_a_ballot_without_candidates_is_left_to_the_election() -> None:
    assert decode_ballot(b'{"candidates": []}').candidates == []


def test_null_is_the_same_as_absent() -> None:
    line = (
        b'{"id": null, "source": null, "references": null, "voters": null, "candidates": '
        b'[{"text": "a", "tokens": null, "logprob": null, "state": null, "weight": null}]}'
    )
    assert decode_ballot(line) == Ballot([Hypothesis("a")])


def test_token_ids_may_stand_without_text() -> None:
    assert decode_ballot(b'{"candidates": [{"tokens": [1, 2]}]}').candidates[0].tokens == [1, 2]


def test_samples_and_weights_are_read() -> None:
    line = b'{"candidates": [{"text": "a", "sampled": true, "weight": 0.5, "finished": false}]}'
    expected = Hypothesis("a", sampled=True, weight=0.5, finished=False)
    assert decode_ballot(line).candidates == [expected]


def test_minus_infinity_is_probability_zero() -> None:
    for value in (b"-Infinity", b"-1e400"):
        line = b'{"candidates": [{"text": "a", "logprob": ' + value + b"}]}"
        assert decode_ballot(line).candidates[0].logprob == -math.inf


def test_a_probability_is_read_as_its_logarithm() -> None:
    line = b'{"candidates": [{"text": "a", "prob": 0.25}, {"text": "b", "prob": 0}]}'
    logprobs = [h.logprob for h in decode_ballot(line).candidates]
    assert logprobs == [math.log(0.25), -math.inf]


def test_probability_and_logprob_may_both_be_given_if_they_agree() -> None:
    line = b'{"candidates": [{"text": "a", "prob": 0.05, "logprob": -2.9957}]}'
    assert decode_ballot(line).candidates[0].logprob == -2.9957


def test_a_sum_of_float32_may_exceed_zero_by_a_hair() -> None:
    assert decode_ballot(b'{"candidates": [{"text": "a", "logprob": 5e-7}]}')


def test_very_small_log_probabilities_are_kept() -> None:
    line = b'{"candidates": [{"text": "a", "logprob": -800.5}, {"text": "b", "logprob": -801}]}'
    assert [h.logprob for h in decode_ballot(line).candidates] == [-800.5, -801.0]


def test_nul_and_separators_stay_in_the_text(ballots: Ballots) -> None:
    text = "a\x00b\u2028c\u0085d\x0be"
    escaped = '{"candidates": ["a\\u0000b\u2028c\u0085d\\u000be"]}'
    raw = '{"candidates": ["' + text + '"]}'
    found = ballots(f"{escaped}\n{raw}\n".encode())
    assert [ballot.candidates[0].text for ballot in found] == [text, text]


def test_crlf_blank_lines_and_marks_are_no_trouble(ballots: Ballots) -> None:
    data = b'\xef\xbb\xbf{"candidates": ["a"]}\r\n\r\n  \n\xef\xbb\xbf{"candidates": ["b"]}\r\n\n'
    assert [ballot.candidates[0].text for ballot in ballots(data)] == ["a", "b"]


def test_keys_may_be_written_with_escapes() -> None:
    assert decode_ballot(b'{"c\\u0061ndidates": [{"te\\u0078t": "a"}]}').candidates[0].text == "a"


def test_text_that_looks_like_keys_is_text() -> None:
    line = b'{"candidates": [{"text": "\\"text\\": \\"a\\", \\"b\\": {}", "logprob": -3}]}'
    assert quickly(line) is not None
    assert decode_ballot(line).candidates[0].text == '"text": "a", "b": {}'


def test_entries_tell_the_file_and_line(entries: Entries) -> None:
    found = entries(b'{"candidates": ["a"]}\n\n{"candidates": ["b"]}')
    assert [entry.where for entry in found] == ["input:1", "input:3"]


def test_an_unknown_field_is_told_once_with_the_nearest_name(ballots: Ballots) -> None:
    said: list[str] = []
    line = b'{"candidates": [{"text": "a", "log_prob": -1}, {"text": "b", "log_prob": -2}], "n": 1}\n'
    assert len(ballots(line * 3, warn=said.append)) == 3
    assert said == [
        "unknown field 'n' is ignored.",
        "unknown field 'candidates[].log_prob' is ignored. Did you mean 'logprob'?",
    ]


def test_a_warning_without_a_listener_is_a_python_warning() -> None:
    with pytest.warns(UserWarning, match="unknown field 'n' is ignored"):
        decode_ballot(b'{"candidates": [], "n": 1}', ReadOptions())


def test_an_unknown_field_is_an_error_where_strict() -> None:
    with pytest.raises(DataError, match="unknown field 'extra' is refused where strict"):
        decode_ballot(b'{"candidates": [], "extra": 1}', ReadOptions(strict=True))


NORMALISED = (
    b'{"candidates": [{"text": "a", "logprob": -0.2}, {"text": "b", "logprob": -0.3}, '
    b'{"text": "c", "logprob": -0.4}]}'
)


def test_probabilities_over_one_in_sum_are_told_once() -> None:
    said: list[str] = []
    options = ReadOptions(warn=said.append)
    decode_ballot(NORMALISED, options)
    decode_ballot(NORMALISED.replace(b"0.2", b"0.1"), options)
    assert len(said) == 1
    # e^-0.2 + e^-0.3 + e^-0.4
    assert said[0].startswith("candidates: log-probabilities look length-normalised")
    assert "P = 2.23" in said[0]


def test_probabilities_over_one_in_sum_are_refused_where_strict() -> None:
    with pytest.raises(DataError, match=r"candidates: log-probabilities look length-normalised"):
        decode_ballot(NORMALISED, ReadOptions(strict=True))


def test_voters_are_looked_at_too() -> None:
    line = NORMALISED.replace(b"candidates", b"voters").replace(b"{", b'{"candidates": ["a"], ', 1)
    with pytest.raises(DataError, match=r"voters: log-probabilities look length-normalised"):
        decode_ballot(line, ReadOptions(strict=True))


def test_equal_samples_are_no_reason_for_doubt() -> None:
    line = (
        b'{"candidates": [{"text": "a", "logprob": -0.1}, {"text": "a", "logprob": -0.10000012}, '
        b'{"tokens": [1], "logprob": -5}, {"tokens": [1], "logprob": -5}]}'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(decode_ballot(line, ReadOptions()).candidates) == 4


def test_rounding_over_one_is_no_reason_for_doubt() -> None:
    decode_ballot(b'{"candidates": [{"text": "a", "prob": 0.5003}, {"text": "b", "prob": 0.5003}]}')


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"log_base": "10"}, -2 * math.log(10)),
        ({"log_base": "2"}, -2 * math.log(2)),
        ({"normalisation": "length"}, -2.0 * 4),  # three tokens and the end
        ({"normalisation": 0.5}, -2.0 * 2),
        ({"normalisation": "none"}, -2.0),
        ({"score_scale": "count"}, None),
    ],
)
def test_options_say_what_scores_are(
    ballots: Ballots, options: dict[str, Any], expected: float | None
) -> None:
    line = b'{"candidates": [{"text": "a b c", "tokens": [1, 2, 3], "logprob": -2}]}'
    assert ballots(line, **options)[0].candidates[0].logprob == pytest.approx(expected)


def test_a_length_in_tokens_is_not_guessed_from_words(entries: Entries) -> None:
    line = b'{"candidates": [{"text": "a b c", "logprob": -2}]}'
    error = entries(line, normalisation="length")[0].error
    assert error is not None
    assert error.field == "candidates[0].tokens"
    assert "length in tokens is not known" in error.problem


def test_a_hypothesis_cut_off_has_no_end_to_count(ballots: Ballots) -> None:
    line = b'{"candidates": [{"tokens": [1, 2], "logprob": -2, "finished": false}]}'
    assert ballots(line, normalisation="length")[0].candidates[0].logprob == -4.0


def test_the_sign_of_a_logprob_is_not_a_matter_of_options(entries: Entries) -> None:
    with pytest.raises(UsageError, match="--sign - does not apply to the format 'jsonl'"):
        entries(b'{"candidates": []}', sign=-1)
