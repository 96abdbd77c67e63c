"""A file that is one JSON array: of records, or of lists as a Hugging Face pipeline returns them.

    [{"prompt_id": 7, "outputs": ["a", "b"]}, ...]
    [[{"generated_text": "a"}, {"generated_text": "b"}], ...]

A list of lists has one for each input, whose id is its number from 0; the flat list that a pipeline returns
for a single input is one ballot. The document is one value and is read into memory as a whole; it is subject
to the limit on the length of a line. A file of one list a line is read as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from rangevote.errors import DataError
from rangevote.formats.jsonl import ballot_scale, parse
from rangevote.formats.layouts import Record, read_records, recognise, record_ballot, unknown_layout
from rangevote.formats.reader import Entry, ReadOptions, read_lines
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot

#: Names of what a pipeline returns, which differ by task.
PIPELINE = ("generated_text", "translation_text", "summary_text")
_EXPECTED = "expected an array of records or of lists"


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each list, or for the records of each ballot."""
    if not _one_list_a_line(stream.peek(2**16)):
        return _document(stream, options)
    numbers, scale = count(), ballot_scale(options, "json")

    def decode(line: bytes) -> Ballot:
        return record_ballot(_record(parse(line), next(numbers)), replace(options, field="outputs"), scale)

    return read_lines(stream, options, decode)


def _one_list_a_line(head: bytes) -> bool:
    """A flat list that ends where its line does, with another line after it; else it is a document."""
    first, _, rest = head.lstrip().partition(b"\n")
    flat = first[:1] == b"[" and first[1:].lstrip()[:1] == b"{" and first.rstrip().endswith(b"]")
    return flat and rest.lstrip()[:1] == b"["


def _document(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    whole = _whole(stream, options.max_line_bytes)
    if not whole.strip():
        return
    try:
        value = parse(whole)
        if not isinstance(value, list):
            raise DataError(_EXPECTED)
    except DataError as error:
        hint = "; objects of one line each are the format jsonl" if whole.lstrip()[:1] == b"{" else ""
        raise DataError(error.problem + hint, where=stream.name) from None
    if not value:
        return
    records = all(isinstance(item, dict) for item in value)
    if records and not options.layout and any(name in value[0] for name in PIPELINE):
        records, value = False, [value]
    layout = recognise(value, options) if records else replace(options, field="outputs")
    if layout is None:
        raise unknown_layout(value[0]).at(stream.name)
    located = enumerate(value if records else map(_record, value, count()))
    yield from read_records(((f"{stream.name}[{i}]", record) for i, record in located), layout, "json")


def _record(item: Any, id: int) -> Record:
    """A list as a record of which it is the only field."""
    return {"id": id, "outputs": item}


def _whole(stream: Stream, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in stream.chunks():
        size += len(chunk)
        if size > limit:
            raise DataError(f"the document exceeds --max-line-bytes ({limit:,} bytes)", where=stream.name)
        parts.append(chunk)
    return b"".join(parts)
