"""How far annotators agree: Krippendorff's alpha (Krippendorff 2011, "Computing Krippendorff's
Alpha-Reliability"), and the plain share of pairs that agree.

    alpha = 1 - D_o / D_e,    D = sum over values c, k of coincidences(c, k) * distance(c, k)^2

with the coincidences observed within units, and those expected if values were dealt out by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations

#: (c, k, how often each value occurs in pairable units) -> squared distance
Distance = Callable[[int, int, Counter[int]], float]


def ordinal(c: int, k: int, totals: Counter[int]) -> float:
    """The number of values from c to k, both ends counted half, squared."""
    low, high = min(c, k), max(c, k)
    between = sum(n for value, n in totals.items() if low <= value <= high)
    return (between - (totals[low] + totals[high]) / 2) ** 2 if low != high else 0.0


def nominal(c: int, k: int, totals: Counter[int]) -> float:
    """1 for different values."""
    return float(c != k)


def interval(c: int, k: int, totals: Counter[int]) -> float:
    """The squared difference."""
    return float((c - k) ** 2)


DISTANCES: dict[str, Distance] = {"ordinal": ordinal, "nominal": nominal, "interval": interval}


def alpha(units: Sequence[Sequence[int]], distance: Distance = ordinal) -> float | None:
    """1 for perfect agreement, 0 for what chance gives; a unit holds the values that its annotators gave.

    Units with a single value say nothing and are passed over. None where alpha is undefined: no unit has two
    values, or all values are the same.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    disagreement = 0.0
    totals = Counter(value for unit in pairable for value in unit)
    number = sum(totals.values())
    for unit in pairable:
        observed = Counter(permutations(unit, 2))
        disagreement += sum(n * distance(c, k, totals) for (c, k), n in observed.items()) / (len(unit) - 1)
    expected = sum(totals[c] * totals[k] * distance(c, k, totals) for c in totals for k in totals)
    if expected == 0:
        return None
    return 1 - disagreement * (number - 1) / expected


def share_agreeing(units: Sequence[Sequence[int]]) -> float | None:
    """The share of pairs of annotators, over all units, that gave the same value; None without pairs."""
    same = sum(c == k for unit in units for c, k in permutations(unit, 2))
    pairs = sum(len(unit) * (len(unit) - 1) for unit in units)
    return same / pairs if pairs else None
