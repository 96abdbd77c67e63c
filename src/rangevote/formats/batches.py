"""An input in batches of raw records, which are cheap to count and to send to another process.

Lines stay bytes and rows of Parquet stay columns until `entries` makes ballots of them, which is most of the
work of reading and is left to the process that holds the elections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from rangevote.errors import DataError
from rangevote.formats.reader import (
    Entry,
    ReadOptions,
    decoder_of,
    line_entry,
    open_format,
    read_entries,
)
from rangevote.formats.stream import OnStream, Source, Stream

#: A batch has at most so many records, and about so many bytes.
RECORDS, BYTES = 256, 2**18


@dataclass(frozen=True)
class RawBatch:
    """Some records of an input, in its order, with their numbers: lines, where `torn` means that the last one
    has no line end, or rows of Parquet (a `pyarrow.RecordBatch`). Other formats must be decoded to tell their
    records apart: then `format` is None and the records are entries."""

    name: str
    format: str | None
    numbers: Sequence[int]
    records: Any
    torn: bool = False

    def __len__(self) -> int:
        return len(self.records)

    def where(self, index: int) -> str:
        return self.records[index].where if self.format is None else f"{self.name}:{self.numbers[index]}"

    def part(self, start: int, stop: int | None = None) -> RawBatch:
        torn = self.torn and (stop is None or stop >= len(self))
        return replace(self, numbers=self.numbers[start:stop], records=self.records[start:stop], torn=torn)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        if self.format is None:
            yield from self.records
            return
        last = len(self) - 1
        if self.format == "parquet":
            from rangevote.formats.parquet import entries_of

            yield from entries_of(self.records, self.name, self.numbers, options)
            return
        decode = decoder_of(self.format, options)
        assert decode is not None  # the records are lines
        for i, line in enumerate(self.records):
            yield line_entry(self.where(i), line, decode, self.torn and i == last)


class Batches(OnStream, Iterator[RawBatch]):
    """The batches of one input. A fault that ends the reading is the last record."""

    def __init__(self, stream: Stream, batches: Iterator[RawBatch]) -> None:
        super().__init__(stream)
        self._batches = batches

    def __next__(self) -> RawBatch:
        try:
            return next(self._batches)
        except DataError as error:
            self._batches = iter(())
            error = error.placed(self._stream.name)
            return next(entry_batches([Entry(error.where, error=error)]))


def read_batches(source: Source | Stream, options: ReadOptions) -> Batches:
    """Open a path or '-' and read it in batches; ids are not compared."""
    stream, format, options = open_format(source, options)
    try:
        return Batches(stream, _batches(stream, format, options))
    except BaseException:
        stream.close()
        raise


def _batches(stream: Stream, format: str | None, options: ReadOptions) -> Iterator[RawBatch]:
    if format == "parquet":
        return _row_batches(stream, options)
    entries = read_entries(stream, format, options)  # refuses options that do not apply at once
    if format is not None and not options.layout and decoder_of(format, options) is not None:
        return _line_batches(stream, format, options)
    return entry_batches(entries)


def _line_batches(stream: Stream, format: str, options: ReadOptions) -> Iterator[RawBatch]:
    numbers: list[int] = []
    lines: list[bytes | DataError] = []
    size = 0
    for number, line in stream.numbered_lines(options.max_line_bytes):
        numbers.append(number)
        lines.append(line)
        size += 0 if isinstance(line, DataError) else len(line)
        if len(lines) == RECORDS or size >= BYTES:
            yield RawBatch(stream.name, format, numbers, lines, stream.torn)
            numbers, lines, size = [], [], 0
    if lines:
        yield RawBatch(stream.name, format, numbers, lines, stream.torn)


def _row_batches(stream: Stream, options: ReadOptions) -> Iterator[RawBatch]:
    from rangevote.formats.parquet import has_ballots, reader, record_batches

    if not has_ballots(stream, options):
        yield from entry_batches(reader(stream, options))
        return
    first = 1
    for rows in record_batches(stream, options):
        yield RawBatch(stream.name, "parquet", range(first, first + len(rows)), rows)
        first += len(rows)


def entry_batches(entries: Iterable[Entry]) -> Iterator[RawBatch]:
    """Entries that were read already, a few at a time."""
    left = iter(entries)
    while ready := list(islice(left, RECORDS)):
        yield RawBatch("", None, (), ready)
