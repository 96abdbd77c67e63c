"""bleu_n and smoothed_bleu_n: range voting with BLEU is minimum Bayes risk decoding.

    sim(v, c) = BLEU(c against the single reference v), in [0, 1], sentence level

The same numbers as sacrebleu's sentence BLEU without smoothing, or with add-k smoothing and k = 1
(1 is added to matches and totals for n > 1), `effective_order=False`, on the same tokens.
"""

from __future__ import annotations

from rangevote.errors import UsageError
from rangevote.hypothesis import Array
from rangevote.kernel import Index
from rangevote.similarity.indexed import IndexMeasure
from rangevote.similarity.tokens import Tokenise, check_tokeniser


class Bleu(IndexMeasure):
    """Sentence BLEU of the candidate with the voter as its reference."""

    def __init__(self, order: int = 4, *, smooth: bool = False, tokenize: Tokenise = "words") -> None:
        check_tokeniser(tokenize)
        if not 1 <= order <= 50:
            raise UsageError(f"bleu_{order}: the order must be from 1 to 50.")
        self.orders, self.smooth, self.tokenize = list(range(1, order + 1)), smooth, tokenize
        self.name = f"{'smoothed_' if smooth else ''}bleu_{order}"

    def count(self, index: Index, weights: Array, own: bool) -> Array:
        """score(c), shape (candidates,)."""
        return index.bleu_tally(weights, self.smooth, own)

    def grade(self, index: Index, own: bool) -> Array:
        """BLEU of c against v, shape (voters, candidates)."""
        return index.bleu_grades(self.smooth, own)


def bleu(argument: str, tokenize: Tokenise) -> Bleu:
    """BLEU of the candidate against the voter (MBR)."""
    return Bleu(_order("bleu", argument), tokenize=tokenize)


def smoothed_bleu(argument: str, tokenize: Tokenise) -> Bleu:
    """BLEU with 1 added to matches and totals for n > 1 (MBR)."""
    return Bleu(_order("smoothed_bleu", argument), smooth=True, tokenize=tokenize)


def _order(kind: str, argument: str) -> int:
    if not argument.isdecimal():
        raise UsageError(
            f"{kind} needs its highest order, as in {kind}_4; got {f'{kind}_{argument}'.rstrip('_')}."
        )
    return int(argument)
