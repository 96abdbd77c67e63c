"""Files as the members of a panel: names, ballots, shares, and the table of members."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rangevote.errors import UsageError, nearest

if TYPE_CHECKING:
    from rangevote.election.agreement import Agreement
    from rangevote.election.settings import Settings
    from rangevote.evaluation.tables import Table
    from rangevote.formats import Entry, Reading, ReadOptions

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
        from rangevote.formats import join, read

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
    """The files of an election, and the settings; of a panel of files, with the shares of members."""
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
    given = {name: share for name, share in zip(files.voting, shares, strict=True) if share is not None}
    if given and (len(given) < len(names) or not names or settings.shares is not None):
        raise UsageError(
            "shares are for several files of voters: give each of them one, as --voters a.jsonl=0.7 "
            "--voters b.jsonl=0.3, or none; do not combine them with --shares."
        )
    if not names:
        return files, settings
    if settings.shares is None:  # so that a member without the ballot is named
        return files, settings.replace(shares=given or dict.fromkeys(names, 1.0))
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
    note = (
        f"the first {len(held):,} ballots of a stream"
        if len(held) == WARM_UP
        else f"all {len(held):,} ballots"
    )
    return FoundShares(agreement_of(held, settings), note, (stream, chain(held, entries)))


def member_table(
    shares: Mapping[str, float], agreement: Agreement | None = None, wins: Counter[str] | None = None
) -> Table:
    """A row for each member: share, agreement with the others, wins."""
    from rangevote.evaluation.tables import Cell, Column, Table, TableRow

    columns = [Column("share", decimals=3)]
    columns += [] if agreement is None else [Column("agrees (%)", decimals=1), Column("twins")]
    columns += [] if wins is None else [Column("wins", decimals=0)]
    total = math.fsum(shares.values())
    rows = []
    for name in sorted(shares, key=lambda name: (-shares[name], -(wins or Counter())[name], name)):
        cells = [Cell(shares[name] / total)]
        if agreement is not None:
            p = agreement.agreement.get(name, math.nan)
            twins = next((group for group in agreement.twins if name in group), ())
            cells += [Cell(None if math.isnan(p) else 100 * p)]
            cells += [Cell(", ".join(twin for twin in twins if twin != name))]
        cells += [] if wins is None else [Cell(wins[name])]
        rows.append(TableRow(name, cells))
    return Table(columns, rows, "member")
