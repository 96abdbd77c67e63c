"""`rangevote evaluate`: outputs and references in, numbers out."""

from __future__ import annotations

import json
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

if TYPE_CHECKING:
    from rangevote.evaluation.comparison import Comparison


@click.command()
@click.argument("outputs", metavar="OUTPUTS")
@measuring_options
@writing_options
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
def evaluate(outputs: str, measuring: Measuring, writing: Writing, quiet: bool) -> None:
    """Measure OUTPUTS ('-': standard input): BLEU, chrF, length, diversity, copies of the source.

    OUTPUTS is text, one output a line, or what `rangevote vote` wrote. References go with it by their ids,
    or line by line; without them only length, diversity and copies are measured.

    Metrics: bleu (sacreBLEU), bleu_1, bleu_2, bleu_3, bleu_4 (as NLTK computes them), chrf, length,
    distinct_outputs, distinct_unigrams, distinct_bigrams, empty, exact_copies, partial_copies.
    """
    from rangevote.evaluation.reading import read_outputs

    notes = Notes(quiet=quiet)
    inputs = [outputs, *measuring.files]
    check_inputs(inputs)
    systems = {"outputs": read_outputs(outputs, plain=measuring.plain)}
    references, sources = given_references(measuring)
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    bench, texts = benched(systems, measuring, references, sources, None)
    found = measured(bench, texts, measuring, p_value="two_tailed", quiet=quiet)
    writing.write(_written(found, writing.format), inputs)


def _written(found: Comparison, format: str) -> str:
    from rangevote.evaluation.present import as_data, evaluation_table
    from rangevote.evaluation.render import render

    if format != "json":
        return render(evaluation_table(found), format)
    data = as_data(found)
    scores = data.pop("systems")[0]["scores"]
    return json.dumps({"scores": scores, **data}, ensure_ascii=False, indent=1) + "\n"
