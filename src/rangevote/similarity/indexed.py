"""Measures counted by the kernels: n-gram measures, BLEU and chrF."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from copy import copy

from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel import Index
from rangevote.similarity.base import Measure, check_pairs
from rangevote.similarity.tokens import Reader, Tokenise, refuse_unreadable, tokeniser_name


class IndexMeasure(Measure):
    """A measure over the n-grams of some orders, as sets or bags; `Index` says what `short` means."""

    orders: Sequence[int]
    bag: bool = True
    short: bool = False
    tokenize: Tokenise = "words"

    @property
    def features(self) -> Hashable:
        """What is counted; polls of measures with the same features can share it (`IndexPoll.under`)."""
        return (tuple(self.orders), self.bag, self.short, self.tokenize)

    @abstractmethod
    def count(self, index: Index, weights: Array, own: bool) -> Array:
        """score(c), shape (candidates,)."""

    @abstractmethod
    def grade(self, index: Index, own: bool) -> Array:
        """sim(v, c), shape (voters, candidates)."""

    def poll(self, candidates: Hypotheses) -> IndexPoll:
        """Open an election among these candidates."""
        return IndexPoll(self, candidates)

    def signature_on(self, candidates: Hypotheses) -> str:
        """What the n-grams are made of."""
        return tokeniser_name(self.tokenize, candidates)


class IndexPoll:
    """Candidates and voters in a kernel `Index`.

    Where the candidates themselves are the voters (the same object is added), nothing is read twice.
    """

    def __init__(self, measure: IndexMeasure, candidates: Hypotheses) -> None:
        self._measure, self._candidates = measure, candidates
        self._reader = Reader(measure.tokenize, candidates)
        self._own = False
        self._voters = 0
        try:
            self._index = Index(
                self._reader.read(candidates),
                self._reader.unit,
                measure.orders,
                measure.bag,
                measure.short,
            )
        except (UnicodeEncodeError, OverflowError):
            refuse_unreadable(candidates)
            raise

    def add(self, voters: Hypotheses) -> None:
        """Take more voters in; each costs its own length."""
        if voters is self._candidates and self._voters == 0:
            self._own = True
        else:
            if self._own:
                self._own = False
                self._read(self._candidates)
            self._read(voters)
        self._voters += len(voters)

    def _read(self, voters: Hypotheses) -> None:
        try:
            self._index.add(self._reader.read(voters))
        except (UnicodeEncodeError, OverflowError):
            refuse_unreadable(voters)
            raise

    def under(self, measure: IndexMeasure) -> IndexPoll:
        """The votes so far under another measure with the same features; nothing is read again."""
        other = copy(self)
        other._measure = measure
        return other

    def tally(self, weights: Array) -> Array:
        """score(c), shape (candidates,)."""
        if not self._measure.linear:
            check_pairs(self._voters, len(self._candidates))
        return self._measure.count(self._index, weights, self._own)

    def matrix(self) -> Array:
        """sim(v, c), shape (voters, candidates)."""
        check_pairs(self._voters, len(self._candidates), matrix=True)
        return self._measure.grade(self._index, self._own)
