"""Fast and careful reading agree; what is written is read back; nothing but DataError is raised."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.errors import DataError
from rangevote.formats import ReadOptions
from rangevote.formats.careful import ballot_of
from rangevote.formats.exact import distinct_keys, parse, parse_slowly
from rangevote.formats.jsonl import decode_ballot, quickly
from rangevote.formats.write import write_ballot
from rangevote.hypothesis import Ballot, Hypothesis

QUIET = ReadOptions(warn=lambda message: None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
logprobs = st.floats(max_value=0.0, allow_nan=False)


@st.composite
def ballots(draw: st.DrawFn) -> Ballot:
    size = draw(st.integers(0, 3))
    fields = {
        "logprob": st.none() | logprobs,
        "state": st.none() | st.lists(finite, min_size=size, max_size=size),
        "finished": st.booleans(),
        "sampled": st.booleans(),
        "weight": st.none() | st.floats(0, allow_infinity=False),
    }
    tokens = st.lists(st.integers())
    hypotheses = st.lists(
        st.builds(Hypothesis, text=texts, tokens=st.none() | tokens, **fields)
        | st.builds(Hypothesis, text=st.none(), tokens=tokens, **fields)
    )
    return Ballot(
        draw(hypotheses),
        draw(st.none() | hypotheses),
        draw(st.none() | texts | st.integers()),
        draw(st.none() | texts),
        draw(st.just(()) | st.lists(texts, min_size=1)),
    )


@given(ballots())
def test_what_is_written_is_read_back(ballot: Ballot) -> None:
    line = write_ballot(ballot)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_ballot(line[:-1], QUIET) == ballot
    assert ballot_of(parse_slowly(line[:-1]), QUIET) == ballot


class Pairs(list[tuple[str, Any]]):
    """An object as its pairs, in which a key may come twice."""


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["a", "", "a b", "é", "\x00", "\ud800", '"text":'])
)
names = [
    *("id", "source", "references", "candidates", "hypotheses", "voters"),
    *("text", "tokens", "logprob", "prob", "state", "finished", "sampled", "weight", "other"),
]


def objects(values: st.SearchStrategy[Any], keys: list[str]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(st.sampled_from(keys), values), max_size=5).map(Pairs)


anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | objects(inner, names), max_leaves=6
)
good = {
    "text": st.sampled_from(["a", "", "b c"]),
    "logprob": st.floats(-1e300, 1e-6) | st.integers(-3, 0) | st.none(),
    "tokens": st.none() | st.lists(st.integers(0, 9), max_size=3),
    "prob": st.floats(0, 1),
    "state": st.lists(st.integers(0, 1) | finite, min_size=1, max_size=1),
    "finished": st.booleans(),
    "sampled": st.booleans(),
    "weight": st.floats(0, 5),
}


@st.composite
def hypotheses(draw: st.DrawFn) -> Any:
    """Mostly good ones, as pairs; now and then a key twice, or a value of any kind."""
    names = draw(st.lists(st.sampled_from([*good]), unique=True, max_size=4))
    pairs = Pairs([("text", "a")] if "text" not in names else [])
    pairs += [(name, draw(good[name])) for name in names if name != "prob" or "logprob" not in names]
    flaw = draw(st.integers(0, 20))
    if flaw == 0:
        pairs.append((draw(st.sampled_from([*good])), draw(anything)))
    elif flaw == 1:
        name = draw(st.sampled_from([*good]))
        pairs.append((name, draw(good[name])))
    elif flaw == 2:
        return draw(anything)
    elif flaw in (3, 4):
        return draw(texts)
    return pairs


@st.composite
def likely_lines(draw: st.DrawFn) -> Any:
    listed = st.lists(hypotheses(), max_size=3)
    pairs = Pairs([(draw(st.sampled_from(["candidates", "hypotheses"])), draw(listed))])
    others = {
        "id": st.none() | texts | st.integers(),
        "source": st.none() | texts,
        "references": st.lists(texts, max_size=2),
        "voters": st.none() | listed,
    }
    for name in draw(st.lists(st.sampled_from([*others]), unique=True)):
        pairs.append((name, draw(others[name])))
    if draw(st.integers(0, 20)) == 0:
        pairs.append((draw(st.sampled_from(names)), draw(anything)))
    return pairs


def text_of(value: Any, ascii: bool, space: str) -> str:
    """JSON that may hold what Python's own writer could not be made to write."""
    if isinstance(value, Pairs):
        pairs = (f"{json.dumps(k)}{space}:{space}{text_of(v, ascii, space)}" for k, v in value)
        return "{" + f",{space}".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(text_of(item, ascii, space) for item in value) + "]"
    return json.dumps(value, ensure_ascii=ascii)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    value = draw(likely_lines())
    text = text_of(value, draw(st.booleans()), draw(st.sampled_from(["", " ", "\t"])))
    return text.encode("utf-8", "surrogatepass")


@st.composite
def damaged_lines(draw: st.DrawFn) -> bytes:
    line = bytearray(draw(lines()))
    for place, byte in draw(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3)):
        line[place % len(line)] = byte
    return bytes(line[: draw(st.integers(1, len(line)))])


def outcome(read: Any, *arguments: Any) -> Any:
    """The value, or the words of the error; distinguishes 1 from 1.0 and 0.0 from -0.0."""
    try:
        return repr(read(*arguments))
    except DataError as error:
        return f"refused: {error}"


@settings(max_examples=500)
@given(lines() | lines() | damaged_lines())
def test_fast_and_careful_reading_agree(line: bytes) -> None:
    quick = quickly(line)
    careful = outcome(lambda: ballot_of(parse_slowly(line), QUIET))
    if quick is not None:
        assert repr(quick[0]) == careful
    assert outcome(decode_ballot, line, QUIET) == careful


@settings(max_examples=500)
@given(lines() | lines() | damaged_lines())
def test_both_ways_to_parse_agree(line: bytes) -> None:
    assert outcome(parse, line) == outcome(parse_slowly, line)


@given(st.binary())
def test_any_bytes_are_a_ballot_or_a_data_error(line: bytes) -> None:
    outcome(decode_ballot, line, QUIET)


@given(likely_lines())
def test_keys_are_counted_at_every_depth(value: Any) -> None:
    def plain(value: Any) -> Any:
        if isinstance(value, Pairs):
            return {key: plain(inner) for key, inner in value}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    def keys(value: Any) -> int:
        if isinstance(value, dict):
            return len(value) + sum(map(keys, value.values()))
        return sum(map(keys, value)) if isinstance(value, list) else 0

    assert distinct_keys(plain(value)) == keys(plain(value))


def test_lines_as_programs_write_them_take_the_fast_way() -> None:
    for hypothesis in (
        {"text": "a b", "logprob": -1.5},
        {"text": "a b", "logprob": -1.5, "tokens": [1, 2]},
        {"text": "a b", "logprob": None},
        {"text": "a b", "logprob": -1.5, "finished": True, "state": [0.5]},
        {"tokens": [1], "sampled": True, "weight": 0.5},
        "a b",
    ):
        line = json.dumps({"id": "1", "voters": None, "candidates": [hypothesis] * 3}).encode()
        quick = quickly(line)
        assert quick is not None
        assert quick[1] == pytest.approx(3 * math.exp(-1.5) if b"-1.5" in line else 0)
