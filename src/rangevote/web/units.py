"""What the n-grams of a measure are made of, so that a page can mark those that two texts share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rangevote.errors import RangevoteError
from rangevote.hypothesis import Hypotheses
from rangevote.similarity.base import Similarity
from rangevote.similarity.chrf import Chrf
from rangevote.similarity.indexed import IndexMeasure
from rangevote.similarity.mixture import Mixture
from rangevote.similarity.pairwise import SequenceMeasure
from rangevote.similarity.tokens import Reader, Tokenise


def tokenisation(similarity: Similarity) -> Tokenise:
    """What a measure compares, of a mixture its first part that says; words where none does."""
    return next(_told(similarity), "words")


def words(similarity: Similarity) -> Tokenise:
    """The tokenisation that was asked for: chrF has characters whatever it is."""
    return next(_told(similarity, but=Chrf), "words")


def _told(similarity: Similarity, but: type | tuple[()] = ()) -> Iterator[Tokenise]:
    if isinstance(similarity, Mixture):
        for _, part in similarity.parts:
            yield from _told(part, but)
    elif isinstance(similarity, (IndexMeasure, SequenceMeasure)) and not isinstance(similarity, but):
        yield similarity.tokenize


def ngram_measures(similarity: Similarity) -> Iterator[IndexMeasure]:
    """The measure, or the parts of a mixture, that count n-grams."""
    if isinstance(similarity, Mixture):
        for _, part in similarity.parts:
            yield from ngram_measures(part)
    elif isinstance(similarity, IndexMeasure):
        yield similarity


class Units:
    """The units of the hypotheses of one election.

    `name` is "words" or "chars" where a page finds them in the text by itself, else "listed".
    """

    def __init__(self, similarity: Similarity, candidates: Hypotheses) -> None:
        tokenize = tokenisation(similarity)
        self._reader: Reader | None = None
        self.name = str(tokenize)
        if candidates.texts is None or tokenize not in ("words", "chars"):
            self.name, self._reader = "listed", Reader(tokenize, candidates)

    def listed(self, hypotheses: Hypotheses, index: int) -> list[str] | None:
        """The units of one hypothesis as a person reads them; None where they stand in its text."""
        if self._reader is None:
            return None
        try:
            [read] = self._reader.read(hypotheses.only(index))
        except RangevoteError:  # no tokens here, under a measure that needs none
            return []
        items: list[Any] = read.split() if isinstance(read, str) else list(read)
        return [self._reader.spell([item]) if not isinstance(read, str) else item for item in items]
