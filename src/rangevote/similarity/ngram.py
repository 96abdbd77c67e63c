"""overlap_n and precision_n, the paper's measures, and the linear family around them.

    overlap_n(v, c)   = |set_n(v) and set_n(c)| / |set_n(v)|        (equation 3)
    precision_n(v, c) = |bag_n(v) and bag_n(c)| / |bag_n(v)|        (equation 2)

With the exponent a: |v and c| / (|v|^(1-a) |c|^a), averaged over a range of orders. All of it is
linear in the number of tokens, since every n-gram collects its votes once:

    score(c) = |c|^-a * sum over g in c of A[g],   A[g] = sum over v with g of P(v) |v|^(a-1)
"""

from __future__ import annotations

import re

from rangevote.errors import UsageError
from rangevote.hypothesis import Array
from rangevote.kernel import Index
from rangevote.similarity.base import short
from rangevote.similarity.indexed import IndexMeasure
from rangevote.similarity.tokens import Tokenise, check_tokeniser

_ORDERS = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?(?:@(\d*\.?\d+))?")


class Ngrams(IndexMeasure):
    """A measure of the family: sets or bags of n-grams of the given orders, with exponent `a`."""

    linear = True
    short = True

    def __init__(self, orders: range, *, bag: bool, a: float = 0.0, tokenize: Tokenise = "words") -> None:
        check_tokeniser(tokenize)
        if not orders or orders[0] < 1 or orders.step != 1 or not 0 <= a <= 1:
            raise UsageError(
                f"orders {orders} with exponent {a}: orders start at 1, the exponent is from 0 to 1, and "
                f"orders have no gaps."
            )
        self.orders, self.bag, self.a, self.tokenize = list(orders), bag, a, tokenize
        first, last = orders[0], orders[-1]
        kind = "precision" if bag else "overlap"
        self.name = f"{kind}_{first}" + (f"-{last}" if last > first else "") + (f"@{short(a)}" if a else "")

    def count(self, index: Index, weights: Array, own: bool) -> Array:
        """score(c), shape (candidates,)."""
        return index.tally(weights, self.a, own)

    def grade(self, index: Index, own: bool) -> Array:
        """sim(v, c), shape (voters, candidates)."""
        return index.grades(self.a, own)


def overlap(argument: str, tokenize: Tokenise) -> Ngrams:
    """Share of the voter's distinct n-grams that the candidate also has."""
    return _parse("overlap", argument, tokenize)


def precision(argument: str, tokenize: Tokenise) -> Ngrams:
    """Share of the voter's n-grams, with multiplicity, that the candidate also has."""
    return _parse("precision", argument, tokenize)


def _parse(kind: str, argument: str, tokenize: Tokenise) -> Ngrams:
    match = _ORDERS.fullmatch(argument)
    first, last, a = match.groups() if match else ("0", None, None)
    orders = range(int(first), int(last or first) + 1)
    if not orders or orders[0] < 1 or float(a or 0) > 1:
        raise UsageError(
            f"{kind} needs an order from 1, or a range, and may have an exponent from 0 to 1: "
            f"{kind}_2, {kind}_1-4, {kind}_1-4@0.25; got {kind}_{argument}."
        )
    return Ngrams(orders, bag=kind == "precision", a=float(a or 0), tokenize=tokenize)
