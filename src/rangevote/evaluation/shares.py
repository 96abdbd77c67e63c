"""Means over the outputs: length in words, and the shares that are empty or copies of the source."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.metric import beside_ones
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array


class Lengths:
    """Words of each output. Columns: words, 1."""

    def __init__(self, corpus: Corpus, units: Units) -> None:
        self._split = units.splitter()
        self.signature = units.signature

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, 2)."""
        return beside_ones([len(self._split(text)) for text in outputs])


class Empties:
    """Whether an output is nothing but white space. Columns: 0 or 1, 1."""

    signature = "white space alone is empty"

    def __init__(self, corpus: Corpus, units: Units) -> None:
        pass

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, 2)."""
        return beside_ones([not text.strip() for text in outputs])


class Copies:
    """Whether `is_copy(words of the output, words of the source)`. Columns: 0 or 1, 1."""

    def __init__(
        self, corpus: Corpus, units: Units, is_copy: Callable[[Sequence[str], Sequence[str]], bool]
    ) -> None:
        self._split, self._is_copy = units.splitter(), is_copy
        self._sources = [self._split(text) for text in corpus.sources or ()]
        self.signature = units.signature

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, 2)."""
        pairs = zip(outputs, self._sources, strict=True)
        return beside_ones([self._is_copy(self._split(text), source) for text, source in pairs])


def exact_copies(corpus: Corpus, units: Units) -> Copies:
    """Outputs that are the source, word by word."""
    return Copies(corpus, units, lambda words, source: bool(source) and list(words) == list(source))


def partial_copies(corpus: Corpus, units: Units) -> Copies:
    """Outputs with at least 50 % of the source's distinct words (footnote in section 4.2 of the paper)."""
    return Copies(corpus, units, half_of_source)


def half_of_source(words: Sequence[str], source: Sequence[str]) -> bool:
    """Whether at least half of the source's distinct words are among `words`; never of an empty source.

    >>> half_of_source("ein cat sat".split(), "the cat sat there".split())
    True
    """
    distinct = set(source)
    return bool(distinct) and 2 * len(distinct.intersection(words)) >= len(distinct)
