"""Weighted mixtures of measures: 0.5*overlap_2+0.5*states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rangevote.errors import UsageError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Measure, Poll, Similarity, keys_of, open_poll, short


class Mixture(Measure):
    """sim(v, c) = sum of coefficient * sim_i(v, c); linear where all its parts are."""

    def __init__(self, parts: Sequence[tuple[float, Similarity]]) -> None:
        total = sum(abs(coefficient) for coefficient, _ in parts)
        if not parts or not 0 < total <= 1 + 1e-9:
            raise UsageError(
                f"the coefficients of a mixture sum to {total:g}; they must sum to at most 1, so that grades "
                f"stay within -1 and 1, as in 0.5*overlap_2+0.5*states."
            )
        self.parts = tuple(parts)
        self.name = "+".join(f"{short(coefficient)}*{part.name}" for coefficient, part in parts)
        self.linear = all(getattr(part, "linear", False) for _, part in parts)
        negative = any(coefficient < 0 for coefficient, _ in parts)
        self.lowest = -1.0 if negative else min(getattr(part, "lowest", -1.0) for _, part in parts)

    def poll(self, candidates: Hypotheses) -> MixturePoll:
        return MixturePoll([(coefficient, open_poll(part, candidates)) for coefficient, part in self.parts])

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """The keys of all parts together; None where all abstain."""
        columns = [keys_of(part, candidates) for _, part in self.parts]
        return [None if set(row) == {None} else row for row in zip(*columns, strict=True)]

    def about(self, source: str | None) -> Mixture:
        """The same mixture, with every part about this source."""
        parts = [(n, part.about(source) if isinstance(part, Measure) else part) for n, part in self.parts]
        changed = any(new is not old for (_, new), (_, old) in zip(parts, self.parts, strict=True))
        return Mixture(parts) if changed else self

    def signature_on(self, candidates: Hypotheses) -> str:
        names = [part.signature_on(candidates) for _, part in self.parts if isinstance(part, Measure)]
        return "+".join(dict.fromkeys(name for name in names if name))


class MixturePoll:
    """One poll for each part."""

    def __init__(self, parts: Sequence[tuple[float, Poll]]) -> None:
        self._parts = parts

    def add(self, voters: Hypotheses) -> None:
        for _, poll in self._parts:
            poll.add(voters)

    def tally(self, weights: Array) -> Array:
        (first, poll), *rest = self._parts
        total = first * poll.tally(weights)
        for coefficient, poll in rest:
            total = total + coefficient * poll.tally(weights)
        return total

    def matrix(self) -> Array:
        (first, poll), *rest = self._parts
        total = first * poll.matrix()
        for coefficient, poll in rest:
            total = total + coefficient * poll.matrix()
        return total
