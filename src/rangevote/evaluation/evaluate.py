"""Measure one system, or several with the significance of their differences from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rangevote.errors import DataError, UsageError, choose
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.metrics import METRICS, Builder, Distinct, Metric, Statistics, get_metric
from rangevote.evaluation.significance import (
    P_VALUES,
    RESAMPLES,
    SEED,
    Difference,
    Interval,
    difference,
    interval,
    resampled_sums,
    sign_test,
)
from rangevote.hypothesis import Array, Ballot

MetricChoice = Sequence[str] | Mapping[str, Metric | Distinct] | None


@dataclass(frozen=True)
class Measured:
    """One system: the value of every metric, and the sentence statistics (outputs, s) behind them."""

    values: dict[str, float]
    rows: dict[Builder, Array]


class Evaluator:
    """The metrics chosen for a corpus; what the references give is computed once for all systems.

    `metrics` are names of `METRICS`, or a mapping from names to metrics of one's own; None takes all that
    the corpus has references and sources for.
    """

    def __init__(
        self, corpus: EvaluationCorpus, metrics: MetricChoice = None, units: WordUnits | None = None
    ) -> None:
        self.corpus, self.units = corpus, units or WordUnits()
        self.metrics = choose_metrics(metrics, corpus)
        self._split = self.units.splitter()
        self._statistics: dict[Builder, Statistics] = {}
        for metric in self.metrics.values():
            if isinstance(metric, Metric) and metric.statistics not in self._statistics:
                self._statistics[metric.statistics] = metric.statistics(corpus, self.units)

    def signature(self, name: str) -> str:
        """Everything that decides the value of the metric `name`, except the texts."""
        metric = self.metrics[name]
        if isinstance(metric, Metric):
            return self._statistics[metric.statistics].signature
        return self.units.signature

    def measure(self, outputs: Sequence[str]) -> Measured:
        """Every metric of one system's outputs, in the order of the corpus."""
        if len(outputs) != self.corpus.size:
            numbers = f"{len(outputs):,} outputs but {self.corpus.size:,} items"
            raise DataError(f"there are {numbers}; there must be one for each.")
        return self._measure(outputs, self.metrics)

    def references(self) -> dict[str, float]:
        """Length, diversity, copies of the references, one an item; of several, the mean over the choices."""
        metrics = {name: metric for name, metric in self.metrics.items() if metric.needs != "references"}
        columns = [self._measure(column, metrics).values for column in self.corpus.columns()]
        if not columns:
            return {}
        return {name: sum(values[name] for values in columns) / len(columns) for name in metrics}

    def _measure(self, outputs: Sequence[str], metrics: Mapping[str, Metric | Distinct]) -> Measured:
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


def choose_metrics(metrics: MetricChoice, corpus: EvaluationCorpus) -> dict[str, Metric | Distinct]:
    """The metrics by name; asking for one that lacks its references or sources is an error."""
    given = {"", *(["references"] if corpus.references else []), *(["sources"] if corpus.sources else [])}
    given |= {"references and sources"} if len(given) == 3 else set()
    if metrics is None:
        usual = {name: metric for name, metric in METRICS.items() if getattr(metric, "usual", True)}
        return {name: metric for name, metric in usual.items() if metric.needs in given}
    if isinstance(metrics, str):
        raise UsageError(f"metrics is one string, {metrics!r}; pass a list of names.")
    if not isinstance(metrics, Mapping):
        metrics = {name: get_metric(name) for name in metrics}
    for name, metric in metrics.items():
        if metric.needs not in given:
            missing = [part for part in metric.needs.split(" and ") if part not in given]
            raise UsageError(f"the metric {name!r} needs {' and '.join(missing)}, and none are given.")
    return dict(metrics)


@dataclass(frozen=True)
class Score:
    """A value, with the interval of its resamples where there is one."""

    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Against:
    """A system beside the first: the difference, and on how many sentences it is above or below it.

    `sign_p` is the p-value of the sign test of these sentences; those that are equal are left out.
    """

    difference: Difference
    above: int
    below: int
    sign_p: float


@dataclass(frozen=True)
class SystemScores:
    """One system's scores by metric, and its differences from the first system (none for the first)."""

    name: str
    scores: dict[str, Score]
    against: dict[str, Against] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Systems measured on one corpus; `references` holds what can be measured of the references themselves.

    Without resampling (`resamples=0`) there are neither intervals nor p-values.
    """

    systems: tuple[SystemScores, ...]
    metrics: dict[str, Metric | Distinct]
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
    """Measure one system: a comparison of one.

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
) -> Comparison:
    """Measure systems on the same items, and test each against the first.

    `systems` maps names to outputs, one an item; `references` has a text or several for each item, `sources`
    a text. All systems are resampled alike: `p_value` is one of `P_VALUES`.
    """
    if not systems:
        raise UsageError("there are no systems to compare.")
    if resamples < 0:
        raise UsageError(f"resamples must be 0 (no intervals) or more, got {resamples}.")
    choose("p-value", p_value, P_VALUES)
    corpus = EvaluationCorpus.of(len(next(iter(systems.values()))), references, sources)
    evaluator = Evaluator(corpus, metrics, units)
    measured = {name: evaluator.measure(outputs) for name, outputs in systems.items()}
    return compare_measured(evaluator, measured, resamples=resamples, seed=seed, p_value=p_value)


def compare_measured(
    evaluator: Evaluator,
    measured: Mapping[str, Measured],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    p_value: str = "two_tailed",
) -> Comparison:
    """The comparison of systems that are measured already, the first being the baseline."""
    samples = _resample(evaluator, measured, resamples, seed)
    first = next(iter(measured))
    systems = []
    for name, own in measured.items():
        intervals = {key: interval(scores) for key, scores in samples[name].items()}
        scores = {key: Score(value, intervals.get(key)) for key, value in own.values.items()}
        against = {} if name == first else _against(evaluator, measured, samples, (name, first), p_value)
        systems.append(SystemScores(name, scores, against))
    return Comparison(
        tuple(systems),
        evaluator.metrics,
        {name: evaluator.signature(name) for name in evaluator.metrics},
        evaluator.references(),
        evaluator.corpus.size,
        evaluator.corpus.references_per_item,
        resamples,
        seed,
        p_value,
    )


Samples = dict[str, dict[str, Array]]  # system -> metric -> (resamples,)


def _resample(evaluator: Evaluator, measured: Mapping[str, Measured], resamples: int, seed: int) -> Samples:
    """Scores of all systems under the same resamples; the sums of everything are one product."""
    tables = [rows for system in measured.values() for rows in system.rows.values()]
    if not resamples or not tables:
        return {name: {} for name in measured}
    sums = resampled_sums(np.hstack(tables), resamples=resamples, seed=seed)
    pieces = iter(np.split(sums, np.cumsum([rows.shape[1] for rows in tables])[:-1], axis=1))
    samples: Samples = {}
    for name, system in measured.items():
        own = {builder: next(pieces) for builder in system.rows}
        samples[name] = {
            key: metric.score(own[metric.statistics])
            for key, metric in evaluator.metrics.items()
            if isinstance(metric, Metric)
        }
    return samples


def _against(
    evaluator: Evaluator,
    measured: Mapping[str, Measured],
    samples: Samples,
    names: tuple[str, str],
    p_value: str,
) -> dict[str, Against]:
    """One system against the baseline, in every metric that was resampled."""
    ours, theirs = (measured[name] for name in names)
    our_samples, their_samples = (samples[name] for name in names)
    against = {}
    for key, scores in our_samples.items():
        metric = evaluator.metrics[key]
        assert isinstance(metric, Metric)  # only these are resampled
        observed = ours.values[key] - theirs.values[key]
        gap = metric.score(ours.rows[metric.statistics]) - metric.score(theirs.rows[metric.statistics])
        above, below = int((gap > 0).sum()), int((gap < 0).sum())
        bootstrapped = difference(scores, their_samples[key], observed, p_value)
        against[key] = Against(bootstrapped, above, below, sign_test(above, below))
    return against


@dataclass(frozen=True)
class Selection:
    """What became of the winners of a small beam in a larger one (section 4.2.1): counts of items.

    `absent` are not in the larger beam at all, `again` were chosen again; the rest are in it and lost. That
    tells why a larger beam does worse: other candidates, or other voters' preferences.
    """

    items: int
    absent: int
    again: int

    @property
    def absent_share(self) -> float:
        """In percent."""
        return 100 * self.absent / self.items

    @property
    def again_share(self) -> float:
        """In percent."""
        return 100 * self.again / self.items


def selection(
    winners: Sequence[str], beam: Sequence[Sequence[str]], winners_of_beam: Sequence[str]
) -> Selection:
    """What became of `winners`, item by item, in the larger `beam` and among its own winners.

    >>> selection(["a", "b", "c"], [["a", "x"], ["b", "x"], ["x"]], ["a", "x", "x"])
    Selection(items=3, absent=1, again=1)
    """
    if not len(winners) == len(beam) == len(winners_of_beam):
        raise DataError(
            f"there are {len(winners):,} winners, {len(beam):,} larger beams and {len(winners_of_beam):,} "
            f"winners of these; there must be one of each for every item."
        )
    if not winners:
        raise DataError("there are no winners, so there is nothing to look for.")
    absent = sum(text not in candidates for text, candidates in zip(winners, beam, strict=True))
    again = sum(text == other for text, other in zip(winners, winners_of_beam, strict=True))
    return Selection(len(winners), absent, again)


def texts_of(ballot: Ballot) -> list[str]:
    """The candidates' texts, as `selection` takes a beam."""
    texts = [candidate.text for candidate in ballot.candidates]
    if None in texts:
        raise DataError(
            "has no text; winners are looked for by their text.", field=f"candidates[{texts.index(None)}]"
        )
    return [text for text in texts if text is not None]
