"""The result of an election: the winner, all scores, and a signature that names how it was held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rangevote.election.rules import order
from rangevote.hypothesis import Array, Hypotheses, Hypothesis

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rangevote.election.explain import Explanation
    from rangevote.similarity.base import Similarity

#: A margin below this is flagged as a near-tie: rounding could have decided it.
NEAR_TIE = 1e-9


@dataclass(frozen=True)
class Result:
    """The outcome of one election. `str(result)` and `result.winner` are the winning text.

    `scores` has one number for each candidate, `ranking` their indices, best first (higher score,
    then higher own log-probability, then first in the list), `elected` the winners' indices.
    """

    candidates: Hypotheses = field(repr=False)
    voters: Hypotheses = field(repr=False)
    weights: Array = field(repr=False)  # (voters,)
    scores: Array  # (candidates,)
    elected: tuple[int, ...]
    signature: str
    similarity: Similarity = field(repr=False)

    @property
    def index(self) -> int:
        """The winner's index in the list of candidates."""
        return self.elected[0]

    @property
    def hypothesis(self) -> Hypothesis:
        """The winner, with all that is known of it."""
        return self.candidates[self.index]

    @property
    def winner(self) -> str | Sequence[int]:
        """The winner's text, or its token ids where it has no text."""
        return self.candidates.content(self.index)

    @property
    def winners(self) -> tuple[str | Sequence[int], ...]:
        """The texts of all that were elected, in order."""
        return tuple(self.candidates.content(index) for index in self.elected)

    @property
    def score(self) -> float:
        """The winner's score."""
        return float(self.scores[self.index])

    @cached_property
    def ranking(self) -> tuple[int, ...]:
        """All candidates' indices, best first."""
        return tuple(order(self.scores, self.candidates).tolist())

    @cached_property
    def margin(self) -> float | None:
        """How far the winner's score is above the runner-up's; None where it had no rival."""
        if len(self.scores) < 2:
            return None
        second, first = np.partition(self.scores, -2)[-2:].tolist()
        return 0.0 if first == second else float(first - second)  # both may be -inf

    @property
    def near_tie(self) -> bool:
        """Whether the margin is so small that rounding could have decided."""
        return self.margin is not None and self.margin < NEAR_TIE

    @cached_property
    def no_support(self) -> bool:
        """Whether no candidate got any vote, so that the tie order decided."""
        return not bool(self.scores.any())

    def explain(self, index: int | None = None) -> Explanation:
        """Which n-grams and which voters earned the winner (or the candidate `index`) its score."""
        from rangevote.election.explain import explain

        return explain(self, self.index if index is None else index)

    def _repr_html_(self) -> str:
        """The candidates as a table, in a notebook."""
        from rangevote.election.display import html

        return html(self)

    def __rich__(self) -> RenderableType:
        """The candidates as a table, in a terminal: `rich.print(result)`."""
        from rangevote.election.display import table

        return table(self)

    def __str__(self) -> str:
        winner = self.winner
        return winner if isinstance(winner, str) else " ".join(map(str, winner))
