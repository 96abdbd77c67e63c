"""Measures in which a model of the user's grades every pair of texts."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from rangevote.errors import SetupError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Measure
from rangevote.similarity.embedding import texts_of
from rangevote.similarity.pairwise import PairPoll

#: Pairs that a model is given in one call; it makes batches of them itself.
BLOCK = 1 << 14


class Judged(Measure):
    """Grades from `judge`, asked once for every two different texts; the empty text abstains."""

    lowest = -1.0

    def poll(self, candidates: Hypotheses) -> PairPoll:
        """Open an election among these candidates."""
        return PairPoll(self._texts(candidates), self._grade, self._texts)

    @abstractmethod
    def judge(self, voters: list[str], candidates: list[str]) -> Sequence[float]:
        """The grade of each candidate from the voter at the same place."""

    def _texts(self, hypotheses: Hypotheses) -> list[str]:
        return texts_of(hypotheses, self.name)

    def _grade(self, voters: Sequence[str], candidates: Sequence[str]) -> Array:
        """sim(v, c), shape (voters, candidates)."""
        rows, columns = _places(voters), _places(candidates)
        table = np.zeros((len(rows) + 1, len(columns) + 1))  # the last row and column: empty texts
        if rows and columns:
            table[:-1, :-1] = self._pairs(list(rows), list(columns))
        at = [rows.get(text, -1) for text in voters], [columns.get(text, -1) for text in candidates]
        return np.asarray(table[np.array(at[0], dtype=int)[:, None], np.array(at[1], dtype=int)[None, :]])

    def _pairs(self, voters: list[str], candidates: list[str]) -> Array:
        """Grades of all pairs of different texts, a block at a time, shape (voters, candidates)."""
        width = len(candidates)
        grades = np.empty(len(voters) * width)
        for start in range(0, len(grades), BLOCK):
            places = range(start, min(start + BLOCK, len(grades)))
            found = self.judge([voters[p // width] for p in places], [candidates[p % width] for p in places])
            grades[start : places.stop] = self._checked(found, len(places))
        return np.clip(grades, -1.0, 1.0).reshape(len(voters), width)

    def _checked(self, found: Sequence[float], size: int) -> Array:
        grades = np.asarray(found, dtype=np.float64)
        if grades.shape != (size,) or not np.isfinite(grades).all():
            raise SetupError(
                f"{self.name}: the model must give one finite number for each of {size} pairs, and gave an "
                f"array of shape {grades.shape}, finite or not. Choose another model."
            )
        return grades


class Lazy:
    """A model that is loaded when it is first asked, and asked by one thread at a time."""

    def __init__(self) -> None:
        self.lock, self.model = threading.Lock(), None


def _places(texts: Sequence[str]) -> dict[str, int]:
    """The different texts that are not empty, each with its place."""
    return {text: place for place, text in enumerate(dict.fromkeys(t for t in texts if t.strip()))}
