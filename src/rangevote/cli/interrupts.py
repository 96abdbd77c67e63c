"""Ctrl-C between lines, never inside one."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While in use, a Ctrl-C that falls between `hold` and `release` happens at `release`."""

    def __init__(self) -> None:
        self._held = self._pending = False
        self._mine = threading.current_thread() is threading.main_thread()  # signals are delivered there

    def __enter__(self) -> Interrupts:
        if self._mine:
            self._before = signal.signal(signal.SIGINT, self._happen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, self._before)

    def _happen(self, number: int, frame: FrameType | None) -> None:
        if not self._held:
            raise KeyboardInterrupt
        self._pending = True

    def hold(self) -> None:
        """Do not interrupt from here on."""
        self._held = True

    def release(self) -> None:
        """Interrupt here, if that was asked for."""
        self._held = False
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt
