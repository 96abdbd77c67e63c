"""Whether a difference is real: paired bootstrap (Koehn 2004) for every metric that is a score of sums, and
the sign test for human judgements.

A resample draws as many sentences as there are, with replacement, the same ones for all systems. How often
each sentence was drawn is a matrix, so all resampled sums are one product with the sentence statistics.
These are whole numbers, which makes the sums exact: they depend neither on threads nor on the order of
summation. The draws of a seed are those of sacrebleu.

Three p-values of the difference d of two systems, from the differences d* under resampling, B of them:

    two_tailed  2 * koehn, at most 1: below 0.05 exactly where the 95 % interval of d* excludes 0
    koehn       (1 + number of d* without the sign of d) / (B + 1): Koehn's, one-tailed
    centred     (1 + number of |d*| - mean |d*| above |d|) / (B + 1): sacrebleu's and Moses'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rangevote.errors import DataError, UsageError, choose
from rangevote.hypothesis import Array

Indices = NDArray[np.int64]

#: Koehn drew 1,000; more cost little here, and let a two-tailed p go below 0.001.
RESAMPLES = 10_000
SEED = 12345  # sacrebleu's
CONFIDENCE = 0.95
_BLOCK = 2**22  # draws at a time


class Interval(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How far a system is from its baseline: score less score, with interval and p-value."""

    value: float
    interval: Interval
    p: float


def resampled_sums(rows: Array, *, resamples: int = RESAMPLES, seed: int = SEED) -> Array:
    """Sums of the statistics of each resample: rows (sentences, s) -> (resamples, s)."""
    if resamples < 1:
        raise UsageError(f"resamples must be 1 or more, got {resamples}.")
    if not len(rows):
        raise DataError("there are no sentences to draw from.")
    return np.concatenate([counts @ rows for counts in draws(len(rows), resamples, seed)])


def draws(sentences: int, resamples: int, seed: int) -> Iterator[Array]:
    """How often each resample has each sentence, in blocks of shape (some resamples, sentences)."""
    generator = np.random.default_rng(seed)
    step = max(1, _BLOCK // sentences)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = generator.integers(0, sentences, size=(size, sentences))
        drawn += sentences * np.arange(size)[:, None]  # each resample has numbers of its own
        counts = np.bincount(drawn.ravel(), minlength=size * sentences)
        yield counts.reshape(size, sentences).astype(np.float64)


def interval(scores: Array) -> Interval:
    """The middle 95 % of resampled scores."""
    low, high = np.quantile(scores, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(low), float(high))


def wilson(share: float, trials: float) -> Interval:
    """The 95 % interval of a share of independent trials (Wilson 1927), also of trials that count in part.

    >>> wilson(0.5, 10)
    Interval(low=0.2365930905, high=0.7634069095)
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    if not trials:
        return Interval(0.0, 1.0)
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    spread = math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2) * z / (1 + z * z / trials)
    return Interval(max(0.0, round(middle - spread, 10)), min(1.0, round(middle + spread, 10)))


def koehn(differences: Array, observed: float) -> float:
    """The share of resamples in which the better system is not better."""
    lost = int((np.sign(observed) * differences <= 0).sum())
    return (lost + 1) / (len(differences) + 1)


def two_tailed(differences: Array, observed: float) -> float:
    """Twice Koehn's, since either system might have been the better one."""
    return min(1.0, 2 * koehn(differences, observed))


def centred(differences: Array, observed: float) -> float:
    """How often chance alone moves the difference by as much, as sacrebleu and Moses have it."""
    sizes = np.abs(differences)
    beyond = int((sizes - sizes.mean() > abs(observed)).sum())
    return (beyond + 1) / (len(differences) + 1)


P_VALUES: dict[str, Callable[[Array, float], float]] = {
    "two_tailed": two_tailed,
    "koehn": koehn,
    "centred": centred,
}


def difference(scores: Array, baseline: Array, observed: float, p_value: str = "two_tailed") -> Difference:
    """The difference of two systems from their scores under the same resamples, shape (resamples,)."""
    differences = scores - baseline
    p = choose("p-value", p_value, P_VALUES)(differences, observed)
    return Difference(observed, interval(differences), p)


def paired_bootstrap(
    score: Callable[[Array], Array],
    rows: Array,
    baseline: Array,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    p_value: str = "two_tailed",
) -> Difference:
    """Whether a system differs from a baseline, given both systems' sentence statistics.

    `rows` and `baseline` have shape (sentences, s), in the same order; `score` turns sums (..., s) into
    scores (...).
    """
    if rows.shape != baseline.shape:
        raise DataError(
            f"the statistics have shapes {rows.shape} and {baseline.shape}; both systems must have been "
            f"measured on the same sentences."
        )
    width = rows.shape[1]
    sums = resampled_sums(np.hstack([rows, baseline]), resamples=resamples, seed=seed)
    observed = float(score(rows.sum(axis=0)) - score(baseline.sum(axis=0)))
    return difference(score(sums[:, :width]), score(sums[:, width:]), observed, p_value)


def best_of_many(
    score: Callable[[Array], Array],
    rows: Array,
    sentences: Indices,
    systems: Indices,
    base: Indices,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Array:
    """One-tailed p-values, shape (systems,), that systems beat a base, which allow for there being many
    systems.

    `rows` (outputs, s) are the statistics of all different outputs and `sentences` (outputs,) what sentence
    each is of, in order; `systems` (sentences, systems) and `base` (sentences,) index these outputs.

    p is the probability that, by chance alone, the largest gain of any system, in standard deviations of its
    gains by chance, is at least this system's (Westfall and Young 1993). Chance is simulated in two ways, and
    the larger p counts: on random sentences the outputs of the base and of the system are swapped (Noreen
    1989), or the different outputs of each sentence change places. If no system is better than the base, a p
    is below 0.05 in at most 5 % of samples, provided that sentences are independent and that either a
    difference is as likely up as down, or the outputs of a sentence are equally good on average.
    """
    size, number = systems.shape
    if not number:
        return np.ones(0)
    every = np.column_stack([systems, base])
    sums = rows[every].sum(axis=0)  # (systems + 1, s)
    changes = (rows[systems] - rows[base][:, None]).reshape(size, -1)
    elected = np.zeros((number + 1, len(rows)))  # which systems have which output
    elected[np.arange(number + 1), every] = 1
    generator = np.random.default_rng(seed)
    swapped, shuffled = [], []
    step = max(1, _BLOCK // max(rows.size, sums.size))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        swaps = generator.integers(0, 2, size=(count, size)).astype(np.float64)
        moved = (swaps @ changes).reshape(count, number, -1)
        swapped.append(score(sums[:-1] - moved) - score(sums[-1] + moved))
        order = np.argsort(sentences + generator.random((count, len(rows))), axis=1)
        scores = score(elected @ rows[order])  # (count, systems + 1)
        shuffled.append(scores[:, :-1] - scores[:, -1:])
    observed = score(sums[:-1]) - score(sums[-1])
    p: Array = np.maximum(*(_p_of_largest(np.concatenate(gains), observed) for gains in (swapped, shuffled)))
    return p


def _p_of_largest(gains: Array, observed: Array) -> Array:
    """The share of rows of `gains` (resamples, systems) whose largest is at least each of `observed`."""
    spread = gains.std(axis=0)
    unit = np.where(spread > 1e-12, spread, np.inf)  # of systems equal to the base
    largest = (gains / unit).max(axis=1)
    reached: Array = (largest[:, None] >= observed / unit - 1e-9).sum(axis=0)
    return (1 + reached) / (1 + len(gains))


def sign_test(better: int, worse: int) -> float:
    """P(a split at least as uneven | better and worse are equally likely); leave out ties first.

    p = min(1, 2 * sum over i = 0..min(better, worse) of C(n, i) / 2^n),    n = better + worse, counted in
    whole numbers. Without any judgement that is not a tie it is 1.

    >>> round(sign_test(106, 73), 4)  # captions rated better and worse, section 4.1.4 of the paper
    0.0165
    """
    for name, count in (("better", better), ("worse", worse)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise UsageError(f"{name} must be a whole number from 0, got {count!r}.")
    total = better + worse
    tail, ways = 0, 1  # ways = C(total, i)
    for i in range(min(better, worse) + 1):
        tail += ways
        ways = ways * (total - i) // (i + 1)
    return min(1.0, 2 * tail / (1 << total))  # whole numbers of any size divide exactly
