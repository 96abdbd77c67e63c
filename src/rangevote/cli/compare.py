"""`rangevote compare`: several systems in, a table with significance out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.evaluate import (
    QUIET,
    EvaluationOptions,
    TableOutput,
    check_plot,
    evaluation_options,
    measure,
    read_references_and_sources,
    table_options,
)
from rangevote.cli.members import panel_files, stem
from rangevote.cli.options import HelpCommand, option
from rangevote.cli.progress import Notes, check_inputs
from rangevote.errors import UsageError, choose

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues, WordUnits
    from rangevote.evaluation.evaluate import Comparison
    from rangevote.evaluation.tables import Table
    from rangevote.hypothesis import Ballot
    from rangevote.tuning.choice import BestMember

#: What is measured unless the user says otherwise.
COLUMNS = ("bleu", "chrf", "length", "distinct_bigrams", "empty")
COPIES = ("exact_copies", "partial_copies")
#: For the comparison of a panel with its best member, where no others are asked for.
RESAMPLES = 1_000


@click.command(
    cls=HelpCommand,
    example="rangevote compare beam=beam.jsonl voted=winners.jsonl -r references.txt",
)
@click.argument("systems", nargs=-1, metavar="[NAME[@K]=]FILE...")
@evaluation_options
@option(
    "--p-value NAME",
    "How p is computed: two_tailed, koehn (one-tailed) or centred (as in sacrebleu).",
    default="two_tailed",
)
@option(
    "--beam FILE",
    "The n-best list that the last system chose from; the report then says what became of the other "
    "systems' outputs in it. Several files are a panel, whose members are compared too.",
    multiple=True,
)
@option("--plot FILE", "Draw every metric against K of NAME@K=FILE, as .svg, .png or .pdf.")
@option(
    "--x",
    "What K counts: the beam size (k) or the voters.",
    name="axis",
    type=click.Choice(["k", "voters"]),
    default="k",
)
@option("--baseline NAME", "Draw this method as a dashed line. May be repeated.", multiple=True)
@table_options
@QUIET
def compare(
    systems: tuple[str, ...],
    evaluation: EvaluationOptions,
    units: WordUnits,
    p_value: str,
    beam: tuple[str, ...],
    plot: str | None,
    axis: str,
    baseline: tuple[str, ...],
    writing: TableOutput,
    quiet: bool,
) -> None:
    """Compare the outputs of two or more systems, with significance against the first.

    A FILE is text, one output per line, or what `rangevote vote` wrote; all files have outputs for the same
    items. With the n-best lists of a panel (--beam) one system is enough: a warning says if it is below the
    best member. For curves (--plot) every file has a name with K, the beam size or the number of voters.
    """
    from rangevote.evaluation.corpus import align, read_outputs
    from rangevote.evaluation.significance import P_VALUES

    notes = Notes(quiet=quiet)
    files = parse_systems(systems, fewest=1 if beam else 2)
    choose("p-value", p_value, P_VALUES)
    inputs = [*files.values(), *evaluation.files, *beam]
    check_inputs(inputs)
    points = curve_points(files, baseline) if plot else {}
    check_plot(plot, writing.force, inputs)
    outputs = {name: read_outputs(path, plain=evaluation.plain) for name, path in files.items()}
    ballots = read_beams(beam) if beam else None
    references, sources = read_references_and_sources(evaluation)
    if references is None and ballots is not None and all(ballot.references for ballot in ballots.values):
        references = ballots.map(lambda ballot: list(ballot.references))
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    columns = [*COLUMNS, *(COPIES if evaluation.source else ())] if references else None
    larger = list(outputs)[-1]
    winners = {} if ballots is None else {name: align(file, ballots) for name, file in outputs.items()}
    members = {} if ballots is None else member_outputs(ballots, winners[larger])
    if len(outputs) + len(members) < 2:
        raise UsageError("there is nothing to compare: give two files, or the members of a panel (--beam).")

    def measured(systems: Mapping[str, FileValues[str]], evaluation: EvaluationOptions) -> Comparison:
        return measure(
            systems, references, sources, evaluation, units, default=columns, p_value=p_value, quiet=quiet
        )

    everybody = {**outputs, **members}
    comparison = measured(everybody, evaluation)
    best = best_member(comparison, larger, everybody, list(members), evaluation, measured)
    if best is not None and best.above:
        notes.warn(str(best))
    writing.write(*report(comparison, best, ballots, winners), inputs)
    if plot:
        from rangevote.evaluation.plot import AXES, panels_of, plot_curves

        plot_curves(panels_of(comparison, points, baseline), plot, x_label=AXES[axis])


def read_beams(paths: Sequence[str]) -> FileValues[Ballot]:
    """The ballots of an n-best list, or of the members of a panel."""
    from rangevote.election.settings import Settings
    from rangevote.evaluation.corpus import read_beam
    from rangevote.formats import ReadOptions

    panel, _ = panel_files(paths, (), Settings())
    with ExitStack() as files:
        return read_beam(" ".join(paths), panel.read(files, ReadOptions())[1])


def member_outputs(ballots: FileValues[Ballot], elected: Sequence[str]) -> dict[str, FileValues[str]]:
    """The own outputs of each member of a panel, by "NAME alone": the winners among its candidates; where it
    has none, what the panel elected, so that it is compared where it has some."""
    from rangevote.evaluation.corpus import FileValues
    from rangevote.evaluation.evaluate import texts_of
    from rangevote.tuning.grid import DEFAULT, own_winners

    winners = [own_winners(ballot, DEFAULT) for ballot in ballots.values]
    names = sorted({name for indices in winners for name in indices})
    if len(names) < 2:
        return {}
    rows = list(zip(winners, ballots.map(texts_of).values, elected, strict=True))

    def texts(name: str) -> list[str]:
        return [candidates[one[name]] if name in one else text for one, candidates, text in rows]

    return {f"{name} alone": FileValues(name, texts(name), ballots.where, ballots.ids) for name in names}


def best_member(
    comparison: Comparison,
    panel: str,
    outputs: Mapping[str, FileValues[str]],
    members: Sequence[str],
    evaluation: EvaluationOptions,
    measured: Callable[[Mapping[str, FileValues[str]], EvaluationOptions], Comparison],
) -> BestMember | None:
    """The member that does best by the first metric that has references, compared with the panel; None where
    there are no members or no references. Its p allows for their number."""
    from rangevote.evaluation.significance import Interval
    from rangevote.tuning.choice import BestMember

    judged = [name for name, one in comparison.metrics.items() if "references" in one.needs]
    if not members or not judged:
        return None
    metric, sign = judged[0], 1 if comparison.metrics[judged[0]].best == "highest" else -1
    scores = {system.name: system.scores[metric].value for system in comparison.systems}
    best = max(members, key=lambda name: sign * scores[name])
    one = replace(evaluation, metrics=[metric], resamples=evaluation.resamples or RESAMPLES)
    against = measured({panel: outputs[panel], best: outputs[best]}, one).systems[1].against_first[metric]
    gain, ends = sign * against.difference, sorted(sign * end for end in against.interval)
    p = min(1.0, against.p * len(members))
    return BestMember(best.removesuffix(" alone"), scores[best], gain, Interval(*ends), p)


def report(
    comparison: Comparison,
    best: BestMember | None,
    ballots: FileValues[Ballot] | None,
    winners: Mapping[str, Sequence[str]],
) -> tuple[dict[str, object], list[Table]]:
    """The comparison as data and as tables; with n-best lists also what became of the outputs in them."""
    from rangevote.evaluation import tables
    from rangevote.evaluation.evaluate import selection, texts_of

    selections = {}
    if ballots is not None:
        beams = [texts_of(ballot) for ballot in ballots.values]
        *smaller, larger = winners
        selections = {name: selection(winners[name], beams, winners[larger]) for name in smaller}
    data = tables.comparison_data(comparison, selections)
    if best is not None:
        data["best_member"] = asdict(best)
    parts = [tables.score_table(comparison)]
    parts += [tables.difference_table(comparison)] if comparison.resamples else []
    parts += [tables.selection_table(selections, larger)] if selections else []
    return data, parts


def parse_systems(arguments: Sequence[str], fewest: int = 2) -> dict[str, str]:
    """Name -> file of systems given as `[NAME[@K]=]FILE`: at least so many, with different names."""
    if len(arguments) < fewest:
        raise UsageError(f"there is nothing to compare: give at least two files, got {len(arguments)}.")
    systems: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or Path(argument).exists():  # a file's own name may contain '='
            name, path = stem(argument), argument
        if name in systems:
            raise UsageError(f"two systems are called {name!r}; name them, for example NAME={path}.")
        systems[name] = path
    return systems


def curve_points(systems: Mapping[str, str], baselines: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Each system's method and x, as its name says."""
    points = {}
    for name, path in systems.items():
        method, _, k = name.rpartition("@")
        # a whole number only: in overlap_1-4@0.25 the rest is part of the measure's name
        if not (method and k.isascii() and k.isdecimal() and int(k)):
            raise UsageError(
                f"cannot draw {name!r}: its name does not say where it stands on the axis of x. With --plot, "
                f"name every file NAME@K=FILE, where K is a whole number above 0, for example "
                f"'{name}@10={path}'."
            )
        points[name] = method, float(k)
    methods = dict.fromkeys(method for method, _ in points.values())
    for name in baselines:
        choose("method of --baseline", name, methods)
    return points
