"""Outputs of commands: standard output, or a file that appears when it is complete.

A run writes `OUT.partial` and renames it at the end. `OUT.partial.json` beside it has the options that decide
the content, so that `--resume` continues a run only under the same options.

    with open_output(output, source, options, resume=resume, force=force) as sink:
        with keeping_results(sink, bar):
            for line in lines[sink.done:]:
                sink.write(line)
            sink.finish()
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import msgspec

from rangevote.cli.options import format_by_name
from rangevote.errors import RangevoteError, SetupError, UsageError, need
from rangevote.text import cannot_write, draft_of, escape_controls, is_stream, open_device, regular_file

if TYPE_CHECKING:
    from rangevote.cli.progress import Bar
    from rangevote.formats.reader import Entry
    from rangevote.formats.result_writer import ResultShape
    from rangevote.hypothesis import Ballot

BUFFER = 1 << 20
#: A table made from lines of results: its format (parquet, csv, tsv, preferences, screen) and its columns.
Table = tuple[str, "ResultShape"]
#: Ending of a compressed file -> the program that writes it.
COMPRESSORS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}


class ClosedPipe(RangevoteError):
    """The reader of standard output is gone (`| head`): exit quietly, as shell tools do."""

    exit_code = 141


class Interrupted(RangevoteError):
    """The user pressed Ctrl-C."""

    exit_code = 130


class Sink:
    """Takes lines of bytes, one or more at a time. `done` and `last` are the number of lines that an earlier
    run wrote and the last of them; `name` is used in messages."""

    done, last, name = 0, b"", ""
    _file: BinaryIO

    def write(self, line: bytes) -> None:
        try:
            self._file.write(line)
        except OSError as error:
            self._fail(error)

    def flush(self) -> None:
        """Hand the written lines to the system, so that they outlive the process."""
        try:
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def finish(self) -> None:
        """All lines are there."""

    def close(self) -> str:
        """Stop early: keep results, if there are any, and return a hint how to resume."""
        return ""

    def discard(self) -> None:
        """Stop early and leave no file behind."""

    def _fail(self, error: OSError) -> NoReturn:
        raise NotImplementedError


class StreamOutput(Sink):
    """Standard output, a device or a pipe. On a terminal, control characters are shown instead of obeyed.
    With `table`, lines become rows of a table."""

    def __init__(self, file: BinaryIO, name: str, *, line_by_line: bool, table: Table | None) -> None:
        self._file, self.name, self._terminal = file, name, file.isatty()
        self._line_by_line, self._rows = line_by_line or self._terminal, None
        if table is not None:
            from rangevote.formats.result_writer import ResultRows

            self._rows = ResultRows(*table)

    def write(self, line: bytes) -> None:
        if self._rows is not None:
            line = b"".join(map(self._rows, line.splitlines(keepends=True)))
        if self._terminal:
            line = escape_controls(line.decode("utf-8", "replace"), keep="\n\t").encode()
        super().write(line)
        if self._line_by_line:
            self.flush()

    def finish(self) -> None:
        if self._rows is not None and (header := self._rows.finish()):
            super().write(header)
        self.flush()

    def _fail(self, error: OSError) -> NoReturn:
        raise ClosedPipe if isinstance(error, BrokenPipeError) else cannot_write(self.name, error) from error


class OutputFile(Sink):
    """A file that gets its name when it is complete; with `table`, its lines are then made into a table."""

    def __init__(
        self,
        path: Path,
        options: Mapping[str, object],
        *,
        resume: bool,
        force: bool,
        table: Table | None = None,
    ) -> None:
        self.path, self._target, self._table = path, regular_file(path), table
        self.name = str(path)
        self.partial, self._notes = (Path(f"{self._target}{end}") for end in (".partial", ".partial.json"))
        self._refuse_existing(resume, force)
        try:
            self._file = open(self.partial, "ab+", buffering=BUFFER)  # noqa: SIM115  closed by close()
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            _lock(self._file, path)
            self._start(options, resume and not force and self._can_resume())
        except OSError as error:
            self._fail(error)
        except BaseException:
            self._file.close()
            raise

    def _refuse_existing(self, resume: bool, force: bool) -> None:
        if self.path.is_dir():
            raise SetupError(f"cannot write {self.path}: is a directory.")
        if self.path.exists() and not force:
            if resume:
                self._tidy()
            hint = " and is complete, so there is nothing to resume" if resume else ""
            raise SetupError(f"{self.path} already exists{hint}. Use --force to overwrite it.")
        # an empty one was left by a run that was killed before its first line
        if self.partial.exists() and self.partial.stat().st_size and not (resume or force):
            raise SetupError(
                f"{self.partial} exists from an unfinished run. Use --resume to continue it, or --force to "
                f"start again."
            )

    def _tidy(self) -> None:
        """Remove what a run left that was killed when its output was complete."""
        if self.partial.exists():
            if self.partial.stat().st_mtime_ns > self._target.stat().st_mtime_ns:
                return  # it belongs to a later run, with --force
            with open(self.partial, "rb") as file:
                _lock(file, self.path)
                self.partial.unlink()
        self._notes.unlink(missing_ok=True)

    def _can_resume(self) -> bool:
        if not self._notes.exists() and self.partial.stat().st_size:
            raise SetupError(
                f"cannot resume {self.partial}: {self._notes.name}, which has its options, is missing. "
                f"Use --force to start again."
            )
        return self._notes.exists()

    def _start(self, options: Mapping[str, object], resume: bool) -> None:
        current = {name: str(value) for name, value in options.items()}
        if resume:
            self._check_options(current)
            self.keep()
            return
        self._file.truncate(0)
        # in ASCII: file names may have bytes that are not text
        text = json.dumps({"options": current}, indent=1)
        try:
            with draft_of(self._notes, locked=True) as draft:
                draft.write_text(text + "\n", encoding="utf-8")
        except SetupError:
            self.discard()
            raise

    def _check_options(self, current: dict[str, str]) -> None:
        """Refuse to resume under other options than those of the unfinished run."""
        try:
            before = dict(json.loads(self._notes.read_text(encoding="utf-8"))["options"].items())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise SetupError(f"{self._notes} cannot be read. Use --force to start again.") from None
        changed = sorted(name for name in {*before, *current} if before.get(name) != current.get(name))
        if changed:
            changes = "; ".join(f"{n} was {before.get(n)!r}, now {current.get(n)!r}" for n in changed)
            raise SetupError(
                f"cannot resume {self.partial}: other options decided its content ({changes}). Use the same "
                f"options, or --force to start again."
            )

    def keep(self, most: int | None = None) -> None:
        """Keep the complete lines of an earlier run, at most `most` of them."""
        self._file.seek(0)
        self.done, self.last, size = 0, b"", 0
        for line in self._file:
            if not line.endswith(b"\n") or self.done == most:
                break
            self.done, self.last, size = self.done + 1, line, size + len(line)
        self._file.truncate(size)
        self._file.seek(0, os.SEEK_END)

    def finish(self) -> None:
        """Write everything to the disk, then give the file its name."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            if self._table is not None:
                self._write_table(*self._table)
            self._file.close()
            if self._table is None:
                os.replace(self.partial, self._target)
            self.partial.unlink(missing_ok=True)
            self._notes.unlink(missing_ok=True)
        except OSError as error:
            self._fail(error)

    def _write_table(self, format: str, shape: ResultShape) -> None:
        from rangevote.formats.result_writer import write_table

        with draft_of(self._target, locked=True) as draft:
            write_table(self.partial, draft, format, shape)
            with draft.open("rb+") as table:
                os.fsync(table.fileno())

    def close(self) -> str:
        if self._file.closed:
            return ""
        try:
            self._file.close()
            empty = not self.partial.stat().st_size
        except OSError as error:
            self._fail(error)
        if empty:
            self.discard()
            return ""
        return f"Results so far are kept in {self.partial}; continue with --resume."

    def discard(self) -> None:
        with suppress(OSError):  # a full disk: the buffer cannot be written, and need not be
            self._file.close()
        self.partial.unlink(missing_ok=True)
        self._notes.unlink(missing_ok=True)

    def _fail(self, error: OSError) -> NoReturn:
        self.discard()
        raise cannot_write(self.path, error, " Nothing was left behind.") from error


class ResultsAndBallots:
    """The output of `generate`: results and optionally their ballots, with the same number of lines."""

    def __init__(self, results: Sink, ballots: Sink | None) -> None:
        self.results, self.ballots = results, ballots
        self._all: list[Sink] = [results] if ballots is None else [ballots, results]
        files = [sink for sink in self._all if isinstance(sink, OutputFile)]
        self.done = min((file.done for file in files), default=0)
        for file in files:
            if file.done > self.done:  # the run stopped between the two lines
                file.keep(self.done)
        #: The sink whose lines say how far an earlier run came.
        self.leading: Sink = files[-1] if files else results

    def write(self, result: bytes, ballot: Ballot) -> None:
        from rangevote.formats.jsonl import write_ballot

        if self.ballots is not None:
            self.ballots.write(write_ballot(ballot))
        self.results.write(result)

    def flush(self) -> None:
        for sink in self._all:
            sink.flush()

    def finish(self) -> None:
        self.flush()  # a full disk is met before one of the files gets its name
        for sink in self._all:
            sink.finish()

    def close(self) -> str:
        return ([hint for sink in self._all if (hint := sink.close())] or [""])[-1]


@contextmanager
def open_output(
    output: str | None,
    source: str,
    options: Mapping[str, object],
    *,
    resume: bool = False,
    force: bool,
    table: Table | None = None,
) -> Iterator[Sink]:
    """The sink for `-o`, or standard output. Open it before the input, so that a second run on the same file
    is refused at once; it leaves no file behind if the input cannot be opened."""
    refuse_input(output, [source])
    if not _is_file(output):
        if table is not None and table[0] == "parquet":
            raise UsageError("Parquet is written to a file: give -o FILE.")
        if resume:
            raise UsageError(f"--resume needs -o FILE; {_stream_name(output)} cannot be resumed.")
        with _open_stream(output, force=force) as stream:
            yield StreamOutput(stream, _stream_name(output), line_by_line=source == "-", table=table)
        return
    path = Path(str(output))
    if path.suffix in COMPRESSORS:
        raise UsageError(
            f"{output} would not be compressed: leave out {path.suffix}, or leave out -o and end the command "
            f"with | {COMPRESSORS[path.suffix]} > {output}"
        )
    if not path.name:  # `.` and `/` have no name
        raise SetupError(f"cannot write {path}: is a directory.")
    if table is not None and table[0] == "parquet":
        need("pyarrow.parquet", "parquet", "writing Parquet files")  # before the work, not after
    file = OutputFile(path, options, resume=resume, force=force, table=table)
    try:
        yield file
    finally:
        file.close()


def _is_file(output: str | None) -> bool:
    """Whether `-o` names a file, whose run can be resumed."""
    return output is not None and output != "-" and not is_stream(output)


def _stream_name(output: str | None) -> str:
    return "standard output" if output is None or output == "-" else output


@contextmanager
def _open_stream(output: str | None, *, force: bool) -> Iterator[BinaryIO]:
    if output is None or output == "-":
        yield sys.stdout.buffer
        return
    if Path(output).is_block_device() and not force:
        raise SetupError(f"{output} is a disk device. Use --force to overwrite it.")
    stream = open_device(output)
    try:
        yield stream
    finally:
        with suppress(OSError):  # the reader is gone, as reported
            stream.close()


def refuse_input(output: str | Path | None, inputs: Sequence[str]) -> None:
    """Never write over one of the inputs."""
    for path in map(Path, inputs):
        if output and path.is_file() and Path(output).exists() and path.samefile(output):
            raise UsageError(f"{output} is one of the inputs; write to another file.")


def write_output(content: str | bytes, output: str | None, inputs: Sequence[str], *, force: bool) -> None:
    """Write a whole text or picture to `-o` or standard output, or nothing; never over one of the inputs."""
    refuse_input(output, inputs)
    with open_output(output, "-", {}, force=force) as sink:
        sink.write(content if isinstance(content, bytes) else content.encode())
        sink.finish()


@contextmanager
def open_outputs(
    results: str | None,
    ballots: str | None,
    source: str,
    options: Mapping[str, object],
    *,
    resume: bool,
    force: bool,
) -> Iterator[ResultsAndBallots]:
    """The sinks for `-o` and `--ballots` of `generate`."""
    for output in (results, ballots):
        format_by_name(output, "jsonl")
    if ballots == "-":
        raise UsageError("--ballots needs a file; standard output has the results.")
    if ballots is not None and results is not None and os.path.realpath(ballots) == os.path.realpath(results):
        raise UsageError(f"results and ballots are the same file {ballots}; write to two.")
    resumed = {output for output in (results, ballots) if output and resume and _is_file(output)}
    if resume and not resumed:
        raise UsageError(f"--resume needs -o FILE; {_stream_name(results)} cannot be resumed.")
    _check_all_or_none(map(regular_file, resumed))
    with ExitStack() as files:
        second: Sink | None = None
        if ballots is not None:
            resume = ballots in resumed
            second = files.enter_context(open_output(ballots, source, options, resume=resume, force=force))
        resume = results in resumed
        first = files.enter_context(open_output(results, source, options, resume=resume, force=force))
        yield ResultsAndBallots(first, second)


def _check_all_or_none(paths: Iterable[Path]) -> None:
    """Refuse to resume one of two files without the other."""
    partial = [path.with_name(path.name + ".partial") for path in paths]
    there = [path for path in partial if path.exists()]
    if len(there) < len(partial) and there:
        [missing] = [path for path in partial if path not in there]
        raise SetupError(
            f"cannot resume {there[0]}: {missing}, which belongs to it, is missing. Use --force to start "
            f"again."
        )


def _lock(file: BinaryIO, path: Path) -> None:
    """Lock the file, so that one run at a time writes it; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SetupError(f"another run is writing {path}.") from None


# Resuming an unfinished run


def skip_done(entries: Iterator[Entry], sink: Sink, *, text: bool) -> Iterator[Entry]:
    """The entries without a result from an earlier run, whose last line must match its entry."""
    entry = None
    for number in range(sink.done):
        entry = next(entries, None)
        if entry is None:
            raise input_too_short(sink, number)
    if entry is not None:
        check_last(entry, sink, text=text)
    return entries


def input_too_short(sink: Sink, number: int) -> SetupError:
    return SetupError(
        f"cannot resume: the output has {sink.done} lines, the input only {number}; the input changed. "
        f"Use --force to start again."
    )


def check_last(entry: Entry, sink: Sink, *, text: bool) -> None:
    """Refuse to resume unless the last line that an earlier run wrote is the result of this entry."""
    if entry.ballot is None or text:
        return
    try:
        written = msgspec.json.decode(sink.last, type=dict[str, Any]).get("id")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise SetupError(
            f"cannot resume: line {sink.done} of the output is not the result of an election; the file was "
            f"changed. Use --force to start again."
        ) from None
    if written != entry.ballot.id:
        raise SetupError(
            f"cannot resume: line {sink.done} of the output has id {written!r}, the input "
            f"{entry.ballot.id!r}; the input changed. Use --force to start again."
        )


@contextmanager
def keeping_results(sink: Sink | ResultsAndBallots, bar: Bar) -> Iterator[None]:
    """Keep the results of a run that ends early, and say in its message how to resume."""
    try:
        yield
    except ClosedPipe:
        raise
    except KeyboardInterrupt:
        bar.close()
        raise Interrupted(f"interrupted. {sink.close()}".rstrip()) from None
    except RangevoteError as error:
        bar.close()
        hint = sink.close()
        raise type(error)(f"{error}\n{hint}" if hint else str(error)) from error
    finally:
        bar.close()
