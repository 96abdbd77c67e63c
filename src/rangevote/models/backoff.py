"""Probabilities of n-grams with back-off, in sorted arrays.

    P(w | u) = p(u w)              where the n-gram u w is listed,
             = b(u) P(w | u')      where it is not; u' is u without its first word

b(u) is 1 where u is not listed.

Level n lists the n-grams of n words in the order of (context, last word). An n-gram is known by its place in
its level, a word being its own place in level 1, so that one integer is the sorting key:

    key(u w) = place(u) * words + w

The words listed after one context stand side by side; an n-gram is found by one binary search for each word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rangevote.models.protocol import Integers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """The n-grams of one length: `keys` ascending, natural logs of p and b; all (ngrams,)."""

    keys: Integers
    logprobs: Floats
    backoffs: Floats

    def find(self, contexts: Integers, words: Integers, size: int) -> Integers:
        """The places of n-grams, given those of their contexts and their last words; -1: not listed.

        `size`: how many words there are. After a context of -1 nothing is listed: keys are not negative.
        """
        if not self.keys.size:
            return np.full(contexts.shape, -1)
        keys = contexts * size + words
        places = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[places] == keys, places, -1)


class Backoff:
    """P(next word | history) for histories (rows, order - 1) of word numbers; -1: before the start."""

    def __init__(self, size: int, levels: Sequence[Level]) -> None:
        self.size, self.levels, self.order = size, list(levels), len(levels)
        # where the n-grams of each context begin in the next level, and after the last one where they end
        self._begins = [
            np.searchsorted(longer.keys, np.arange(shorter.keys.size + 1) * size)
            for shorter, longer in zip(self.levels, self.levels[1:], strict=False)
        ]

    def contexts(self, history: Integers) -> Integers:
        """Places (rows, order - 1) of the last 1, 2, ... words; -1 where they are not listed."""
        places = np.full(history.shape, -1)
        for length in range(1, self.order):
            place = history[:, -length]  # (rows,)
            for n in range(2, length + 1):
                place = self.levels[n - 1].find(place, history[:, n - 1 - length], self.size)
            places[:, length - 1] = place
        return places

    def score(self, history: Integers, words: Integers) -> Floats:
        """log P of one word (rows,) after each history."""
        scores = self.levels[0].logprobs[words]
        for n, context in enumerate(self.contexts(history).T, 2):
            lower, level = self.levels[n - 2], self.levels[n - 1]
            known = context >= 0  # (rows,)
            scores[known] += lower.backoffs[context[known]]
            place = level.find(context, words, self.size)  # (rows,)
            listed = place >= 0  # (rows,)
            scores[listed] = level.logprobs[place[listed]]
        return scores

    def rows(self, history: Integers) -> Floats:
        """log P of every word (rows, words) after each history; equal histories are worked out once."""
        places = self.contexts(history)
        sizes = [level.keys.size for level in self.levels[:-1]]
        offsets = np.cumsum([0, *sizes])[:-1]  # (order - 1,)
        # the longest listed context says all: the shorter ones are its last words
        longest = np.where(places >= 0, places + offsets, -1).max(axis=1, initial=-1)  # (rows,)
        _, first, back = np.unique(longest, return_index=True, return_inverse=True)
        table = np.empty((len(history), self.size))
        for row, contexts in zip(first.tolist(), places[first].tolist(), strict=True):
            self._fill(table[row], contexts)
        alike = first[back]  # (rows,): the first row with the same context
        again = np.flatnonzero(alike != np.arange(len(history)))
        table[again] = table[alike[again]]
        return table

    def _fill(self, row: Floats, contexts: Sequence[int]) -> None:
        """Write log P of every word (words,): first what backs off the furthest, over it what is listed."""
        known = [(n, place) for n, place in enumerate(contexts) if place >= 0]
        weights = [float(self.levels[n].backoffs[place]) for n, place in known]
        np.add(self.levels[0].logprobs, sum(weights), out=row)
        for i, (n, place) in enumerate(known):
            begin, end = self._begins[n][place : place + 2]
            level = self.levels[n + 1]
            listed = level.keys[begin:end] - place * self.size  # the words after this context
            row[listed] = level.logprobs[begin:end] + sum(weights[i + 1 :])
