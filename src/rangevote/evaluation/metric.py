"""What a metric is: statistics of sentences that are summed, and a score of the sums.

Because the statistics are summed, they are computed once, and a bootstrap only adds them up anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array

#: Which value of a column is the best: "closest" is the one nearest to the references' own.
Best = Literal["highest", "lowest", "closest", ""]
Need = Literal["references", "sources", ""]


class Statistics(Protocol):
    """Counts for each output, made for one corpus: what is taken from its references is kept."""

    @property
    def signature(self) -> str:
        """All that decides the counts."""
        ...

    def rows(self, outputs: Sequence[str]) -> Array:
        """Whole numbers to be summed, shape (outputs, statistics)."""
        ...


Builder = Callable[[Corpus, Units], Statistics]


@dataclass(frozen=True)
class Metric:
    """A score of a whole corpus, computed from sums over its sentences.

    `score` takes sums of shape (..., statistics) and gives scores of shape (...): many resamples at a time.
    Metrics with the same `statistics` share them.
    """

    label: str
    statistics: Builder
    score: Callable[[Array], Array]
    needs: Need = "references"
    best: Best = "highest"
    decimals: int = 2
    meaning: str = ""


@dataclass(frozen=True)
class Distinct:
    """How many different things there are in all outputs together; not a sum, so it has no interval."""

    label: str
    count: Callable[[Sequence[Sequence[str]]], int]
    meaning: str = ""
    needs: Need = ""
    best: Best = "highest"
    decimals: int = 0


def mean(sums: Array) -> Array:
    """Sum over number, for statistics (..., 2) of a value and a 1."""
    result: Array = sums[..., 0] / sums[..., 1]
    return result


def percent(sums: Array) -> Array:
    """The mean of what is 0 or 1, in percent."""
    return 100 * mean(sums)


def beside_ones(values: Sequence[float]) -> Array:
    """Rows for `mean`: each value with a 1 beside it, shape (values, 2)."""
    return np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], axis=1)
