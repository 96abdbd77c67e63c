"""Measuring systems against one corpus: what the references give is computed once for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rangevote.errors import DataError, UsageError, choose
from rangevote.evaluation import METRICS
from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.metric import Builder, Distinct, Metric, Statistics
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array

Choice = Sequence[str] | Mapping[str, Metric | Distinct] | None


@dataclass(frozen=True)
class Measured:
    """One system: the value of every metric, and the sentence statistics (outputs, s) behind them."""

    values: dict[str, float]
    rows: dict[Builder, Array]


class Bench:
    """The metrics chosen for a corpus, ready to measure any number of systems on it.

    `metrics` are names of `METRICS`, or a mapping from names to metrics of one's own; None takes all that
    the corpus has references and sources for.
    """

    def __init__(self, corpus: Corpus, metrics: Choice = None, units: Units | None = None) -> None:
        self.corpus, self.units = corpus, units or Units()
        self.metrics = chosen(metrics, corpus)
        self._split = self.units.splitter()
        self._statistics: dict[Builder, Statistics] = {}
        for metric in self.metrics.values():
            if isinstance(metric, Metric) and metric.statistics not in self._statistics:
                self._statistics[metric.statistics] = metric.statistics(corpus, self.units)

    def signature(self, name: str) -> str:
        """All that decides the value of the metric `name`, but the texts."""
        metric = self.metrics[name]
        if isinstance(metric, Metric):
            return self._statistics[metric.statistics].signature
        return self.units.signature

    def measure(self, outputs: Sequence[str]) -> Measured:
        """Every metric of one system's outputs, in the order of the corpus."""
        if len(outputs) != self.corpus.size:
            raise DataError(
                f"there are {len(outputs):,} outputs but {self.corpus.size:,} items; they must go in step."
            )
        return self._measured(outputs, self.metrics)

    def references(self) -> dict[str, float]:
        """Length, diversity, copies of the references, one an item; of several, the mean over the choices."""
        known = {name: metric for name, metric in self.metrics.items() if metric.needs != "references"}
        columns = [self._measured(column, known).values for column in self.corpus.columns()]
        if not columns:
            return {}
        return {name: sum(values[name] for values in columns) / len(columns) for name in known}

    def _measured(self, outputs: Sequence[str], metrics: Mapping[str, Metric | Distinct]) -> Measured:
        words: list[Sequence[str]] | None = None
        values: dict[str, float] = {}
        rows: dict[Builder, Array] = {}
        for name, metric in metrics.items():
            if isinstance(metric, Distinct):
                words = [self._split(text) for text in outputs] if words is None else words
                values[name] = float(metric.count(words))
                continue
            if metric.statistics not in rows:
                rows[metric.statistics] = self._statistics[metric.statistics].rows(outputs)
            values[name] = float(metric.score(rows[metric.statistics].sum(axis=0)))
        return Measured(values, rows)


def chosen(metrics: Choice, corpus: Corpus) -> dict[str, Metric | Distinct]:
    """The metrics by name; asking for one that lacks its references or sources is an error."""
    there = {"", *(["references"] if corpus.references else []), *(["sources"] if corpus.sources else [])}
    if metrics is None:
        return {name: metric for name, metric in METRICS.items() if metric.needs in there}
    if isinstance(metrics, str):
        raise UsageError(f"metrics is one string, {metrics!r}; pass a list of names.")
    if not isinstance(metrics, Mapping):
        metrics = {name: choose("metric", name, METRICS) for name in metrics}
    for name, metric in metrics.items():
        if metric.needs not in there:
            raise UsageError(f"the metric {name!r} needs {metric.needs}, and none are given.")
    return dict(metrics)
