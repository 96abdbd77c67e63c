"""An input cut into units of work, each small enough for one task and the same on every run.

A unit is a file, a range of lines of a large file of JSON lines, or some row groups of a Parquet file. Where
a unit begins is known by line or row, so that messages name the same place as in a run on one machine.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, Protocol, cast

from rangevote.errors import SetupError, UsageError, need
from rangevote.formats import FORMATS, ReadOptions, Stream
from rangevote.formats.detect import detect
from rangevote.formats.stream import codec_of
from rangevote.scale.chunks import Chunk, Chunks, line_chunks, row_chunks
from rangevote.scale.ray.places import PURPOSE, Place

#: Bytes of a unit, about; and the variable that says another number.
UNIT, UNIT_VARIABLE = 64 * 2**20, "RANGEVOTE_UNIT_BYTES"
_BLOCK = 2**20


def unit_bytes() -> int:
    """About how many bytes a unit has: what a kill costs at most, for each task that was under way."""
    text = os.environ.get(UNIT_VARIABLE, "") or str(UNIT)
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise UsageError(f"{UNIT_VARIABLE} is {text!r}; it must be a whole number of bytes from 1.")
    return int(text)


@dataclass(frozen=True)
class Unit:
    """Bytes `start` to `stop` of a file, or row groups of it; `first` numbers its first line or row."""

    number: int
    place: Place
    size: int
    modified: str
    start: int = 0
    stop: int = 0
    first: int = 1
    groups: tuple[int, ...] | None = None

    @property
    def weight(self) -> int:
        """How much work it is, in bytes."""
        return self.stop - self.start

    def identity(self) -> dict[str, Any]:
        """What tells a unit from others: its bytes, and what results may name, the file and the line."""
        return {
            "path": self.place.path,
            "name": self.place.name,
            "start": self.start,
            "stop": self.stop,
            "first": self.first,
            "groups": None if self.groups is None else list(self.groups),
        }

    @property
    def stamp(self) -> str:
        """Size and time of the file: while they are the same, so is what is in it."""
        return f"{self.size} {self.modified}"

    def check_unchanged(self) -> None:
        """Refuse a file that is no longer the one that was cut into units."""
        info = self.place.info()
        if (info.size, str(info.mtime_ns)) != (self.size, self.modified):
            raise SetupError(f"{self.place.name} changed while it was read.")

    def chunks(self, options: ReadOptions, digest: Digest | None = None) -> Chunks:
        """The ballots of the unit; `digest` gets the bytes that are read of a file of lines."""
        file = self.place.open()
        raw = file if self.groups is not None else Slice(file, *self._range, digest)
        stream = Stream(cast(BinaryIO, raw), self.place.name, max_expansion=options.max_expansion)
        chunks: Iterator[Chunk]
        if self.groups is None:
            chunks = line_chunks(stream, options, self.first - (self.start > 0))
        else:
            chunks = row_chunks(stream, options, self.first, self.groups)
        return Chunks(stream, chunks)

    @property
    def _range(self) -> tuple[int, int]:
        """The bytes to read: with the line end before the unit, a blank line, since what tells packed files
        and marks of byte order at the beginning of a file means nothing in the middle of one."""
        return self.start - (self.start > 0), self.stop

    def digest(self) -> str | None:
        """The digest of the unit's lines as they are now; rows of tables have none."""
        if self.groups is not None:
            return None
        found = hashlib.sha256()
        with Slice(self.place.open(), *self._range, found) as raw:
            while raw.read(_BLOCK):
                pass
        return found.hexdigest()


class Digest(Protocol):
    """What `hashlib` has."""

    def update(self, data: bytes, /) -> None: ...


class Slice(io.RawIOBase):
    """Some bytes of a file."""

    def __init__(self, file: Any, start: int, stop: int, digest: Digest | None = None) -> None:
        self._file, self._left, self._digest = file, stop - start, digest
        file.seek(start)

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or those that are left."""
        data = bytes(self._file.read(min(size, self._left) if size >= 0 else self._left))
        self._left -= len(data)
        if self._digest is not None:
            self._digest.update(data)
        return data

    def close(self) -> None:
        """Let the file go."""
        self._file.close()
        super().close()


Range = tuple[Place, int, int]
Count = Callable[[Sequence[Range]], Sequence[int]]


def plan(files: Sequence[Place], options: ReadOptions, count: Count, unit: int = UNIT) -> list[Unit]:
    """The units of all files, in order. `count` counts the line ends of ranges, perhaps many at a time."""
    units: list[Unit] = []
    for place in files:
        info = place.info()
        fixed = {"place": place, "size": info.size, "modified": str(info.mtime_ns)}
        for begin, stop, first, groups in _cut(place, info.size, options, count, unit):
            units.append(Unit(len(units), start=begin, stop=stop, first=first, groups=groups, **fixed))
    return units


Cut = tuple[int, int, int, tuple[int, ...] | None]


def _cut(place: Place, size: int, options: ReadOptions, count: Count, unit: int) -> list[Cut]:
    with (
        place.open() as file,
        Stream(file, place.name, owned=False, max_expansion=options.max_expansion) as stream,
    ):
        format = options.format or detect(stream, FORMATS)
        if format is None:
            return []
        if format == "parquet":
            return _cut_groups(file, size, unit)
        if format != "jsonl":
            raise UsageError(
                f"{place.name} has the format {format!r}; {PURPOSE} reads jsonl and parquet. Make one of "
                f"these of it with: rangevote convert"
            )
        file.seek(0)
        if size <= unit or codec_of(bytes(file.read(8))) is not None:
            return [(0, size, 1, None)]
        edges = [0, *(_next_line(file, edge) for edge in range(unit, size, unit)), size]
    edges = sorted(set(edges))
    ranges = [(place, start, stop) for start, stop in pairwise(edges)]
    firsts = [1]
    for lines in count(ranges[:-1]):
        firsts.append(firsts[-1] + lines)
    return [(start, stop, first, None) for (_, start, stop), first in zip(ranges, firsts, strict=True)]


def _cut_groups(file: Any, size: int, unit: int) -> list[Cut]:
    """Row groups on end that make up about a unit; the bytes of the file are shared out by their number."""
    pq = need("pyarrow.parquet", "ray", PURPOSE)
    try:
        metadata = pq.ParquetFile(file).metadata
    except (OSError, ValueError):
        return [(0, size, 1, ())]  # who reads it will say what is wrong with it
    cuts: list[Cut] = []
    groups: list[int] = []
    weight, row, first = 0, 1, 1
    each = size // max(1, metadata.num_row_groups)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        groups.append(number)
        weight += group.total_byte_size
        row += group.num_rows
        if weight >= unit or number == metadata.num_row_groups - 1:
            cuts.append((groups[0] * each, (number + 1) * each, first, tuple(groups)))
            groups, weight, first = [], 0, row
    return cuts


def _next_line(file: Any, position: int) -> int:
    """Where the first line begins that does so at `position` or after it."""
    file.seek(position - 1)
    position -= 1
    while block := bytes(file.read(_BLOCK)):
        found = block.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(block)
    return position


def count_lines(place: Place, start: int, stop: int) -> int:
    """How many line ends are in a range of a file."""
    lines = 0
    with place.open() as file:
        file.seek(start)
        left = stop - start
        while left and (block := bytes(file.read(min(left, 4 * _BLOCK)))):
            lines += block.count(b"\n")
            left -= len(block)
    return lines
