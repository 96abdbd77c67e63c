"""A measure cut off: grades below a limit count as none, so that nobody is elected as a compromise.

For open-ended texts plain voting elects what is a little like everything. With a cut-off a voter supports
only candidates at least this similar to it; what remains is the support of those who say much the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Measure, Similarity, keys_of
from rangevote.similarity.exact import Exact
from rangevote.similarity.json_leaves import TextOrToolCalls
from rangevote.similarity.pairwise import PairPoll


class Cutoff(Measure):
    """The grades of `within` from `least` on, others as 0. Every pair is graded, whatever the measure is."""

    def __init__(self, within: Similarity, least: float) -> None:
        self.within, self.least, self.name = within, least, within.name

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(candidates, self._grade, list)

    def _grade(self, voters: Sequence[Any], candidates: Any) -> Array:
        grades = self.within.matrix(candidates, Hypotheses.of(voters, role="voters"))
        return np.where(grades >= self.least, grades, 0.0)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        return keys_of(self.within, candidates)

    def signature_on(self, candidates: Hypotheses) -> str:
        return self.within.signature_on(candidates) if isinstance(self.within, Measure) else ""

    def about(self, source: str | None) -> Measure:
        about = self.within.about(source) if isinstance(self.within, Measure) else self.within
        return self if about is self.within else Cutoff(about, self.least)


def with_cutoff(measure: Similarity, least: float | None) -> Similarity:
    """The measure with this cut-off and no other. Equal answers are as similar as can be: `exact` stays as
    it is, and so do calls of tools, whose texts have the cut-off already."""
    if isinstance(measure, Cutoff):
        measure = measure.within
    return (
        measure if least is None or isinstance(measure, (Exact, TextOrToolCalls)) else Cutoff(measure, least)
    )
