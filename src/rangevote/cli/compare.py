"""`rangevote compare`: several systems in, a table with significance out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rangevote.cli.measuring import (
    Measuring,
    Writing,
    benched,
    check_inputs,
    given_references,
    measured,
    measuring_options,
    writing_options,
)
from rangevote.cli.notes import Notes
from rangevote.cli.systems import System, places_of, systems_of
from rangevote.errors import SetupError, choose

if TYPE_CHECKING:
    from rangevote.evaluation.comparison import Comparison
    from rangevote.evaluation.reading import Listed, Outputs
    from rangevote.evaluation.selection import Selection
    from rangevote.hypothesis import Ballot

#: What is measured unless the user says otherwise.
COLUMNS = ("bleu", "chrf", "length", "distinct_bigrams", "empty")
COPIES = ("exact_copies", "partial_copies")


@click.command()
@click.argument("systems", nargs=-1, metavar="[NAME[@K]=]FILE...")
@measuring_options
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
@writing_options
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
def compare(
    systems: tuple[str, ...],
    measuring: Measuring,
    p_value: str,
    beam: str | None,
    plot: str | None,
    axis: str,
    baseline: tuple[str, ...],
    writing: Writing,
    quiet: bool,
) -> None:
    """Compare the outputs of two or more systems, with significance against the first.

    A FILE is text, one output a line, or what `rangevote vote` wrote; all are of the same items. For curves,
    K is the beam size or the number of voters; `vote` has written it, and the method, into its files.
    """
    from rangevote.evaluation.bootstrap import P_VALUES
    from rangevote.evaluation.reading import read_beam, read_outputs

    notes = Notes(quiet=quiet)
    listed = systems_of(systems)
    choose("p-value", p_value, P_VALUES)
    inputs = [*(system.path for system in listed), *measuring.files, *([beam] if beam else [])]
    check_inputs(inputs)
    _check_picture(plot, writing.force)
    outputs = {system.label: read_outputs(system.path, plain=measuring.plain) for system in listed}
    places = places_of(listed, outputs, axis, baseline) if plot else {}
    ballots = read_beam(beam) if beam else None
    references, sources = _references(measuring, ballots, notes)
    columns = [*COLUMNS, *(COPIES if measuring.source else ())] if references else None
    bench, texts = benched(outputs, measuring, references, sources, columns)
    found = measured(bench, texts, measuring, p_value=p_value, quiet=quiet)
    chosen = _selections(listed, outputs, ballots) if ballots else {}
    writing.write(_written(found, chosen, writing.format), inputs)
    if plot:
        from rangevote.evaluation.plot import plot_curves
        from rangevote.evaluation.series import AXES, panels_of

        plot_curves(panels_of(found, places), plot, x_label=AXES[axis][1])


def _check_picture(plot: str | None, force: bool) -> None:
    """Refuse a picture that cannot be drawn, or would replace one, before anything is read."""
    if not plot:
        return
    from rangevote.evaluation.plot import check_picture

    path = Path(plot)
    check_picture(path)
    if path.exists() and not force:
        raise SetupError(f"{plot} exists already and it is left as it is. Use --force to replace it.")


def _references(
    measuring: Measuring, ballots: Listed[Ballot] | None, notes: Notes
) -> tuple[Listed[list[str]] | None, Listed[str] | None]:
    """As the options name them, else as they travel along with the beam."""
    from rangevote.evaluation.reading import Listed

    references, sources = given_references(measuring)
    if references is None and ballots is not None and all(ballot.references for ballot in ballots.values):
        along = [list(ballot.references) for ballot in ballots.values]
        references = Listed(ballots.name, along, ballots.places, ballots.ids)
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    return references, sources


def _selections(
    systems: list[System], outputs: dict[str, Outputs], ballots: Listed[Ballot]
) -> dict[str, Selection]:
    """What became of each system's outputs in the beam of the last one."""
    from rangevote.evaluation.reading import in_step
    from rangevote.evaluation.selection import selection, texts_of

    beams = [texts_of(ballot) for ballot in ballots.values]
    winners = {system.label: in_step(outputs[system.label], ballots) for system in systems}
    *smaller, larger = winners
    return {name: selection(winners[name], beams, winners[larger]) for name in smaller}


def _written(found: Comparison, chosen: dict[str, Selection], format: str) -> str:
    from rangevote.evaluation.present import (
        as_data,
        difference_table,
        score_table,
        selection_data,
        selection_table,
    )
    from rangevote.evaluation.render import render

    larger = found.systems[-1].name
    if format == "json":
        extra = {"selection": selection_data(chosen, larger)} if chosen else {}
        return json.dumps({**as_data(found), **extra}, ensure_ascii=False, indent=1) + "\n"
    tables = [score_table(found)]
    tables += [difference_table(found)] if found.resamples else []
    tables += [selection_table(chosen, larger)] if chosen else []
    return "\n".join(render(table, format) for table in tables)
