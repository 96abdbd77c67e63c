"""Ballots of a page: any number of them, by their number or their id, without being all in memory.

An input is read once, whatever its format, and its ballots are kept as lines of JSON in a temporary file
(in memory while they are few). So a page shows one state of the input, even if the file changes meanwhile.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from rangevote.errors import DataError
from rangevote.formats.ballot_writer import write_ballot
from rangevote.formats.jsonl import decode_ballot
from rangevote.formats.reader import Entry, ReadOptions
from rangevote.hypothesis import Ballot

#: Bytes of ballots that are kept in memory; more go to a temporary file.
IN_MEMORY = 32 * 2**20
#: Warnings were given when the file was read.
_QUIET = ReadOptions(warn=lambda message: None)


class Ballots:
    """The ballots of one input in their order; `name` is what the page calls it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)  # it goes with this object
        self._ends = array("Q", [0])
        self._numbers: dict[str, int] = {}
        self._lock = Lock()  # requests come from several threads, the file has one position

    @classmethod
    def of(cls, name: str, ballots: Iterable[Ballot]) -> Ballots:
        kept = cls(name)
        for ballot in ballots:
            kept.add(ballot)
        return kept

    @classmethod
    def read(cls, name: str, entries: Iterable[Entry]) -> Ballots:
        """Keep what a reader gives; the first ballot that cannot be read ends it with its error."""
        kept = cls.of(name, (entry.get() for entry in entries))
        if not len(kept):
            raise DataError("holds no ballots, so there is nothing to show.", where=name)
        return kept

    def add(self, ballot: Ballot) -> None:
        line = write_ballot(ballot)
        with self._lock:
            self._file.seek(self._ends[-1])
            self._file.write(line)
        if ballot.id is not None:
            self._numbers.setdefault(str(ballot.id), len(self))
        self._ends.append(self._ends[-1] + len(line))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> Ballot:
        if not 0 <= number < len(self):
            raise IndexError(number)
        begin, end = self._ends[number], self._ends[number + 1]
        with self._lock:
            self._file.seek(begin)
            line = self._file.read(end - begin)
        return decode_ballot(line, _QUIET)

    @property
    def with_ids(self) -> bool:
        return bool(self._numbers)

    def ids(self) -> Iterable[str]:
        return self._numbers.keys()

    def find(self, id: str) -> int | None:
        return self._numbers.get(id)


@dataclass(frozen=True)
class BallotLists:
    """Several lists of the same elections, as beams of different sizes; the first one names the ballots."""

    lists: Sequence[Ballots]

    def __len__(self) -> int:
        return len(self.lists[0])

    def ballot(self, number: int, list: int) -> Ballot | None:
        """The ballot of a list that belongs to ballot `number` of the first: the one with its id, or, where
        neither list has ids, the one of the same number. None where there is none."""
        first, wanted = self.lists[0], self.lists[list]
        if wanted is first:
            return first[number]
        id = first[number].id
        other = number if id is None and not wanted.with_ids else wanted.find(str(id))
        return wanted[other] if other is not None and other < len(wanted) else None

    def unmatched(self) -> list[tuple[str, int]]:
        """Name of each further list, and how many of its ballots have no partner in the first."""
        first = self.lists[0]
        unmatched = []
        for other in self.lists[1:]:
            if other.with_ids:
                shared = sum(first.find(id) is not None for id in other.ids())
            else:
                shared = 0 if first.with_ids else min(len(first), len(other))
            if len(other) > shared:
                unmatched.append((other.name, len(other) - shared))
        return unmatched


def names_of(paths: Sequence[str]) -> list[str]:
    """What a page calls files: their names without endings, unless two would be called the same.

    >>> names_of(["runs/k4.jsonl", "runs/k10.jsonl.gz"]), names_of(["a/beam.jsonl", "b/beam.jsonl"])
    (['k4', 'k10'], ['a/beam.jsonl', 'b/beam.jsonl'])
    """
    names = ["standard input" if path == "-" else Path(path).name.partition(".")[0] or path for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
