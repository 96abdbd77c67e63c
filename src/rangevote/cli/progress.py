"""What a user sees on standard error: progress, notes and warnings, and counts at the end of a run."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from rangevote.errors import UsageError, nearest
from rangevote.models.load import WhileLoading
from rangevote.text import Closing, finite

if TYPE_CHECKING:
    from rich.progress import Progress

    from rangevote.election.agreement import Agreement
    from rangevote.election.settings import Settings
    from rangevote.evaluation.tables import Table, Value
    from rangevote.formats.result_writer import Facts

T = TypeVar("T")
#: Different warnings that are printed before the rest is only hinted at.
MOST_WARNINGS = 20
ALL_EQUAL = (
    "in {equal:,} of {all:,} ballots all candidates are equal, so the vote decided nothing. If they "
    "are samples, draw them at a temperature above 0 and with different seeds: some clients, such as the API "
    "models of lm-eval, send the same seed for every sample."
)
NOBODY_ELECTED = (
    "nobody is elected in any ballot: the similarity finds no answers in the outputs, or --min-score or "
    "--min-share is too high. For answers in a text, exact:last_number or exact:choice may find them."
)
FAR_OFF = (
    "these members hardly ever give the elected answer: {members}. `rangevote panel report` shows how "
    "far they agree with the others."
)
#: Ballots from which on members that never win are named as far off.
FEWEST_TO_JUDGE = 20
ALONE = (
    "in {alone:,} of {all:,} ballots the winner is the only output of a member that has half of the vote or "
    "more, so it elected itself. Give that member a smaller share or several outputs, or add a member."
)


class Position(Protocol):
    """An input that is read from front to back."""

    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int | None: ...


class Bar(Closing):
    """A progress bar with rate and time left. It counts the bytes read from `stream`, or the items of
    `total`, of which an earlier run did `done`. It appears only on a terminal, after a second."""

    PATIENCE = 1.0  # seconds before it appears
    STEP = 0.1  # seconds between updates

    def __init__(
        self,
        stream: Position | None,
        verb: str,
        *,
        quiet: bool,
        unit: str = "ballots",
        total: int | None = None,
        done: int = 0,
    ) -> None:
        self._stream, self._verb, self._unit = stream, verb, unit
        self._total, self._done = total, done
        self._wanted = not quiet and sys.stderr.isatty()
        self._begun = self._updated = time.monotonic()
        self._bar: Progress | None = None
        self.items = 0

    def advance(self) -> None:
        """Count one more item."""
        self.items += 1
        if not self._wanted:
            return
        now = time.monotonic()
        patience = 0.0 if self._bar is not None else self.PATIENCE
        if now - self._updated < self.STEP or now - self._begun < patience:
            return
        self._updated = now
        self.show()
        assert self._bar is not None
        rate = self.items / (now - self._begun)
        self._bar.update(
            self._bar.task_ids[0],
            completed=self._done + self.items if self._stream is None else self._stream.position,
            rate=f"{rate:,.0f} {self._unit}/s" if rate >= 10 else f"{rate:.2g} {self._unit}/s",
        )

    def track(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items and count each when the caller is done with it; close the bar after the last."""
        with self:
            for item in items:
                yield item
                self.advance()

    def show(self) -> None:
        """Show the bar at once, for work that is known to take long."""
        if not self._wanted or self._bar is not None:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn(self._verb),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._bar.add_task(self._verb, total=self._stream.size if self._stream else self._total, rate="")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def loading(name: str, *, quiet: bool = False) -> Iterator[None]:
    """A line on a terminal while a model loads, with the time that has passed."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(f"loading model {name} ...")
        yield


class Notes:
    """Prints notes, and each warning once; warnings of the library too."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._warned = quiet, set[str]()
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: self.warn(str(message))
        WhileLoading.show = partial(loading, quiet=quiet)

    def tell(self, message: str) -> None:
        if not self._quiet:
            click.echo(f"rangevote: {message}", err=True)

    def show(self, text: str) -> None:
        """Print lines, such as a table, as they are."""
        if not self._quiet:
            click.echo(text, nl=False, err=True)

    def warn(self, message: str) -> None:
        """Print a warning once; after many different warnings, print only that there are more."""
        if message in self._warned or len(self._warned) > MOST_WARNINGS:
            return
        self._warned.add(message)
        more = len(self._warned) > MOST_WARNINGS
        self.tell("more warnings are not shown." if more else f"warning: {message}")


@dataclass
class RunCounts:
    """Counts for the messages at the end of a run."""

    skipped: int = 0
    undecided: int = 0
    no_winner: int = 0
    equal: int = 0
    alone: int = 0
    single: int = 0
    changed: Counter[bool | None] = field(default_factory=Counter)
    wins: Counter[str] = field(default_factory=Counter)  # by member
    voted: set[str] = field(default_factory=set)  # members with a share of the vote
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, facts: Facts | None) -> None:
        if facts is None:
            return
        self.single += facts.single
        self.equal += facts.all_equal
        self.no_winner += facts.no_winner
        self.alone += facts.alone
        self.changed[facts.changed] += 1
        if facts.members:  # members that never win are in the table too
            self.wins.update(facts.members)
            self.wins.update(dict.fromkeys((*facts.voted, *facts.left_out), 0))
            self.voted.update(facts.voted, facts.left_out)
        if facts.left_out:
            self.left_out.update(facts.left_out)

    def tell(self, notes: Notes, ballots: int) -> None:
        if self.undecided:
            notes.tell(
                f"{self.undecided} of {ballots} ballots have no pair, because all their candidates have the "
                f"same score."
            )
        if self.no_winner:
            notes.tell(f"{self.no_winner} of {ballots} ballots have no winner.")
        if self.no_winner == ballots > 0:
            notes.warn(NOBODY_ELECTED)
        if 2 * self.equal > ballots:
            notes.warn(ALL_EQUAL.format(equal=self.equal, all=ballots))
        if self.alone:
            notes.warn(ALONE.format(alone=self.alone, all=ballots))
        if self.left_out:
            absences = [f"{name!r} in {number:,}" for name, number in sorted(self.left_out.items())]
            notes.tell(
                f"members of the panel without outputs, of {ballots:,} ballots: {', '.join(absences)}; their "
                f"shares were divided among the others there."
            )
        absent = [name for name, number in self.left_out.items() if number == ballots]
        if absent:
            others = sorted(self.wins.keys() - set(absent))
            notes.warn(
                f"the member {absent[0]!r} has no output in any ballot, so its share has no effect; check "
                f"its name or leave it out. The other members are {', '.join(others)}."
                f"{nearest(absent[0], others)}"
            )

    def tell_members(self, notes: Notes, settings: Settings, agreement: Agreement | None = None) -> None:
        """How often each member of a panel won; members with the same output as the winner won too."""
        if not self.wins and agreement is None:
            return
        from rangevote.election.agreement import ANSWERS
        from rangevote.evaluation.tables import to_text

        shares = settings.shares if isinstance(settings.shares, Mapping) else dict.fromkeys(self.voted, 1.0)
        if agreement is None:  # under some rules nobody votes
            shares = {name: share for name, share in shares.items() if name in self.voted}
        notes.tell("members of the panel:")
        notes.show(to_text(member_table(shares, agreement, self.wins)))
        ballots = self.changed.total()
        if agreement is None and ballots >= FEWEST_TO_JUDGE and settings.measure.answers:
            present = {name: ballots - self.left_out[name] for name, share in shares.items() if share}
            far = [name for name, number in present.items() if number > ANSWERS * self.wins[name]]
            if far:
                notes.warn(FAR_OFF.format(members=", ".join(map(repr, far))))


def member_table(
    shares: Mapping[str, float], agreement: Agreement | None = None, wins: Counter[str] | None = None
) -> Table:
    """A row for each member: share, agreement with the others, wins. Those without a share only stand."""
    from rangevote.evaluation.tables import Column, Table, TableRow

    columns = [Column("share", decimals=3)]
    columns += [] if agreement is None else [Column("agrees (%)", decimals=1, percent=True), Column("twins")]
    columns += [] if wins is None else [Column("wins", decimals=0)]
    total, won = math.fsum(shares.values()), wins or Counter()
    rows = []
    for name in sorted({*shares, *won}, key=lambda name: (-shares.get(name, 0.0), -won[name], name)):
        cells: list[Value] = [shares[name] / total if name in shares else None]
        if agreement is not None:
            twins = next((group for group in agreement.twins if name in group), ())
            cells += [finite(agreement.agreement.get(name, math.nan))]
            cells += [", ".join(twin for twin in twins if twin != name)]
        cells += [] if wins is None else [won[name]]
        rows.append(TableRow(name, cells))
    return Table(columns, rows, "member")


def check_input(source: str, what: str = "ballots") -> None:
    """Refuse to read from a terminal."""
    if source == "-" and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(f"no input: give a file, or pipe {what} in.", click.get_current_context())


def check_inputs(files: Sequence[str]) -> None:
    """Refuse to read standard input twice, or from a terminal."""
    if files.count("-") > 1:
        raise UsageError("'-' (standard input) can be read once; name files for the others.")
    for path in files:
        check_input(path)
