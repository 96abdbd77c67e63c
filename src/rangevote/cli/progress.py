"""What a user sees on standard error while a command runs: a progress bar, notes and warnings."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import click

from rangevote.errors import UsageError
from rangevote.models.hub import WhileLoading

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


#: Different warnings that are printed before the rest is only hinted at.
MOST_WARNINGS = 20


class Position(Protocol):
    """Something read from front to back."""

    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int | None: ...


@dataclass
class ItemCount:
    """How many items of `size` are done."""

    position: int
    size: int | None


class Bar:
    """Rate and time left, from the bytes read so far. On a terminal only, for what takes over a second."""

    PATIENCE = 1.0  # seconds before it appears
    STEP = 0.1  # seconds between updates

    def __init__(self, stream: Position, verb: str, *, quiet: bool, unit: str = "ballots") -> None:
        self._verb, self._unit = verb, unit
        self._stream, self._wanted = stream, not quiet and sys.stderr.isatty()
        self._begun = self._updated = time.monotonic()
        self._patience = self.PATIENCE
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self.items = 0

    def advance(self, items: int = 1) -> None:
        self.items += items
        if not self._wanted:
            return
        now = time.monotonic()
        if now - self._updated >= self.STEP and now - self._begun >= self._patience:
            self._updated = now
            self._show(now)

    def show(self) -> None:
        """Show the bar at once: what begins is known to take its time."""
        if self._wanted and self._bar is None:
            self._begun, self._patience = time.monotonic(), 0.0
            self._bar, self._task = self._open()

    def _show(self, now: float) -> None:
        if self._bar is None:
            self._bar, self._task = self._open()
        assert self._task is not None  # set with the bar
        rate = self.items / (now - self._begun)
        self._bar.update(
            self._task,
            completed=self._stream.position,
            rate=f"{rate:,.0f} {self._unit}/s" if rate >= 10 else f"{rate:.2g} {self._unit}/s",
        )

    def _open(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn(self._verb),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.start()
        return bar, bar.add_task(self._verb, total=self._stream.size, rate="")

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

    line = f"loading model {name} ..."
    columns = TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(line)
        yield


class Notes:
    """Prints notes and, once each, warnings; the library's warnings come here too."""

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
        """Print a warning, once; after many different ones, only that there are more."""
        if message in self._warned or len(self._warned) > MOST_WARNINGS:
            return
        self._warned.add(message)
        more = len(self._warned) > MOST_WARNINGS
        self.tell("more warnings are not shown." if more else f"warning: {message}")


def check_input(source: str, what: str = "ballots") -> None:
    """Refuse to wait for a person to type a ballot file."""
    if source == "-" and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(f"no input: give a file, or pipe {what} in.", click.get_current_context())


def check_inputs(files: Sequence[str]) -> None:
    """Refuse to read standard input twice, or from a person."""
    if files.count("-") > 1:
        raise UsageError("'-' (standard input) can be read once; name files for the others.")
    for path in files:
        check_input(path)
