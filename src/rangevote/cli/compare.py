"""`rangevote compare`: several systems in, a table with significance out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from rangevote.cli.evaluate import (
    EvaluationOptions,
    TableOutput,
    evaluation_options,
    measure,
    read_given_references,
    table_options,
)
from rangevote.cli.options import HelpCommand
from rangevote.cli.output import write_output
from rangevote.cli.progress import Notes, check_inputs
from rangevote.errors import SetupError, UsageError, choose, nearest
from rangevote.text import is_stream

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues
    from rangevote.evaluation.evaluate import Comparison, Selection
    from rangevote.evaluation.plot import CurvePoint
    from rangevote.hypothesis import Ballot

#: What is measured unless the user says otherwise.
COLUMNS = ("bleu", "chrf", "length", "distinct_bigrams", "empty")
COPIES = ("exact_copies", "partial_copies")
#: Endings of a file's name that say nothing about a system.
ENDINGS = {".gz", ".zst", ".jsonl", ".json", ".txt"}


@click.command(
    cls=HelpCommand,
    example="rangevote compare beam=beam.jsonl voted=winners.jsonl -r references.txt --plot curves.svg",
)
@click.argument("systems", nargs=-1, metavar="[NAME[@K]=]FILE...")
@evaluation_options
@click.option(
    "--p-value",
    default="two_tailed",
    show_default=True,
    metavar="NAME",
    help="two_tailed, koehn (one-tailed) or centred (as sacrebleu's).",
)
@click.option(
    "--beam",
    metavar="FILE",
    help="The n-best list that the last system chose from: tells what became of the others' outputs in it.",
)
@click.option("--plot", metavar="FILE", help="Draw every metric against K, as .svg, .png or .pdf.")
@click.option(
    "--x", "axis", type=click.Choice(["k", "voters"]), default="k", show_default=True, help="What K is."
)
@click.option("--baseline", multiple=True, metavar="NAME", help="Draw this method dashed; again for others.")
@table_options
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
def compare(
    systems: tuple[str, ...],
    evaluation: EvaluationOptions,
    p_value: str,
    beam: str | None,
    plot: str | None,
    axis: str,
    baseline: tuple[str, ...],
    writing: TableOutput,
    quiet: bool,
) -> None:
    """Compare the outputs of two or more systems, with significance against the first.

    A FILE is text, one output a line, or what `rangevote vote` wrote; all are of the same items. For curves,
    K is the beam size or the number of voters; `vote` has written it, and the method, into its files.
    """
    from rangevote.evaluation.corpus import read_beam, read_outputs
    from rangevote.evaluation.significance import P_VALUES

    notes = Notes(quiet=quiet)
    files = parse_systems(systems)
    choose("p-value", p_value, P_VALUES)
    inputs = [*(file.path for file in files), *evaluation.files, *([beam] if beam else [])]
    check_inputs(inputs)
    _check_plot(plot, writing.force)
    outputs = {file.label: read_outputs(file.path, plain=evaluation.plain) for file in files}
    points = _curve_points(files, outputs, axis, baseline) if plot else {}
    ballots = read_beam(beam) if beam else None
    references, sources = _references(evaluation, ballots, notes)
    columns = [*COLUMNS, *(COPIES if evaluation.source else ())] if references else None
    comparison = measure(
        outputs, references, sources, evaluation, default=columns, p_value=p_value, quiet=quiet
    )
    selections = _selections(outputs, ballots) if ballots else {}
    text = _format(comparison, selections, writing.format)
    write_output(text, writing.output, inputs, force=writing.force)
    if plot:
        from rangevote.evaluation.plot import AXES, panels_of, plot_curves

        plot_curves(panels_of(comparison, points), plot, x_label=AXES[axis][1])


class SystemFile(NamedTuple):
    """One system: its name in tables, its method and K where they are given, its file."""

    label: str
    method: str
    k: float | None
    path: str


def parse_systems(arguments: Sequence[str]) -> list[SystemFile]:
    """Systems given as `[NAME[@K]=]FILE`; there must be two, and no two of one name."""
    systems = [_parse_system(argument) for argument in arguments]
    if len(systems) < 2:
        raise UsageError(f"there is nothing to compare: give two files or more, got {len(systems)}.")
    labels = [system.label for system in systems]
    for system in systems:
        if labels.count(system.label) > 1:
            raise UsageError(f"two systems are called {system.label!r}; name them, as in NAME={system.path}.")
    return systems


def _parse_system(argument: str) -> SystemFile:
    label, sign, path = argument.partition("=")
    if not sign or Path(argument).exists():  # a file's own name may contain '='
        stem = _stem(argument)
        return SystemFile(stem, stem, None, argument)
    method, _, number = label.rpartition("@")
    # a whole number only: in overlap_1-4@0.25 the rest is part of the measure's name
    if not (method and number.isascii() and number.isdecimal() and int(number)):
        return SystemFile(label, label, None, path)
    return SystemFile(label, method, float(number), path)


def _stem(path: str) -> str:
    name = Path(path).name
    while Path(name).suffix in ENDINGS:
        name = Path(name).stem
    return name or path


def _curve_points(
    systems: Sequence[SystemFile], outputs: Mapping[str, FileValues[str]], axis: str, baselines: Sequence[str]
) -> dict[str, CurvePoint]:
    """Each system's method and x: as given, else as its file tells."""
    from rangevote.evaluation.plot import CurvePoint, point_of

    points = {}
    for system in systems:
        if system.k is not None:
            points[system.label] = CurvePoint(system.method, system.k, system.method in baselines)
            continue
        point = point_of(outputs[system.label].signatures, axis)
        if point is None:
            raise UsageError(
                f"cannot draw {system.label!r}: its file does not tell the method and the "
                f"{'beam size' if axis == 'k' else 'number of voters'}. Give both, as in "
                f"'beam search@10={system.path}'."
            )
        points[system.label] = CurvePoint(point.method, point.x, point.baseline or point.method in baselines)
    methods = {point.method for point in points.values()}
    for name in baselines:
        if name not in methods:
            raise UsageError(
                f"--baseline {name!r} is none of the methods.{nearest(name, methods)} "
                f"Choose from: {', '.join(sorted(methods))}."
            )
    return points


def _check_plot(plot: str | None, force: bool) -> None:
    """Refuse a picture that cannot be drawn, or would replace one, before anything is read."""
    if not plot:
        return
    from rangevote.evaluation.plot import check_picture

    path = Path(plot)
    check_picture(path)
    if path.exists() and not force and not is_stream(path):
        raise SetupError(f"{plot} exists already and it is left as it is. Use --force to replace it.")


def _references(
    evaluation: EvaluationOptions, ballots: FileValues[Ballot] | None, notes: Notes
) -> tuple[FileValues[list[str]] | None, FileValues[str] | None]:
    """As the options name them, else as the beam has them."""
    references, sources = read_given_references(evaluation)
    if references is None and ballots is not None and all(ballot.references for ballot in ballots.values):
        references = ballots.map(lambda ballot: list(ballot.references))
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    return references, sources


def _selections(outputs: Mapping[str, FileValues[str]], ballots: FileValues[Ballot]) -> dict[str, Selection]:
    """What became of each system's outputs in the beam of the last one."""
    from rangevote.evaluation.corpus import align
    from rangevote.evaluation.evaluate import selection, texts_of

    beams = [texts_of(ballot) for ballot in ballots.values]
    winners = {name: align(listing, ballots) for name, listing in outputs.items()}
    *smaller, larger = winners
    return {name: selection(winners[name], beams, winners[larger]) for name in smaller}


def _format(comparison: Comparison, selections: dict[str, Selection], format: str) -> str:
    from rangevote.evaluation import tables

    if format == "json":
        data = tables.comparison_data(comparison, selections)
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    parts = [tables.score_table(comparison)]
    parts += [tables.difference_table(comparison)] if comparison.resamples else []
    parts += [tables.selection_table(selections, comparison.systems[-1].name)] if selections else []
    return "\n".join(tables.render(table, format) for table in parts)
