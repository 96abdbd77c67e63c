"""`rangevote evaluate`: outputs and references in, numbers out; and the options that `compare` shares."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.options import Command, HelpCommand, grouped
from rangevote.cli.output import write_output
from rangevote.cli.progress import Notes, check_inputs
from rangevote.errors import UsageError, choose

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues, WordUnits
    from rangevote.evaluation.evaluate import Comparison


@dataclass(frozen=True)
class EvaluationOptions:
    """What is measured, against what, and in which units."""

    references: tuple[str, ...]
    source: str | None
    metrics: tuple[str, ...]
    units: WordUnits
    resamples: int
    seed: int
    plain: bool

    @property
    def files(self) -> list[str]:
        return [*self.references, *([self.source] if self.source else [])]


def evaluation_options(command: Command) -> Command:
    """What to measure; the command gets `evaluation`, an `EvaluationOptions`."""
    options = {
        "references": click.option(
            "-r",
            "--references",
            multiple=True,
            metavar="FILE",
            help="Text, one reference a line, again for further references; or JSON lines, ballots too.",
        ),
        "source": click.option(
            "--source", metavar="FILE", help="Sources, one a line, if they are not in the references' file."
        ),
        "metric": click.option(
            "--metric", multiple=True, metavar="NAMES", help="What to measure, as bleu,length."
        ),
        "tokenize": click.option(
            "--metric-tokenize",
            "tokenize",
            default="words",
            show_default=True,
            help="words, wordpunct, chars, 13a, intl or zh.",
        ),
        "bleu_tokenize": click.option(
            "--bleu-tokenize", default="13a", show_default=True, help="sacreBLEU's own tokenisation."
        ),
        "lowercase": click.option("--lowercase", is_flag=True, help="Compare in lower case."),
        "resamples": click.option(
            "--resamples",
            type=click.IntRange(min=0),
            default=10_000,
            show_default=True,
            help="Of the bootstrap; 0: no intervals and p-values.",
        ),
        "seed": click.option(
            "--seed", type=click.IntRange(min=0), default=12345, show_default=True, help="Of the bootstrap."
        ),
        "plain": click.option(
            "--plain", is_flag=True, help="All files are text, even if it looks like JSON."
        ),
    }
    return grouped(command, "evaluation", options, _evaluation)


def _evaluation(
    metric: Sequence[str], tokenize: str, bleu_tokenize: str, lowercase: bool, **given: Any
) -> EvaluationOptions:
    from rangevote.evaluation.corpus import UNITS, WordUnits
    from rangevote.evaluation.metrics import spelled_metric

    choose("tokenisation", tokenize, UNITS)
    listed = [name.strip() for part in metric for name in part.split(",") if name.strip()]
    names = tuple(map(spelled_metric, listed))
    return EvaluationOptions(metrics=names, units=WordUnits(tokenize, bleu_tokenize, lowercase), **given)


@dataclass(frozen=True)
class TableOutput:
    """Where tables go, and in which format."""

    format: str
    output: str | None
    force: bool


def table_options(command: Command) -> Command:
    """How to write; the command gets `writing`, a `TableOutput`."""
    options = {
        "format": click.option(
            "--to",
            "format",
            type=click.Choice(["text", "markdown", "latex", "json"]),
            help="How to write the table; as text if not given.",
        ),
        "json": click.option("--json", is_flag=True, help="The same as --to json."),
        "output": click.option(
            "-o", "--output", metavar="FILE", help="Where to write; standard output if not given."
        ),
        "force": click.option("--force", is_flag=True, help="Replace files that exist."),
    }
    return grouped(command, "writing", options, _table_output)


def _table_output(format: str | None, json: bool, output: str | None, force: bool) -> TableOutput:
    if json and format not in (None, "json"):
        raise UsageError(f"--json and --to {format} exclude each other.")
    return TableOutput("json" if json else format or "text", output, force)


@click.command(
    cls=HelpCommand, example="rangevote evaluate winners.jsonl -r references.txt --metric bleu,chrf"
)
@click.argument("outputs", metavar="OUTPUTS")
@evaluation_options
@table_options
@click.option("-q", "--quiet", is_flag=True, help="No notes, warnings or progress bar.")
def evaluate(outputs: str, evaluation: EvaluationOptions, writing: TableOutput, quiet: bool) -> None:
    """Measure OUTPUTS ('-': standard input): BLEU, chrF, length, diversity, copies of the source.

    OUTPUTS is text, one output a line, or what `rangevote vote` wrote. References go with it by their ids,
    or line by line; without them only length, diversity and copies are measured.

    Metrics: bleu (sacreBLEU), bleu_1, bleu_2, bleu_3, bleu_4 (as NLTK computes them), chrf, length,
    distinct_outputs, distinct_unigrams, distinct_bigrams, empty, exact_copies, partial_copies. Only measured
    if you name them: partial_copies_by_bags, chrf++, ter, rouge_1, rouge_2, rouge_l, accuracy:KEY (KEY as in
    -s exact:KEY), comet:MODEL, bleurt:MODEL, metricx:MODEL, bertscore:MODEL, embedding:MODEL (cosine to the
    references).
    """
    from rangevote.evaluation.corpus import read_outputs

    notes = Notes(quiet=quiet)
    inputs = [outputs, *evaluation.files]
    check_inputs(inputs)
    systems = {"outputs": read_outputs(outputs, plain=evaluation.plain)}
    references, sources = read_given_references(evaluation)
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    comparison = measure(systems, references, sources, evaluation, quiet=quiet)
    write_output(_format(comparison, writing.format), writing.output, inputs, force=writing.force)


def _format(comparison: Comparison, format: str) -> str:
    from rangevote.evaluation.tables import comparison_data, evaluation_table, render

    if format != "json":
        return render(evaluation_table(comparison), format)
    data = comparison_data(comparison)
    scores = data.pop("systems")[0]["scores"]
    return json.dumps({"scores": scores, **data}, ensure_ascii=False, indent=1) + "\n"


def read_given_references(
    evaluation: EvaluationOptions,
) -> tuple[FileValues[list[str]] | None, FileValues[str] | None]:
    """References and sources as the options name them."""
    from rangevote.evaluation.corpus import read_references, read_sources

    references, sources = None, None
    if evaluation.references:
        references, sources = read_references(evaluation.references, plain=evaluation.plain)
    if evaluation.source is not None:
        sources = read_sources(evaluation.source, plain=evaluation.plain)
    return references, sources


def measure(
    systems: Mapping[str, FileValues[str]],
    references: FileValues[list[str]] | None,
    sources: FileValues[str] | None,
    evaluation: EvaluationOptions,
    *,
    default: Sequence[str] | None = None,
    p_value: str = "two_tailed",
    quiet: bool,
) -> Comparison:
    """Measure every system in the order of the references, and test them against the first.

    `default` are the metrics if the options name none; else all that can be measured.
    """
    from rich.console import Console
    from rich.progress import track

    from rangevote.evaluation.corpus import EvaluationCorpus, align
    from rangevote.evaluation.evaluate import Evaluator, compare_measured

    order: FileValues[Any] = references or next(iter(systems.values()))
    outputs = {name: align(listing, order) for name, listing in systems.items()}
    corpus = EvaluationCorpus.of(
        len(order.values),
        references.values if references else None,
        align(sources, order) if sources else None,
    )
    evaluator = Evaluator(corpus, evaluation.metrics or default, evaluation.units)
    hidden = quiet or not sys.stderr.isatty()
    steps = track(outputs.items(), "measuring", console=Console(stderr=True), transient=True, disable=hidden)
    measured = {name: evaluator.measure(texts) for name, texts in steps}
    resamples, seed = evaluation.resamples, evaluation.seed
    return compare_measured(evaluator, measured, resamples=resamples, seed=seed, p_value=p_value)
