"""`rangevote tune`: ballots with references in, the best settings of an election out, as a profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from rangevote.cli.options import FILE_OF_VOTERS, HelpCommand, election_option, reading_options
from rangevote.cli.output import open_output, refuse_input
from rangevote.cli.progress import Bar, Notes, check_inputs
from rangevote.errors import DataError

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues
    from rangevote.formats import Entry, ReadOptions
    from rangevote.hypothesis import Ballot
    from rangevote.tuning.tune import Tuning

T = TypeVar("T")


def list_option(default: str | None, help: str, convert: Callable[[str], object] = str) -> dict[str, object]:
    """An option that takes a list, with commas between."""

    def read(context: click.Context, option: click.Parameter, given: str | None) -> tuple[object, ...] | None:
        if given is None:
            return None
        try:
            return tuple(convert(part.strip()) for part in given.split(",") if part.strip())
        except ValueError:
            raise click.BadParameter(f"{given!r} is not a list of numbers, as 0.5,1,2.") from None

    return {"default": default, "show_default": True, "help": help, "callback": read, "metavar": "LIST"}


@click.command(
    cls=HelpCommand,
    sections=FILE_OF_VOTERS,
    example="rangevote tune dev.jsonl -o profile.toml",
)
@click.argument("ballots", default="-", metavar="[BALLOTS]")
@click.option("-o", "--output", metavar="FILE", help="Where to write the profile, as profile.toml.")
@click.option(
    "--metric",
    default="bleu",
    show_default=True,
    help="bleu (sacreBLEU), bleu_1 to bleu_4, chrf, or accuracy:KEY with a key of exact.",
)
@click.option(
    "-r",
    "--references",
    multiple=True,
    metavar="FILE",
    help="If the ballots have none: text, one a line, again for further ones; or JSON lines.",
)
@click.option("--voters", metavar="FILE", help="A second file: its candidates vote, ballot by ballot.")
@click.option(
    "-s",
    "--similarities",
    **list_option("overlap_1,overlap_2,overlap_3,overlap_1-4,precision_1-4", "Measures to try."),  # type: ignore[arg-type]
)
@click.option(
    "--exponents",
    **list_option("0,0.25,0.5,0.75,1", "For n-gram measures without one in their name.", float),  # type: ignore[arg-type]
)
@click.option(
    "--temperatures",
    **list_option(None, "Voters count P^(1/T).  [default: 0.5,1,2,4; of a preset its own]", float),  # type: ignore[arg-type]
)
@click.option(
    "--likelihoods",
    **list_option("0,0.2,0.4,0.8", "Add x log P(c) / |c| to the votes for candidate c.", float),  # type: ignore[arg-type]
)
@click.option("--tokenize", **list_option("words", "What n-grams are made of: words, 13a, chars, ..."))  # type: ignore[arg-type]
@click.option(
    "--weights",
    **list_option(None, "Weights to try, as count,confidence; says which help.  [default: by what is known]"),  # type: ignore[arg-type]
)
@click.option(
    "--max-risk",
    type=float,
    metavar="X",
    help="Choose the threshold (--min-share of answers, else --min-score) with which at most a share X of "
    "the answers that are given is wrong.",
)
@click.option("--plot", metavar="FILE", help="Draw risk against coverage (.svg, .png or .pdf).")
@election_option("normalize")
@election_option("merge")
@click.option(
    "--metric-tokenize", default="words", show_default=True, help="Words of bleu_1 to bleu_4, as in evaluate."
)
@click.option("--bleu-tokenize", default="13a", show_default=True, help="sacreBLEU's own tokenisation.")
@click.option("--lowercase", is_flag=True, help="Measure in lower case.")
@click.option(
    "--resamples", type=click.IntRange(min=1), default=1000, show_default=True, help="Of the bootstrap."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Of the bootstrap."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Ballots at a time; threads, since votes are counted outside of Python's lock.",
)
@click.option(
    "--to",
    "table",
    type=click.Choice(["text", "markdown", "latex", "json"]),
    default="text",
    show_default=True,
    help="How to write the surface.",
)
@click.option("--force", is_flag=True, help="Replace the profile if it exists.")
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
@reading_options
def tune(
    ballots: str,
    output: str | None,
    references: tuple[str, ...],
    voters: str | None,
    metric_tokenize: str,
    bleu_tokenize: str,
    lowercase: bool,
    plot: str | None,
    table: str,
    force: bool,
    quiet: bool,
    reading: ReadOptions,
    **grid: object,
) -> None:
    """Choose similarity, exponent, temperature and likelihood on BALLOTS that have references.

    Every setting elects every ballot; the one whose winners score best is chosen and written as a profile for
    `rangevote vote --profile` and `rangevote generate --profile`. The scores of all settings go to standard
    output with bootstrap intervals: how far the choice can be trusted. Choose on a development set, never on
    the set that is reported.
    """
    from rangevote.errors import choose
    from rangevote.evaluation.corpus import UNITS, WordUnits, read_references
    from rangevote.evaluation.metrics import spelled_metric
    from rangevote.formats import pair, read
    from rangevote.tuning.tune import tune as tune_settings

    inputs = [ballots, *references, *([voters] if voters else [])]
    check_inputs(inputs)
    refuse_input(output, inputs)
    refuse_input(plot, inputs)
    if plot is not None:
        from rangevote.evaluation.plot import check_picture

        check_picture(Path(plot))
    Notes(quiet=quiet)
    grid["metric"] = spelled_metric(str(grid["metric"]))
    choose("tokenisation", metric_tokenize, UNITS)
    units = WordUnits(metric_tokenize, bleu_tokenize, lowercase)
    with ExitStack() as files:
        file = files.enter_context(open_output(output, "-", {}, force=force)) if output else None
        listed = read_references(references)[0] if references else None
        entries = files.enter_context(read(ballots, reading))
        bar = Bar(entries, "tuning", quiet=quiet)
        rows: Iterator[Entry] = entries
        if voters is not None:
            rows = pair(entries, files.enter_context(read(voters, reading)))
        try:
            advancing = _advancing(_with_references(rows, listed), bar)
            tuning = tune_settings(advancing, units=units, curve=plot is not None, **grid)  # type: ignore[arg-type]
        finally:
            bar.close()
        if file is not None:
            file.write(tuning.profile().encode())
            file.finish()
    if plot is not None and tuning.curve is not None:
        from rangevote.tuning.risk_coverage import plot_risk

        plot_risk(tuning.curve, plot)
    click.echo(_format(tuning, table), nl=False)


def _advancing(ballots: Iterator[T], bar: Bar) -> Iterator[T]:
    for ballot in ballots:
        yield ballot
        bar.advance()


def _with_references(entries: Iterator[Entry], listed: FileValues[list[str]] | None) -> Iterator[Ballot]:
    """The ballots with their references: their own, or those of the file, by id or line by line."""
    import msgspec

    by_id = dict(zip(listed.ids, listed.values, strict=True)) if listed and listed.ids else None
    number = -1
    for number, entry in enumerate(entries):
        ballot = entry.get()
        if listed is None:
            if not ballot.references:
                raise DataError(
                    "there are none; add them to the ballots, or name a file with --references.",
                    field="references",
                    where=entry.where,
                )
            yield ballot
            continue
        if by_id is not None and ballot.id is not None:
            texts = by_id.get(ballot.id)
        else:
            texts = listed.values[number] if number < len(listed.values) else None
        if texts is None:
            raise DataError(f"{listed.name} has no references for this ballot.", where=entry.where)
        yield msgspec.structs.replace(ballot, references=texts)
    if listed is not None and by_id is None and number + 1 < len(listed.values):
        raise DataError(
            f"{listed.name} has {len(listed.values):,} lines for {number + 1:,} ballots; without ids in "
            f"both, line n of one belongs to ballot n of the other."
        )


def _format(tuning: Tuning, format: str) -> str:
    from rangevote.evaluation.tables import render
    from rangevote.tuning.risk_coverage import risk_table
    from rangevote.tuning.tune import choice_table, surface_table

    if format == "json":
        return json.dumps(tuning.as_data(), ensure_ascii=False, indent=1) + "\n"
    tables = [surface_table(tuning), choice_table(tuning)]
    tables += [risk_table(tuning.curve)] if tuning.curve is not None else []
    return "\n".join(render(table, format) for table in tables)
