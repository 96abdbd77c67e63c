"""Range voting straight from the paper's equations, pair by pair: the oracle of the tests.

Nothing here is fast. It is what every other implementation in this package must agree with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

Gram = tuple[Hashable, ...]


def grams(sequence: Sequence[Hashable], n: int) -> list[Gram]:
    """All n-grams of a sequence; a non-empty one shorter than n is its own only n-gram."""
    if 0 < len(sequence) < n:
        return [tuple(sequence)]
    return [tuple(sequence[i : i + n]) for i in range(len(sequence) - n + 1)]


def family(v: Sequence[Hashable], c: Sequence[Hashable], orders: Sequence[int], a: float, bag: bool) -> float:
    """Mean over orders of |v and c| / (|v|^(1-a) |c|^a)."""
    total = 0.0
    for n in orders:
        voter, candidate = Counter(grams(v, n)), Counter(grams(c, n))
        if not bag:
            voter, candidate = Counter(set(voter)), Counter(set(candidate))
        shared = (voter & candidate).total()
        if shared:
            total += shared / (voter.total() ** (1 - a) * candidate.total() ** a)
    return total / len(orders)


def overlap(v: Sequence[Hashable], c: Sequence[Hashable], n: int) -> float:
    """|set_n(v) and set_n(c)| / |set_n(v)| (equation 3); the empty sequence abstains."""
    return family(v, c, [n], 0.0, bag=False)


def scores(
    candidates: Sequence[Sequence[Hashable]],
    voters: Sequence[Sequence[Hashable]],
    weights: Sequence[float],
    sim: Callable[[Sequence[Hashable], Sequence[Hashable]], float],
) -> list[float]:
    """score(c) = sum over voters v of P(v) sim(v, c) (equation 1)."""
    return [sum(w * sim(v, c) for w, v in zip(weights, voters, strict=True)) for c in candidates]
