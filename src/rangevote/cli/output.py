"""Where results go: standard output, or a file that appears only when it is complete.

A run writes `OUT.partial` and renames it at the end. `OUT.partial.json` beside it names the options
that decide the content, so that `--resume` goes on only where the new lines fit the old ones.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rangevote.errors import RangevoteError, SetupError, UsageError

BUFFER = 1 << 20


class ClosedPipe(RangevoteError):
    """Who read our standard output went away (`| head`): leave quietly, as the shell's own tools do."""

    exit_code = 141


class Sink(ABC):
    """Takes lines of bytes."""

    #: Lines that an earlier run has already written, and the last of them.
    done = 0
    last = b""

    @abstractmethod
    def write(self, line: bytes) -> None:
        """Write one line, with its line end."""

    @abstractmethod
    def finish(self) -> None:
        """All lines are there."""

    def flush(self) -> None:  # noqa: B027
        """Hand what was written to the system, so that it outlives the process."""

    def cut(self, lines: int) -> None:  # noqa: B027
        """Keep only so many of the lines that an earlier run wrote; standard output has none."""

    def abandon(self) -> str:
        """Stop early; returns how to go on, or nothing."""
        return ""

    def discard(self) -> None:  # noqa: B027
        """Stop early and leave no file behind; standard output leaves none anyway."""


class Standard(Sink):
    """Standard output. On a terminal, control characters are shown instead of obeyed."""

    def __init__(self, *, prompt: bool) -> None:
        self._out, self._terminal = sys.stdout.buffer, sys.stdout.isatty()
        self._prompt = prompt or self._terminal  # each line at once, for pipes that wait for it

    def write(self, line: bytes) -> None:
        """Write one line."""
        try:
            self._out.write(visible(line) if self._terminal else line)
            if self._prompt:
                self._out.flush()
        except BrokenPipeError:
            raise ClosedPipe from None

    def finish(self) -> None:
        """Flush."""
        try:
            self._out.flush()
        except BrokenPipeError:
            raise ClosedPipe from None


class File(Sink):
    """A file that gets its name when it is complete."""

    def __init__(self, path: Path, options: Mapping[str, object], *, resume: bool, force: bool) -> None:
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self._notes = path.with_name(path.name + ".partial.json")
        self._draft = path.with_name(path.name + ".partial.json.tmp")
        self._refuse_existing(resume, force)
        self._file = self._open()
        self._written = False
        try:
            lock(self._file, path)
            self._start(options, resume and not force and self._something_to_resume())
        except OSError as error:
            self._fail(error)
        except BaseException:
            self._file.close()
            raise

    def _refuse_existing(self, resume: bool, force: bool) -> None:
        if self.path.is_dir():
            raise SetupError(f"cannot write {self.path}: is a directory.")
        if self.path.exists() and not force:
            hint = "it is complete; nothing to resume" if resume else "it is left as it is"
            raise SetupError(f"{self.path} exists already and {hint}. Use --force to replace it.")
        if self.partial.exists() and not (resume or force):
            raise SetupError(
                f"{self.partial} is there from an unfinished run. Use --resume to go on with it, or --force "
                f"to start again."
            )

    def _open(self) -> BinaryIO:
        try:
            return open(self.partial, "ab+", buffering=BUFFER)
        except OSError as error:
            raise SetupError(
                f"cannot write {self.partial}: {(error.strerror or str(error)).lower()}."
            ) from error

    def _something_to_resume(self) -> bool:
        """Whether there are results, which are never thrown away for want of the notes beside them."""
        if not self._notes.exists() and self.partial.stat().st_size:
            raise SetupError(
                f"cannot resume {self.partial}: {self._notes.name}, which says how it was made, is missing. "
                f"Use --force to start again."
            )
        return self._notes.exists()

    def _start(self, options: Mapping[str, object], resume: bool) -> None:
        wanted = {name: str(value) for name, value in options.items()}
        if resume:
            self._check(wanted)
            self.done, self.last = keep_whole_lines(self._file)
            return
        self._file.truncate(0)
        # in ASCII: a file's name may hold bytes that are no text
        text = json.dumps({"fingerprint": fingerprint(wanted), "options": wanted}, indent=1)
        self._draft.write_text(text + "\n", encoding="utf-8")
        os.replace(self._draft, self._notes)

    def _check(self, wanted: dict[str, str]) -> None:
        """Refuse to go on under other options than the file was begun with."""
        try:
            notes = json.loads(self._notes.read_text(encoding="utf-8"))
            before = {str(name): value for name, value in notes["options"].items()}
            same = notes["fingerprint"] == fingerprint(wanted)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise SetupError(f"{self._notes} cannot be read. Use --force to start again.") from None
        if not same:
            changed = sorted(name for name in {*before, *wanted} if before.get(name) != wanted.get(name))
            told = "; ".join(f"{n} was {before.get(n)!r}, now {wanted.get(n)!r}" for n in changed)
            raise SetupError(
                f"cannot resume {self.partial}: the fingerprint differs ({told or 'file edited'}). Use the "
                f"same options, or --force to start again."
            )

    def write(self, line: bytes) -> None:
        """Write one line."""
        self._written = True
        try:
            self._file.write(line)
        except OSError as error:
            self._fail(error)

    def flush(self) -> None:
        """Hand what was written to the system."""
        try:
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def cut(self, lines: int) -> None:
        """Drop what an earlier run wrote beyond so many lines."""
        self.done, self.last = keep_whole_lines(self._file, lines)

    def finish(self) -> None:
        """Everything is on the disk, then the file gets its name."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self.partial, self.path)
            self._notes.unlink(missing_ok=True)
        except OSError as error:
            self._fail(error)

    def abandon(self) -> str:
        """Keep what is there for --resume."""
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)
        return f"Results so far are kept in {self.partial}; go on with --resume."

    def discard(self) -> None:
        """Take the temporary files away."""
        with suppress(OSError):  # a full disk: what is in the buffer cannot be written, and need not be
            self._file.close()
        for path in (self.partial, self._notes, self._draft):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """At the end of everything: a run that was neither finished nor abandoned left no results."""
        if self._file.closed:
            return
        if self.done or self._written:
            self.abandon()
        else:
            self.discard()

    def _fail(self, error: OSError) -> None:
        """The disk is full, or the like: take the temporary files away and say so."""
        self.discard()
        reason = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error)).lower()
        raise SetupError(f"cannot write {self.path}: {reason}. Nothing was left behind.") from error


def fingerprint(options: Mapping[str, str]) -> str:
    """A short digest of options."""
    return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]


def keep_whole_lines(file: BinaryIO, most: int | None = None) -> tuple[int, bytes]:
    """Cut off a torn last line, and lines beyond `most`; how many are left, and the last of them."""
    file.seek(0)
    lines, whole, last = 0, 0, b""
    for line in file:
        if not line.endswith(b"\n") or lines == most:
            break
        lines, whole, last = lines + 1, whole + len(line), line
    file.truncate(whole)
    file.seek(0, os.SEEK_END)
    return lines, last


def lock(file: BinaryIO, path: Path) -> None:
    """One run at a time; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows: opening twice for append is the user's to avoid
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SetupError(f"another run is writing {path} at this moment.") from None


@contextmanager
def sink(
    output: str | None, source: str, options: Mapping[str, object], *, resume: bool = False, force: bool
) -> Iterator[Sink]:
    """The sink for `-o`, or standard output. It is taken before the input is read, so that a second run on
    the same file is refused at once; nothing of it stays if the input cannot be opened."""
    if output is None or output == "-":
        if resume:
            raise UsageError("--resume needs -o FILE; standard output cannot be resumed.")
        yield Standard(prompt=source == "-")
        return
    path = named(output)
    apart(path, source)
    place = File(path, options, resume=resume, force=force)
    try:
        yield place
    finally:
        place.close()


def write_output(text: str, output: str | None, inputs: Sequence[str], *, force: bool) -> None:
    """Write a whole text to `-o` or standard output, or nothing; never over one of the inputs."""
    for path in map(Path, inputs):
        if output and path.exists() and Path(output).exists() and path.samefile(output):
            raise UsageError(f"{output} is one of the inputs; write to another file.")
    with sink(output, "-", {}, force=force) as file:
        file.write(text.encode())
        file.finish()


def apart(output: Path, source: str) -> None:
    """Refuse to write over what is read."""
    given = Path(source)
    if source != "-" and output.exists() and given.exists() and output.samefile(given):
        raise UsageError(f"input and output are the same file {output}; write to another one.")


def named(output: str) -> Path:
    """The path of an output, which must have a name: `.` and `/` have none to put endings behind."""
    path = Path(output)
    if not path.name:
        raise SetupError(f"cannot write {path}: is a directory.")
    return path


def visible(line: bytes) -> bytes:
    """The line with control characters spelled out, so that a terminal does not obey them."""
    text = line.decode("utf-8", "replace")
    return "".join(
        c if c in "\n\t" or ((c.isprintable() or c.isspace()) and c >= " " and c != "\x7f") else repr(c)[1:-1]
        for c in text
    ).encode()
