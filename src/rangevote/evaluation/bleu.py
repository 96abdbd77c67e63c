"""Corpus BLEU, twice: over words as NLTK computes it (captions), and sacreBLEU (translation).

    BLEU-N = 100 * BP * exp(mean over n = 1..N of log p_n),    p_n = matches_n / n-grams of the outputs
    BP = min(1, exp(1 - r / c)),    c words in the outputs, r in the references closest to them in length

The two differ in the words, and where counts are zero: see `word_bleu` and `sacre_bleu`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rangevote.errors import UnknownName, nearest, need
from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array

ORDER = 4

Grams = Counter[tuple[str, ...]]


def grams_of(words: Sequence[str]) -> Grams:
    """The n-grams of all orders from 1 to 4, with their counts."""
    found: Grams = Counter()
    for n in range(1, ORDER + 1):
        found.update(zip(*(words[i:] for i in range(n)), strict=False))
    return found


class WordMatches:
    """Columns: length, closest reference length, matches of orders 1 to 4, n-grams of orders 1 to 4.

    An n-gram matches as often as the reference that has most of it. The number of n-grams of a sentence is
    at least 1, also where it is too short to have any: so counts NLTK.
    """

    def __init__(self, corpus: Corpus, units: Units) -> None:
        self._split = units.splitter()
        self._references = [self._read(item) for item in corpus.references or ()]
        self.signature = f"nltk|{corpus.signature}|{units.signature}"

    def _read(self, references: Sequence[str]) -> tuple[list[int], Grams]:
        most: Grams = Counter()
        lengths = []
        for text in references:
            words = self._split(text)
            lengths.append(len(words))
            most |= grams_of(words)
        return lengths, most

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, 10)."""
        pairs = zip(outputs, self._references, strict=True)
        return np.array([self._row(text, *reference) for text, reference in pairs], dtype=np.float64)

    def _row(self, text: str, lengths: list[int], most: Grams) -> list[int]:
        words = self._split(text)
        size = len(words)
        matches = [0] * ORDER
        for gram, count in grams_of(words).items():
            matches[len(gram) - 1] += min(count, most[gram])
        closest = min(lengths, key=lambda length: (abs(length - size), length))
        return [size, closest, *matches, *(max(1, size - n) for n in range(ORDER))]


def word_bleu(order: int) -> Callable[[Array], Array]:
    """BLEU of orders 1 to `order`: sums (..., 10) -> (...).

    Without a single matching word it is 0; an order above that without a match counts as the smallest
    positive number, which NLTK takes for 0 in a logarithm.
    """

    def score(sums: Array) -> Array:
        matches, totals = sums[..., 2 : 2 + order], sums[..., 2 + ORDER : 2 + ORDER + order]
        precisions = np.where(matches > 0, matches / totals, sys.float_info.min)  # (..., order)
        product = np.exp(np.log(precisions).sum(axis=-1) / order)
        result: Array = 100 * np.where(matches[..., 0] > 0, _brevity(sums) * product, 0.0)
        return result

    return score


class SacreMatches:
    """The same columns over sacreBLEU's tokens, counted by sacrebleu; n-grams may be 0."""

    def __init__(self, corpus: Corpus, units: Units) -> None:
        options = {"tokenize": units.bleu_tokenize, "lowercase": units.lowercase}
        metrics = need("sacrebleu.metrics", "evaluate", "sacreBLEU")
        _check_tokenisation(units.bleu_tokenize, metrics.BLEU.TOKENIZERS)
        # effective order changes the score of a sentence, not its counts, and keeps sacrebleu from
        # warning about sentences: the scores are ours
        self._counter = metrics.BLEU(effective_order=True, **options)
        self._references = corpus.references or ()
        # sacrebleu signs only what has met references: here any, since their number is ours
        signature = metrics.BLEU(references=[[""]], **options).get_signature()
        signature.update("nrefs", corpus.signature.removeprefix("nrefs:"))
        self.signature = str(signature)

    def rows(self, outputs: Sequence[str]) -> Array:
        """Shape (outputs, 10)."""
        pairs = zip(outputs, self._references, strict=True)
        return np.array([self._row(text, references) for text, references in pairs], dtype=np.float64)

    def _row(self, text: str, references: Sequence[str]) -> list[int]:
        found: Any = self._counter.sentence_score(text, references)
        return [found.sys_len, found.ref_len, *found.counts, *found.totals]


def sacre_bleu(sums: Array) -> Array:
    """sacreBLEU with its default smoothing "exp": sums (..., 10) -> (...).

    The first order without a match counts half a match, the second a quarter, and so on; it is 0 where
    there is no match at all or an order without n-grams.
    """
    matches, totals = sums[..., 2 : 2 + ORDER], sums[..., 2 + ORDER :]
    missing = matches == 0
    counted = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
    precisions = counted / np.maximum(totals, 1)
    product = np.exp(np.log(precisions).mean(axis=-1))
    something = (matches > 0).any(axis=-1) & (totals > 0).all(axis=-1)
    result: Array = 100 * np.where(something, _brevity(sums) * product, 0.0)
    return result


def _brevity(sums: Array) -> Array:
    """The brevity penalty, 0 where nothing was said."""
    length, closest = sums[..., 0], sums[..., 1]
    penalty = np.exp(np.minimum(0.0, 1 - closest / np.maximum(length, 1)))
    result: Array = np.where(length > 0, penalty, 0.0)
    return result


def _check_tokenisation(name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UnknownName(
            f"unknown tokenisation of sacreBLEU {name!r}.{nearest(name, known)} "
            f"Choose from: {', '.join(sorted(known))}."
        )
