"""chrF of a corpus: F-score of character n-grams of orders 1 to 6, the same numbers as sacrebleu's.

P, R = means over the orders n of matches_n / n-grams of the outputs, of the references
chrF = 100 * (1 + beta^2) P R / (beta^2 P + R),    beta = 2, white space left out
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rangevote import __version__
from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array

ORDER = 6
BETA = 2

Grams = list[Counter[str]]  # one for each order


class CharacterMatches:
    """Columns: for each order the n-grams of the output, of the reference, and those in both.

    Of several references the one counts under which the sentence has the best score.
    """

    def __init__(self, corpus: Corpus, units: Units) -> None:
        self._lowercase = units.lowercase
        self._references = [[self._read(text) for text in item] for item in corpus.references or ()]
        self.signature = (
            f"rv:{__version__.rpartition('.')[0]}|{corpus.signature}|case:{units.case}|eff:yes|nc:{ORDER}|"
            f"nw:0|space:no|beta:{BETA}"
        )

    def _read(self, text: str) -> Grams:
        joined = "".join((text.lower() if self._lowercase else text).split())
        return [Counter([joined[i : i + n] for i in range(len(joined) - n + 1)]) for n in range(1, ORDER + 1)]

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, 18)."""
        pairs = zip(outputs, self._references, strict=True)
        return np.array([self._row(self._read(text), item) for text, item in pairs], dtype=np.float64)

    @staticmethod
    def _row(output: Grams, references: list[Grams]) -> Array:
        against = np.array([_matches(output, reference) for reference in references], dtype=np.float64)
        best: Array = against[np.argmax(f_score(against))] if len(against) > 1 else against[0]
        return best


def _matches(output: Grams, reference: Grams) -> list[int]:
    row = []
    for ours, theirs in zip(output, reference, strict=True):
        common = sum(min(count, theirs[gram]) for gram, count in ours.items() if gram in theirs)
        # an order that the reference has not is not held against the output
        row += [ours.total() if theirs else 0, theirs.total(), common]
    return row


def f_score(sums: Array) -> Array:
    """chrF: sums (..., 18) -> (...). Orders that one side has no n-grams of are left out of the means."""
    ours, theirs, common = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]  # (..., 6) each
    present = (ours > 0) & (theirs > 0)
    orders = np.maximum(present.sum(axis=-1), 1)
    precision = (present * common / np.maximum(ours, 1)).sum(axis=-1) / orders
    recall = (present * common / np.maximum(theirs, 1)).sum(axis=-1) / orders
    weighted = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    result: Array = 100 * np.divide(product, weighted, out=np.zeros_like(product), where=weighted > 0)
    return result
