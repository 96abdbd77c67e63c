"""`rangevote vote`: ballots in, winners out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from rangevote.cli.interrupts import Interrupts
from rangevote.cli.notes import Notes, check_input
from rangevote.cli.options import election_options, reading_options
from rangevote.cli.output import ClosedPipe, Sink
from rangevote.cli.progress import Bar
from rangevote.cli.results import Results, results
from rangevote.cli.scaling import FREE as SCALING
from rangevote.cli.scaling import Scaling, scaling_options
from rangevote.cli.vote_source import Source
from rangevote.errors import DataError, RangevoteError, UsageError

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import ReadOptions
    from rangevote.scale.lines import Line

#: Options that change how a run goes but not what it writes; a resumed run may have others.
FREE = frozenset({"ballots", "output", "threads", "on_error", "resume", "force", "quiet", "strict"}) | SCALING


@click.command()
@click.argument("ballots", default="-", metavar="[BALLOTS]")
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--voters", metavar="FILE", help="A second file: its candidates vote, ballot by ballot.")
@election_options
@click.option("--scores", is_flag=True, help="Write the scores of all candidates.")
@click.option("--explain", is_flag=True, help="Write which n-grams and voters earned the winner its score.")
@click.option("--text", is_flag=True, help="Write the winning text alone, one a line.")
@click.option(
    "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Elections at a time."
)
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="At a bad ballot.",
)
@click.option("--resume", is_flag=True, help="Go on with an unfinished output file.")
@click.option("--force", is_flag=True, help="Replace the output file, or start again.")
@click.option("--allow-empty", is_flag=True, help="Write null for a ballot without candidates.")
@click.option("--require-nonempty", is_flag=True, help="Make an error of an input without ballots.")
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
@scaling_options
@reading_options
def vote(
    ballots: str,
    output: str | None,
    voters: str | None,
    settings: Settings,
    scores: bool,
    explain: bool,
    text: bool,
    threads: int,
    on_error: str,
    resume: bool,
    force: bool,
    allow_empty: bool,
    require_nonempty: bool,
    quiet: bool,
    scaling: Scaling,
    reading: ReadOptions,
) -> int:
    """Elect one output of every ballot in BALLOTS ('-': standard input).

    A ballot is a line of JSON with its candidates, or an entry of a Moses/Marian, fairseq, Sockeye, mbrs,
    vLLM or OpenAI n-best file, or a row of a Parquet file. Results are written in the order of the ballots.
    """
    from rangevote.kernel import PURE, WHY_PLAIN
    from rangevote.scale.lines import Shape

    check_input(ballots)
    notes = Notes(quiet=quiet)
    if WHY_PLAIN and not PURE:
        notes.tell(WHY_PLAIN)
    remembered = {k: v for k, v in click.get_current_context().params.items() if k not in FREE}
    shape = Shape(text, scores, explain, allow_empty)
    if scaling.trust_ids:
        reading = replace(reading, unique_ids=False)
    if scaling.engine == "ray":
        from rangevote.cli.vote_ray import RayRun

        if voters is not None:
            raise UsageError("--voters belongs to --engine local; put the voters into the ballots.")
        run = RayRun(notes, on_error == "skip", require_nonempty, quiet)
        return run.elect(
            ballots, output, settings, shape, reading, scaling, remembered, resume=resume, force=force
        )
    with ExitStack() as files:
        place = files.enter_context(
            results(output, ballots, remembered, scaling, shape, resume=resume, force=force)
        )
        source = Source(files, ballots, voters, reading)
        lines: Iterator[Line]
        if scaling.in_chunks:
            if threads > 1:
                raise UsageError("--threads and --workers are two ways to use several cores; give one.")
            stream, lines = source.in_chunks(place, settings, shape, scaling, notes)
        else:
            stream, lines = source.one_by_one(place, settings, shape, threads)
        bar = Bar(stream, "voting", quiet=quiet)
        return Run(place, bar, notes, on_error == "skip", require_nonempty).write(lines)


@dataclass(frozen=True)
class Run:
    """One pass over the ballots: where lines go, and what happens at a bad ballot or at Ctrl-C."""

    place: Sink
    bar: Bar
    notes: Notes
    skip: bool
    require_nonempty: bool

    def write(self, lines: Iterator[Line]) -> int:
        """Write every line; returns the exit code."""
        try:
            with Interrupts() as interrupts:
                return self._write_all(lines, interrupts)
        except ClosedPipe:
            raise
        except KeyboardInterrupt:
            self.bar.close()
            click.echo(f"rangevote: interrupted. {self.place.abandon()}".rstrip(), err=True)
            return 130
        except RangevoteError as error:
            self.bar.close()
            hint = self.place.abandon()
            raise type(error)(f"{error}\n{hint}" if hint else str(error)) from error
        finally:
            self.bar.close()

    def _write_all(self, lines: Iterator[Line], interrupts: Interrupts) -> int:
        skipped = 0
        for line in lines:
            skipped += self._skips(line)
            interrupts.hold()
            self.place.write(line.content)
            interrupts.release()
            self.bar.advance()
        self._check_number()
        self.place.finish()
        if skipped:
            click.echo(f"rangevote: {skipped} of {self.bar.items} ballots were skipped.", err=True)
        return 4 if skipped else 0

    def _skips(self, line: Line) -> bool:
        """Whether the line stands for a bad ballot that is skipped; raises where it is not."""
        if line.error is None:
            return False
        if not self.skip or not isinstance(line.error, DataError):
            raise line.error
        self.notes.warn(f"skipped: {line.error}")
        return True

    def _check_number(self) -> None:
        share = self.place.share if isinstance(self.place, Results) else None
        if self.place.done + self.bar.items or (share is not None and share.total):
            return
        if self.require_nonempty:
            raise DataError("there are no ballots in the input.")
        self.notes.tell("there are no ballots in the input.")
