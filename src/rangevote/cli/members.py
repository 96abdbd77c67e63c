"""Files as the members of a panel: names, joined ballots and shares.

Ballots are joined by id, or by position where they have none. Files in the same order are read in parallel;
of a file in another order, the ballots that had to be read ahead are kept in memory.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rangevote.errors import DataError, UsageError, nearest, warn
from rangevote.formats.reader import Entry, Reading, ReadOptions, entry_at, read
from rangevote.hypothesis import Ballot, Hypothesis

if TYPE_CHECKING:
    from rangevote.election.agreement import Agreement
    from rangevote.election.settings import Settings

ENDINGS = {".gz", ".zst", ".bz2", ".xz", ".jsonl", ".json", ".txt", ".csv", ".tsv", ".parquet", ".moses"}
#: Ballots from which shares are found in a stream, which cannot be read twice.
WARM_UP = 1_000


class PanelFiles(NamedTuple):
    """Files by the names of their members: those whose candidates stand, and those that only vote."""

    standing: dict[str, str]
    voting: dict[str, str]

    @property
    def paths(self) -> list[str]:
        return [*self.standing.values(), *self.voting.values()]

    @property
    def members(self) -> list[str]:
        """The names of the voting members; empty unless several files are a panel."""
        names = list(self.voting or self.standing)
        return names if len(names) > 1 else []

    def read(self, files: ExitStack, reading: ReadOptions) -> tuple[Reading, Iterator[Entry]]:
        """The first file, for the progress bar, and the joined ballots of all files."""
        # a field to carry may be in one of the files only
        reported = {("carry", path) for path in reading.carried.values()}
        others = replace(reading, warned={*reading.warned, *reported})
        standing = {
            name: files.enter_context(read(path, others if i else reading))
            for i, (name, path) in enumerate(self.standing.items())
        }
        plain = replace(reading, carry=())
        voting = {name: files.enter_context(read(path, plain)) for name, path in self.voting.items()}
        return next(iter(standing.values())), join(standing, voting)


def panel_files(
    ballots: Sequence[str], voters: Sequence[str], settings: Settings
) -> tuple[PanelFiles, Settings]:
    """The files of an election, and its settings, which have the shares of the members if the files are a
    panel."""
    paths, shares = [], []
    for text in voters:
        path, equals, share = text.rpartition("=")
        try:
            number = float(share) if equals and not os.path.exists(text) else None
        except ValueError:
            number = None
        paths.append(text if number is None else path)
        shares.append(number)
    files = PanelFiles(_members(ballots), _members(paths))
    names = files.members
    share_of = {name: share for name, share in zip(files.voting, shares, strict=True) if share is not None}
    if share_of and (len(share_of) < len(names) or not names or settings.shares is not None):
        raise UsageError(
            "shares are for several files of voters: give each of them one, as --voters a.jsonl=0.7 "
            "--voters b.jsonl=0.3, or none; do not combine them with --shares."
        )
    if not names:
        return files, settings
    if settings.shares is None:  # so that a member without the ballot is named
        return files, settings.replace(shares=share_of or dict.fromkeys(names, 1.0))
    if isinstance(settings.shares, Mapping) and set(settings.shares) != set(names):
        odd = next((name for name in settings.shares if name not in names), None)
        problem = f"it has no share for {next((n for n in names if n not in settings.shares), None)!r}."
        if odd is not None:
            problem = f"it has {odd!r}, which is not a member of the panel.{nearest(odd, names)}"
        raise UsageError(
            f"shares must have a number for each member, named as its file: {', '.join(names)}; {problem}"
        )
    return files, settings


def _members(paths: Sequence[str]) -> dict[str, str]:
    """Member -> file. A member has the name of its file, or the path if two files have the same name."""
    real = list(map(os.path.realpath, paths))
    for path, file in zip(paths, real, strict=True):
        if real.count(file) > 1:
            raise UsageError(f"{path} is given twice; a file can be one member of a panel.")
    stems = ["stdin" if path == "-" else stem(path) for path in paths]
    names = stems if len(set(stems)) == len(stems) else paths
    return dict(zip(names, paths, strict=True))


def stem(path: str) -> str:
    """The name of a file without folder and endings.

    >>> stem("out/gpt-3.5.jsonl.gz")
    'gpt-3.5'
    """
    name = Path(path).name
    while Path(name).suffix in ENDINGS:
        name = Path(name).stem
    return name or path


# Joining


def join(
    standing: Mapping[str, Iterable[Entry]], voting: Mapping[str, Iterable[Entry]] | None = None
) -> Iterator[Entry]:
    """The ballots of all files. The candidates of the files `standing` can be elected; those of the files
    `voting` only vote. Without the latter the candidates vote.

    A member without the ballot has no outputs in it. Ballots that only a later file has come after those of
    the first. A bad record invalidates its ballot.
    """
    stand = [MemberFile(name, entries) for name, entries in standing.items()]
    vote = [MemberFile(name, entries) for name, entries in (voting or {}).items()]
    _check_shared_ids(stand, vote)
    for place, first in enumerate(stand):
        for number, entry in first:
            entries = dict.fromkeys(standing) | {first.name: entry}
            entries |= {file.name: file.take(_id(entry), number) for file in stand[place + 1 :]}
            yield _joined(entries, {file.name: file.take(_id(entry), number) for file in vote})
    for file in vote:
        unused = 0
        for _, entry in file:
            if entry.ballot is None or entry.ballot.id is None:
                yield _joined(dict.fromkeys(standing), {file.name: entry})
            else:
                unused += 1
        if unused:
            warn(f"{unused:,} of the ballots of {file.name!r} belong to no ballot of the candidates.")


class MemberFile:
    """The ballots of one file with their positions, each handed out once: in order, by id or by position."""

    def __init__(self, name: str, entries: Iterable[Entry]) -> None:
        self.name = name
        self._entries = enumerate(entries)
        self._ahead: dict[int, Entry] = {}  # read, but not handed out
        self._positions: dict[Hashable, int] = {}  # of those with an id
        self._read_to = 0

    def __iter__(self) -> Iterator[tuple[int, Entry]]:
        """The ballots that were not taken."""
        while self._ahead or self._read():
            position = next(iter(self._ahead))
            yield position, self._hand_out(position)

    def look(self) -> Iterator[tuple[int, Entry]]:
        """All ballots, without taking them."""
        yield from list(self._ahead.items())
        while self._read():
            yield self._read_to - 1, self._ahead[self._read_to - 1]

    def take(self, id: Hashable, position: int) -> Entry | None:
        """Remove and return the ballot that `find` finds."""
        place = self.find(id, position)
        return None if place is None else self._hand_out(place)

    def find(self, id: Hashable, position: int) -> int | None:
        """Where the ballot with this id is, or `position` if it or the ballot there has no id."""
        while True:
            if id is not None and (by_id := self._positions.get(_key(id))) is not None:
                return by_id
            entry = self._ahead.get(position)
            if entry is not None and (id is None or _id(entry) is None):
                return position
            if (id is None and self._read_to > position) or not self._read():
                return None

    def _read(self) -> bool:
        """Read one more ballot; False at the end."""
        position, entry = next(self._entries, (0, None))
        if entry is None:
            return False
        self._ahead[position], self._read_to = entry, position + 1
        if (id := _id(entry)) is not None:
            self._positions.setdefault(_key(id), position)
        return True

    def _hand_out(self, position: int) -> Entry:
        entry = self._ahead.pop(position)
        if self._positions.get(key := _key(_id(entry))) == position:
            del self._positions[key]
        return entry


def _id(entry: Entry) -> str | int | None:
    return entry.id if entry.ballot is None else entry.ballot.id


def _key(id: Hashable) -> Hashable:
    """A key that tells 1 from "1"."""
    return type(id).__name__, id


def _check_shared_ids(stand: Sequence[MemberFile], vote: Sequence[MemberFile]) -> None:
    """Refuse a file that shares no ballot with any other. Usually the first ballots match."""
    files = [*stand, *vote]
    firsts = {file: next((entry for _, entry in file.look()), None) for file in files}
    if not any(firsts[file] for file in stand):
        return
    if empty := next((file for file in files if firsts[file] is None), None):
        raise DataError("there are no ballots in this file; leave it out.", where=empty.name)
    ids = {file: _id(entry) for file, entry in firsts.items() if entry is not None}
    for file in files:
        others = [other for other in files if other is not file]
        if others and not any(_share_a_ballot(file, other) for other in others):
            raise DataError(
                f"none of its ballots has the id of one in another file: its first id is {ids[file]!r}, "
                f"that of {others[0].name!r} is {ids[others[0]]!r}. Give ballots that belong together the "
                f"same id, of the same type, or give none of them an id to join the files line by line.",
                where=file.name,
            )


def _share_a_ballot(one: MemberFile, other: MemberFile) -> bool:
    """Whether two files share a ballot, or may share one, since a record is bad."""
    return any(e.ballot is None or other.find(_id(e), number) is not None for number, e in one.look())


def _joined(standing: Mapping[str, Entry | None], voting: Mapping[str, Entry | None]) -> Entry:
    """The ballot of these records of the members."""
    entries = [entry for entry in (*standing.values(), *voting.values()) if entry is not None]
    id = next((id for entry in entries if (id := _id(entry)) is not None), None)
    for entry in entries:
        if entry.ballot is None:
            return Entry(entry.where, error=entry.error, id=id)
    return entry_at(entries[0].where, _ballot, standing, voting, id, id=id)


def _ballot(
    standing: Mapping[str, Entry | None], voting: Mapping[str, Entry | None], id: str | int | None
) -> Ballot:
    missing = [repr(name) for name, entry in (*standing.items(), *voting.items()) if entry is None]
    if missing and id is None:
        raise DataError(
            f"has no counterpart in {', '.join(missing)}, which has fewer ballots; ballots without ids are "
            f"joined line by line."
        )
    ballots = {name: entry.get() for name, entry in standing.items() if entry is not None}
    votes = {name: entry.get().candidates for name, entry in voting.items() if entry is not None}
    if voting and not votes:
        names = ", ".join(map(repr, voting))
        raise DataError(f"has no voters: none of {names} has a ballot with its id")
    first = next(iter(ballots.values()))
    candidates, voters = first.candidates, first.voters
    if len(standing) > 1:
        candidates = _of_members({name: ballot.candidates for name, ballot in ballots.items()})
        if any(ballot.voters is not None for ballot in ballots.values()):
            both = {n: b.candidates if b.voters is None else b.voters for n, b in ballots.items()}
            voters = _of_members(both, "voters")
    if votes:
        voters = _of_members(votes) if len(voting) > 1 else next(iter(votes.values()))
    carry: dict[str, object] = {}
    for ballot in ballots.values():
        carry |= {name: value for name, value in ballot.carry.items() if carry.get(name) is None}
    source = next((ballot.source for ballot in ballots.values() if ballot.source is not None), None)
    references = next((ballot.references for ballot in ballots.values() if ballot.references), ())
    return Ballot(candidates, voters, id, source, references, carry)


def _of_members(lists: Mapping[str, Sequence[Hypothesis]], role: str = "candidates") -> list[Hypothesis]:
    """All hypotheses, each with the name of its member."""
    for name, hypotheses in lists.items():
        for i, hypothesis in enumerate(hypotheses):
            if hypothesis.member not in (None, name):
                raise DataError(
                    f"is {hypothesis.member!r}, but its file is the member {name!r} of this panel; leave the "
                    f"member out, or put all members into one file and give it alone.",
                    field=f"{role}[{i}].member",
                )
    return [msgspec.structs.replace(one, member=name) for name, some in lists.items() for one in some]


# Shares


class FoundShares(NamedTuple):
    """Shares by agreement, a note on the ballots they come from, and the stream that was begun for them."""

    agreement: Agreement
    note: str
    begun: tuple[Reading, Iterator[Entry]] | None


def find_shares(files: ExitStack, panel: PanelFiles, reading: ReadOptions, settings: Settings) -> FoundShares:
    """Shares by agreement: over all ballots of files, which are read twice, or over the first of a stream."""
    from rangevote.evaluation.panel_report import agreement_of

    if all(map(os.path.isfile, panel.paths)):
        with ExitStack() as first_pass:
            agreement = agreement_of(panel.read(first_pass, reading)[1], settings)
        return FoundShares(agreement, f"all {agreement.ballots:,} ballots", None)
    stream, entries = panel.read(files, reading)
    held = list(islice(entries, WARM_UP))
    which = (
        f"the first {WARM_UP:,} ballots of a stream" if len(held) == WARM_UP else f"all {len(held):,} ballots"
    )
    return FoundShares(agreement_of(held, settings), which, (stream, chain(held, entries)))
