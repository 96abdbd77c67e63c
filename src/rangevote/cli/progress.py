"""A progress bar on a terminal, for what takes longer than a second; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Position(Protocol):
    """Something read from front to back."""

    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int | None: ...


class Bar:
    """Rate and time left, from the bytes read so far. Shown only on a terminal."""

    PATIENCE = 1.0  # seconds before it appears
    STEP = 0.1  # seconds between looks

    def __init__(self, stream: Position, verb: str, *, quiet: bool, unit: str = "ballots") -> None:
        self._verb, self._unit = verb, unit
        self._stream, self._wanted = stream, not quiet and sys.stderr.isatty()
        self._begun = self._looked = time.monotonic()
        self._patience = self.PATIENCE
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self.items = 0

    def advance(self) -> None:
        """One more ballot is done."""
        self.items += 1
        if not self._wanted:
            return
        now = time.monotonic()
        if now - self._looked >= self.STEP and now - self._begun >= self._patience:
            self._looked = now
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
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
