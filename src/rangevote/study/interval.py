"""The exact confidence interval of a share, after Clopper and Pearson (1934), without any package."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from rangevote.errors import UsageError

CONFIDENCE = 0.95
_STEPS = 100  # halvings; a float has 53 bits


class Interval(NamedTuple):
    """From `low` to `high`."""

    low: float
    high: float


def clopper_pearson(wins: int, trials: int, confidence: float = CONFIDENCE) -> Interval | None:
    """All shares p under which neither `wins` or more nor `wins` or fewer is rarer than (1 - confidence) / 2.

    None without trials: nothing is known then.

    >>> round(clopper_pearson(0, 10).high, 6)  # 1 - 0.025 ** (1 / 10)
    0.308497
    """
    if not 0 <= wins <= trials:
        raise UsageError(f"{wins} wins in {trials} trials cannot be; wins must be from 0 to the trials.")
    if trials == 0:
        return None
    tail = (1 - confidence) / 2
    low = 0.0 if wins == 0 else _root(lambda p: at_least(wins, trials, p) - tail)
    high = 1.0 if wins == trials else _root(lambda p: tail - at_least(trials - wins, trials, 1 - p))
    return Interval(low, high)


def at_least(wins: int, trials: int, p: float) -> float:
    """P(X >= wins) of a binomial X, summed from its terms."""
    if p <= 0 or p >= 1:
        return float(p >= 1 or wins == 0)
    log_p, log_q, whole = math.log(p), math.log1p(-p), math.lgamma(trials + 1)
    terms = (
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * log_p + (trials - k) * log_q)
        for k in range(wins, trials + 1)
    )
    return math.fsum(terms)


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function on [0, 1] passes 0, by halving."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
