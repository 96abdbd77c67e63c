"""`rangevote evaluate`: outputs and references in, numbers out; its options are shared with `compare`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.options import Command, HelpCommand, grouped, option
from rangevote.cli.output import write_output
from rangevote.cli.progress import Notes, check_inputs
from rangevote.errors import UsageError, choose

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues, WordUnits
    from rangevote.evaluation.evaluate import Comparison

FORMATS = click.Choice(["text", "markdown", "latex", "json"])
SEED = option("--seed N", "Of the resamples.", type=click.IntRange(min=0), default=12345)
QUIET = option("-q --quiet", "No notes, warnings or progress bar.")
FORCE = option("--force", "Overwrite existing files.")


@dataclass(frozen=True)
class EvaluationOptions:
    """What is measured and against what."""

    references: tuple[str, ...]
    source: str | None
    metrics: list[str]
    resamples: int
    seed: int
    plain: bool

    @property
    def files(self) -> list[str]:
        return [*self.references, *([self.source] if self.source else [])]


def evaluation_options(command: Command) -> Command:
    """What to measure; the command gets `evaluation`, an `EvaluationOptions`, and `units`."""
    options = [
        option(
            "-r --references FILE",
            "Text, one reference per line (repeat it for further ones), or JSON lines such as ballots.",
            multiple=True,
        ),
        option("--source FILE", "Sources, one per line, if they are not in the references' file."),
        option("--metric NAMES", "What to measure, for example bleu,length.", multiple=True),
        option(
            "--resamples N",
            "Of the bootstrap; 0: no intervals and p-values.",
            type=click.IntRange(min=0),
            default=10_000,
        ),
        SEED,
        option("--plain", "All files are text, even if they look like JSON."),
    ]

    def build(metric: Sequence[str], **others: Any) -> EvaluationOptions:
        from rangevote.evaluation.metrics import spelled_metric

        names = [name.strip() for part in metric for name in part.split(",") if name.strip()]
        return EvaluationOptions(metrics=list(map(spelled_metric, names)), **others)

    return grouped(units_options(command), "evaluation", options, build)


def units_options(command: Command) -> Command:
    """How metrics cut texts into words; the command gets `units`, a `WordUnits`."""
    words = "Words of metrics: space (cut at white space), words, wordpunct, chars, 13a, intl or zh."
    options = [
        option("--metric-tokenize NAME", words, default="space"),
        option("--bleu-tokenize NAME", "sacreBLEU's own tokenisation.", default="13a"),
        option("--lowercase", "Compare in lower case."),
    ]

    def build(metric_tokenize: str, bleu_tokenize: str, lowercase: bool) -> WordUnits:
        from rangevote.evaluation.corpus import UNITS, WordUnits

        choose("tokenisation", metric_tokenize, UNITS)
        return WordUnits(metric_tokenize, bleu_tokenize, lowercase)

    return grouped(command, "units", options, build)


@dataclass(frozen=True)
class TableOutput:
    """Where tables go, and in which format."""

    format: str
    output: str | None
    force: bool


def table_options(command: Command) -> Command:
    """How to write; the command gets `writing`, a `TableOutput`."""
    options = [
        option("--to", "Format of the table. Default: text.", name="format", type=FORMATS),
        option("--json", "The same as --to json."),
        option("-o --output FILE", "Where to write. Default: standard output."),
        FORCE,
    ]

    def build(format: str | None, json: bool, output: str | None, force: bool) -> TableOutput:
        if json and format not in (None, "json"):
            raise UsageError(f"--json and --to {format} exclude each other.")
        return TableOutput("json" if json else format or "text", output, force)

    return grouped(command, "writing", options, build)


@click.command(
    cls=HelpCommand, example="rangevote evaluate winners.jsonl -r references.txt --metric bleu,chrf"
)
@click.argument("outputs", metavar="OUTPUTS")
@evaluation_options
@table_options
@QUIET
def evaluate(
    outputs: str, evaluation: EvaluationOptions, units: WordUnits, writing: TableOutput, quiet: bool
) -> None:
    """Measure OUTPUTS ('-': standard input): BLEU, chrF, length, diversity, copies of the source.

    OUTPUTS is text, one output per line, or what `rangevote vote` wrote. References are matched by id, or
    line by line; without them only length, diversity and copies are measured.

    Metrics: bleu (sacreBLEU), bleu_1, bleu_2, bleu_3, bleu_4 (as NLTK computes them), chrf, length,
    distinct_outputs, distinct_unigrams, distinct_bigrams, empty, exact_copies, partial_copies. Only measured
    if you name them: partial_copies_by_bags, chrf++, ter, rouge_1, rouge_2, rouge_l, accuracy:KEY (KEY as in
    -s exact:KEY), comet:MODEL, bleurt:MODEL, metricx:MODEL, bertscore:MODEL, embedding:MODEL (cosine to the
    references).
    """
    from rangevote.evaluation.corpus import read_outputs
    from rangevote.evaluation.tables import comparison_data, evaluation_table, render

    notes = Notes(quiet=quiet)
    inputs = [outputs, *evaluation.files]
    check_inputs(inputs)
    systems = {"outputs": read_outputs(outputs, plain=evaluation.plain)}
    references, sources = read_references_and_sources(evaluation)
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    comparison = measure(systems, references, sources, evaluation, units, quiet=quiet)
    if writing.format == "json":
        data = comparison_data(comparison)
        text = to_json({"scores": data.pop("systems")[0]["scores"], **data})
    else:
        text = render(evaluation_table(comparison), writing.format)
    write_output(text, writing.output, inputs, force=writing.force)


def to_json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def read_references_and_sources(
    evaluation: EvaluationOptions,
) -> tuple[FileValues[list[str]] | None, FileValues[str] | None]:
    """References and sources from the files that the options name."""
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
    units: WordUnits,
    *,
    default: Sequence[str] | None = None,
    p_value: str = "two_tailed",
    quiet: bool,
) -> Comparison:
    """Measure every system in the order of the references, and test them against the first.

    `default` are the metrics if the options name none; None: all that can be measured.
    """
    from rich.console import Console
    from rich.progress import track

    from rangevote.evaluation.corpus import EvaluationCorpus, align
    from rangevote.evaluation.evaluate import Evaluator, compare_measured

    order: FileValues[Any] = references or next(iter(systems.values()))
    outputs = {name: align(file, order) for name, file in systems.items()}
    corpus = EvaluationCorpus.of(
        len(order.values),
        references.values if references else None,
        align(sources, order) if sources else None,
    )
    evaluator = Evaluator(corpus, evaluation.metrics or default, units)
    hidden = quiet or not sys.stderr.isatty()
    steps = track(outputs.items(), "measuring", console=Console(stderr=True), transient=True, disable=hidden)
    measured = {name: evaluator.measure(texts) for name, texts in steps}
    resamples, seed = evaluation.resamples, evaluation.seed
    return compare_measured(evaluator, measured, resamples=resamples, seed=seed, p_value=p_value)
