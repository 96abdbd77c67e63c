"""Voters from other files: ballots that belong together, in step or by their ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import zip_longest

import msgspec

from rangevote.errors import DataError, warn
from rangevote.formats.reader import Entry
from rangevote.hypothesis import Hypothesis


def pair(candidates: Iterable[Entry], voters: Iterable[Entry]) -> Iterator[Entry]:
    """The first file's ballots, with the candidates of the second file's as their voters.

    Ballots go together by their position in the files; where both have an id, the ids must agree.
    """
    for entry, voting in zip_longest(candidates, voters):
        yield _paired(entry, voting)


def _paired(entry: Entry | None, voting: Entry | None) -> Entry:
    if entry is None or voting is None:
        present, other = (voting, "candidates") if entry is None else (entry, "voters")
        assert present is not None  # zip_longest ends when both do
        problem = f"has no partner: the file of {other} has fewer ballots"
        id = present.id if present.ballot is None else present.ballot.id
        return Entry(present.where, error=DataError(problem, where=present.where), id=id)
    if entry.ballot is None:
        return entry
    if voting.ballot is None:
        return Entry(voting.where, error=voting.error, id=entry.ballot.id)
    ours, theirs = entry.ballot.id, voting.ballot.id
    if ours is not None and theirs is not None and ours != theirs:
        problem = (
            f"is {ours!r}, but the voters' ballot at {voting.where} has {theirs!r}; the files must go in step"
        )
        return Entry(entry.where, error=DataError(problem, field="id", where=entry.where), id=ours)
    return Entry(entry.where, msgspec.structs.replace(entry.ballot, voters=voting.ballot.candidates))


def join_panel(candidates: Iterable[Entry], members: Mapping[str, Iterator[Entry]]) -> Iterator[Entry]:
    """The first file's ballots, with the candidates of the members' files as the voters of a panel.

    Ballots go together by their ids, those without one by their position. A member whose file has no such
    ballot has no voters for it. A file in another order is kept in memory as far as it had to be read ahead.
    """
    files = {name: MemberFile(entries) for name, entries in members.items()}
    for position, entry in enumerate(candidates):
        yield entry if entry.ballot is None else _joined(entry, position, files)
    for name, file in files.items():
        unused = file.unused()
        if unused:
            warn(f"{unused:,} of the ballots of {name!r} belong to no ballot of the candidates.")


class MemberFile:
    """The ballots of a member's file, which can be asked for by id."""

    def __init__(self, entries: Iterator[Entry]) -> None:
        self._entries = enumerate(entries)
        self._ahead: dict[Hashable, Entry] = {}

    def take(self, id: Hashable, position: int) -> Entry | None:
        """The ballot with this id, or that at this position if it has none; the next bad one if it comes
        before it."""
        wanted = [_key(id, position)] if id is None else [_key(id, position), _key(None, position)]
        for key in wanted:
            if key in self._ahead:
                return self._ahead.pop(key)
        for number, entry in self._entries:
            if entry.ballot is None:
                return entry
            key = _key(entry.ballot.id, number)
            if key in wanted:
                return entry
            self._ahead[key] = entry
        return None

    def unused(self) -> int:
        """How many ballots nobody asked for."""
        return len(self._ahead) + sum(entry.ballot is not None for _, entry in self._entries)


def _key(id: Hashable, position: int) -> Hashable:
    """1 and "1" are two ids."""
    return ("position", position) if id is None else (type(id).__name__, id)


def _joined(entry: Entry, position: int, files: Mapping[str, MemberFile]) -> Entry:
    assert entry.ballot is not None  # asked by the caller
    voters: list[Hypothesis] = []
    for name, file in files.items():
        voting = file.take(entry.ballot.id, position)
        if voting is None:
            continue
        if voting.ballot is None:
            return Entry(voting.where, error=voting.error, id=entry.ballot.id)
        voters += [msgspec.structs.replace(voter, member=name) for voter in voting.ballot.candidates]
    if not voters:
        problem = f"has no voters: none of {', '.join(map(repr, files))} has a ballot with its id"
        return Entry(entry.where, error=DataError(problem, where=entry.where), id=entry.ballot.id)
    return Entry(entry.where, msgspec.structs.replace(entry.ballot, voters=voters))
