"""`rangevote compare`: several systems in, a table with significance out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    to_json,
)
from rangevote.cli.options import HelpCommand, option
from rangevote.cli.output import write_output
from rangevote.cli.progress import Notes, check_inputs
from rangevote.errors import UsageError, choose

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues, WordUnits
    from rangevote.evaluation.plot import CurvePoint

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
@option(
    "--p-value NAME", "two_tailed, koehn (one-tailed) or centred (as in sacrebleu).", default="two_tailed"
)
@option(
    "--beam FILE",
    "The n-best list that the last system chose from: shows what became of the others' outputs in it.",
)
@option("--plot FILE", "Draw every metric against K, as .svg, .png or .pdf.")
@option("--x", "What K is.", name="axis", type=click.Choice(["k", "voters"]), default="k")
@option("--baseline NAME", "Draw this method dashed; may be repeated.", multiple=True)
@table_options
@QUIET
def compare(
    systems: tuple[str, ...],
    evaluation: EvaluationOptions,
    units: WordUnits,
    p_value: str,
    beam: str | None,
    plot: str | None,
    axis: str,
    baseline: tuple[str, ...],
    writing: TableOutput,
    quiet: bool,
) -> None:
    """Compare the outputs of two or more systems, with significance against the first.

    A FILE is text, one output per line, or what `rangevote vote` wrote; all have outputs for the same items.
    For curves, K is the beam size or the number of voters. Files of `rangevote vote` name K and the method.
    """
    from rangevote.evaluation import tables
    from rangevote.evaluation.corpus import align, read_beam, read_outputs
    from rangevote.evaluation.evaluate import selection, texts_of
    from rangevote.evaluation.significance import P_VALUES

    notes = Notes(quiet=quiet)
    files = parse_systems(systems)
    choose("p-value", p_value, P_VALUES)
    inputs = [*(file.path for file in files), *evaluation.files, *([beam] if beam else [])]
    check_inputs(inputs)
    if plot:
        check_plot(plot, writing.force)
    outputs = {file.label: read_outputs(file.path, plain=evaluation.plain) for file in files}
    points = curve_points(files, outputs, axis, baseline) if plot else {}
    ballots = read_beam(beam) if beam else None
    references, sources = read_references_and_sources(evaluation)
    if references is None and ballots is not None and all(ballot.references for ballot in ballots.values):
        references = ballots.map(lambda ballot: list(ballot.references))
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    columns = [*COLUMNS, *(COPIES if evaluation.source else ())] if references else None
    comparison = measure(
        outputs, references, sources, evaluation, units, default=columns, p_value=p_value, quiet=quiet
    )
    selections = {}
    *smaller, larger = outputs
    if ballots is not None:
        beams = [texts_of(ballot) for ballot in ballots.values]
        winners = {name: align(file, ballots) for name, file in outputs.items()}
        selections = {name: selection(winners[name], beams, winners[larger]) for name in smaller}
    if writing.format == "json":
        text = to_json(tables.comparison_data(comparison, selections))
    else:
        parts = [tables.score_table(comparison)]
        parts += [tables.difference_table(comparison)] if comparison.resamples else []
        parts += [tables.selection_table(selections, larger)] if selections else []
        text = "\n".join(tables.render(table, writing.format) for table in parts)
    write_output(text, writing.output, inputs, force=writing.force)
    if plot:
        from rangevote.evaluation.plot import AXES, panels_of, plot_curves

        plot_curves(panels_of(comparison, points), plot, x_label=AXES[axis][1])


class SystemFile(NamedTuple):
    """One system: its name in tables, its method and K if they are given, its file."""

    label: str
    method: str
    k: float | None
    path: str


def parse_systems(arguments: Sequence[str]) -> list[SystemFile]:
    """Systems given as `[NAME[@K]=]FILE`; at least two, with different names."""
    systems = [_parse_system(argument) for argument in arguments]
    if len(systems) < 2:
        raise UsageError(f"there is nothing to compare: give at least two files, got {len(systems)}.")
    labels = [system.label for system in systems]
    for system in systems:
        if labels.count(system.label) > 1:
            raise UsageError(
                f"two systems are called {system.label!r}; name them, for example NAME={system.path}."
            )
    return systems


def _parse_system(argument: str) -> SystemFile:
    label, sign, path = argument.partition("=")
    if not sign or Path(argument).exists():  # a file's own name may contain '='
        stem = Path(argument).name
        while Path(stem).suffix in ENDINGS:
            stem = Path(stem).stem
        return SystemFile(stem or argument, stem or argument, None, argument)
    method, _, number = label.rpartition("@")
    # a whole number only: in overlap_1-4@0.25 the rest is part of the measure's name
    if not (method and number.isascii() and number.isdecimal() and int(number)):
        return SystemFile(label, label, None, path)
    return SystemFile(label, method, float(number), path)


def curve_points(
    systems: Sequence[SystemFile], outputs: Mapping[str, FileValues[str]], axis: str, baselines: Sequence[str]
) -> dict[str, CurvePoint]:
    """Each system's method and x: as given, otherwise as its file says."""
    from rangevote.evaluation.plot import CurvePoint, point_of

    points = {}
    for system in systems:
        if system.k is not None:
            point: CurvePoint | None = CurvePoint(system.method, system.k)
        else:
            point = point_of(outputs[system.label].signatures, axis)
        if point is None:
            size = "beam size" if axis == "k" else "number of voters"
            raise UsageError(
                f"cannot draw {system.label!r}: its file does not name the method and the {size}. Give both, "
                f"for example 'beam search@10={system.path}'."
            )
        points[system.label] = CurvePoint(point.method, point.x, point.baseline or point.method in baselines)
    methods = dict.fromkeys(point.method for point in points.values())
    for name in baselines:
        choose("method of --baseline", name, methods)
    return points
