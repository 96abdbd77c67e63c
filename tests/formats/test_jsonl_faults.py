"""What must not get through, and how it is said."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import pytest

from rangevote.errors import DataError
from rangevote.formats import Entry, ReadOptions, read
from rangevote.formats.jsonl import decode_ballot

DEEP = 200_000
FAULTS = {
    "nan": (
        b'[{"text": "a"}, {"text": "b", "logprob": NaN}]',
        r"candidates\[1\].logprob: nan is not",
    ),
    "inf": (b'[{"text": "a", "logprob": Infinity}]', r"candidates\[0\].logprob: inf is not"),
    "1e400": (b'[{"text": "a", "logprob": 1e400}]', r"candidates\[0\].logprob: inf is not"),
    "positive": (
        b'[{"text": "a", "logprob": 0.5}]',
        r"\[0\].logprob: 0.5 is not a log-probability",
    ),
    "huge": (b'[{"text": "a", "logprob": 5000}]', r"\[0\].logprob: 5000.0 is not"),
    "hugest": (b'[{"text": "a", "logprob": 1' + b"0" * 400 + b"}]", r"\[0\].logprob: inf is not"),
    "one of two": (
        b'[{"text": "a", "logprob": 0.5}, {"text": "b"}]',
        r"\[0\].logprob: 0.5 is not a log-probability",
    ),
    "string": (
        b'[{"text": "a", "logprob": "-1"}]',
        r"\[0\].logprob: expected a number, got a string",
    ),
    "bool": (b'[{"text": "a", "logprob": true}]', r"\[0\].logprob: expected a number, got true or"),
    "prob": (b'[{"text": "a", "prob": 1.5}]', r"\[0\].prob: 1.5 is not a probability from 0 to 1"),
    "negative prob": (b'[{"text": "a", "prob": -0.1}]', r"\[0\].prob: -0.1 is not a probability"),
    "nan prob": (b'[{"text": "a", "prob": NaN}]', r"\[0\].prob: nan is not a probability"),
    "disagree": (
        b'[{"text": "a", "prob": 0.5, "logprob": -2}]',
        r"\[0\].prob: 0.5 disagrees with logprob -2.0, whose probability is 0.1353",
    ),
    "no text": (b'[{"logprob": -1}]', r"candidates\[0\]: has neither text nor tokens"),
    "no text but one": (b'[{"text": "a"}, {"logprob": -1}]', r"\[1\]: has neither text nor tokens"),
    "number": (
        b"[5]",
        r"candidates\[0\]: expected a text or an object with a text, got the number 5",
    ),
    "null": (b"[null]", r"candidates\[0\]: expected a text or an object with a text, got null"),
    "text type": (b'[{"text": ["a"]}]', r"candidates\[0\].text: expected a string, got an array"),
    "list type": (b'{"text": "a"}', r"candidates: expected an array of texts .* got an object"),
    "tokens": (b'[{"tokens": "1 2"}]', r"\[0\].tokens: expected an array of token ids, got a str"),
    "token": (b'[{"tokens": [1, 2.5]}]', r"\[0\].tokens\[1\]: expected a token id, got the number"),
    "state": (
        b'[{"text": "a", "state": 1}]',
        r"\[0\].state: expected an array of numbers, got the",
    ),
    "state nan": (
        b'[{"text": "a", "state": [0, NaN]}]',
        r"\[0\].state\[1\]: expected a finite .* nan",
    ),
    "state sizes": (
        b'[{"text": "a", "state": [1, 2]}, {"text": "b", "state": [1]}]',
        r"candidates\[1\].state: has 1 numbers while others have 2",
    ),
    "finished": (
        b'[{"text": "a", "finished": 1}]',
        r"\[0\].finished: expected true or false, got the",
    ),
    "sampled": (b'[{"text": "a", "sampled": "yes"}]', r"\[0\].sampled: expected true or false"),
    "weight": (b'[{"text": "a", "weight": -1}]', r"\[0\].weight: -1.0 is not an importance weight"),
    "weight inf": (
        b'[{"text": "a", "weight": Infinity}]',
        r"\[0\].weight: expected a finite number",
    ),
    "same key": (
        b'[{"text": "a", "text": "b"}]',
        r"the key 'text' appears more than once in one object, with \"a\" and \"b\"",
    ),
    "same flag": (
        b'[{"text": "a", "finished": true, "finished": true}, "b"]',
        "key 'finished' app",
    ),
    "same unknown": (
        b'[{"text": "a", "x": {"y": 1, "y": 2}}]',
        "the key 'y' appears more than once",
    ),
    "surrogate": (
        b'["a", {"text": "b\\ud800"}]',
        r"candidates\[1\].text: contains half a character \(lone surrogate U\+D800\)",
    ),
    "upside down": (b'["\\udc00\\ud800"]', r"candidates\[0\]: contains half a character .*U\+DC00"),
    "deep": (b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
    "digits": (
        b'[{"tokens": [' + b"1" * 5000 + b"]}]",
        "an integer of 5,000 digits is more than can",
    ),
    "utf-8": (b'["caf\xe9"]', r"invalid UTF-8 at byte 21 of the line \(0xe9\)"),
    "encoded surrogate": (b'["\xed\xa0\x80"]', r"invalid UTF-8 at byte 18 of the line \(0xed\)"),
    "overlong": (b'["\xc0\x80"]', r"invalid UTF-8 at byte 18"),
    "comma": (b'["a",]', "not valid JSON: .*byte"),
    "zero": (b'[{"text": "a", "logprob": -01}]', "not valid JSON"),
}


@pytest.mark.filterwarnings("ignore:unknown field")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_place(name: str) -> None:
    candidates, message = FAULTS[name]
    with pytest.raises(DataError, match=message):
        decode_ballot(b'{"candidates": ' + candidates + b"}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'["a", "b"]', r'expected \{"id": .*"candidates": .* got an array; jq -c'),
        (b"5", r'expected \{"id": "42", "candidates": .* got the number 5'),
        (b"null", "got null"),
        (b'"text"', "got a string"),
        (b"{}", r'has no candidates; expected \{"id"'),
        (b'{"candidates": null}', "has no candidates"),
        (b'{"candidates": ["a"], "hypotheses": ["b"]}', "has both candidates and hypotheses"),
        (b'{"candidates": ["a"], "candidates": ["b"]}', "the key 'candidates' appears more than"),
        (
            b'{"candidates": [], "id": 1.5}',
            "id: expected a string or an integer, got the number 1.5",
        ),
        (
            b'{"candidates": [], "id": true}',
            "id: expected a string or an integer, got true or false",
        ),
        (b'{"candidates": [], "source": 1}', "source: expected a string, got the number 1"),
        (
            b'{"candidates": [], "references": "a"}',
            "references: expected an array of strings, got a",
        ),
        (
            b'{"candidates": [], "references": ["a", 1]}',
            r"references\[1\]: expected a string, got the",
        ),
        (b'{"candidates": [], "voters": "a"}', "voters: expected an array of texts"),
        (b'{"hypotheses": [{"text": 1}]}', r"hypotheses\[0\].text: expected a string"),
        (
            b'{"candidates": [], "voters": [{"text": "a", "logprob": 1}]}',
            r"voters\[0\].logprob: 1.0",
        ),
        (
            b'{"candidates": [{"state": [1], "text": ""}], "voters": [{"state": [], "text": ""}]}',
            "voters",
        ),
        (b'{"\\ud800": 1, "candidates": []}', r"\(key\): contains half a character"),
        (b'{"candidates": ["a"]} {}', "not valid JSON: extra data"),
        (b'{"candidates": ["a"]', "not valid JSON"),
        (b"\x00\x01\x02", "not valid JSON"),
    ],
)
def test_a_line_that_is_no_ballot_is_told_what_one_is(line: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        decode_ballot(line)


def test_reading_goes_on_after_a_bad_line(entries: Callable[..., list[Entry]]) -> None:
    data = b'{"candidates": ["a"]}\n{"candidates": 5}\n\n{bad\n{"candidates": ["b"]}\n'
    found = entries(data)
    assert [entry.ballot is not None for entry in found] == [True, False, False, True]
    assert str(found[1].error).startswith("input:2: candidates: expected an array")
    assert str(found[2].error).startswith("input:4: not valid JSON: expecting property name")
    with pytest.raises(DataError, match="input:2"):
        found[1].get()


def test_a_truncated_last_line_is_named(entries: Callable[..., list[Entry]]) -> None:
    found = entries(b'{"candidates": ["a"]}\n{"candidates": ["b", "c')
    assert found[0].get().candidates[0].text == "a"
    assert str(found[1].error).startswith("input:2: not valid JSON")
    assert "the last line has no line end: the file may be cut off" in str(found[1].error)


def test_a_whole_last_line_without_line_end_is_read(entries: Callable[..., list[Entry]]) -> None:
    assert entries(b'{"candidates": ["a"]}')[0].ballot is not None


def test_a_line_over_the_limit_does_not_end_the_reading(
    entries: Callable[..., list[Entry]],
) -> None:
    line = b'{"candidates": ["a"]}\n'
    long = b'{"candidates": ["' + b"a" * 100 + b'"]}\n'
    found = entries(line + long + line, max_line_bytes=50)
    assert [entry.ballot is not None for entry in found] == [True, False, True]
    assert str(found[1].error) == "input:2: line exceeds --max-line-bytes (50 bytes)"


def test_the_second_ballot_of_an_id_is_refused(entries: Callable[..., list[Entry]]) -> None:
    data = b"".join(b'{"id": %s, "candidates": ["a"]}\n' % id for id in (b"1", b'"1"', b"2", b"1"))
    found = entries(data)
    assert [entry.ballot is not None for entry in found] == [True, True, True, False]
    assert str(found[3].error) == ("input:4: id: the id 1 was used before; ids must differ, or be left out")


def test_equal_ids_pass_where_that_is_asked_for(entries: Callable[..., list[Entry]]) -> None:
    found = entries(b'{"id": 1, "candidates": []}\n' * 3, unique_ids=False)
    assert all(entry.ballot is not None for entry in found)


def test_ballots_without_id_are_not_compared(entries: Callable[..., list[Entry]]) -> None:
    assert all(entry.ballot is not None for entry in entries(b'{"candidates": ["a"]}\n' * 3))


def test_the_wrong_file_is_no_traceback() -> None:
    noise = bytes(range(256)) * 10
    for data in (b"{" + noise, b"[" + noise, b"{" * DEEP, b'{"candidates": ' + noise):
        for entry in read(io.BytesIO(data)):
            assert isinstance(entry.error, DataError)


@pytest.mark.parametrize("depth", [500, 900, 5000, 50_000])
def test_nesting_of_any_depth_is_read_or_refused(depth: int) -> None:
    """Escapes make a second pass necessary, which must not go deeper than the first."""
    nested = b'[{"a": ' * depth + b'"\\u0041"' + b"}]" * depth
    line = b'{"candidates": ["a"], "x": ' + nested + b"}"
    options = ReadOptions(warn=lambda message: None)
    for data in (line, line.replace(b'"a"]', b'"a\x00"]')):  # the second is left to Python's reader
        with contextlib.suppress(DataError):
            assert decode_ballot(data, options).candidates[0].text in ("a", "a\x00")


def test_a_key_twice_among_very_many_is_found_in_time() -> None:
    keys = b",".join(b'"%d": 0' % i for i in range(100_000))
    with pytest.raises(DataError, match="the key '99999' appears more than once"):
        decode_ballot(b'{"candidates": [], ' + keys + b', "99999": 1}')


@pytest.mark.parametrize("number", [b"NaN", b"1e400", b"-Infinity"])
def test_what_a_search_ordered_by_is_a_number(number: bytes) -> None:
    with pytest.raises(DataError, match=r"candidates\[0\].ranked_by: expected a finite number, got"):
        decode_ballot(b'{"candidates": [{"text": "a", "ranked_by": %s}]}' % number)
