"""Measures made of others: weighted mixtures (0.5*overlap_2+0.5*states), and cutoffs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from rangevote.errors import UsageError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel.plain import rounded
from rangevote.similarity.base import ChangedMeasure, Measure, Poll, Similarity, as_measure, number_text
from rangevote.similarity.pairwise import PairPoll


class Mixture(Measure):
    """sim(v, c) = sum of coefficient * sim_i(v, c); linear if all its parts are."""

    def __init__(self, parts: Sequence[tuple[float, Similarity]]) -> None:
        total = sum(abs(coefficient) for coefficient, _ in parts)
        if not parts or not 0 < total <= 1 + 1e-9:
            raise UsageError(
                f"the coefficients of a mixture sum to {total:g}; they must sum to at most 1, so that grades "
                f"stay within -1 and 1, for example 0.5*overlap_2+0.5*states."
            )
        self._parts = [(coefficient, as_measure(part)) for coefficient, part in parts]
        measures = [part for _, part in self._parts]
        self.name = "+".join(f"{number_text(coefficient)}*{part.name}" for coefficient, part in self._parts)
        self.linear = all(part.linear for part in measures)
        self.decomposes = all(part.decomposes for part in measures)
        negative = any(coefficient < 0 for coefficient, _ in parts)
        self.lowest = -1.0 if negative else min(part.lowest for part in measures)

    def parts(self) -> list[tuple[float, Measure]]:
        return [(outer * inner, part) for outer, mixed in self._parts for inner, part in mixed.parts()]

    def poll(self, candidates: Hypotheses) -> MixturePoll:
        return MixturePoll([(coefficient, part.poll(candidates)) for coefficient, part in self._parts])

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """The keys of all parts together; None where all abstain."""
        columns = [part.keys(candidates) for _, part in self._parts]
        return [None if set(row) == {None} else row for row in zip(*columns, strict=True)]

    def about(self, source: str | None) -> Mixture:
        """The same mixture, with every part about this source."""
        parts = [(coefficient, part.about(source)) for coefficient, part in self._parts]
        return self if parts == self._parts else Mixture(parts)


class MixturePoll:
    """One poll for each part."""

    def __init__(self, parts: Sequence[tuple[float, Poll]]) -> None:
        self._parts = parts

    def add(self, voters: Hypotheses) -> None:
        for _, poll in self._parts:
            poll.add(voters)

    def tally(self, weights: Array) -> Array:
        return self._sum(lambda poll: poll.tally(weights))

    def matrix(self) -> Array:
        return self._sum(lambda poll: poll.matrix())

    def _sum(self, votes: Callable[[Poll], Array]) -> Array:
        (first, poll), *others = self._parts
        total = first * votes(poll)
        for coefficient, poll in others:
            total = total + coefficient * votes(poll)
        return total


class Cutoff(ChangedMeasure):
    """The grades of `inner` from `least` on, others as 0. Every pair is graded, whatever the measure is.

    Plain voting on open-ended texts elects what is a little like everything. With a cutoff a voter supports
    only candidates at least this similar to it, so that nobody is elected as a compromise.
    """

    def __init__(self, inner: Similarity, least: float) -> None:
        super().__init__(inner)
        self.least = least

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(candidates, self._grade, list)

    def _grade(self, voters: Sequence[Any], candidates: Any) -> Array:
        grades = self.inner.matrix(candidates, Hypotheses.of(voters, role="voters"))
        return np.where(rounded(grades) >= self.least, grades, 0.0)
