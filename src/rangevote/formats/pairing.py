"""Two files read side by side: the candidates of one, voted on by those of the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import msgspec

from rangevote.errors import DataError
from rangevote.formats.entry import Entry


def pair(candidates: Iterable[Entry], voters: Iterable[Entry]) -> Iterator[Entry]:
    """The first file's ballots, with the candidates of the second file's as their voters.

    Ballots go together by their place in the files; where both have an id, the ids must agree.
    """
    for entry, roll in zip_longest(candidates, voters):
        yield _paired(entry, roll)


def _paired(entry: Entry | None, roll: Entry | None) -> Entry:
    if entry is None or roll is None:
        there, other = (roll, "candidates") if entry is None else (entry, "voters")
        assert there is not None  # zip_longest ends when both do
        problem = f"has no partner: the file of {other} has fewer ballots"
        return Entry(there.where, error=DataError(problem, where=there.where))
    if entry.ballot is None:
        return entry
    if roll.ballot is None:
        return Entry(roll.where, error=roll.error)
    ours, theirs = entry.ballot.id, roll.ballot.id
    if ours is not None and theirs is not None and ours != theirs:
        problem = (
            f"is {ours!r}, but the voters' ballot at {roll.where} has {theirs!r}; the files must go in step"
        )
        return Entry(entry.where, error=DataError(problem, field="id", where=entry.where))
    return Entry(entry.where, msgspec.structs.replace(entry.ballot, voters=roll.ballot.candidates))
