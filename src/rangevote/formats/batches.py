"""An input in batches of raw records, which are cheap to count and to send to another process.

Lines stay bytes and rows of Parquet stay columns until `entries` makes ballots of them, which is most of the
work of reading and is left to the process that holds the elections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rangevote.errors import DataError
from rangevote.formats.reader import (
    FORMATS,
    Entry,
    ReadOptions,
    line_entry,
    numbered_lines,
    open_format,
    read_entries,
)
from rangevote.formats.stream import OnStream, Source, Stream

if TYPE_CHECKING:
    import pyarrow as pa

#: A batch has at most so many records, and about so many bytes.
RECORDS, BYTES = 256, 2**18


class Batch(Protocol):
    """Some records of an input, in its order."""

    def __len__(self) -> int: ...
    def entries(self, options: ReadOptions) -> Iterator[Entry]: ...
    def where(self, index: int) -> str: ...
    def part(self, start: int, stop: int | None = None) -> Batch: ...


@dataclass(frozen=True)
class LineBatch:
    """Lines with their numbers; `torn`: the last one has no line end."""

    format: str
    name: str
    numbers: Sequence[int]
    lines: Sequence[bytes | DataError]
    torn: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        decode, last = FORMATS[self.format].load().decoder(options), len(self) - 1
        for i, line in enumerate(self.lines):
            yield line_entry(self.where(i), line, decode, self.torn and i == last)

    def where(self, index: int) -> str:
        return f"{self.name}:{self.numbers[index]}"

    def part(self, start: int, stop: int | None = None) -> LineBatch:
        torn = self.torn and (stop is None or stop >= len(self))
        return LineBatch(self.format, self.name, self.numbers[start:stop], self.lines[start:stop], torn)


@dataclass(frozen=True)
class RowBatch:
    """Rows of a Parquet file; `first` is the number of the first one."""

    name: str
    first: int
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.rows)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        from rangevote.formats.parquet import entries_of

        return entries_of(self.rows, self.name, range(self.first, self.first + len(self)), options)

    def where(self, index: int) -> str:
        return f"{self.name}:{self.first + index}"

    def part(self, start: int, stop: int | None = None) -> RowBatch:
        size = None if stop is None else stop - start
        return RowBatch(self.name, self.first + start, self.rows.slice(start, size))


@dataclass(frozen=True)
class EntryBatch:
    """Records of another format, which had to be decoded to be told apart."""

    ready: Sequence[Entry]

    def __len__(self) -> int:
        return len(self.ready)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        return iter(self.ready)

    def where(self, index: int) -> str:
        return self.ready[index].where

    def part(self, start: int, stop: int | None = None) -> EntryBatch:
        return EntryBatch(self.ready[start:stop])


class Batches(OnStream, Iterator[Batch]):
    """The batches of one input. A fault that ends the reading is the last record."""

    def __init__(self, stream: Stream, batches: Iterator[Batch]) -> None:
        super().__init__(stream)
        self._batches = batches

    def __next__(self) -> Batch:
        try:
            return next(self._batches)
        except DataError as error:
            self._batches = iter(())
            error = error.placed(self._stream.name)
            return EntryBatch([Entry(error.where, error=error)])


def read_batches(source: Source, options: ReadOptions) -> Batches:
    """Open a path or '-' and read it in batches; ids are not compared."""
    stream, format = open_format(source, options)
    try:
        return Batches(stream, _batches(stream, format, options))
    except BaseException:
        stream.close()
        raise


def _batches(stream: Stream, format: str | None, options: ReadOptions) -> Iterator[Batch]:
    if format is None:
        return iter(())
    if FORMATS[format].by_line:
        FORMATS[format].load().decoder(options)  # options that do not apply are refused at once
        return _line_batches(stream, format, options)
    if format == "parquet":
        return _row_batches(stream, options)
    return entry_batches(read_entries(stream, format, options))


def _line_batches(stream: Stream, format: str, options: ReadOptions) -> Iterator[LineBatch]:
    numbers: list[int] = []
    lines: list[bytes | DataError] = []
    size = 0
    for number, line in numbered_lines(stream, options):
        numbers.append(number)
        lines.append(line)
        size += 0 if isinstance(line, DataError) else len(line)
        if len(lines) == RECORDS or size >= BYTES:
            yield LineBatch(format, stream.name, numbers, lines, stream.torn)
            numbers, lines, size = [], [], 0
    if lines:
        yield LineBatch(format, stream.name, numbers, lines, stream.torn)


def _row_batches(stream: Stream, options: ReadOptions) -> Iterator[RowBatch]:
    from rangevote.formats.parquet import record_batches

    first = 1
    for batch in record_batches(stream, options):
        yield RowBatch(stream.name, first, batch)
        first += len(batch)


def entry_batches(entries: Iterable[Entry]) -> Iterator[EntryBatch]:
    """Entries that were read already, a few at a time."""
    ready: list[Entry] = []
    for entry in entries:
        ready.append(entry)
        if len(ready) == RECORDS:
            yield EntryBatch(ready)
            ready = []
    if ready:
        yield EntryBatch(ready)
