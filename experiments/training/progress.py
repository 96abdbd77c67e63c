"""The line on standard error: where a run stands, its loss, its speed, and the time left."""

from __future__ import annotations

import sys
import time


class Progress:
    """On a terminal a line that is written over; elsewhere a line for each evaluation; when quiet nothing."""

    STEP = 0.5  # seconds between two looks of the line

    def __init__(self, total: int, epochs: int, *, quiet: bool) -> None:
        """`total`: steps of the whole run."""
        self._total, self._epochs = total, epochs
        self._loud, self._terminal = not quiet, sys.stderr.isatty()
        self._begun = self._shown = time.monotonic()
        self._steps = self._tokens = 0
        self._width = 0

    def step(self, step: int, epoch: int, loss: float, tokens: int) -> None:
        """One more step, with so many tokens."""
        self._steps += 1
        self._tokens += tokens
        now = time.monotonic()
        if self._loud and self._terminal and now - self._shown >= self.STEP:
            self._shown = now
            self._write(self.line(step, epoch, f"loss {loss:.3f}", now - self._begun), end="")

    def evaluated(self, step: int, epoch: int, loss: float, dev_loss: float, better: bool) -> None:
        """An evaluation is done."""
        if self._loud:
            told = f"loss {loss:.3f}  dev {dev_loss:.4f}{' *' if better else ''}"
            self._write(self.line(step, epoch, told, time.monotonic() - self._begun), end="\n")

    def line(self, step: int, epoch: int, told: str, seconds: float) -> str:
        """What is shown after `seconds` of this run; speed and time left know nothing of earlier ones."""
        seconds = max(seconds, 1e-9)
        left = (self._total - step) * seconds / max(1, self._steps)
        return (
            f"epoch {epoch + 1}/{self._epochs}  step {step:,}/{self._total:,}  {told}  "
            f"{self._tokens / seconds:,.0f} tokens/s  {duration(left)} left"
        )

    def _write(self, line: str, end: str) -> None:
        start = "\r" if self._terminal else ""
        sys.stderr.write(f"{start}{line:<{self._width}}{end}")
        sys.stderr.flush()
        self._width = 0 if end else len(line)

    def close(self) -> None:
        """Leave the line that is not finished."""
        if self._width:
            sys.stderr.write("\n")
            self._width = 0


def duration(seconds: float) -> str:
    """Minutes and seconds, or hours and minutes.

    >>> duration(75), duration(3 * 3600 + 62)
    ('1:15 min', '3:01 h')
    """
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"
