"""`rangevote generate`: inputs and a model in, elected outputs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from rangevote.cli.options import election_options
from rangevote.cli.output import ResultsAndBallots, keeping_results, open_outputs, skip_done
from rangevote.cli.progress import Bar, Notes, check_input
from rangevote.cli.searching import Loading, Searching, model_options, reads_images, searching_options
from rangevote.cli.source import Server, server_options
from rangevote.errors import DataError

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import Entry
    from rangevote.formats.results import ResultLine, ResultShape
    from rangevote.generation.batch import Elected, Elector, Request

    #: An input, and its election or why there is none.
    Held = tuple[Entry, Elected | DataError]

#: Options that change how a run goes but not what it writes; a resumed run may have others.
FREE = frozenset(
    {"source", "output", "ballots", "max_rows", "on_error", "resume", "force", "quiet"}
    | {"base_url", "key_env", "key_file", "concurrency", "timeout"}
)


@click.command()
@model_options
@click.option(
    "-i",
    "--input",
    "source",
    default="-",
    metavar="FILE",
    help="Lines of text, JSON lines, or images: a folder or a list.",
)
@searching_options
@server_options
@election_options
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--ballots", metavar="FILE", help="Keep candidates and voters, for rangevote vote.")
@click.option("--scores", is_flag=True, help="Write the scores of all candidates.")
@click.option("--explain", is_flag=True, help="Write which n-grams and voters earned the winner its score.")
@click.option("--text", is_flag=True, help="Write the winning text alone, one a line.")
@click.option("--input-format", type=click.Choice(["text", "jsonl"]), help="Else told by the file's name.")
@click.option("--field", metavar="NAME", help="Where JSON lines have the text, messages, ids or image.")
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="At a bad input.",
)
@click.option("--resume", is_flag=True, help="Go on with unfinished output files.")
@click.option("--force", is_flag=True, help="Replace the output files, or start again.")
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
def generate(
    load: Loading,
    source: str,
    searching: Searching,
    server: Server | None,
    settings: Settings,
    output: str | None,
    ballots: str | None,
    scores: bool,
    explain: bool,
    text: bool,
    input_format: str | None,
    field: str | None,
    on_error: str,
    resume: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Search a model's outputs for every input, and elect one of them.

    A SEARCH is a name, a number and options, as in beam:10, diverse_beam:12,groups=4, stochastic_beam:20,
    sample:100,temperature=0.7, top_k:100,top=20 or nucleus:100,p=0.9. Results are written in the order of
    the inputs, with the fields that rangevote vote writes. With --source a server samples instead of a
    model in this process; its API key is read from the environment or a file.
    """
    from rangevote.formats.inputs import read_inputs
    from rangevote.formats.results import ResultShape
    from rangevote.generation.batch import elect_batches

    check_input(source, "inputs")
    notes = Notes(quiet=quiet)
    plan = searching.plan(settings)
    with ExitStack() as files:
        place = files.enter_context(
            open_outputs(output, ballots, source, remembered(), resume=resume, force=force)
        )
        skip, images = on_error == "skip", False
        elector: Elector
        if server is None:
            model = load()
            elector, images = partial(elect_batches, model, plan=plan), reads_images(model)
        else:
            elector = server.elector(load, plan, skip=skip)
        entries = files.enter_context(read_inputs(source, format=input_format, field=field, images=images))
        shape = ResultShape(text, scores, explain)
        run = Run(elector, place, shape, notes, skip)
        return run.answer(entries, Reached(place.done, entries.total), quiet=quiet)


def remembered() -> dict[str, object]:
    """The options that decide what is written."""
    given = click.get_current_context().params
    return {name: value for name, value in given.items() if name not in FREE} | {
        "ballots": given["ballots"] is not None
    }


@dataclass
class Reached:
    """How many of the inputs are answered, for the progress bar."""

    position: int
    size: int | None


@dataclass(frozen=True)
class Run:
    """One pass over the inputs: what answers them, where lines go, and what happens at a bad one."""

    elector: Elector
    place: ResultsAndBallots
    shape: ResultShape
    notes: Notes
    skip: bool

    def answer(self, entries: Iterator[Entry], reached: Reached, *, quiet: bool) -> int:
        """Answer every entry and write every line; returns the exit code."""
        bar = Bar(reached, "generating", quiet=quiet, unit="inputs")
        skipped = 0
        with keeping_results(self.place, bar):
            leading = self.place.leading
            rest = skip_done(entries, leading, text=self.shape.text and leading is self.place.results)
            bar.show()
            with closing(self._held(enumerate(rest, self.place.done))) as lots:
                for lot in lots:
                    for line, ballot in self._lines(lot):
                        skipped += self._skips(line)
                        self.place.write(line.content, ballot)
                        reached.position += 1
                        bar.advance()
                    self.place.flush()
            self.place.finish()
        if not self.place.done + bar.items:
            self.notes.tell("there are no inputs.")
        if skipped:
            click.echo(f"rangevote: {skipped} of {bar.items} inputs were skipped.", err=True)
        return 4 if skipped else 0

    def _skips(self, line: ResultLine) -> bool:
        """Whether the line stands for a bad input that is skipped; raises where it is not."""
        if line.error is None:
            return False
        if not self.skip:
            raise line.error
        self.notes.warn(f"skipped: {line.error}")
        return True

    def _lines(self, lot: Iterable[Held]) -> Iterator[tuple[ResultLine, bytes]]:
        """The result and the ballot of each input; a bad one has a line too, and a ballot of nobody."""
        from rangevote.formats.results import error_line, result_line
        from rangevote.formats.write import write_ballot
        from rangevote.hypothesis import Ballot

        for entry, held in lot:
            if isinstance(held, DataError):
                ballot, line = entry.ballot or Ballot(()), error_line(entry, held, self.shape)
            else:
                ballot, line = held.ballot, result_line(held.ballot, held.result, self.shape)
            yield line, b"" if self.place.ballots is None else write_ballot(ballot)

    def _held(self, entries: Iterable[tuple[int, Entry]]) -> Generator[Iterable[Held], None, None]:
        """The election of each input, or why there is none, in lots that come together."""
        waiting: deque[Entry] = deque()  # read, and still without a line
        with closing(self.elector(_requests(entries, waiting))) as lots:
            for lot in lots:
                yield _matched(lot, waiting)
        yield _matched((), waiting)


def _requests(entries: Iterable[tuple[int, Entry]], waiting: deque[Entry]) -> Iterator[Request]:
    """What is to be answered; bad inputs only wait for their turn."""
    from rangevote.formats.inputs import Asked
    from rangevote.generation.batch import Request

    for number, entry in entries:
        waiting.append(entry)
        if isinstance(entry, Asked):
            yield Request(number, entry.content, entry.get())


def _matched(lot: Iterable[Elected | DataError], waiting: deque[Entry]) -> Iterator[Held]:
    """Each answer with its input, and the bad inputs before it and right behind."""
    yield from _bad(waiting)
    for one in lot:
        entry = waiting.popleft()
        yield entry, placed(one, entry.where) if isinstance(one, DataError) else one
        yield from _bad(waiting)


def _bad(waiting: deque[Entry]) -> Iterator[Held]:
    while waiting and waiting[0].error is not None:
        entry = waiting.popleft()
        assert entry.error is not None
        yield entry, entry.error


def placed(error: DataError, where: str) -> DataError:
    """The error with the place of the input in its file, instead of its number in the run."""
    field = "" if error.field.startswith("inputs[") else error.field
    return DataError(error.problem, field=field, where=where)
