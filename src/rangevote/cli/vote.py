"""`rangevote vote`: ballots in, winners out. `Voting.elect` decodes, elects and encodes a chunk of input."""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from rangevote import __version__
from rangevote.cli.options import (
    AGREEMENT,
    FILE_OF_VOTERS,
    FORMAT_NAMES,
    HelpCommand,
    check_one_winner,
    declared,
    election_options,
    format_by_name,
    grouped,
    option,
    options_of,
    reading_options,
    result_options,
)
from rangevote.cli.output import (
    Sink,
    Table,
    check_last,
    input_too_short,
    keeping_results,
    open_output,
    refuse_input,
)
from rangevote.cli.progress import Bar, Notes, Position, RunCounts, check_inputs
from rangevote.errors import DataError, SetupError, UsageError

if TYPE_CHECKING:
    from rangevote.cli.members import PanelFiles
    from rangevote.election.settings import Settings
    from rangevote.formats import ReadOptions
    from rangevote.formats.reader import Chunk, Entry, SeenIds
    from rangevote.formats.result_writer import ResultLine, ResultShape

#: Formats of results.
OUTPUT_FORMATS = ("jsonl", "parquet", "csv", "tsv")
#: Options that do not change the content of the output; a resumed run may change them.
OPTIONS_FREE_TO_CHANGE_ON_RESUME = frozenset(
    {"ballots", "output", "on_error", "resume", "force", "quiet", "strict"}
    | {"engine", "ray_address", "workers", "to", "trust_ids"}
)
#: Entries that a worker process takes at a time, in formats whose ballots are not single lines.
ENTRIES = 64
#: Chunks of a file that a worker process takes at a time.
SENT_AT_ONCE = 4
ONE_CANDIDATE = (
    "every ballot has one candidate, so nothing was decided. If each record is one sample, name what the "
    "samples of a ballot share with --group-by."
)


@dataclass(frozen=True)
class RunOptions:
    """How the results are written, what is done about bad or missing input, and who does the work."""

    to: str | None = declared(
        "--to",
        "Format of the output. Default: by its name (.parquet, .csv, .tsv), otherwise JSON lines. "
        "preferences: JSON lines with prompt, chosen, rejected and margin, as TRL trains on.",
        type=click.Choice([*OUTPUT_FORMATS, "preferences"]),
    )
    on_error: str = declared(
        "--on-error",
        "What to do with a bad ballot: stop, or skip it.",
        type=click.Choice(["stop", "skip"]),
        default="stop",
    )
    resume: bool = declared("--resume", "Continue an unfinished output.")
    force: bool = declared("--force", "Overwrite an existing output, or start again.")
    allow_empty: bool = declared("--allow-empty", "Write null for a ballot without candidates.")
    require_nonempty: bool = declared("--require-nonempty", "Fail if the input has no ballots.")
    trust_ids: bool = declared("--trust-ids", "Do not check that all ids differ.")
    quiet: bool = declared("-q --quiet", "No notes, warnings or progress bar.")
    workers: int = declared(
        "--workers N",
        "Processes that share the work; 0: one for each core.",
        type=click.IntRange(min=0),
        default=1,
    )
    engine: str = declared(
        "--engine",
        "This machine, or Ray Data on one or many.",
        type=click.Choice(["local", "ray"]),
        default="local",
    )
    ray_address: str | None = declared("--ray-address ADDRESS", "A running Ray cluster: 'auto' or HOST:PORT.")


@click.command(
    cls=HelpCommand,
    sections=FILE_OF_VOTERS,
    example="rangevote vote samples.jsonl --group-by prompt_id --carry prompt -o winners.csv",
)
@click.argument("ballots", nargs=-1, metavar="[BALLOTS]...")
@option("-o --output FILE", "Output file. Default: standard output.")
@option(
    "--voters FILE[=SHARE]",
    "A file whose candidates vote and cannot be elected. Several such files are a panel, with equal shares "
    "of the vote, or those given.",
    multiple=True,
)
@election_options
@result_options
@partial(grouped, name="run", options=options_of(RunOptions), build=RunOptions)
@reading_options
def vote(
    ballots: tuple[str, ...],
    output: str | None,
    voters: tuple[str, ...],
    settings: Settings,
    shape: ResultShape,
    run: RunOptions,
    reading: ReadOptions,
) -> int:
    """Elect one output of every ballot in BALLOTS ('-': standard input).

    Several files are a panel: the candidates of all of them stand, and each file has its share of the vote.
    Their ballots are joined by id, or line by line where they have none.

    A ballot is a line of JSON with its candidates, or an entry of a Moses/Marian, fairseq, Sockeye, mbrs,
    vLLM or OpenAI n-best file; records of JSON, CSV, TSV or Parquet may have a list of outputs each, or be
    one sample each. Results are written in the order of the ballots.
    """
    ballots = ballots or ("-",)
    inputs, panel = list(ballots), None
    if len(ballots) > 1 or voters or settings.shares == AGREEMENT:
        from rangevote.cli.members import panel_files

        panel, settings = panel_files(ballots, voters, settings)
        inputs = panel.paths
    check_inputs(inputs)
    check_one_winner(shape.text, settings.winners)
    notes = _first_notes(settings, reading, quiet=run.quiet)
    if run.engine == "local":
        return _vote_here(inputs, output, panel, settings, shape, run, reading, notes)
    from rangevote.cli.vote_ray import vote_on_ray

    given = click.get_current_context().params
    options = {name: str(value) for name, value in _remembered(panel).items()} | {"rangevote": __version__}
    total, skipped = vote_on_ray(ballots, given, settings, shape, reading, options)
    if not total:
        _no_ballots(notes, run.require_nonempty)
    return _exit_code(skipped, total)


def _vote_here(
    inputs: list[str],
    output: str | None,
    panel: PanelFiles | None,
    settings: Settings,
    shape: ResultShape,
    run: RunOptions,
    reading: ReadOptions,
    notes: Notes,
) -> int:
    """Read, elect and write on this machine; returns the exit code."""
    from rangevote.parallel import cores

    if run.ray_address is not None:
        raise UsageError("--ray-address belongs to --engine ray.")
    shape, table = _output_table(output, run.to, shape, settings)
    remembered = _remembered(panel)
    if shape.pair:
        remembered["to"] = run.to
    reading = replace(reading, carry=shape.carry, unique_ids=not run.trust_ids)
    workers = run.workers or cores()
    gc.freeze()  # what is there now stays: the collector need not look at it for every chunk
    most = 1 if workers == 1 and "-" in inputs else ENTRIES
    refuse_input(output, inputs)
    with ExitStack() as files:
        shares = None
        if panel is not None and settings.shares == AGREEMENT:
            from rangevote.cli.members import find_shares

            shares = find_shares(files, panel, reading, settings)
            remembered["shares"] = {**dict.fromkeys(panel.members, 0.0), **shares.agreement.shares}
            settings = settings.replace(shares=remembered["shares"])
            notes.tell(f"shares by agreement over {shares.note} (rounds: {shares.agreement.rounds}).")
        source = "-" if "-" in inputs else inputs[0]
        sink = files.enter_context(
            open_output(output, source, remembered, resume=run.resume, force=run.force, table=table)
        )
        joined = None if shares is None else shares.begun
        if joined is None and panel is not None and len(inputs) > 1:
            joined = panel.read(files, reading)
        position, chunks, format, reading = _chunks(files, inputs[0], joined, reading, most, workers)
        voting = Voting(settings, shape, reading, format, run.allow_empty, compare=sys.stderr.isatty())
        lines = files.enter_context(closing(voting.lines(chunks, sink, workers, notes)))  # ends the workers
        bar = Bar(position, "voting", quiet=run.quiet)
        counts = _write_all(lines, sink, bar, notes, run, pairs=shape.pair)
    counts.tell_members(notes, settings, None if shares is None else shares.agreement)
    return _exit_code(counts.skipped, bar.items)


def _remembered(panel: PanelFiles | None) -> dict[str, Any]:
    """The options that decide the content of the output, which a resumed run must have too."""
    given = click.get_current_context().params
    remembered = {
        name: value for name, value in given.items() if name not in OPTIONS_FREE_TO_CHANGE_ON_RESUME
    }
    if panel is not None and len(panel.standing) > 1:
        remembered["members"] = list(panel.standing)
    return remembered


def _first_notes(settings: Settings, reading: ReadOptions, *, quiet: bool) -> Notes:
    """Notes, with what can be said before anything is read."""
    from rangevote.kernel import PURE, WHY_PLAIN

    notes = Notes(quiet=quiet)
    if WHY_PLAIN and not PURE:
        notes.tell(WHY_PLAIN)
    if reading.score_field and not settings.scores:
        names = ",".join(f"{name}=0.1" for name in reading.score_field)
        notes.warn(
            f"--score-field has no effect: no score counts unless it has a weight (--score-weights {names})."
        )
    return notes


def _chunks(
    files: ExitStack,
    path: str,
    joined: tuple[Position, Iterator[Entry]] | None,
    reading: ReadOptions,
    most: int,
    workers: int,
) -> tuple[Position, Iterator[Chunk], str | None, ReadOptions]:
    """The ballots in chunks, those of the file or those joined from several, with the position for the
    progress bar, the format of what is left to decode, and how it is read."""
    from rangevote.formats.reader import entry_chunks, open_format, read_chunks

    if joined is not None:  # in each file the ids have been checked
        return joined[0], entry_chunks(joined[1], most), None, replace(reading, unique_ids=False)
    stream, format, reading = open_format(path, reading)
    files.callback(stream.close)
    if workers > 1:  # to send a chunk to a process costs as much as some ballots
        stream.chunk_size *= SENT_AT_ONCE
    return stream, read_chunks(stream, format, reading, most), format, reading


def _output_table(
    output: str | None, to: str | None, shape: ResultShape, settings: Settings
) -> tuple[ResultShape, Table | None]:
    """The shape of results, and the table that their lines become, or None if they stay lines."""
    written = to or format_by_name(output, *OUTPUT_FORMATS, option="--to")
    if shape.text and (to or written != "jsonl"):
        name = FORMAT_NAMES.get(written, written)
        raise UsageError(f"--text writes lines of text, not {name}; leave one of the two out.")
    if written == "preferences":
        format_by_name(output, "jsonl")
        asked = {"--scores": shape.scores, "--explain": shape.explain, "--winners": settings.winners > 1}
        for flag, value in asked.items():
            if value:
                raise UsageError(
                    f"--to preferences writes prompt, chosen, rejected and margin, without what {flag} adds: "
                    f"leave one of the two out."
                )
        shape = shape._replace(pair=True)
    on_screen = output in (None, "-") and to is None and sys.stdout.isatty()
    if on_screen and not (shape.text or shape.scores or shape.explain):
        written = "screen"
    return shape, None if written == "jsonl" else (written, shape)


@dataclass(frozen=True)
class Voting:
    """Turns chunks of input into lines of output; can be sent to another process."""

    settings: Settings
    shape: ResultShape
    reading: ReadOptions
    format: str | None
    allow_empty: bool
    compare: bool = False  # count ballots whose winner is not the most likely candidate

    def elect(self, chunk: Chunk) -> Iterator[ResultLine]:
        """Decode, elect, encode; a bad ballot becomes a line too, so that lines match ballots."""
        from rangevote.election.elect import elect_each
        from rangevote.formats.reader import chunk_entries
        from rangevote.formats.result_writer import ResultLine, empty_line, error_line, result_line

        entries, shape = list(chunk_entries(chunk, self.format, self.reading)), self.shape
        ballots = [entry.ballot for entry in entries if entry.ballot is not None]
        if self.allow_empty:
            ballots = [ballot for ballot in ballots if ballot.candidates]
        results = elect_each(ballots, self.settings)
        for entry in entries:
            try:
                ballot = entry.get()
                if self.allow_empty and not ballot.candidates:
                    yield empty_line(entry, ballot, shape)
                else:
                    result = next(results)
                    if isinstance(result, Exception):
                        raise result
                    yield result_line(ballot, result, shape, where=entry.where, compare=self.compare)
            except DataError as error:
                yield error_line(entry, error, shape)
            except MemoryError:
                yield ResultLine(b"", entry.where, error=SetupError(f"{entry.where}: out of memory."))

    def elect_in_process(self, chunk: Chunk) -> tuple[list[tuple[Any, ...]], list[str]]:
        """The lines of a chunk, as tuples, which are quicker to send, and its warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            lines = list(map(tuple, self.elect(chunk)))
        messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        return lines, list(dict.fromkeys(messages))

    def lines(
        self, chunks: Iterator[Chunk], sink: Sink, workers: int, notes: Notes
    ) -> Generator[ResultLine, None, None]:
        """The lines of all chunks in order, without those of an earlier run; a repeated id is an error."""
        from rangevote.formats.reader import Entry, SeenIds, repeated
        from rangevote.formats.result_writer import error_line

        seen = SeenIds() if self.reading.unique_ids else None
        left = self._left(chunks, sink, seen)
        voted = self._pool(left, workers, notes) if workers > 1 else map(self.elect, left)
        for line in chain.from_iterable(voted):
            if line.id is None or seen is None or seen.add(line.id):
                yield line
            else:
                error = repeated(line.id, line.where)
                yield error_line(Entry(line.where, id=line.id), error, self.shape)

    def _pool(self, chunks: Iterator[Chunk], workers: int, notes: Notes) -> Iterator[Iterable[ResultLine]]:
        from rangevote.formats.result_writer import ResultLine
        from rangevote.parallel import map_in_order

        for lines, messages in map_in_order(self.elect_in_process, chunks, workers, processes=True):
            for message in messages:
                notes.warn(message)
            yield map(ResultLine._make, lines)

    def _left(self, chunks: Iterator[Chunk], sink: Sink, seen: SeenIds | None) -> Iterator[Chunk]:
        """The chunks after the ballots of an earlier run, which are read for their ids only."""
        from rangevote.formats.reader import chunk_entries

        left = sink.done
        while left:
            chunk = next(chunks, None)
            if chunk is None:
                raise input_too_short(sink, sink.done - left)
            entries = list(chunk_entries(chunk, self.format, self.reading))
            for entry in entries[:left]:
                if seen is not None and entry.ballot is not None and entry.ballot.id is not None:
                    seen.add(entry.ballot.id)
            if len(entries) >= left:
                check_last(entries[left - 1], sink, text=self.shape.text)
            if len(entries) > left:
                yield chunk._replace(records=entries[left:])
            left = max(0, left - len(entries))
        yield from chunks


def _write_all(
    lines: Iterable[ResultLine], sink: Sink, bar: Bar, notes: Notes, run: RunOptions, *, pairs: bool
) -> RunCounts:
    """Write every line; at the end show notes and warnings."""
    from rangevote.formats.result_writer import is_pair

    counts = RunCounts()
    begun = time.monotonic()
    with keeping_results(sink, bar):
        for line in lines:
            if line.error is not None:
                if run.on_error == "stop" or not isinstance(line.error, DataError):
                    raise line.error
                notes.warn(f"skipped: {line.error}")
                counts.skipped += 1
            bar.advance()
            counts.add(line.facts)
            counts.undecided += pairs and line.error is None and not is_pair(line.content)
            sink.write(line.content)
        if not sink.done + bar.items:
            _no_ballots(notes, run.require_nonempty)
        sink.finish()
    if bar.items > 1 and counts.single and counts.single == bar.items - counts.skipped:
        notes.warn(ONE_CANDIDATE)
    counts.tell(notes, bar.items)
    if sys.stderr.isatty():
        compared = counts.changed[True] + counts.changed[False]
        among = f", the most likely candidate lost in {counts.changed[True]:,}" if compared else ""
        ballots = "1 ballot" if bar.items == 1 else f"{bar.items:,} ballots"
        notes.tell(f"{ballots}{among}, {time.monotonic() - begun:.1f} s, {sink.name}.")
    return counts


def _no_ballots(notes: Notes, require_nonempty: bool) -> None:
    if require_nonempty:
        raise DataError("there are no ballots in the input.")
    notes.tell("there are no ballots in the input.")


def _exit_code(skipped: int, ballots: int) -> int:
    if skipped:
        click.echo(f"rangevote: {skipped} of {ballots} ballots were skipped.", err=True)
    return 4 if skipped else 0
