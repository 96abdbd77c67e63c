"""exact:command=CMD: what the user's own program prints for a text, so that behaviour is voted on.

The program gets the text on its standard input, and no shell sees the command. It runs whatever the text
makes it run, with the rights of the user: put it into a container where texts cannot be trusted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from rangevote.errors import SetupError, UsageError
from rangevote.parallel import map_in_order

#: Seconds that a text may take (`RANGEVOTE_COMMAND_SECONDS`), and bytes that may be printed for it.
SECONDS, MOST_BYTES = 10.0, 2**20
#: Between two looks at a program that runs.
_PAUSE = 0.02


class Command:
    """A program as a key of `exact`. What it prints is the answer; a text for which it fails, prints nothing,
    prints too much or takes too long abstains. Each text is handed over once."""

    def __init__(self, command: str) -> None:
        try:
            self.arguments = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"exact:command: cannot read {command!r}: {str(error).lower()}.") from None
        if not self.arguments or shutil.which(self.arguments[0]) is None:
            named = self.arguments[0] if self.arguments else command
            raise UsageError(
                f"exact:command: there is no program {named!r}; give one with its arguments, such as "
                f"exact:command=python -I."
            )
        self.seconds = _seconds()
        # the whole command may hold what others should not see, and a signature is shown to others
        digest = hashlib.sha256("\0".join(self.arguments).encode()).hexdigest()[:8]
        self.__name__ = f"command={Path(self.arguments[0]).name}#{digest}"
        self._printed: dict[str, str | None] = {}

    def __call__(self, text: str) -> str | None:
        if text not in self._printed:
            self._printed[text] = self._run(text)
        return self._printed[text]

    def prepare(self, texts: Iterable[str]) -> None:
        """Run the program for all of them, several at a time."""
        if len(self._printed) > 2**14:
            self._printed.clear()
        for _ in map_in_order(self, dict.fromkeys(texts), os.cpu_count() or 1):
            pass

    def _run(self, text: str) -> str | None:
        # files, and no pipes, which a child that left the session could hold open forever
        with tempfile.TemporaryFile() as standard_input, tempfile.TemporaryFile() as printed:
            standard_input.write(text.encode())
            standard_input.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the user's own program, and no shell
                    self.arguments,
                    stdin=standard_input,
                    stdout=printed,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                problem = (error.strerror or str(error)).lower()
                raise SetupError(f"exact:command: cannot run {self.arguments[0]}: {problem}.") from None
            if not self._ended_well(process, printed):
                return None
            printed.seek(0)
            return printed.read().decode(errors="replace").strip() or None

    def _ended_well(self, process: subprocess.Popen[bytes], printed: BinaryIO) -> bool:
        deadline = time.monotonic() + self.seconds
        try:
            while os.fstat(printed.fileno()).st_size <= MOST_BYTES and time.monotonic() < deadline:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_PAUSE) == 0 and os.fstat(printed.fileno()).st_size <= MOST_BYTES
            return False
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the program: it, and what it started in its session."""
    with suppress(OSError):  # nothing is left
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _seconds() -> float:
    setting = os.environ.get("RANGEVOTE_COMMAND_SECONDS") or str(SECONDS)
    with suppress(ValueError):
        if 0 < float(setting) < 86_400:
            return float(setting)
    raise UsageError(f"RANGEVOTE_COMMAND_SECONDS is {setting!r}; it must be a number above 0.")
