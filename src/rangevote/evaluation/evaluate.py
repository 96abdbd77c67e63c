"""Measure one system, or several with the significance of their differences from the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rangevote.errors import DataError, UsageError, choose
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.metrics import METRICS, Builder, Metric, Statistics, get_metric
from rangevote.evaluation.significance import (
    P_VALUES,
    RESAMPLES,
    SEED,
    Interval,
    difference,
    interval,
    resampled_sums,
    sign_test,
)
from rangevote.hypothesis import Array, Ballot

MetricChoice = Sequence[str] | Mapping[str, Metric] | None


@dataclass(frozen=True)
class Measured:
    """One system: the value of every metric, and the sentence statistics (outputs, s) behind them."""

    values: dict[str, float]
    rows: dict[Builder, Array]


class Evaluator:
    """The metrics chosen for a corpus; the references are counted once for all systems.

    `metrics` are names of `METRICS`, or a mapping from names to your own metrics; None takes all that the
    corpus has references and sources for.
    """

    def __init__(
        self, corpus: EvaluationCorpus, metrics: MetricChoice = None, units: WordUnits | None = None
    ) -> None:
        self.corpus, self.units = corpus, units or WordUnits()
        self.metrics = choose_metrics(metrics, corpus)
        self._statistics: dict[Builder, Statistics] = {}
        for metric in self.metrics.values():
            if metric.statistics not in self._statistics:
                self._statistics[metric.statistics] = metric.statistics(corpus, self.units)

    def signature(self, name: str) -> str:
        """Everything that decides the value of the metric `name`, except the texts."""
        return self._statistics[self.metrics[name].statistics].signature

    def measure(self, outputs: Sequence[str], metrics: Mapping[str, Metric] | None = None) -> Measured:
        """Every metric, or some, of one system's outputs, in the order of the corpus."""
        if len(outputs) != self.corpus.size:
            counts = f"{len(outputs):,} outputs but {self.corpus.size:,} items"
            raise DataError(f"there are {counts}; there must be one for each.")
        values: dict[str, float] = {}
        rows: dict[Builder, Array] = {}
        for name, metric in (self.metrics if metrics is None else metrics).items():
            if metric.statistics not in rows:
                rows[metric.statistics] = self._statistics[metric.statistics].rows(outputs)
            values[name] = float(metric.score(rows[metric.statistics].sum(axis=0)))
        return Measured(values, rows)

    def references(self) -> dict[str, float]:
        """Length, diversity and copies of the references, one per item; with several, the mean over them."""
        metrics = {name: metric for name, metric in self.metrics.items() if metric.needs != "references"}
        columns = [self.measure(column, metrics).values for column in self.corpus.columns()]
        if not columns:
            return {}
        return {name: sum(values[name] for values in columns) / len(columns) for name in metrics}


def choose_metrics(metrics: MetricChoice, corpus: EvaluationCorpus) -> dict[str, Metric]:
    """The metrics by name; asking for one that lacks its references or sources is an error."""
    available = {"references": corpus.references, "sources": corpus.sources}

    def missing(metric: Metric) -> list[str]:
        return [part for part in metric.needs.split(" and ") if part and not available[part]]

    if metrics is None:
        return {name: one for name, one in METRICS.items() if one.usual and not missing(one)}
    if isinstance(metrics, str):
        raise UsageError(f"metrics is one string, {metrics!r}; pass a list of names.")
    if not isinstance(metrics, Mapping):
        metrics = {name: get_metric(name) for name in metrics}
    for name, metric in metrics.items():
        if missing(metric):
            raise UsageError(f"the metric {name!r} needs {' and '.join(missing(metric))}; there are none.")
    return dict(metrics)


@dataclass(frozen=True)
class Score:
    """A value, with the interval of its resamples if there are any."""

    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Against:
    """A system compared with the first: the difference with interval and p-value, and the number of
    sentences that score higher and lower, with the p-value of their sign test."""

    difference: float
    interval: Interval
    p: float
    above: int
    below: int
    sign_test_p: float


@dataclass(frozen=True)
class SystemScores:
    """One system's scores by metric, and its differences from the first system (none for the first)."""

    name: str
    scores: dict[str, Score]
    against_first: dict[str, Against]


@dataclass(frozen=True)
class Comparison:
    """Systems measured on one corpus; `references` are the values of the references themselves.

    Without resampling (`resamples=0`) there are no intervals and p-values.
    """

    systems: tuple[SystemScores, ...]
    metrics: dict[str, Metric]
    signatures: dict[str, str]
    references: dict[str, float]
    items: int
    references_per_item: tuple[int, int]
    resamples: int
    seed: int
    p_value: str

    @property
    def first(self) -> SystemScores:
        """The baseline; the only system of an evaluation."""
        return self.systems[0]


def evaluate(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]] | None = None,
    sources: Sequence[str] | None = None,
    *,
    metrics: MetricChoice = None,
    units: WordUnits | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Measure one system.

    >>> outputs, references = ["a dog runs", "a cat"], [["a dog runs"], ["a cat sits"]]
    >>> evaluate(outputs, references, metrics=["bleu_1"]).first.scores["bleu_1"].value
    81.87307530779819
    """
    systems = {"outputs": outputs}
    return compare(systems, references, sources, metrics=metrics, units=units, resamples=resamples, seed=seed)


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str | Sequence[str]] | None = None,
    sources: Sequence[str] | None = None,
    *,
    metrics: MetricChoice = None,
    units: WordUnits | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    p_value: str = "two_tailed",
    progress: Callable[[Collection[str]], Iterable[str]] = iter,
) -> Comparison:
    """Measure several systems on the same items and test each against the first.

    `systems` maps names to outputs, one per item; `references` has one or several texts for each item,
    `sources` one. All systems get the same resamples; `p_value` is one of `P_VALUES`. `progress` wraps
    the iteration over the names of the systems.
    """
    if not systems:
        raise UsageError("there are no systems to compare.")
    if resamples < 0:
        raise UsageError(f"resamples must be 0 (no intervals) or more, got {resamples}.")
    choose("p-value", p_value, P_VALUES)
    corpus = EvaluationCorpus.of(len(next(iter(systems.values()))), references, sources)
    evaluator = Evaluator(corpus, metrics, units)
    measured = {name: evaluator.measure(systems[name]) for name in progress(systems)}
    samples = _resample(evaluator, measured, resamples, seed)
    first = next(iter(measured))
    compared = []
    for name, system in measured.items():
        drawn = samples[name]
        scores = {
            key: Score(value, interval(drawn[key]) if key in drawn else None)
            for key, value in system.values.items()
        }
        against = {}
        for key in drawn if name != first else ():
            metric, base = evaluator.metrics[key], measured[first]
            gap = difference(drawn[key], samples[first][key], system.values[key] - base.values[key], p_value)
            rows, base_rows = system.rows[metric.statistics], base.rows[metric.statistics]
            sentences = metric.score(rows) - metric.score(base_rows)  # (sentences,)
            above, below = int((sentences > 0).sum()), int((sentences < 0).sum())
            against[key] = Against(gap.value, gap.interval, gap.p, above, below, sign_test(above, below))
        compared.append(SystemScores(name, scores, against))
    return Comparison(
        systems=tuple(compared),
        metrics=evaluator.metrics,
        signatures={name: evaluator.signature(name) for name in evaluator.metrics},
        references=evaluator.references(),
        items=corpus.size,
        references_per_item=corpus.references_per_item,
        resamples=resamples,
        seed=seed,
        p_value=p_value,
    )


def _resample(
    evaluator: Evaluator, measured: Mapping[str, Measured], resamples: int, seed: int
) -> dict[str, dict[str, Array]]:
    """Scores by system and metric, shape (resamples,), under the same resamples; all sums are one product."""
    metrics = {name: metric for name, metric in evaluator.metrics.items() if metric.resampled}
    builders = dict.fromkeys(metric.statistics for metric in metrics.values())
    if not resamples or not builders:
        return {name: {} for name in measured}
    tables = [system.rows[builder] for system in measured.values() for builder in builders]
    sums = resampled_sums(np.hstack(tables), resamples=resamples, seed=seed)
    pieces = iter(np.split(sums, np.cumsum([rows.shape[1] for rows in tables])[:-1], axis=1))
    samples = {}
    for name in measured:
        by_statistics = {builder: next(pieces) for builder in builders}
        samples[name] = {key: one.score(by_statistics[one.statistics]) for key, one in metrics.items()}
    return samples


@dataclass(frozen=True)
class Selection:
    """What became of the winners of a small beam in a larger one (section 4.2.1), in percent of the items.

    `absent` are not in the larger beam, `chosen_again` were chosen again; the rest are in it and lost. That
    tells why a larger beam does worse: other candidates, or other voters' preferences.
    """

    items: int
    absent: float
    chosen_again: float


def selection(
    winners: Sequence[str], beam: Sequence[Sequence[str]], winners_of_beam: Sequence[str]
) -> Selection:
    """What became of `winners`, item by item, in the larger `beam` and among its own winners.

    >>> selection(["a", "b"], [["a", "x"], ["x"]], ["a", "x"])
    Selection(items=2, absent=50.0, chosen_again=50.0)
    """
    size = len(winners)
    absent = sum(text not in candidates for text, candidates in zip(winners, beam, strict=True))
    again = sum(text == other for text, other in zip(winners, winners_of_beam, strict=True))
    return Selection(size, 100 * absent / size, 100 * again / size)


def texts_of(ballot: Ballot) -> list[str]:
    """The candidates' texts: a beam for `selection`."""
    texts = [candidate.text for candidate in ballot.candidates if candidate.text is not None]
    if len(texts) < len(ballot.candidates):
        number = next(i for i, candidate in enumerate(ballot.candidates) if candidate.text is None)
        raise DataError("has no text; winners are looked up by text.", field=f"candidates[{number}]")
    return texts
