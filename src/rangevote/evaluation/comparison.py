"""Numbers of one system, or of several with the significance of what they differ by from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rangevote.errors import UsageError, choose
from rangevote.evaluation.bench import Bench, Choice, Measured
from rangevote.evaluation.bootstrap import (
    P_VALUES,
    RESAMPLES,
    SEED,
    Difference,
    Interval,
    difference,
    interval,
    resampled_sums,
)
from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.metric import Distinct, Metric
from rangevote.evaluation.sign_test import sign_test
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array


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
class System:
    """One system's scores by metric, and how they stand to the first system's (nothing for the first)."""

    name: str
    scores: dict[str, Score]
    against: dict[str, Against] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Systems measured on one corpus; `references` holds what can be measured of the references themselves.

    Without resampling (`resamples=0`) there are neither intervals nor p-values.
    """

    systems: tuple[System, ...]
    metrics: dict[str, Metric | Distinct]
    signatures: dict[str, str]
    references: dict[str, float]
    items: int
    references_per_item: tuple[int, int]
    resamples: int
    seed: int
    p_value: str

    @property
    def first(self) -> System:
        """The baseline; the only system of an evaluation."""
        return self.systems[0]


def evaluate(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]] | None = None,
    sources: Sequence[str] | None = None,
    *,
    metrics: Choice = None,
    units: Units | None = None,
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
    metrics: Choice = None,
    units: Units | None = None,
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
    corpus = Corpus.of(len(next(iter(systems.values()))), references, sources)
    bench = Bench(corpus, metrics, units)
    measured = {name: bench.measure(outputs) for name, outputs in systems.items()}
    return concluded(bench, measured, resamples=resamples, seed=seed, p_value=p_value)


def concluded(
    bench: Bench,
    measured: Mapping[str, Measured],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    p_value: str = "two_tailed",
) -> Comparison:
    """The comparison of systems that a bench has measured, the first being the baseline."""
    samples = _resampled(bench, measured, resamples, seed)
    baseline = next(iter(measured))
    systems = []
    for name, own in measured.items():
        scores = {key: Score(value, _interval(samples[name].get(key))) for key, value in own.values.items()}
        against = {} if name == baseline else _against(bench, measured, samples, (name, baseline), p_value)
        systems.append(System(name, scores, against))
    signatures = {name: bench.signature(name) for name in bench.metrics}
    return Comparison(
        tuple(systems),
        bench.metrics,
        signatures,
        bench.references(),
        bench.corpus.size,
        bench.corpus.numbers,
        resamples,
        seed,
        p_value,
    )


Samples = dict[str, dict[str, Array]]  # system -> metric -> (resamples,)


def _resampled(bench: Bench, measured: Mapping[str, Measured], resamples: int, seed: int) -> Samples:
    """Scores of all systems under the same resamples; the sums of everything are one product."""
    tables = [rows for m in measured.values() for rows in m.rows.values()]
    if not resamples or not tables:
        return {name: {} for name in measured}
    sums = resampled_sums(np.hstack(tables), resamples=resamples, seed=seed)
    pieces = iter(np.split(sums, np.cumsum([rows.shape[1] for rows in tables])[:-1], axis=1))
    samples: Samples = {}
    for name, m in measured.items():
        own = {builder: next(pieces) for builder in m.rows}
        samples[name] = {
            key: metric.score(own[metric.statistics])
            for key, metric in bench.metrics.items()
            if isinstance(metric, Metric)
        }
    return samples


def _interval(scores: Array | None) -> Interval | None:
    return None if scores is None else interval(scores)


def _against(
    bench: Bench,
    measured: Mapping[str, Measured],
    samples: Samples,
    names: tuple[str, str],
    p_value: str,
) -> dict[str, Against]:
    """One system against the baseline, in every metric that was resampled."""
    ours, theirs = (measured[name] for name in names)
    our_samples, their_samples = (samples[name] for name in names)
    found = {}
    for key, scores in our_samples.items():
        metric = bench.metrics[key]
        assert isinstance(metric, Metric)  # only these are resampled
        apart = ours.values[key] - theirs.values[key]
        gap = metric.score(ours.rows[metric.statistics]) - metric.score(theirs.rows[metric.statistics])
        above, below = int((gap > 0).sum()), int((gap < 0).sum())
        found[key] = Against(
            difference(scores, their_samples[key], apart, p_value), above, below, sign_test(above, below)
        )
    return found
