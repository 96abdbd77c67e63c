"""chrf: F-score of character n-grams, 1 to 6, recall counted beta = 2 times as much.

The same numbers as sacrebleu's sentence chrF (divided by 100), white space removed.
"""

from __future__ import annotations

from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel import Index
from rangevote.similarity.base import refuse_argument, short
from rangevote.similarity.indexed import IndexMeasure, IndexPoll
from rangevote.similarity.tokens import Tokenise


class Chrf(IndexMeasure):
    """Character F-score of the candidate with the voter as its reference."""

    tokenize = "chars"

    def __init__(self, order: int = 6, beta: float = 2.0) -> None:
        if not 1 <= order <= 50 or not 0 <= beta <= 100:
            raise UsageError(f"chrf: order {order} must be from 1 to 50, beta {beta} from 0 to 100.")
        self.orders, self.beta = list(range(1, order + 1)), beta
        plain = order == 6 and beta == 2.0
        self.name = "chrf" if plain else f"chrf_{order}b{short(beta)}"

    def poll(self, candidates: Hypotheses) -> IndexPoll:
        """Open an election among these candidates."""
        if candidates.texts is None and len(candidates):
            raise DataError("chrf compares characters and needs texts.", field=candidates.role)
        return super().poll(candidates)

    def count(self, index: Index, weights: Array, own: bool) -> Array:
        """score(c), shape (candidates,)."""
        return index.chrf_tally(weights, self.beta, own)

    def grade(self, index: Index, own: bool) -> Array:
        """chrF of c against v, shape (voters, candidates)."""
        return index.chrf_grades(self.beta, own)


def chrf(argument: str, tokenize: Tokenise) -> Chrf:
    """Character n-gram F-score, as sacrebleu's sentence chrF."""
    refuse_argument("chrf", argument)
    return Chrf()
