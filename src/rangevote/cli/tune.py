"""`rangevote tune`: ballots with references in, the best settings of an election out, as a profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.evaluate import FORCE, FORMATS, QUIET, TableOutput, check_plot, units_options
from rangevote.cli.members import panel_files
from rangevote.cli.options import (
    AGREEMENT,
    FILE_OF_VOTERS,
    HelpCommand,
    Option,
    election_option,
    option,
    reading_options,
)
from rangevote.cli.output import open_output, refuse_input
from rangevote.cli.progress import Bar, Notes, check_inputs, member_table
from rangevote.errors import DataError, UsageError

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues
    from rangevote.evaluation.risk_coverage import RiskCurve
    from rangevote.evaluation.tables import Table
    from rangevote.formats import Entry, ReadOptions


def list_option(flags: str, help: str, default: str | None, kind: type[str] | type[float] = str) -> Option:
    """An option whose values are separated by commas."""

    def split(context: click.Context, option: click.Parameter, text: str | None) -> tuple[Any, ...] | None:
        if text is None:
            return None
        try:
            values = tuple(kind(part.strip()) for part in text.split(",") if part.strip())
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a list of numbers such as 0.5,1,2.") from None
        if not values:
            raise click.BadParameter(f"{text!r} has no values; separate them by commas.")
        return values

    return option(f"{flags} LIST", help, default=default, callback=split)


@click.command(
    cls=HelpCommand,
    sections={**FILE_OF_VOTERS, "Election": ("--scores", "--score-weights", "--tokenize", "--weights")},
    example="rangevote tune dev.jsonl -o profile.toml",
)
@click.argument("ballots", nargs=-1, metavar="[BALLOTS]...")
@option("-o --output FILE", "Where to write the profile, for example profile.toml.")
@option(
    "--metric NAME",
    "bleu (sacreBLEU), bleu_1 to bleu_4, chrf, rouge_l, or accuracy:KEY with a key of exact. Default: "
    "accuracy if all similarities compare answers, otherwise bleu.",
)
@option(
    "-r --references FILE",
    "References, if the ballots have none: text with one per line, or JSON lines. Repeat it for several "
    "references.",
    multiple=True,
)
@option(
    "--voters FILE",
    "A file whose candidates vote and cannot be elected. Several such files are a panel.",
    multiple=True,
)
@list_option(
    "-s --similarities", "Similarities to try.", "overlap_1,overlap_2,overlap_3,overlap_1-4,precision_1-4"
)
@list_option(
    "--exponents", "Exponents to try for n-gram measures that name none.", "0,0.25,0.5,0.75,1", float
)
@list_option(
    "--temperatures",
    "Temperatures to try: voters count P^(1/T). Default: 0.5,1,2,4, or the preset's.",
    None,
    float,
)
@list_option("--likelihoods", "Weights to try for log P(c) / |c|.", "0,0.2,0.4,0.8", float)
@list_option("--scores", "Scores of candidates to try beside the votes, for example reward.", None)
@list_option("--score-weights", "Weights to try for each of --scores.", "0.05,0.1,0.2,0.4", float)
@list_option("--tokenize", "Units of n-grams to try: words, space, 13a, chars, ...", "words")
@list_option(
    "--weights",
    "Weights of voters to try, for example count,confidence. Default: as in rangevote vote.",
    None,
)
@option(
    "--max-risk X",
    "Also choose a threshold (--min-share of answers, otherwise --min-score) with which, with 95 % "
    "confidence, at most a share X of the answers on new ballots is wrong.",
    type=float,
)
@option("--plot FILE", "Draw risk against coverage, as .svg, .png or .pdf.")
@election_option("normalize")
@election_option("merge")
@election_option("shares")
@units_options
@option(
    "--resamples N", "Number of bootstrap resamples of the ballots.", type=click.IntRange(min=1), default=1000
)
@option("--seed N", "Seed of the resamples.", type=click.IntRange(min=0), default=12345)
@option("--threads N", "Number of ballots elected at once.", type=click.IntRange(min=1), default=1)
@option("--to", "Format of the report.", name="table", type=FORMATS, default="text")
@FORCE
@QUIET
@reading_options
def tune(
    ballots: tuple[str, ...],
    output: str | None,
    references: tuple[str, ...],
    voters: tuple[str, ...],
    plot: str | None,
    table: str,
    force: bool,
    quiet: bool,
    reading: ReadOptions,
    **grid: Any,
) -> None:
    """Choose similarity, exponent, temperature and likelihood on BALLOTS that have references.

    Every setting elects every ballot. The one whose winners score best is written as a profile for `rangevote
    vote --profile` and `rangevote generate --profile` if it beats the default beyond chance; otherwise the
    default is written. The scores of all settings go to standard output. Choose on a development set, never
    on the set that you report.

    Several files are a panel, as in `rangevote vote`. Each member's own outputs are compared with the
    panel's: if the best member is better, use it alone. With --shares agreement the profile has the members'
    shares, which are found without references; if there are no references, nothing else is chosen.
    """
    from rangevote.election.settings import Settings
    from rangevote.evaluation.corpus import read_references
    from rangevote.evaluation.plot import plot_curves
    from rangevote.evaluation.risk_coverage import risk_panel

    for similarity in grid["similarities"]:  # rejects similarities that cannot have these shares
        settings = Settings(similarity=similarity, shares=grid["shares"])
    panel, settings = panel_files(ballots or ("-",), voters, settings)
    if settings.shares != dict.fromkeys(panel.members, 1.0):
        grid["shares"] = settings.shares
    inputs = [*panel.paths, *references]
    check_inputs(inputs)
    refuse_input(output, inputs)
    check_plot(plot, force, inputs)
    Notes(quiet=quiet)
    with ExitStack() as files:
        file = files.enter_context(open_output(output, "-", {}, force=force)) if output else None
        texts = read_references(references)[0] if references else None
        stream, rows = panel.read(files, reading)
        bar = files.enter_context(Bar(stream, "tuning", quiet=quiet))
        first = next(rows, None)
        rows = rows if first is None else chain([first], rows)
        labelled = texts is not None or first is None or first.ballot is None or first.ballot.references
        if grid["shares"] == AGREEMENT and not labelled:
            profile, data, tables = _shares_alone(rows, grid)
            curve = None
        else:
            rows = bar.track(rows)
            rows = rows if texts is None else _with_references(rows, texts)
            profile, data, tables, curve = _best_settings(rows, grid, curve=plot is not None)
        if file is not None:
            file.write(profile.encode())
            file.finish()
    if plot is not None and curve is not None:
        plot_curves([risk_panel(curve)], plot)
    TableOutput(table).write(data, tables)


def _best_settings(
    entries: Iterable[Entry], grid: dict[str, Any], *, curve: bool
) -> tuple[str, object, list[Table], RiskCurve | None]:
    """A profile with the settings that do best, the scores of all as data and as tables, and the risk."""
    from rangevote.evaluation.metrics import spelled_metric
    from rangevote.evaluation.risk_coverage import risk_table
    from rangevote.tuning.choice import choice_table, surface_table
    from rangevote.tuning.tune import tune as tune_settings

    if grid["metric"] is not None:
        grid = {**grid, "metric": spelled_metric(grid["metric"])}
    tuning = tune_settings(entries, curve=curve, **grid)
    tables = [surface_table(tuning), choice_table(tuning)]
    tables += [risk_table(tuning.curve)] if tuning.curve is not None else []
    return tuning.profile(), tuning.as_data(), tables, tuning.curve


def _shares_alone(entries: Iterable[Entry], grid: Mapping[str, Any]) -> tuple[str, object, list[Table]]:
    """A profile with the members' shares by agreement, and these as data and as a table."""
    from rangevote.election.settings import Settings
    from rangevote.evaluation.panel_report import agreement_of
    from rangevote.tuning.choice import agreement_facts, agreement_profile

    if len(grid["similarities"]) > 1 or len(grid["weights"] or ()) > 1:
        raise UsageError(
            "without references only shares can be chosen: give one similarity (-s exact:last_number) "
            "and at most one of --weights; or give --references."
        )
    options = {
        "similarity": grid["similarities"][0],
        "weights": next(iter(grid["weights"] or ()), None),
        "normalize": grid["normalize"],
        "merge": grid["merge"],
    }
    agreement = agreement_of(entries, Settings(**options, shares=AGREEMENT))
    facts = {**agreement_facts(agreement), "shares": agreement.shares, "ballots": agreement.ballots}
    profile = agreement_profile(agreement, {name: value for name, value in options.items() if value})
    return profile, facts, [member_table(agreement.shares, agreement)]


def _with_references(entries: Iterable[Entry], references: FileValues[list[str]]) -> Iterator[Entry]:
    """The ballots with the references of a file, by id or line by line."""
    from msgspec.structs import replace

    values, number = references.values, -1
    by_id = dict(zip(references.ids, values, strict=True)) if references.ids else None
    for number, entry in enumerate(entries):
        ballot = entry.get()
        if by_id is not None and ballot.id is not None:
            texts = by_id.get(ballot.id)
        else:
            texts = values[number] if number < len(values) else None
        if texts is None:
            raise DataError(f"{references.name} has no references for this ballot.", where=entry.where)
        yield replace(entry, ballot=replace(ballot, references=texts))
    if by_id is None and number + 1 < len(values):
        raise DataError(
            f"{references.name} has {len(values):,} lines for {number + 1:,} ballots; without ids in both, "
            f"line n of one belongs to ballot n of the other."
        )
