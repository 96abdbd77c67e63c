"""`rangevote generate`: inputs and a model in, elected outputs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import click

from rangevote.cli.generate_options import ModelOptions, model_options, search_options, server_options
from rangevote.cli.options import (
    MODEL_SECTIONS,
    HelpCommand,
    check_one_winner,
    election_options,
    result_options,
)
from rangevote.cli.output import ResultsAndBallots, open_outputs
from rangevote.cli.progress import Bar, Notes, check_input, loading
from rangevote.cli.resume import keeping_results, skip_done
from rangevote.errors import DataError

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import Entry
    from rangevote.formats.result_writer import ResultLine, ResultShape
    from rangevote.generation.generate import Elected, Elector, Request
    from rangevote.generation.plan import GenerationPlan

    #: An input, and its election or why there is none.
    Answer = tuple[Entry, Elected | DataError]

#: Options that change how a run goes but not what it writes; a resumed run may have others.
OPTIONS_FREE_TO_CHANGE_ON_RESUME = frozenset(
    {"source", "output", "ballots", "max_rows", "on_error", "resume", "force", "quiet"}
    | {"base_url", "key_env", "key_file", "concurrency", "timeout"}
)


@click.command(
    cls=HelpCommand,
    sections=MODEL_SECTIONS,
    example="rangevote generate -m smollm2 -i prompts.txt --candidates sample:20 -o answers.jsonl",
)
@model_options
@click.option(
    "-i",
    "--input",
    "source",
    default="-",
    metavar="FILE",
    help="Lines of text, JSON lines, or images: a folder or a list.",
)
@search_options
@server_options
@partial(election_options, sampling=True)
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output if not given.")
@click.option("--ballots", metavar="FILE", help="Keep candidates and voters, for rangevote vote.")
@result_options
@click.option(
    "--format",
    type=click.Choice(["text", "jsonl"]),
    help="Format of the input; else by the file's name.",
)
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
    chosen: ModelOptions,
    source: str,
    plan_for: Callable[[Settings], GenerationPlan],
    server: Callable[..., Elector] | None,
    settings: Settings,
    output: str | None,
    ballots: str | None,
    shape: ResultShape,
    format: str | None,
    field: str | None,
    on_error: str,
    resume: bool,
    force: bool,
    quiet: bool,
) -> int:
    """Search a model's outputs for every input, and elect one of them.

    A SEARCH is a name, a number and options, as in beam:10, diverse_beam:12,groups=4, stochastic_beam:20,
    sample:100,temperature=0.7, top_k:100,top=20 or nucleus:100,p=0.9, or a sum, as sample:50+nucleus:50.
    Results are written in the order of the inputs, with the fields that rangevote vote writes. With --engine
    a server samples instead of a model in this process; its API key is read from the environment or a file.
    """
    from rangevote.formats.prompts import read_inputs
    from rangevote.generation.generate import elect_batches

    check_input(source, "inputs")
    check_one_winner(shape.text, settings.winners)
    notes, given = Notes(quiet=quiet), click.get_current_context().params
    remembered = {
        name: value for name, value in given.items() if name not in OPTIONS_FREE_TO_CHANGE_ON_RESUME
    }
    remembered["ballots"] = ballots is not None
    plan, skip, images = plan_for(settings), on_error == "skip", False
    plan.check_voters(chosen.voter_models)
    with ExitStack() as files:
        sink = files.enter_context(
            open_outputs(output, ballots, source, remembered, resume=resume, force=force)
        )
        elector: Elector
        if server is None:
            with loading(chosen.model, quiet=quiet):
                model = chosen.load()
                plan = plan.voted_by({name: chosen.load(name) for name in chosen.voter_models})
            elector, images = partial(elect_batches, model, plan=plan), getattr(model, "reads_images", False)
        else:
            elector = server(chosen, plan, skip=skip)
        entries = files.enter_context(
            read_inputs(source, format=format, field=field, images=images, carry=shape.carry)
        )
        run = GenerateRun(elector, sink, shape, notes, skip)
        return run.write_all(entries, Reached(sink.done, entries.total), quiet=quiet)


@dataclass
class Reached:
    """How many of the inputs are answered, for the progress bar."""

    position: int
    size: int | None


@dataclass(frozen=True)
class GenerateRun:
    """One pass over the inputs: what elects for them, where lines go, and what happens at a bad one."""

    elector: Elector
    sink: ResultsAndBallots
    shape: ResultShape
    notes: Notes
    skip: bool

    def write_all(self, entries: Iterator[Entry], reached: Reached, *, quiet: bool) -> int:
        """Write a line for every input; returns the exit code."""
        sink, skipped = self.sink, 0
        bar = Bar(reached, "generating", quiet=quiet, unit="inputs")
        with keeping_results(sink, bar):
            text = self.shape.text and sink.leading is sink.results
            rest = skip_done(entries, sink.leading, text=text)
            bar.show()
            with closing(answers(self.elector, enumerate(rest, sink.done))) as batches:
                for batch in batches:
                    for entry, answer in batch:
                        line, ballot = self._line(entry, answer)
                        if line.error is not None:
                            if not self.skip:
                                raise line.error
                            self.notes.warn(f"skipped: {line.error}")
                            skipped += 1
                        sink.write(line.content, ballot)
                        reached.position += 1
                        bar.advance()
                    sink.flush()
            sink.finish()
        if not sink.done + bar.items:
            self.notes.tell("there are no inputs.")
        if skipped:
            click.echo(f"rangevote: {skipped} of {bar.items} inputs were skipped.", err=True)
        return 4 if skipped else 0

    def _line(self, entry: Entry, answer: Elected | DataError) -> tuple[ResultLine, bytes]:
        """The result and the ballot; a bad input has a line too, and a ballot without candidates."""
        from rangevote.formats.ballot_writer import write_ballot
        from rangevote.formats.result_writer import error_line, result_line
        from rangevote.hypothesis import Ballot

        if isinstance(answer, DataError):
            ballot, line = entry.ballot or Ballot(()), error_line(entry, answer, self.shape)
        else:
            ballot = answer.ballot
            line = result_line(ballot, answer.result, self.shape, answer.reasoning)
        return line, b"" if self.sink.ballots is None else write_ballot(ballot)


def answers(
    elector: Elector, entries: Iterable[tuple[int, Entry]]
) -> Generator[Iterable[Answer], None, None]:
    """The election of each numbered input, or why there is none, in order and in lists that come together."""
    waiting: deque[Entry] = deque()  # read, and still without an answer
    with closing(elector(_requests(entries, waiting))) as batches:
        for batch in batches:
            yield _matched(batch, waiting)
    yield _matched((), waiting)


def _requests(entries: Iterable[tuple[int, Entry]], waiting: deque[Entry]) -> Iterator[Request]:
    """What is to be elected; bad inputs only wait for their turn."""
    from rangevote.formats.prompts import ModelInput
    from rangevote.generation.generate import Request

    for number, entry in entries:
        waiting.append(entry)
        if isinstance(entry, ModelInput):
            yield Request(number, entry.content, entry.get())


def _matched(batch: Iterable[Elected | DataError], waiting: deque[Entry]) -> Iterator[Answer]:
    """Each answer with its input, and the bad inputs before it and right behind."""
    for answer in chain([None], batch):
        if answer is not None:
            entry = waiting.popleft()
            yield entry, _at(entry.where, answer) if isinstance(answer, DataError) else answer
        while waiting and (error := waiting[0].error) is not None:
            yield waiting.popleft(), error


def _at(where: str, error: DataError) -> DataError:
    """The error with the line of the input in its file, instead of its number in the run."""
    field = "" if error.field.startswith("inputs[") else error.field
    return DataError(error.problem, field=field, where=where)
