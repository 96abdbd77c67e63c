"""`rangevote vote`: ballots in, winners out. The heart is `Voting.lines`: a ballot in, a line out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rangevote import __version__
from rangevote.cli.options import (
    CALLED,
    FILE_OF_VOTERS,
    HelpCommand,
    check_one_winner,
    election_options,
    format_by_name,
    reading_options,
    result_options,
)
from rangevote.cli.output import Interrupted, Sink, TableShape, fingerprint, open_output
from rangevote.cli.progress import Bar, Notes, Position, check_input
from rangevote.cli.resume import check_last, input_too_short, keeping_results, skip_done
from rangevote.errors import DataError, RangevoteError, SetupError, UsageError

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import Entry, ReadOptions
    from rangevote.formats.batches import RawBatch
    from rangevote.formats.reader import SeenIds
    from rangevote.formats.result_writer import ResultLine, ResultShape
    from rangevote.formats.stream import Stream

#: What results are written as.
OUTPUT_FORMATS = ("jsonl", "parquet", "csv", "tsv")
#: Options that change how a run goes but not what it writes; a resumed run may have others.
OPTIONS_FREE_TO_CHANGE_ON_RESUME = frozenset(
    {"ballots", "output", "on_error", "resume", "force", "quiet", "strict"}
    | {"engine", "ray_address", "workers", "to", "trust_ids"}
)


ONE_CANDIDATE = (
    "every ballot has one candidate, so nothing was decided. If each record is one sample, name what the "
    "samples of a ballot share with --group-by."
)


@click.command(
    cls=HelpCommand,
    sections=FILE_OF_VOTERS,
    example="rangevote vote samples.jsonl --group-by prompt_id --carry prompt -o winners.csv",
)
@click.argument("ballots", default="-", metavar="[BALLOTS]")
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option(
    "--voters",
    metavar="FILE[=SHARE]",
    multiple=True,
    help="A second file: its candidates vote, ballot by ballot. Several are a panel: they go together by the "
    "ballots' ids, and have equal shares of the vote, or those given.",
)
@election_options
@result_options
@click.option(
    "--to",
    type=click.Choice([*OUTPUT_FORMATS, "preferences"]),
    help="Format of the output; else by its name (.parquet, .csv, .tsv). preferences: JSON lines with "
    "prompt, chosen, rejected and margin, as TRL trains on.",
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="At a bad ballot.",
)
@click.option("--resume", is_flag=True, help="Go on with an unfinished output.")
@click.option("--force", is_flag=True, help="Replace the output, or start again.")
@click.option("--allow-empty", is_flag=True, help="Write null for a ballot without candidates.")
@click.option("--require-nonempty", is_flag=True, help="Make an error of an input without ballots.")
@click.option("--trust-ids", is_flag=True, help="Do not check that no two ballots have the same id.")
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Threads that share the work, or processes where Python has a part in it; 0: one for each core.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="This machine, or Ray Data on one or many.",
)
@click.option("--ray-address", metavar="ADDRESS", help="A running Ray cluster, as 'auto' or HOST:PORT.")
@reading_options
def vote(
    ballots: str,
    output: str | None,
    voters: tuple[str, ...],
    settings: Settings,
    shape: ResultShape,
    to: str | None,
    on_error: str,
    resume: bool,
    force: bool,
    allow_empty: bool,
    require_nonempty: bool,
    trust_ids: bool,
    quiet: bool,
    workers: int,
    engine: str,
    ray_address: str | None,
    reading: ReadOptions,
) -> int:
    """Elect one output of every ballot in BALLOTS ('-': standard input).

    A ballot is a line of JSON with its candidates, or an entry of a Moses/Marian, fairseq, Sockeye, mbrs,
    vLLM or OpenAI n-best file; records of JSON, CSV, TSV or Parquet may have a list of outputs each, or be
    one sample each. Results are written in the order of the ballots.
    """
    from rangevote.kernel import PURE, WHY_PLAIN

    check_input(ballots)
    check_one_winner(shape.text, settings.winners)
    notes = Notes(quiet=quiet)
    if WHY_PLAIN and not PURE:
        notes.tell(WHY_PLAIN)
    given = click.get_current_context().params
    remembered = {
        name: value for name, value in given.items() if name not in OPTIONS_FREE_TO_CHANGE_ON_RESUME
    }
    if engine == "ray":
        return _vote_on_ray(given, settings, shape, reading, remembered, notes)
    if ray_address is not None:
        raise UsageError("--ray-address belongs to --engine ray.")
    format = to or format_by_name(output, *OUTPUT_FORMATS, option="--to")
    if shape.text and (to or format != "jsonl"):
        raise UsageError(
            f"--text writes lines of text, not {CALLED.get(format, format)}; leave one of the two out."
        )
    if format == "preferences":
        shape, remembered = _pairs(output, shape, settings), {**remembered, "to": format}
    table = TableShape(format, shape) if format != "jsonl" else None
    reading = replace(reading, carry=shape.carry)
    panel, settings = panel_files(voters, settings)
    voting = Voting(settings, shape, replace(reading, unique_ids=not trust_ids), allow_empty)
    with ExitStack() as files:
        sink = files.enter_context(
            open_output(output, ballots, remembered, resume=resume, force=force, table=table)
        )
        stream, lines = voting.open(files, ballots, panel, sink, workers or _cores(), notes)
        bar = Bar(stream, "voting", quiet=quiet)
        skip = on_error == "skip"
        return _write_all(
            lines, sink, bar, notes, skip=skip, require_nonempty=require_nonempty, pairs=shape.pair
        )


def _pairs(output: str | None, shape: ResultShape, settings: Settings) -> ResultShape:
    """The shape of preference pairs, where nothing is asked for that they do not have."""
    format_by_name(output, "jsonl")
    asked = {"--scores": shape.scores, "--explain": shape.explain, "--winners": settings.winners > 1}
    for option, given in asked.items():
        if given:
            raise UsageError(
                f"--to preferences writes prompt, chosen, rejected and margin, without what {option} adds: "
                f"leave one of the two out."
            )
    return shape._replace(pair=True)


class BatchLines(NamedTuple):
    """The lines of a batch, the ids of its ballots, and the warnings that came up."""

    lines: list[ResultLine]
    ids: list[str | int | None]
    warnings: list[str]


@dataclass(frozen=True)
class Voting:
    """How ballots become lines of output; can be sent to another process."""

    settings: Settings
    shape: ResultShape
    reading: ReadOptions
    allow_empty: bool

    def lines(self, entries: Iterable[Entry]) -> Iterator[ResultLine]:
        """Elect each ballot; a bad one becomes a line too, so that input and output keep in step."""
        from rangevote.election.elect import elect_ballot
        from rangevote.formats.result_writer import ResultLine, empty_line, error_line, result_line

        for entry in entries:
            try:
                ballot = entry.get()
                if self.allow_empty and not ballot.candidates:
                    yield empty_line(ballot, self.shape)
                else:
                    yield result_line(ballot, elect_ballot(ballot, self.settings), self.shape)
            except DataError as error:
                yield error_line(entry, error, self.shape)
            except MemoryError:
                yield ResultLine(b"", SetupError(f"{entry.where}: out of memory."))

    def open(
        self,
        files: ExitStack,
        ballots: str,
        panel: Mapping[str, str],
        sink: Sink,
        workers: int,
        notes: Notes,
    ) -> tuple[Position, Iterator[ResultLine]]:
        """The input, and its lines of output: in blocks where most of it needs no care."""
        from rangevote.cli.blocks import BlockVoting
        from rangevote.formats.parquet import has_ballots
        from rangevote.formats.reader import open_format

        stream, format, found = open_format(ballots, self.reading)
        files.callback(stream.close)
        plain = found.plain and (format != "parquet" or has_ballots(stream, found))
        if not panel and plain and BlockVoting.can(self, format):
            blocks = BlockVoting(self)
            if workers == 1 or blocks.suits(stream):
                return stream, blocks.lines(stream, sink, workers)
        if workers == 1:
            return self.one_by_one(files, stream, panel, sink)
        return self.in_batches(files, stream, panel, sink, workers, notes)

    def one_by_one(
        self, files: ExitStack, ballots: Stream, panel: Mapping[str, str], sink: Sink
    ) -> tuple[Position, Iterator[ResultLine]]:
        """In this process: each line is there as soon as its ballot was read."""
        from rangevote.formats import read

        stream = files.enter_context(read(ballots, self.reading))
        entries = self._with_voters(files, stream, panel)
        return stream, self.lines(skip_done(entries, sink, text=self.shape.text))

    def _with_voters(
        self, files: ExitStack, entries: Iterator[Entry], panel: Mapping[str, str]
    ) -> Iterator[Entry]:
        from rangevote.formats import join_panel, pair, read

        members = {name: files.enter_context(read(path, self.reading)) for name, path in panel.items()}
        if len(members) > 1:
            return join_panel(entries, members)
        return pair(entries, *members.values()) if members else entries

    def in_batches(
        self,
        files: ExitStack,
        ballots: Stream,
        panel: Mapping[str, str],
        sink: Sink,
        workers: int,
        notes: Notes,
    ) -> tuple[Position, Iterator[ResultLine]]:
        """In several processes, which also parse the ballots."""
        from rangevote.formats import read
        from rangevote.formats.batches import entry_batches, read_batches

        stream: Position
        batches: Iterator[RawBatch]
        if not panel:
            opened = files.enter_context(read_batches(ballots, self.reading))
            stream, batches = opened, opened
        else:
            stream = entries = files.enter_context(read(ballots, self.reading))
            batches = entry_batches(self._with_voters(files, entries, panel))
        return stream, self._batch_lines(batches, sink, workers, notes)

    def _batch_lines(
        self, batches: Iterator[RawBatch], sink: Sink, workers: int, notes: Notes
    ) -> Iterator[ResultLine]:
        from rangevote.formats.reader import Entry, SeenIds, repeated
        from rangevote.formats.result_writer import error_line
        from rangevote.parallel import map_in_order

        seen = SeenIds() if self.reading.unique_ids else None
        to_vote_on, voted_on = tee(self._skip_done(batches, sink, seen))
        voted = map_in_order(self.batch, to_vote_on, workers, processes=True)
        for (lines, ids, messages), batch in zip(voted, voted_on, strict=False):
            for message in messages:
                notes.warn(message)
            for i, (line, id) in enumerate(zip(lines, ids, strict=True)):
                if seen is None or id is None or seen.add(id):
                    yield line
                else:
                    where = batch.where(i)
                    yield error_line(Entry(where), repeated(id, where), self.shape)

    def batch(self, batch: RawBatch) -> BatchLines:
        """The elections of a batch, in a worker process."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            entries = list(batch.entries(self.reading))
            lines = list(self.lines(entries))
        ids = [None if entry.ballot is None else entry.ballot.id for entry in entries]
        messages = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        return BatchLines(lines, ids, list(dict.fromkeys(messages)))

    def _skip_done(self, batches: Iterator[RawBatch], sink: Sink, seen: SeenIds | None) -> Iterator[RawBatch]:
        """The batches beyond the ballots that an earlier run has answered, which are read for their ids."""
        left = sink.done
        while left:
            batch = next(batches, None)
            if batch is None:
                raise input_too_short(sink, sink.done - left)
            old = min(left, len(batch))
            entry = None
            for entry in batch.part(0, old).entries(self.reading):
                if seen is not None and entry.ballot is not None and entry.ballot.id is not None:
                    seen.add(entry.ballot.id)
            left -= old
            if not left and entry is not None:
                check_last(entry, sink, text=self.shape.text)
            if old < len(batch):
                yield batch.part(old)
        yield from batches


def panel_files(voters: Sequence[str], settings: Settings) -> tuple[dict[str, str], Settings]:
    """The members of the panel and their files, and the settings with their shares; a single file of voters
    is no panel.

    A member is named as its file without folder and ending, or, where two would have one name, as given.
    """
    paths, shares = [], []
    for text in voters:
        path, equals, share = text.rpartition("=")
        try:
            number = float(share) if equals and not os.path.exists(text) else None
        except ValueError:
            number = None
        paths.append(text if number is None else path)
        shares.append(number)
    stems = [Path(path).name.partition(".")[0] or path for path in paths]
    names = stems if len(set(stems)) == len(stems) else paths
    if len(set(names)) < len(names):
        raise UsageError(f"--voters has {next(n for n in names if names.count(n) > 1)!r} twice.")
    panel = dict(zip(names, paths, strict=True))
    given = {name: share for name, share in zip(names, shares, strict=True) if share is not None}
    if given and (len(given) < len(names) or len(names) == 1 or settings.shares is not None):
        raise UsageError(
            "shares are for several files of voters: give each of them one, as --voters a.jsonl=0.7 "
            "--voters b.jsonl=0.3, or none, and do so once."
        )
    if len(panel) > 1 and settings.shares is None:  # so that a member without the ballot is named
        settings = settings.replace(shares=given or dict.fromkeys(names, 1.0))
    return panel, settings


def _write_all(
    lines: Iterable[ResultLine],
    sink: Sink,
    bar: Bar,
    notes: Notes,
    *,
    skip: bool,
    require_nonempty: bool,
    pairs: bool,
) -> int:
    """Write every line; returns the exit code."""
    from rangevote.formats.result_writer import is_pair

    skipped = undecided = most = 0
    with keeping_results(sink, bar):
        for line in lines:
            most = max(most, line.candidates)
            if line.error is not None:
                if not skip or not isinstance(line.error, DataError):
                    raise line.error
                notes.warn(f"skipped: {line.error}")
                skipped += 1
            bar.advance(line.ballots)
            undecided += pairs and line.error is None and not is_pair(line.content)
            sink.write(line.content)
        if not sink.done + bar.items:
            _no_ballots(notes, require_nonempty)
        sink.finish()
    if undecided:
        notes.tell(
            f"{undecided} of {bar.items} ballots have no pair: all their candidates got the same score."
        )
    if most == 1 and bar.items > 1:
        notes.warn(ONE_CANDIDATE)
    return _exit_code(skipped, bar.items)


def _no_ballots(notes: Notes, require_nonempty: bool) -> None:
    if require_nonempty:
        raise DataError("there are no ballots in the input.")
    notes.tell("there are no ballots in the input.")


def _exit_code(skipped: int, ballots: int) -> int:
    if skipped:
        click.echo(f"rangevote: {skipped} of {ballots} ballots were skipped.", err=True)
    return 4 if skipped else 0


def _cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _vote_on_ray(
    given: Mapping[str, Any],
    settings: Settings,
    shape: ResultShape,
    reading: ReadOptions,
    remembered: Mapping[str, object],
    notes: Notes,
) -> int:
    from rangevote.batch_elect import Elect, RayFiles, ray_session
    from rangevote.formats import ReadOptions

    ballots, output = given["ballots"], given["output"]
    local = {
        "--text": given["text"],
        "--voters": given["voters"],
        "--allow-empty": given["allow_empty"],
        "--carry": given["carry"],
    }
    for option, value in {**local, "--workers": given["workers"] != 1}.items():
        if value:
            raise UsageError(f"{option} belongs to --engine local.")
    if ballots == "-" or output in (None, "-") or given["to"] not in (None, "parquet"):
        raise UsageError(
            "--engine ray reads files and writes a folder of Parquet: give BALLOTS and -o FOLDER."
        )
    if reading.format not in (None, "jsonl", "parquet") or reading != ReadOptions(
        format=reading.format, strict=reading.strict
    ):
        raise UsageError("--engine ray reads ballots as jsonl or parquet: make them with rangevote convert.")
    parquet = (reading.format or ballots.rstrip("/").rpartition(".")[2]) == "parquet"
    options = {name: str(value) for name, value in remembered.items()} | {"rangevote": __version__}
    files = RayFiles(ballots, output, fingerprint(options))
    files.prepare(resume=given["resume"], force=given["force"])
    elect = Elect(
        settings=settings,
        scores=shape.scores,
        explain=shape.explain,
        strict=reading.strict,
        keep=False,
        on_error="keep" if given["on_error"] == "skip" else "stop",
    )
    hint = f"Results so far are kept in {output}; go on with --resume."
    try:
        with ray_session(given["ray_address"]) as ray:
            total, skipped = files.elect(ray, elect, parquet=parquet, force=given["force"])
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted. {hint}") from None
    except RangevoteError as error:
        raise type(error)(f"{error}\n{hint}" if files.unfinished else str(error)) from error
    if not total:
        _no_ballots(notes, given["require_nonempty"])
    return _exit_code(skipped, total)
