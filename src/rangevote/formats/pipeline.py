"""What a Hugging Face pipeline returns, saved as JSON: `[[{"generated_text": ".."}, ..], ..]`.

One list for each input; a single flat list is one input. There are no scores, so each text counts
once. The document is one JSON value and is read into memory as a whole; it is subject to the limit on
the length of a line. A file of one list a line is read as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

from rangevote.errors import DataError
from rangevote.formats.jsonl import parse
from rangevote.formats.reader import Entry, ReadOptions, entry_at, read_lines
from rangevote.formats.scores import settled
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot, Hypothesis

#: The key differs by task.
KEYS = ("generated_text", "translation_text", "summary_text", "text")
_EXPECTED = 'expected [[{"generated_text": "..."}, ...], ...]'


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each input; its id is its number, from 0."""
    settled(options, "pipeline")
    if _one_list_a_line(stream.peek(2**16)):
        numbers = count()
        return read_lines(stream, options, lambda line: _ballot(parse(line), next(numbers)))
    return _document(stream, options)


def _one_list_a_line(head: bytes) -> bool:
    """A flat list that ends where its line does; one of many lines is a document."""
    first, newline, _ = head.lstrip().partition(b"\n")
    return (
        first[:1] == b"["
        and first[1:].lstrip()[:1] == b"{"
        and (not newline or first.rstrip().endswith(b"]"))
    )


def _document(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    whole = _whole(stream, options.max_line_bytes)
    if not whole.strip():
        return
    try:
        value = parse(whole)
        if not isinstance(value, list):
            raise DataError(_EXPECTED)
    except DataError as error:
        raise error.at(stream.name) from None
    if value and all(isinstance(item, dict) for item in value):
        value = [value]  # a flat list, written over several lines
    for i, item in enumerate(value):
        yield entry_at(f"{stream.name}[{i}]", partial(_ballot, item, i))


def _whole(stream: Stream, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in stream.chunks():
        size += len(chunk)
        if size > limit:
            raise DataError(f"the document exceeds --max-line-bytes ({limit:,} bytes)", where=stream.name)
        parts.append(chunk)
    return b"".join(parts)


def _ballot(item: Any, id: int) -> Ballot:
    if not isinstance(item, list):
        raise DataError(_EXPECTED)
    return Ballot([Hypothesis(_text(output, i)) for i, output in enumerate(item)], id=id)


def _text(output: Any, index: int) -> str:
    """What was generated; of a chat, the last message."""
    if not isinstance(output, dict):
        raise DataError(_EXPECTED, field=f"[{index}]")
    text = next((output[key] for key in KEYS if key in output), None)
    if isinstance(text, list) and text and isinstance(text[-1], dict):
        text = text[-1].get("content")
    if not isinstance(text, str):
        raise DataError(_EXPECTED, field=f"[{index}]")
    return text
