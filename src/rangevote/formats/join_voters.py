"""Several files of ballots that belong together: their outputs become the members of a panel.

Ballots are joined by id, or by position where they have none. Files in the same order are read in parallel;
of a file in another order, the ballots that had to be read ahead are kept in memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import msgspec

from rangevote.errors import DataError, warn
from rangevote.formats.reader import Entry, entry_at
from rangevote.hypothesis import Ballot, Hypothesis


def join(
    standing: Mapping[str, Iterable[Entry]], voting: Mapping[str, Iterable[Entry]] | None = None
) -> Iterator[Entry]:
    """The ballots of all files. The candidates of the files `standing` can be elected; those of the files
    `voting` only vote. Without the latter the candidates vote.

    Several files are a panel, whose members have the names given here. A member without the ballot has no
    outputs in it. Ballots that only a later file has come after those of the first. A bad record invalidates
    its ballot.
    """
    stand = [_File(name, entries) for name, entries in standing.items()]
    vote = [_File(name, entries) for name, entries in (voting or {}).items()]
    _check_meeting(stand, vote)
    for place, first in enumerate(stand):
        for number, entry in first:
            id = _id(entry)
            records = {file: file.take(id, number) for file in (*stand[place + 1 :], *vote)}
            yield _joined({first: entry, **records}, stand, vote)
    for file in vote:
        unused = 0
        for _, entry in file:
            if entry.ballot is None or entry.ballot.id is None:
                yield _joined({file: entry}, stand, [])
            else:
                unused += 1
        if unused:
            warn(f"{unused:,} of the ballots of {file.name!r} belong to no ballot of the candidates.")


#: The first id of a file without ballots.
_EMPTY = object()


class _File:
    """The ballots of one file, each handed out once: in order, by id or by position."""

    def __init__(self, name: str, entries: Iterable[Entry]) -> None:
        self.name = name
        self._entries = enumerate(entries)
        self._ahead: dict[Hashable, tuple[int, Entry]] = {}  # by id, or by position where there is none

    def __iter__(self) -> Iterator[tuple[int, Entry]]:
        """The ballots that were not taken, with their positions."""
        while self._ahead or self._read() is not None:
            yield self._ahead.pop(next(iter(self._ahead)))

    def look(self) -> Iterator[tuple[int, Entry]]:
        """All ballots with their positions, without taking them."""
        yield from list(self._ahead.values())
        while (key := self._read()) is not None:
            yield self._ahead[key]

    def take(self, id: Hashable, position: int) -> Entry | None:
        """Remove and return the ballot that `find` finds."""
        key = self.find(id, position)
        return None if key is None else self._ahead.pop(key)[1]

    def find(self, id: Hashable, position: int) -> Hashable | None:
        """The key of the ballot with this id, or at this position if one of the two has no id."""
        wanted = {_key(id, position), _key(None, position)}
        for key in wanted:
            if key in self._ahead:
                return key
        if id is None:
            at = (key for key, (number, _) in self._ahead.items() if number == position)
            if (key := next(at, None)) is not None:
                return key
        while (key := self._read()) is not None:
            number = self._ahead[key][0]
            if key in wanted or (id is None and number == position):
                return key
            if id is None and number > position:
                break
        return None

    def _read(self) -> Hashable | None:
        """Read one more ballot and return its key; None at the end."""
        number, entry = next(self._entries, (0, None))
        if entry is None:
            return None
        key = _key(_id(entry), number)
        self._ahead[key] = number, entry
        return key


def _id(entry: Entry) -> str | int | None:
    return entry.id if entry.ballot is None else entry.ballot.id


def _key(id: Hashable, position: int) -> Hashable:
    """A key that tells 1 from "1"."""
    return ("position", position) if id is None else (type(id).__name__, id)


def _check_meeting(stand: Sequence[_File], vote: Sequence[_File]) -> None:
    """Refuse a file that shares no ballot with any other. Usually the first ballots match."""
    files = [*stand, *vote]
    firsts = {file: next((_id(entry) for _, entry in file.look()), _EMPTY) for file in files}
    if all(firsts[file] is _EMPTY for file in stand):
        return
    for file, first in firsts.items():
        if first is _EMPTY:
            raise DataError("there are no ballots in this file; leave it out.", where=file.name)
    for file, first in firsts.items():
        others = [other for other in files if other is not file]
        if others and not any(_meet(file, other) for other in others):
            raise DataError(
                f"none of its ballots has the id of one in another file: its first id is {first!r}, that of "
                f"{others[0].name!r} is {firsts[others[0]]!r}. Give ballots that belong together the same "
                f"id, of the same type, or give none of them an id to join the files line by line.",
                where=file.name,
            )


def _meet(one: _File, other: _File) -> bool:
    """Whether two files share a ballot, or may share one, since a record is bad."""
    return any(e.ballot is None or other.find(_id(e), number) is not None for number, e in one.look())


def _joined(records: Mapping[_File, Entry | None], stand: Sequence[_File], vote: Sequence[_File]) -> Entry:
    """The ballot of these records of the files."""
    parts = {file: entry for file, entry in records.items() if entry is not None}
    id = next((id for entry in parts.values() if (id := _id(entry)) is not None), None)
    for entry in parts.values():
        if entry.ballot is None:
            return Entry(entry.where, error=entry.error, id=id)
    where = next(iter(parts.values())).where
    return entry_at(where, _ballot, {f: e.get() for f, e in parts.items()}, id, stand, vote, id=id)


def _ballot(
    ballots: Mapping[_File, Ballot], id: str | int | None, stand: Sequence[_File], vote: Sequence[_File]
) -> Ballot:
    missing = [repr(file.name) for file in (*stand, *vote) if file not in ballots]
    if missing and id is None:
        raise DataError(
            f"has no counterpart in {', '.join(missing)}, which has fewer ballots; ballots without ids are "
            f"joined line by line."
        )
    if vote and ballots.keys().isdisjoint(vote):
        names = ", ".join(repr(file.name) for file in vote)
        raise DataError(f"has no voters: none of {names} has a ballot with its id")
    standing = {file.name: ballots[file] for file in stand if file in ballots}
    first = next(iter(standing.values()))
    candidates, voters = first.candidates, first.voters
    if len(stand) > 1:
        candidates = _of_members({name: ballot.candidates for name, ballot in standing.items()})
        if any(ballot.voters is not None for ballot in standing.values()):
            own = {n: b.candidates if b.voters is None else b.voters for n, b in standing.items()}
            voters = _of_members(own, "voters")
    if vote:
        listed = {file.name: ballots[file].candidates for file in vote if file in ballots}
        voters = _of_members(listed) if len(vote) > 1 else next(iter(listed.values()))
    carry: dict[str, object] = {}
    for ballot in standing.values():
        carry |= {name: value for name, value in ballot.carry.items() if carry.get(name) is None}
    source = next((ballot.source for ballot in standing.values() if ballot.source is not None), None)
    references = next((ballot.references for ballot in standing.values() if ballot.references), ())
    return Ballot(candidates, voters, id, source, references, carry)


def _of_members(lists: Mapping[str, Sequence[Hypothesis]], role: str = "candidates") -> list[Hypothesis]:
    rows = []
    for name, listed in lists.items():
        for i, row in enumerate(listed):
            if row.member not in (None, name):
                raise DataError(
                    f"is {row.member!r}, but its file is the member {name!r} of this panel; leave the member "
                    f"out, or put all members into one file and give it alone.",
                    field=f"{role}[{i}].member",
                )
            rows.append(msgspec.structs.replace(row, member=name))
    return rows
