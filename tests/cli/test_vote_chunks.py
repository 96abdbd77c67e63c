"""Ballots in chunks: however the lines come, their bytes, errors and warnings are the same."""

# ruff: noqa: E501  (a line of input is a line)

from __future__ import annotations

import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.cli.vote import Voting
from rangevote.election.settings import Settings
from rangevote.formats import ReadOptions, read, writer
from rangevote.formats.reader import chunk_entries, read_chunks
from rangevote.formats.result_writer import ResultShape
from rangevote.text import open_stream
from tests.cli.conftest import ballot
from tests.cli.conftest import lines as as_lines

PLAIN = b'{"id": %d, "candidates": [{"text": "a b c", "logprob": -1.5}, {"text": "a b d", "logprob": -2}]}'
#: Lines of which each is usual, unusual or wrong in its own way; tests/formats/test_jsonl.py has more.
LINES = [
    b'{"id": "x", "source": "s", "references": ["r", "q"], "candidates": ["a b", "a c", "a b"]}',
    b'{"candidates": ["a b", "b c"], "voters": [{"text": "b c", "logprob": -0.25}, {"text": "c", "logprob": -3e0}]}',
    rb'{"id":"\u00e9\n\"\\\/","candidates":["\ud83d\ude00 \u00e4 b","\u0001 b \u007f","c \u2028 \u0000"]}',
    '{"candidates": ["日本 語", "é\u00a0b", "\u3000"], "id": "ü\u2028"}'.encode(),
    b'{"candidates": [{"text": "a", "logprob": -0.1}, {"text": "b", "logprob": -0.1}]}',  # too probable
    b'{"candidates": [{"text": "a", "logprob": -1}, {"text": "b"}]}',
    b'{"candidates": [{"text": "a", "logprob": 0.5}]}',
    b'{"candidates": [{"text": "a", "prob": 0.5}]}',
    b'{"candidates": [{"tokens": [1, 2]}, {"tokens": [1, 3]}]}',
    b'{"candidates": ["a"], "unknown": 1}',
    b'{"candidates": ["a"], "id": 1.0}',
    b'{"candidates": []}',
    b'{"candidates": ["", " "]}',
    b'{"candidates": ["a"]}\x00',
    b'{"candidates": ["\xff"]}',
    b'\xef\xbb\xbf{"candidates": ["a"]}',
    b"[]",
    b'{"candidates": ["a"',
    b"",
    b"  \t",
    b'  { "candidates" : [ "a b" , { "text" : "a" } ] , "id" : 12 }  \r',
]


class NoSink:
    done, last = 0, b""


class Trickle(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._most)


def written(data: bytes, most: int = 1 << 20, **reading: Any) -> Any:
    """The lines of output with their errors, what ended the run, and the warnings."""
    warned: list[str] = []
    read = ReadOptions(format="jsonl", warn=warned.append, **reading)
    voting = Voting(Settings(), ResultShape(scores=True), read, "jsonl", allow_empty=False)
    sink: Any = NoSink()
    notes: Any = None
    with warnings.catch_warnings(record=True) as caught, open_stream(Trickle(data, most)) as stream:
        warnings.simplefilter("always")
        try:
            made = list(voting.lines(read_chunks(stream, "jsonl", read, 1), sink, 1, notes))
        except Exception as error:
            return type(error), str(error)
    shown = [(line.content, type(line.error), str(line.error or "")) for line in made]
    return shown, warned, sorted({str(warning.message) for warning in caught})


@given(
    st.lists(st.sampled_from(LINES) | st.integers(0, 5).map(lambda i: PLAIN % i), max_size=12),
    st.integers(1, 300),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.booleans(),
    st.booleans(),
)
def test_however_the_bytes_come(lines: Any, most: int, end: bytes, torn: bool, strict: bool) -> None:
    data = end.join(lines) + (b"" if torn else end)
    for unique in (True, False):
        how = {"strict": strict, "unique_ids": unique}
        assert written(data, **how) == written(data, most, **how)


MANY = as_lines(*(ballot(i, f"a {i}", "b") for i in range(300)))


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "moses", "records"])
def test_chunks_can_be_sent_to_a_process_and_hold_what_reading_gives(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        path.write_bytes(b"".join(writer("parquet")(entry.get() for entry in read(io.BytesIO(MANY)))))
    elif kind == "moses":
        path.write_bytes(b"".join(b"%d ||| a ||| F0= -1 ||| -1\n" % i for i in range(300)))
    elif kind == "records":
        path.write_bytes(as_lines(*({"task_id": i // 3, "completion": f"a {i}"} for i in range(900))))
    else:
        path.write_bytes(MANY.replace(b'"b"', b"5", 1) + b"\n" + b'{"candidates": [')
    with read(path) as reading:
        format, expected = reading.format, [(e.where, repr(e.ballot), str(e.error)) for e in reading]
    options = ReadOptions(group_by="task_id", text_field="completion") if kind == "records" else ReadOptions()
    with open_stream(path) as stream:
        chunks = [pickle.loads(pickle.dumps(chunk)) for chunk in read_chunks(stream, format, options, 64)]
        assert stream.position == stream.size
    found = [entry for chunk in chunks for entry in chunk_entries(chunk, format, options)]
    assert [(e.where, repr(e.ballot), str(e.error)) for e in found] == expected
    assert len(chunks) > 1
