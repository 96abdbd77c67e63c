"""An input in chunks of raw records, which are cheap to count, to choose from and to hand to another process.

Lines of JSON stay bytes and rows of Parquet stay columns until `entries` makes ballots of them, which is most
of the work of reading and is left to whoever holds the elections.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rangevote.errors import DataError
from rangevote.formats import Entry, ReadOptions, Stream
from rangevote.formats.reader import line_entry, open_format, read_entries
from rangevote.formats.stream import OnStream

if TYPE_CHECKING:
    import pyarrow as pa

#: A chunk has so many records at most, and about so many bytes.
RECORDS, BYTES = 256, 2**18


class Chunk(Protocol):
    """Some records of an input, in its order."""

    def __len__(self) -> int: ...
    def entries(self, options: ReadOptions) -> Iterator[Entry]: ...
    def where(self, place: int) -> str: ...
    def only(self, places: Sequence[int]) -> Chunk: ...
    def digest(self, before: int) -> int: ...


@dataclass(frozen=True)
class LineChunk:
    """Lines of the ballot file, with their numbers; `torn`: the last one has no line end."""

    name: str
    numbers: Sequence[int]
    lines: Sequence[bytes | DataError]
    torn: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        """The ballots, or what is wrong with them."""
        from rangevote.formats.jsonl import decoder

        decode, last = decoder(options), len(self.lines) - 1
        for place, line in enumerate(self.lines):
            yield line_entry(self.where(place), line, decode, self.torn and place == last)

    def where(self, place: int) -> str:
        """File and line of a record."""
        return f"{self.name}:{self.numbers[place]}"

    def only(self, places: Sequence[int]) -> LineChunk:
        """The records at these places."""
        torn = self.torn and bool(places) and places[-1] == len(self.lines) - 1
        return LineChunk(self.name, [self.numbers[i] for i in places], [self.lines[i] for i in places], torn)

    def digest(self, before: int) -> int:
        """The check sum of all records up to here."""
        for line in self.lines:
            before = zlib.crc32(str(line).encode() if isinstance(line, DataError) else line, before)
        return before


@dataclass(frozen=True)
class RowChunk:
    """Rows of a Parquet file, with their numbers."""

    name: str
    numbers: Sequence[int]
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.numbers)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        """The ballots, or what is wrong with them."""
        from rangevote.formats.parquet import entries_of

        return entries_of(self.rows, self.name, self.numbers, options)

    def where(self, place: int) -> str:
        """File and row of a record."""
        return f"{self.name}:{self.numbers[place]}"

    def only(self, places: Sequence[int]) -> RowChunk:
        """The records at these places."""
        taken = self.rows.take(list(places)) if places else self.rows.slice(0, 0)
        return RowChunk(self.name, [self.numbers[i] for i in places], taken)

    def digest(self, before: int) -> int:
        """The check sum of the ids and the number of records up to here; their bytes depend on the reader."""
        named = self.rows.column("id").to_pylist() if "id" in self.rows.schema.names else len(self)
        return zlib.crc32(repr(named).encode("utf-8", "surrogatepass"), before)


@dataclass(frozen=True)
class EntryChunk:
    """Records of another format, which had to be read to be told apart."""

    held: Sequence[Entry]

    def __len__(self) -> int:
        return len(self.held)

    def entries(self, options: ReadOptions) -> Iterator[Entry]:
        """The ballots, or what is wrong with them."""
        return iter(self.held)

    def where(self, place: int) -> str:
        """File and line of a record."""
        return self.held[place].where

    def only(self, places: Sequence[int]) -> EntryChunk:
        """The records at these places."""
        return EntryChunk([self.held[i] for i in places])

    def digest(self, before: int) -> int:
        """The check sum of all records up to here."""
        for entry in self.held:
            before = zlib.crc32(repr(entry).encode("utf-8", "surrogatepass"), before)
        return before


class Chunks(OnStream, Iterator[Chunk]):
    """The chunks of one input, and how far it has come. A fault that ends the reading is the last record."""

    def __init__(self, stream: Stream, chunks: Iterator[Chunk]) -> None:
        super().__init__(stream)
        self._chunks = chunks

    def __next__(self) -> Chunk:
        try:
            return next(self._chunks)
        except DataError as error:
            self._chunks = iter(())
            error = error.placed(self._stream.name)
            return EntryChunk([Entry(error.where, error=error)])


def open_chunks(source: str, options: ReadOptions) -> Chunks:
    """Open a path or '-' and read it in chunks."""
    stream, name = open_format(source, options)
    try:
        return Chunks(stream, _chunks(stream, name, options))
    except BaseException:
        stream.close()
        raise


def _chunks(stream: Stream, format: str | None, options: ReadOptions) -> Iterator[Chunk]:
    if format is None:
        return iter(())
    if format == "jsonl":
        from rangevote.formats.jsonl import decoder

        decoder(options)  # options that do not apply are refused at once
        return line_chunks(stream, options)
    if format == "parquet":
        return row_chunks(stream, options)
    return entry_chunks(read_entries(stream, format, options))


def line_chunks(stream: Stream, options: ReadOptions, first: int = 1) -> Iterator[LineChunk]:
    """Lines that are not blank; the first line of the stream has the number `first`."""
    numbers: list[int] = []
    lines: list[bytes | DataError] = []
    size = 0
    for number, line in enumerate(stream.lines_or_errors(options.max_line_bytes), first):
        if not isinstance(line, DataError) and (not line or line.isspace()):
            continue
        numbers.append(number)
        lines.append(line)
        size += 0 if isinstance(line, DataError) else len(line)
        if len(lines) == RECORDS or size >= BYTES:
            yield LineChunk(stream.name, numbers, lines, stream.torn)
            numbers, lines, size = [], [], 0
    if lines:
        yield LineChunk(stream.name, numbers, lines, stream.torn)


def row_chunks(
    stream: Stream, options: ReadOptions, first: int = 1, groups: Sequence[int] | None = None
) -> Iterator[RowChunk]:
    """The rows of a Parquet file, or of some of its row groups, whose first row has the number `first`."""
    from rangevote.formats.parquet import record_batches

    for batch in record_batches(stream, options, groups):
        yield RowChunk(stream.name, range(first, first + len(batch)), batch)
        first += len(batch)


def entry_chunks(entries: Iterable[Entry]) -> Iterator[EntryChunk]:
    """Entries that were read already, a few at a time."""
    held: list[Entry] = []
    for entry in entries:
        held.append(entry)
        if len(held) == RECORDS:
            yield EntryChunk(held)
            held = []
    if held:
        yield EntryChunk(held)
