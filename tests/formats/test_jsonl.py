"""The ballot file: what is read, what is refused and by which name, and that nothing else is ever raised."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.errors import DataError, UsageError
from rangevote.formats import ReadOptions
from rangevote.formats.jsonl import ballot_of, decode_ballot, parse, write_ballot
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis
from tests.formats.ballots import Ballots, Entries, Fault
from tests.formats.ballots import ballots as any_ballots

QUIET, STRICT = ReadOptions(warn=lambda message: None), ReadOptions(strict=True)
DEEP = 200_000


def candidates(text: bytes, options: ReadOptions | None = None) -> list[Hypothesis]:
    return list(decode_ballot(b'{"candidates": ' + text + b"}", options).candidates)


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


@pytest.mark.parametrize(
    ("line", "ballot"),
    [
        (b'{"hypotheses": ["a", "b"]}', Ballot([Hypothesis("a"), Hypothesis("b")])),
        (b'{"id": 7, "candidates": []}', Ballot([], id=7)),
        (b'{"id": "7", "candidates": [], "hypotheses": null}', Ballot([], id="7")),
        (
            b'{"id": null, "source": null, "references": null, "voters": null, "candidates": '
            b'[{"text": "a", "tokens": null, "logprob": null, "state": null, "weight": null}]}',
            Ballot([Hypothesis("a")]),
        ),
        (b'{"c\\u0061ndidates": [{"te\\u0078t": "a"}]}', Ballot([Hypothesis("a")])),
        (b'{"candidates": ["a"], "candidates": ["b"]}', Ballot([Hypothesis("b")])),  # the last one counts
    ],
)
def test_other_ways_to_write_a_ballot(line: bytes, ballot: Ballot) -> None:
    assert decode_ballot(line) == ballot


@pytest.mark.parametrize(
    ("candidate", "hypothesis"),
    [
        (b'{"tokens": [1, 2]}', Hypothesis(tokens=[1, 2])),
        (
            b'{"text": "a", "sampled": true, "weight": 0.5, "finished": false}',
            Hypothesis("a", sampled=True, weight=0.5, finished=False),
        ),
        (b'{"text": "a", "logprob": -Infinity}', Hypothesis("a", logprob=-math.inf)),
        (b'{"text": "a", "logprob": -1' + b"0" * 400 + b"}", Hypothesis("a", logprob=-math.inf)),
        (b'{"text": "a", "logprob": 5e-7}', Hypothesis("a", logprob=5e-7)),  # a sum of float32
        (b'{"text": "a", "prob": 0.25}', Hypothesis("a", logprob=math.log(0.25))),
        (b'{"text": "a", "prob": 0}', Hypothesis("a", logprob=-math.inf)),
        (b'{"text": "a", "prob": 0.05, "logprob": -2.9957}', Hypothesis("a", logprob=-2.9957)),
        (b'{"tokens": [' + b"1" * 30 + b"]}", Hypothesis(tokens=[int("1" * 30)])),
        (b'{"text": "\\"text\\": \\"a\\", \\"b\\": {}"}', Hypothesis('"text": "a", "b": {}')),
    ],
)
def test_other_ways_to_write_a_candidate(candidate: bytes, hypothesis: Hypothesis) -> None:
    assert candidates(b"[" + candidate + b"]") == [hypothesis]


def test_crlf_blank_lines_and_marks_are_no_trouble(entries: Entries) -> None:
    data = b'\xef\xbb\xbf{"candidates": ["a"]}\r\n\r\n  \n\xef\xbb\xbf{"candidates": ["b"]}\r\n\n'
    found = entries(data)
    assert [(e.where, e.get().candidates[0].text) for e in found] == [("input:1", "a"), ("input:4", "b")]


# What is reported


def test_an_unknown_field_is_reported_once_with_the_nearest_name(ballots: Ballots) -> None:
    messages: list[str] = []
    line = b'{"candidates": [{"text": "a", "token": -1}, {"text": "b", "token": -2}], "n": 1}\n'
    assert len(ballots(line * 3, warn=messages.append)) == 3
    assert messages == [
        "unknown field 'n' is ignored.",
        "unknown field 'candidates[].token' is ignored. Did you mean 'tokens'?",
    ]
    with pytest.raises(DataError, match="unknown field 'extra'"):
        decode_ballot(b'{"candidates": [], "extra": 1}', ReadOptions(strict=True))
    with pytest.warns(UserWarning, match="unknown field 'n' is ignored"):  # where nobody listens
        decode_ballot(b'{"candidates": [], "n": 1}')


NORMALISED = (
    b'[{"text": "a", "logprob": -0.2}, {"text": "b", "logprob": -0.3}, {"text": "c", "logprob": -0.4}]'
)


def test_probabilities_over_one_in_sum_are_reported_once() -> None:
    messages: list[str] = []
    options = ReadOptions(warn=messages.append)
    candidates(NORMALISED, options)
    candidates(NORMALISED.replace(b"0.2", b"0.1"), options)
    (message,) = messages
    assert message.startswith("candidates: log-probabilities look length-normalised")
    assert "P = 2.23" in message  # e^-0.2 + e^-0.3 + e^-0.4
    assert "--log-base, or ignore them" in message  # no token ids, so lengths are not known
    with pytest.raises(DataError, match="--log-base and --length-normalised, or ignore them"):
        candidates(b'[{"tokens": [1], "logprob": -0.1}, {"tokens": [2], "logprob": -0.1}]', STRICT)
    line = b'{"hypotheses": ["a"], "voters": ' + NORMALISED + b"}"
    with pytest.raises(DataError, match="voters: log-probabilities look length-norm"):
        decode_ballot(line, STRICT)


@pytest.mark.parametrize(
    "listed",
    [
        b'[{"text": "a", "logprob": -0.1}, {"text": "a", "logprob": -0.10000012}]',  # equal samples
        b'[{"tokens": [1], "logprob": -0.1}, {"tokens": [1], "logprob": -0.1}, {"text": "a"}]',
        b'[{"text": "a", "prob": 0.5003}, {"text": "b", "prob": 0.5003}]',  # rounding
    ],
)
def test_what_is_no_reason_for_a_report(listed: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert candidates(listed)


# What options change


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


def test_a_length_counts_tokens_and_the_end_where_there_is_one(ballots: Ballots, fault: Fault) -> None:
    line = b'{"candidates": [{"tokens": [1, 2], "logprob": -2, "finished": false}]}'
    assert ballots(line, normalisation="length")[0].candidates[0].logprob == -4.0
    error = fault(b'{"candidates": [{"text": "a b c", "logprob": -2}]}', normalisation="length")
    assert error.field == "candidates[0].tokens"
    assert "length in tokens is not known" in error.problem


def test_the_sign_of_a_logprob_is_not_a_matter_of_options(entries: Entries) -> None:
    with pytest.raises(UsageError, match="--sign - does not apply to the format 'jsonl'"):
        entries(b'{"candidates": []}', sign=-1)


# What is refused

CANDIDATES = {
    b'[{"text": "a"}, {"text": "b", "logprob": NaN}]': r"candidates\[1\].logprob: nan is not",
    b'[{"text": "a", "logprob": Infinity}]': r"candidates\[0\].logprob: inf is not",
    b'[{"text": "a", "logprob": 0.5}, {"text": "b"}]': r"\[0\].logprob: 0.5 is not a log-probability",
    b'[{"text": "a", "logprob": 1' + b"0" * 400 + b"}]": r"\[0\].logprob: inf is not",
    b'[{"text": "a", "logprob": "-1"}]': r"\[0\].logprob: expected a number, got a string",
    b'[{"text": "a", "logprob": true}]': r"\[0\].logprob: expected a number, got true or false",
    b'[{"text": "a", "prob": 1.5}]': r"\[0\].prob: 1.5 is not a probability from 0 to 1",
    b'[{"text": "a", "prob": NaN}]': r"\[0\].prob: nan is not a probability",
    b'[{"text": "a", "prob": "1"}]': r"\[0\].prob: expected a number, got a string",
    b'[{"text": "a", "prob": 0.5, "logprob": -2}]': (
        r"\[0\].prob: 0.5 disagrees with logprob -2.0, whose probability is 0.1353"
    ),
    b'[{"text": "a"}, {"logprob": -1}]': r"candidates\[1\]: has neither text nor tokens",
    b"[5]": r"candidates\[0\]: expected a string or an object, got an integer",
    b'[{"text": ["a"]}]': r"candidates\[0\].text: expected a string, got an array",
    b'{"text": "a"}': r"candidates: expected an array, got an object",
    b'[{"tokens": [1, 2.5]}]': r"\[0\].tokens\[1\]: expected an integer, got a number",
    b'[{"text": "a", "state": 1}]': r"\[0\].state: expected an array, got an integer",
    b'[{"text": "a", "state": [0, NaN]}]': r"\[0\].state\[1\]: expected a finite .* nan",
    b'[{"text": "a", "finished": 1}]': r"\[0\].finished: expected true or false, got an integer",
    b'[{"text": "a", "sampled": null}]': r"\[0\].sampled: expected true or false, got null",
    b'[{"text": "a", "weight": Infinity}]': r"\[0\].weight: inf is not an importance weight",
    b'[{"text": "a", "ranked_by": -Infinity}]': r"\[0\].ranked_by: expected a finite number, got -inf",
    b'["a", {"text": "b\\ud800"}]': r"candidates\[1\].text: contains a lone surrogate \(U\+D800\)",
    b'["\\udc00\\ud800"]': r"candidates\[0\]: contains a lone surrogate \(U\+DC00\)",
    b"[" * DEEP + b"]" * DEEP: "nested too deeply",
    b'[{"tokens": [' + b"1" * 5000 + b"]}]": "an integer of 5,000 digits is more than can",
    b'["caf\xe9"]': r"invalid UTF-8 at byte 21 of the line \(0xe9\)",
    b'["\xed\xa0\x80"]': r"invalid UTF-8 at byte 18 of the line \(0xed\)",
    b'["a",]': "not valid JSON: .*byte",
    b'[{"text": "a", "logprob": -01}]': "not valid JSON",
}
LINES = {
    b'["a", "b"]': r'expected \{"id": .*"candidates": .* got an array; jq -c',
    b"5": r'expected \{"id": "42", "candidates": .* got the number 5',
    b"{}": r'has no candidates; expected \{"id"',
    b'{"candidates": ["a"], "hypotheses": ["b"]}': "has both candidates and hypotheses",
    b'{"candidates": [], "id": 1.5}': "id: expected an integer or a string, got a number",
    b'{"candidates": [], "id": true}': "id: expected an integer or a string, got true or false",
    b'{"candidates": [], "references": "a"}': "references: expected an array, got a string",
    b'{"candidates": [], "references": ["a", 1]}': r"references\[1\]: expected a string, got an",
    b'{"hypotheses": [{"text": 1}]}': r"hypotheses\[0\].text: expected a string",
    b'{"hypotheses": [{"text": "a", "logprob": 1}]}': r"hypotheses\[0\].logprob: 1.0 is not",
    b'{"candidates": [], "voters": [{"text": "a", "logprob": 1}]}': r"voters\[0\].logprob: 1.0",
    b'{"candidates": [{"state": [1], "text": ""}], "voters": [{"state": [], "text": ""}]}': "voters",
    b'{"\\ud800": 1, "candidates": []}': r"\(key\): contains a lone surrogate",
    b'{"candidates": ["a"]} {}': "not valid JSON: extra data",
    b"\x00\x01\x02": "not valid JSON",
}
FAULTS = {b'{"candidates": ' + text + b"}": message for text, message in CANDIDATES.items()} | LINES


@pytest.mark.parametrize("line", FAULTS, ids=lambda line: line[:60].decode("utf-8", "replace"))
def test_a_fault_is_named_by_its_field(line: bytes) -> None:
    with pytest.raises(DataError, match=FAULTS[line]):
        decode_ballot(line, QUIET)


def test_reading_goes_on_after_a_bad_line(entries: Entries) -> None:
    long = b'{"candidates": ["' + b"a" * 100 + b'"]}'
    data = b'{"candidates": ["a"]}\n{"candidates": 5}\n\n{bad\n' + long + b'\n{"candidates": ["b"]}\n'
    found = entries(data, max_line_bytes=50)
    assert [entry.ballot is not None for entry in found] == [True, False, False, False, True]
    assert str(found[1].error).startswith("input:2: candidates: expected an array")
    assert str(found[2].error).startswith("input:4: not valid JSON: expecting property name")
    assert str(found[3].error) == "input:5: line exceeds --max-line-bytes (50 bytes)"
    with pytest.raises(DataError, match="input:2"):
        found[1].get()


def test_a_truncated_last_line_is_named(entries: Entries) -> None:
    found = entries(b'{"candidates": ["a"]}\n{"candidates": ["b", "c')
    assert found[0].get().candidates[0].text == "a"
    assert str(found[1].error).startswith("input:2: not valid JSON")
    assert "the last line has no line end: the file may be cut off" in str(found[1].error)


@pytest.mark.parametrize("depth", [500, 5000, 50_000])
def test_nesting_of_any_depth_is_read_or_refused(depth: int) -> None:
    """Escapes make a second pass necessary, which must not go deeper than the first."""
    nested = b'[{"a": ' * depth + b'"\\u0041"' + b"}]" * depth
    line = b'{"candidates": ["a"], "x": ' + nested + b"}"
    for data in (line, line.replace(b'"a"]', b'"a\x00"]')):  # the second is left to Python's reader
        try:
            assert decode_ballot(data, QUIET).candidates[0].text in ("a", "a\x00")
        except DataError as error:
            assert "nested too deeply" in str(error)  # noqa: PT017


# Whatever comes


@settings(max_examples=50)
@given(any_ballots())
def test_what_is_written_is_read_back(ballot: Ballot) -> None:
    line = write_ballot(ballot)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_ballot(line[:-1], QUIET) == ballot


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["a", "é", "\ud800"])
names = [*Ballot.__struct_fields__, *Hypothesis.__struct_fields__, "prob", "hypotheses", "other"]
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=4),
    max_leaves=8,
)
good = st.fixed_dictionaries(
    {"text": st.sampled_from(["a", "", "b c"])},
    optional={
        "logprob": st.floats(-1e300, 1e-6) | st.integers(-3, 0) | st.none(),
        "tokens": st.none() | st.lists(st.integers(0, 9), max_size=3),
        "prob": st.floats(0, 1),
        "state": st.lists(st.integers(0, 1), min_size=1, max_size=1),
        "finished": st.booleans(),
        "weight": st.floats(0, 5),
        "other": anything,
    },
)
listed = st.lists(good | st.just("a") | anything, max_size=3)
lines = st.fixed_dictionaries(
    {"candidates": listed},
    optional={"id": scalars, "source": scalars, "references": anything, "voters": listed},
)


damages = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=2)


@settings(max_examples=150)
@given(lines | anything, st.booleans(), damages)
def test_any_line_is_a_ballot_or_a_data_error(value: Any, whole: bool, damage: list[tuple[int, int]]) -> None:
    line = bytearray(json.dumps(value, ensure_ascii=whole).encode("utf-8", "surrogatepass"))
    for index, byte in () if whole else damage:
        line[index % len(line)] = byte
    outcomes = []
    for read in (decode_ballot, lambda line, options: ballot_of(parse(line), options)):
        try:
            outcomes.append(repr(read(bytes(line), QUIET)))
        except DataError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]  # decoded at once, or parsed and converted


# Writing


def test_a_line_is_short_and_valid_json() -> None:
    ballot = Ballot([Hypothesis("é", logprob=-1.5)], id="x")
    line = '{"candidates":[{"text":"é","logprob":-1.5}],"id":"x"}\n'
    assert write_ballot(ballot) == line.encode()


def test_probability_zero_is_written_without_infinity() -> None:
    ballot = Ballot([Hypothesis("c", logprob=-0.1), Hypothesis("e", logprob=-math.inf)])
    line = write_ballot(ballot)
    assert b"nfinity" not in line
    assert b'"prob": 0' in line
    assert decode_ballot(line) == ballot


def test_arrays_and_columns_are_written_as_lists() -> None:
    state = np.array([0.5, 1.0])
    listed = Ballot([Hypothesis("a", np.array([1, 2]), state=state)])  # type: ignore[arg-type]
    assert decode_ballot(write_ballot(listed)).candidates == [Hypothesis("a", [1, 2], state=[0.5, 1.0])]
    columns = Ballot(Hypotheses.of(["a", "b"], logprobs=[-1.0, -math.inf]))
    found = decode_ballot(write_ballot(columns)).candidates
    assert [(h.text, h.logprob) for h in found] == [("a", -1.0), ("b", -math.inf)]


def test_what_could_not_be_read_is_not_written() -> None:
    with pytest.raises(DataError, match=r"voters\[1\].logprob: 3.0 is not"):
        write_ballot(Ballot([Hypothesis("a")], [Hypothesis("a"), Hypothesis("b", logprob=3.0)]))
    for logprob in (-1.0, -math.inf):
        with pytest.raises(DataError, match=r"contains a lone surrogate \(U\+D800\)"):
            write_ballot(Ballot([Hypothesis("\ud800", logprob=logprob)]))
