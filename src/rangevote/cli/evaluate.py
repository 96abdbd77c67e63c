"""`rangevote evaluate`: outputs and references in, numbers out; its options are shared with `compare`."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.options import (
    COMMANDLINE,
    Command,
    HelpCommand,
    declared,
    election_option,
    grouped,
    option,
    options_of,
    own_similarity,
    reading_options,
)
from rangevote.cli.output import refuse_input, write_output
from rangevote.cli.progress import Bar, Notes, check_inputs
from rangevote.errors import SetupError, UsageError, choose
from rangevote.text import is_stream

if TYPE_CHECKING:
    from rangevote.evaluation.corpus import FileValues, WordUnits
    from rangevote.evaluation.evaluate import Comparison
    from rangevote.evaluation.samples import SampleReport
    from rangevote.evaluation.tables import Table
    from rangevote.formats import ReadOptions

FORMATS = click.Choice(["text", "markdown", "latex", "json"])
QUIET = option("-q --quiet", "No notes, warnings or progress bar.")
FORCE = option("--force", "Overwrite existing files.")


def _metric_names(context: click.Context, option: click.Parameter, values: Sequence[str]) -> list[str]:
    from rangevote.evaluation.metrics import spelled_metric

    return [spelled_metric(name.strip()) for part in values for name in part.split(",") if name.strip()]


@dataclass(frozen=True)
class EvaluationOptions:
    """What is measured and against what."""

    references: tuple[str, ...] = declared(
        "-r --references FILE",
        "References: text with one per line, or JSON lines. Repeat it for several references.",
        multiple=True,
    )
    source: str | None = declared(
        "--source FILE", "Sources, one per line, if the file of references does not have them."
    )
    metrics: Sequence[str] = declared(
        "--metric NAMES", "What to measure, for example bleu,length.", multiple=True, callback=_metric_names
    )
    resamples: int = declared(
        "--resamples N",
        "Number of bootstrap resamples; 0 for no intervals and p-values.",
        type=click.IntRange(min=0),
        default=10_000,
    )
    seed: int = declared("--seed N", "Seed of the resamples.", type=click.IntRange(min=0), default=12345)
    plain: bool = declared("--plain", "Read all files as text, even if they look like JSON.")

    @property
    def files(self) -> list[str]:
        return [*self.references, *([self.source] if self.source else [])]


def evaluation_options(command: Command) -> Command:
    """What to measure; the command gets `evaluation`, an `EvaluationOptions`, and `units`."""
    options = options_of(EvaluationOptions)
    return grouped(units_options(command), "evaluation", options, EvaluationOptions)


def units_options(command: Command) -> Command:
    """How metrics cut texts into words; the command gets `units`, a `WordUnits`."""
    words = "What metrics count as words: space (cut at white space), words, wordpunct, chars, 13a, intl, zh."
    options = [
        option("--metric-tokenize NAME", words, default="space"),
        option("--bleu-tokenize NAME", "Tokenisation of sacreBLEU.", default="13a"),
        option("--lowercase", "Compare texts in lower case."),
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
    output: str | None = None
    force: bool = False

    def write(self, data: object, tables: Iterable[Table], inputs: Sequence[str] = ()) -> None:
        """Write the data as JSON, or the tables in another format; never over one of the inputs."""
        from rangevote.evaluation.tables import render

        if self.format == "json":
            text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
        else:
            text = "\n".join(render(one, self.format) for one in tables)
        write_output(text, self.output, inputs, force=self.force)


def table_options(command: Command) -> Command:
    """How to write; the command gets `writing`, a `TableOutput`."""
    options = [
        option("--to", "Format of the table. Default: text.", type=FORMATS),
        option("--json", "The same as --to json."),
        option("-o --output FILE", "Output file. Default: standard output."),
        FORCE,
    ]

    def build(to: str | None, json: bool, output: str | None, force: bool) -> TableOutput:
        if json and to not in (None, "json"):
            raise UsageError(f"--json and --to {to} exclude each other.")
        return TableOutput("json" if json else to or "text", output, force)

    return grouped(command, "writing", options, build)


@dataclass(frozen=True)
class SampleOptions:
    """What is asked about a file of samples."""

    key: str | None
    similarity: str | None
    gold: str | None
    confidence: float
    plot: str | None

    @property
    def asked(self) -> bool:
        return any(value is not None for value in (self.key, self.similarity, self.gold))


def sample_options(command: Command) -> Command:
    """What to measure of samples; the command gets `samples`, a `SampleOptions`."""
    between = click.FloatRange(0, 1, min_open=True, max_open=True)
    options = [
        option(
            "--key KEY", "Measure samples by their answers: short for -s exact:KEY, for example last_number."
        ),
        election_option("similarity", default=False),
        option(
            "--gold FIELD", "Field of the right answer of samples, such as answer, meta.gold or references."
        ),
        option("--confidence X", "Confidence of the stopping rule for samples.", type=between, default=0.95),
        option("--plot FILE", "Draw the curves of samples, as .svg, .png or .pdf."),
    ]
    return grouped(command, "samples", options, SampleOptions)


#: Options that only outputs have; the rest is for samples too.
OF_OUTPUTS = ("references", "source", "metrics", "plain", "metric_tokenize", "bleu_tokenize", "lowercase")


@click.command(
    cls=HelpCommand,
    example="rangevote evaluate winners.jsonl -r references.txt --metric bleu,chrf",
)
@click.argument("outputs", metavar="OUTPUTS")
@sample_options
@evaluation_options
@table_options
@QUIET
@reading_options
def evaluate(
    outputs: str,
    samples: SampleOptions,
    evaluation: EvaluationOptions,
    units: WordUnits,
    writing: TableOutput,
    quiet: bool,
    reading: ReadOptions,
) -> None:
    """Measure OUTPUTS ('-': standard input): BLEU, chrF, length, diversity, copies of the source.

    OUTPUTS is text, one output per line, or what `rangevote vote` wrote. References are matched by id, or
    line by line; without them only length, diversity and copies are measured.

    Metrics: bleu (sacreBLEU), bleu_1, bleu_2, bleu_3, bleu_4 (as NLTK computes them), chrf, length,
    distinct_outputs, distinct_unigrams, distinct_bigrams, empty, exact_copies, partial_copies. Only measured
    if you name them: partial_copies_by_bags, chrf++, ter, rouge_1, rouge_2, rouge_l, accuracy:KEY (KEY as in
    -s exact:KEY), comet:MODEL, bleurt:MODEL, metricx:MODEL, bertscore:MODEL, embedding:MODEL (cosine to the
    references).

    With --key, -s or --gold (`rangevote evaluate samples.jsonl --key last_number --gold answer`) OUTPUTS is a
    file of samples, as `rangevote vote` reads it. The report says how often one sample is right, the vote of
    n samples (maj@n), or any of n (pass@n); the risk at each coverage if answers with a small share are left
    out; how well shares are calibrated; and how many samples the stopping rule would have drawn. Without
    --gold it has shares, the entropy over answers or clusters of texts, and the stopping rule.
    """
    from rangevote.evaluation.corpus import read_outputs
    from rangevote.evaluation.tables import comparison_data, evaluation_table

    notes = Notes(quiet=quiet)
    inputs = [outputs, *evaluation.files]
    check_inputs(inputs)
    if samples.asked:
        _refuse_options(OF_OUTPUTS, "outputs and their references, not for samples")
        check_plot(samples.plot, writing.force, inputs)
        report = _of_samples(outputs, samples, evaluation, reading, quiet)
        writing.write(report.to_dict(), report.tables(), inputs)
        return
    names = [field.name for options in (samples, reading) for field in dataclasses.fields(options)]
    _refuse_options(names, "samples; name their key, for example with --key last_number")
    systems = {"outputs": read_outputs(outputs, plain=evaluation.plain)}
    references, sources = read_references_and_sources(evaluation)
    if references is None:
        notes.tell("there are no references: BLEU and chrF are left out.")
    comparison = measure(systems, references, sources, evaluation, units, quiet=quiet)
    data = comparison_data(comparison)
    data = {"scores": data.pop("systems")[0]["scores"], **data}
    writing.write(data, [evaluation_table(comparison)], inputs)


def _refuse_options(names: Sequence[str], purpose: str) -> None:
    """Refuse options on the command line that would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        chosen = parameter.name and context.get_parameter_source(parameter.name) is COMMANDLINE
        if chosen and parameter.name in names:
            raise UsageError(f"{max(parameter.opts, key=len)} is for {purpose}.")


def _of_samples(
    path: str, samples: SampleOptions, evaluation: EvaluationOptions, reading: ReadOptions, quiet: bool
) -> SampleReport:
    """What a file of samples is worth; the picture is drawn."""
    from rangevote.evaluation.samples import evaluate_samples
    from rangevote.formats import read
    from rangevote.similarity import get_similarity

    key, similarity, gold = samples.key, samples.similarity, samples.gold
    if key is not None and similarity is not None:
        raise UsageError(f"--key {key} is short for -s exact:{key}; give one of --key and -s.")
    if samples.plot is not None and gold is None:
        raise UsageError("--plot draws accuracies; name the field of the right answer with --gold.")
    measure = get_similarity(own_similarity(similarity or f"exact:{key or 'plain'}"))
    carry = () if gold is None or gold == "references" else (gold,)
    with read(path, dataclasses.replace(reading, carry=carry)) as entries:
        report = evaluate_samples(
            Bar(entries, "counting", quiet=quiet).track(entries),
            measure,
            gold=gold,
            confidence=samples.confidence,
            resamples=evaluation.resamples,
            seed=evaluation.seed,
        )
    if samples.plot is not None:
        report.plot(samples.plot)
    return report


def check_plot(plot: str | None, force: bool, inputs: Sequence[str]) -> None:
    """Refuse a picture that cannot be drawn, or would replace a file, before anything is read."""
    if plot is None:
        return
    from rangevote.evaluation.plot import check_picture

    path = Path(plot)
    check_picture(path)
    refuse_input(plot, inputs)
    if path.exists() and not force and not is_stream(path):
        raise SetupError(f"{plot} already exists; use --force to overwrite it.")


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

    from rangevote.evaluation.corpus import align
    from rangevote.evaluation.evaluate import compare

    order: FileValues[Any] = references or next(iter(systems.values()))
    hidden = quiet or not sys.stderr.isatty()
    bar = partial(
        track, description="measuring", console=Console(stderr=True), transient=True, disable=hidden
    )
    return compare(
        {name: align(file, order) for name, file in systems.items()},
        references.values if references else None,
        align(sources, order) if sources else None,
        metrics=evaluation.metrics or default,
        units=units,
        resamples=evaluation.resamples,
        seed=evaluation.seed,
        p_value=p_value,
        progress=bar,
    )
