"""What `evaluate` and `compare` share: options, reading, and how tables are written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.notes import check_input
from rangevote.cli.options import Command, grouped
from rangevote.cli.output import sink
from rangevote.errors import UsageError, choose

if TYPE_CHECKING:
    from rangevote.evaluation.bench import Bench
    from rangevote.evaluation.comparison import Comparison
    from rangevote.evaluation.reading import Listed, Outputs
    from rangevote.evaluation.words import Units


@dataclass(frozen=True)
class Measuring:
    """What is measured, against what, and in which units."""

    references: tuple[str, ...]
    source: str | None
    metrics: tuple[str, ...]
    units: Units
    resamples: int
    seed: int
    plain: bool

    @property
    def files(self) -> list[str]:
        """The files that the options name."""
        return [*self.references, *([self.source] if self.source else [])]


def measuring_options(command: Command) -> Command:
    """What to measure; the command gets `measuring`, a `Measuring`."""
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
            "-m", "--metric", multiple=True, metavar="NAMES", help="What to measure, as bleu,length."
        ),
        "tokenize": click.option(
            "--tokenize", default="words", show_default=True, help="words, wordpunct, chars, 13a, intl or zh."
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
    return grouped(command, "measuring", options, _measuring)


def _measuring(
    metric: Sequence[str], tokenize: str, bleu_tokenize: str, lowercase: bool, **given: Any
) -> Measuring:
    from rangevote.evaluation.words import UNITS, Units

    choose("tokenisation", tokenize, UNITS)
    names = tuple(name.strip() for part in metric for name in part.split(",") if name.strip())
    return Measuring(metrics=names, units=Units(tokenize, bleu_tokenize, lowercase), **given)


@dataclass(frozen=True)
class Writing:
    """Where tables go, and in which format."""

    format: str
    output: str | None
    force: bool

    def write(self, text: str, inputs: Sequence[str]) -> None:
        """Write it all, or nothing."""
        for path in map(Path, inputs):
            if self.output and path.exists() and Path(self.output).exists() and path.samefile(self.output):
                raise UsageError(f"{self.output} is one of the inputs; write to another file.")
        with sink(self.output, "-", {}, force=self.force) as place:
            place.write(text.encode())
            place.finish()


def writing_options(command: Command) -> Command:
    """How to write; the command gets `writing`, a `Writing`."""
    options = {
        "format": click.option(
            "--format",
            type=click.Choice(["text", "markdown", "latex", "json"]),
            help="Of the table; text if not given.",
        ),
        "json": click.option("--json", is_flag=True, help="The same as --format json."),
        "output": click.option(
            "-o", "--output", metavar="FILE", help="Where to write; standard output if not given."
        ),
        "force": click.option("--force", is_flag=True, help="Replace files that exist."),
    }
    return grouped(command, "writing", options, _writing)


def _writing(format: str | None, json: bool, output: str | None, force: bool) -> Writing:
    if json and format not in (None, "json"):
        raise UsageError(f"--json and --format {format} exclude each other.")
    return Writing("json" if json else format or "text", output, force)


def check_inputs(files: Sequence[str]) -> None:
    """Refuse to read standard input twice, or from a person."""
    if files.count("-") > 1:
        raise UsageError("'-' (standard input) can be read once; name files for the others.")
    for path in files:
        check_input(path)


def benched(
    systems: Mapping[str, Outputs],
    measuring: Measuring,
    references: Listed[list[str]] | None,
    sources: Listed[str] | None,
    default: Sequence[str] | None,
) -> tuple[Bench, dict[str, list[str]]]:
    """The metrics ready to measure, and every system's outputs in the order of the references."""
    from rangevote.evaluation.bench import Bench
    from rangevote.evaluation.corpus import Corpus
    from rangevote.evaluation.reading import in_step

    order: Listed[Any] = references or next(iter(systems.values()))
    outputs = {name: in_step(listed, order) for name, listed in systems.items()}
    corpus = Corpus.of(
        len(order.values),
        references.values if references else None,
        in_step(sources, order) if sources else None,
    )
    return Bench(corpus, measuring.metrics or default, measuring.units), outputs


def given_references(
    measuring: Measuring,
) -> tuple[Listed[list[str]] | None, Listed[str] | None]:
    """References and sources as the options name them."""
    from rangevote.evaluation.reading import read_references, read_sources

    references, along = None, None
    if measuring.references:
        references, along = read_references(measuring.references, plain=measuring.plain)
    if measuring.source is not None:
        along = read_sources(measuring.source, plain=measuring.plain)
    return references, along


def measured(
    bench: Bench, outputs: Mapping[str, Sequence[str]], measuring: Measuring, *, p_value: str, quiet: bool
) -> Comparison:
    """Measure every system, with a bar on a terminal, and test them against the first."""
    from rangevote.evaluation.comparison import concluded

    with bar(len(outputs), quiet=quiet) as advance:
        found = {}
        for name, texts in outputs.items():
            found[name] = bench.measure(texts)
            advance()
    return concluded(bench, found, resamples=measuring.resamples, seed=measuring.seed, p_value=p_value)


@contextmanager
def bar(steps: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """How many systems are done, on a terminal; it goes away at the end."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=steps)
        yield lambda: progress.advance(task)
