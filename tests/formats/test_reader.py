"""Entries one by one: options, ids, two files side by side, and how a format is found."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.errors import DataError, UnknownName, UsageError
from rangevote.formats import FORMATS, ReadOptions, read, reader
from rangevote.formats.reader import SeenIds

LINE = b'{"candidates": ["a"]}\n'


def test_an_unknown_format_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match=r"unknown format 'jsonlines'. Did you mean 'jsonl'\? Choose"):
        read(io.BytesIO(LINE), ReadOptions(format="jsonlines"))


def test_a_file_is_let_go_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "ballots"
    path.write_bytes(LINE * 3)
    reading = read(path)
    assert (reading.format, reading.size) == ("jsonl", 3 * len(LINE))
    assert len(list(reading)) == 3
    assert reading.position == reading.size
    assert list(reading) == []  # and stays at its end
    assert reading._stream._raw.closed


def test_a_file_is_let_go_when_opening_fails(tmp_path: Path) -> None:
    """A file left open would be a ResourceWarning, and warnings are errors here."""
    path = tmp_path / "ballots"
    path.write_bytes(b"no known format\n")
    with pytest.raises(UsageError):
        read(path)
    path.write_bytes(LINE.decode().encode("utf-16"))
    with pytest.raises(DataError, match="ballots: looks like UTF-16"):
        read(path)


def test_a_damaged_end_is_the_last_entry() -> None:
    lines = b"".join(b'{"id": %d, "candidates": ["a"]}\n' % i for i in range(5000))
    whole = gzip.compress(lines)
    found = list(read(io.BytesIO(whole[: len(whole) // 2])))
    assert len(found) > 1000
    # the line at the cut is not taken for a whole one
    assert [entry.get().id for entry in found[:-1]] == list(range(len(found) - 1))
    assert "the gzip data is cut off" in str(found[-1].error)
    assert found[-1].where == "input"


def test_an_error_of_use_ends_the_reading() -> None:
    reading = read(io.BytesIO(b"0 ||| a ||| LM= -1 ||| -1\n"))
    with pytest.raises(UsageError):
        next(reading)
    assert list(reading) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_base": "3"}, "unknown log base '3'.* Choose from: 10, 2, e"),
        ({"normalisation": "mean"}, "unknown normalisation 'mean'.* Choose from: length, none"),
        ({"normalisation": -1.0}, "--length-normalised is -1.0; a power must be 0 or more"),
        ({"normalisation": float("nan")}, "--length-normalised is nan"),
        ({"sign": 0}, "--sign is 0; it must be 1 or -1"),
        ({"per_source": 0}, "--per-source is 0; it must be 1 or more"),
        ({"max_line_bytes": 0}, "--max-line-bytes is 0; it must be 1 or more"),
        ({"score_scale": 0.0}, "--score-scale is 0.0; it must be a number above 0, or 'count'"),
        ({"score_scale": "none"}, "--score-scale is 'none'"),
        ({"score_scale": float("inf")}, "--score-scale is inf"),
    ],
)
def test_options_without_a_meaning_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ReadOptions(**options)  # type: ignore[arg-type]


# Ids


def test_the_second_ballot_of_an_id_is_refused() -> None:
    data = b"".join(b'{"id": %s, "candidates": ["a"]}\n' % id for id in (b"1", b'"1"', b"2", b"1"))
    found = list(read(io.BytesIO(data)))
    assert [entry.ballot is not None for entry in found] == [True, True, True, False]
    assert str(found[3].error) == "input:4: id: the id 1 was used before; ids must differ, or be left out"
    again = read(io.BytesIO(data), ReadOptions(unique_ids=False))
    assert all(entry.ballot is not None for entry in again)
    assert all(entry.ballot is not None for entry in read(io.BytesIO(LINE * 3)))  # without id


@given(st.lists(st.integers(-3, 3) | st.sampled_from(["", "1", "-1", "a", "\ud800"])))
def test_ids_are_a_set(ids: list[str | int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "RECENT_IDS", 3)
        seen, plain = SeenIds(), set[tuple[str, str | int]]()
        for id in ids:
            key = type(id).__name__, id
            assert seen.add(id) == (key not in plain)
            plain.add(key)


def test_many_ids_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "RECENT_IDS", 2**10)
    tracemalloc.start()
    seen = SeenIds()
    assert all(seen.add(f"ballot {i}") for i in range(2**14))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 12 * 2**14


# Which format

EXAMPLES = {
    "jsonl": b'{"id": 1, "candidates": ["a"]}\n',
    "moses": b"0 ||| Das ist gut . ||| F0= -2.41205 ||| -0.48241\n",
    "fairseq": b"S-7\thead massager\nH-7\t-0.2639\thyp\nP-7\t-0.2926 -0.7546\n",
    "sockeye": b'{"score":0.4,"scores":[[0.4]],"sentence_id":1,"translation":"a","translations":["a"]}\n',
    "mbrs": b"first hypothesis\nsecond\n",
    "vllm": b'{"prompt": "a", "outputs": [{"text": "b"}]}\n',
    "openai": b'{"id":"b","custom_id":"r","response":{"status_code":200,"body":{"choices":[]}}}\n',
    "json": b'[[{"generated_text": "a"}]]\n',
    "csv": b"id,text\n1,a\n",
    "tsv": b"prompt\tresponse\nq\ta\n",
}
SETTLED: dict[str, dict[str, Any]] = {"mbrs": {"per_source": 2}, "sockeye": {"normalisation": "length"}}


def test_there_is_an_example_of_every_format_of_text() -> None:
    assert set(EXAMPLES) == set(FORMATS) - {"parquet"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_format_is_known_by_its_first_bytes_also_when_marked_and_packed(name: str) -> None:
    blank = b"" if name == "mbrs" else b"\r\n"  # there, a blank line is an empty hypothesis
    packed = gzip.compress(b"\xef\xbb\xbf" + blank + EXAMPLES[name].replace(b"\n", b"\r\n"))
    for data in (EXAMPLES[name], packed):
        with read(io.BytesIO(data), ReadOptions(**SETTLED.get(name, {}))) as reading:
            assert reading.format == name
            assert [entry.error for entry in reading] == [None]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"hypotheses": ["a"], "outputs": 5}\n', "jsonl"),
        (b'{"source": "\\"outputs\\": [", "candidates": ["a"]}\n', "jsonl"),
        (b'{"source": "\\"outputs\\": [", "candidates": ["cut o', "jsonl"),
        (b'{"meta": {"choices": 1}, "candidates": []}\n', "jsonl"),
        (b'{"something": "else"}\n', "jsonl"),
        (b'{"broken\n', "jsonl"),
        (b'["a", "b"]\n', "json"),
        (b"[5]\n", "jsonl"),
        (b'[{"candidates": ["a"]}]', "json"),
        (b'{"prompt": "a", "outputs": ["b", "c"]}\n', "jsonl"),
        (b'{"prompt": "a", "outputs": ["b", "cut o', "jsonl"),
        (b'{"prompt": "a", "response": "b"}\n', "jsonl"),
        (b'{"prompt": "a", "translation": "b"}\n', "jsonl"),
        (b'{"question": "a", "choices": ["b", "c"]}\n', "jsonl"),
        (b'{"translations": ["a"], "scores": [[NaN]]}\n', "sockeye"),
        (b'{"choices": []}', "openai"),
        (b"log | INFO | generating\nmore\nH-0\t-1\ta\nP-0\t-1\n", "fairseq"),
        (b"doc.1 ||| text |||  ||| 1\n", "moses"),
    ],
)
def test_similar_formats_are_distinguished(data: bytes, name: str) -> None:
    assert read(io.BytesIO(data)).format == name


def test_a_long_first_line_is_known_by_its_keys() -> None:
    prompt = "x" * 700_000
    data = json.dumps({"prompt": prompt, "outputs": [{"text": prompt}]}).encode()
    assert read(io.BytesIO(data)).format == "vllm"


def test_an_empty_input_has_no_format_and_no_entries() -> None:
    for data in (b"", b"\n \r\n", b"\xef\xbb\xbf", gzip.compress(b"")):
        with read(io.BytesIO(data)) as reading:
            assert reading.format is None
            assert list(reading) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"just some text\nand more\n", r"input, which begins 'just some text'; .*--per-source N"),
        (b'{\n  "candidates": []\n}\n', r"which begins '\{'; name it with --format.* jq -c \. FILE"),
        (b"a,b\n1,2\n", "if it is CSV or TSV, name a column with --group-by or --field, or columns"),
        (b"\xff\xfd\xfc\n", "cannot tell the format of input"),
        (b"a,b\rc,d\n", "cannot tell the format of input"),
    ],
)
def test_a_format_that_is_not_recognised_is_asked_for(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(io.BytesIO(data))
