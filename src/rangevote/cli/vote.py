"""`rangevote vote`: ballots in, winners out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from rangevote.cli.interrupts import Interrupts
from rangevote.cli.notes import Notes, check_input
from rangevote.cli.options import election_options, reading_options
from rangevote.cli.output import ClosedPipe, Sink, sink
from rangevote.cli.progress import Bar
from rangevote.errors import DataError, RangevoteError, SetupError

if TYPE_CHECKING:
    from rangevote.cli.lines import Line, Shape
    from rangevote.election.settings import Settings
    from rangevote.format import Entry, ReadOptions

#: Options that change how a run goes but not what it writes; a resumed run may have others.
FREE = frozenset({"ballots", "output", "threads", "on_error", "resume", "force", "quiet", "strict"})


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
    reading: ReadOptions,
) -> int:
    """Elect one output of every ballot in BALLOTS ('-': standard input).

    A ballot is a line of JSON with its candidates, or an entry of a Moses/Marian, fairseq, Sockeye, mbrs,
    vLLM or OpenAI n-best file. Results are written in the order of the ballots.
    """
    from rangevote.cli.lines import Shape
    from rangevote.format import pair, read
    from rangevote.kernel import PURE, WHY_PLAIN

    check_input(ballots)
    notes = Notes(quiet=quiet)
    if WHY_PLAIN and not PURE:
        notes.tell(WHY_PLAIN)
    remembered = {k: v for k, v in click.get_current_context().params.items() if k not in FREE}
    with ExitStack() as files:
        place = files.enter_context(sink(output, ballots, remembered, resume=resume, force=force))
        entries = files.enter_context(read(ballots, reading))
        bar = Bar(entries, "voting", quiet=quiet)
        run = Run(place, bar, notes, threads, on_error == "skip", require_nonempty)
        shape = Shape(text, scores, explain, allow_empty)
        if voters is None:
            return run.elect(entries, settings, shape)
        return run.elect(pair(entries, files.enter_context(read(voters, reading))), settings, shape)


@dataclass(frozen=True)
class Run:
    """One pass over the ballots: where lines go, and what happens at a bad ballot or at Ctrl-C."""

    place: Sink
    bar: Bar
    notes: Notes
    threads: int
    skip: bool
    require_nonempty: bool

    def elect(self, entries: Iterator[Entry], settings: Settings, shape: Shape) -> int:
        """Vote on every entry and write every line; returns the exit code."""
        try:
            with Interrupts() as interrupts:
                return self._write_all(entries, settings, shape, interrupts)
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

    def _write_all(
        self, entries: Iterator[Entry], settings: Settings, shape: Shape, interrupts: Interrupts
    ) -> int:
        from rangevote.cli.lines import line_of
        from rangevote.election.threads import in_order

        skipped = 0
        rest = skip_done(entries, self.place, shape.text)
        for line in in_order(lambda entry: line_of(entry, settings, shape), rest, self.threads):
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
        if self.place.done + self.bar.items:
            return
        if self.require_nonempty:
            raise DataError("there are no ballots in the input.")
        self.notes.tell("there are no ballots in the input.")


def skip_done(entries: Iterator[Entry], place: Sink, text: bool) -> Iterator[Entry]:
    """The entries that an earlier run has not yet answered; its last answer must fit."""
    entry = None
    for number in range(place.done):
        entry = next(entries, None)
        if entry is None:
            raise SetupError(
                f"cannot resume: the output has {place.done} lines, the input only {number}; it changed. "
                f"Use --force to start again."
            )
    if entry is not None and entry.ballot is not None and not text:
        import msgspec

        written = msgspec.json.decode(place.last).get("id")
        if written != entry.ballot.id:
            raise SetupError(
                f"cannot resume: line {place.done} of the output has id {written!r}, the input "
                f"{entry.ballot.id!r}; the input changed. Use --force to start again."
            )
    return entries
