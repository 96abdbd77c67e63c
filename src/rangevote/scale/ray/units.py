"""An input cut into units of work, each small enough for one task and the same on every run.

A unit is a file, a range of lines of a large file of JSON lines, or some row groups of a Parquet file. Where
a unit begins is known by line or row, so that messages name the same place as in a run on one machine.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, cast

from rangevote.errors import UsageError, need
from rangevote.format import ReadOptions, Stream
from rangevote.format.compression import codec_of
from rangevote.format.detect import detect
from rangevote.scale.chunks import Chunk, Chunks, line_chunks, row_chunks
from rangevote.scale.ray.places import PURPOSE, Place

#: Bytes of a unit, about.
UNIT = 64 * 2**20
_BLOCK = 2**20


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
        """What tells a unit of one input from that of another, or of the same input after a change."""
        return {
            "path": self.place.path,
            "size": self.size,
            "modified": self.modified,
            "start": self.start,
            "stop": self.stop,
            "groups": None if self.groups is None else list(self.groups),
        }

    def chunks(self, options: ReadOptions) -> Chunks:
        """The ballots of the unit."""
        file = self.place.open()
        raw = file if self.groups is not None else Slice(file, self.start, self.stop)
        stream = Stream(cast(BinaryIO, raw), self.place.name, max_expansion=options.max_expansion)
        chunks: Iterator[Chunk]
        if self.groups is None:
            chunks = line_chunks(stream, options, self.first)
        else:
            chunks = row_chunks(stream, options, self.first, self.groups)
        return Chunks(stream, chunks)


class Slice(io.RawIOBase):
    """Some bytes of a file."""

    def __init__(self, file: Any, start: int, stop: int) -> None:
        self._file, self._left = file, stop - start
        file.seek(start)

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or those that are left."""
        data = bytes(self._file.read(min(size, self._left) if size >= 0 else self._left))
        self._left -= len(data)
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
        fixed = {"place": place, "size": info.size, "modified": str(info.mtime)}
        for begin, stop, first, groups in _cut(place, info.size, options, count, unit):
            units.append(Unit(len(units), start=begin, stop=stop, first=first, groups=groups, **fixed))
    return units


Cut = tuple[int, int, int, tuple[int, ...] | None]


def _cut(place: Place, size: int, options: ReadOptions, count: Count, unit: int) -> list[Cut]:
    with (
        place.open() as file,
        Stream(file, place.name, owned=False, max_expansion=options.max_expansion) as stream,
    ):
        format = options.format or detect(stream, options)
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
