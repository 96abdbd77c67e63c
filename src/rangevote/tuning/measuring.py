"""How good the winners of each setting are: every different winner of a ballot is measured once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rangevote.errors import DataError, UsageError, choose
from rangevote.evaluation import METRICS
from rangevote.evaluation.corpus import Corpus
from rangevote.evaluation.metric import Metric
from rangevote.evaluation.words import Units
from rangevote.hypothesis import Array, Ballot


def metric_of(name: str) -> Metric:
    """A metric that settings can be chosen by: more of it is better, and it is a score of sums."""
    metric = choose("metric", name, METRICS)
    if not isinstance(metric, Metric) or metric.best != "highest":
        good = [key for key, one in METRICS.items() if isinstance(one, Metric) and one.best == "highest"]
        raise UsageError(f"{name!r} is nothing that more is better of; choose from: {', '.join(good)}.")
    return metric


@dataclass
class Winners:
    """The winners of all settings, ballot by ballot; of each ballot the different ones are kept."""

    texts: list[str]
    references: list[Sequence[str]]
    places: list[list[int]]  # (ballots, settings): where in `texts` the winner of a setting stands

    @classmethod
    def none(cls) -> Winners:
        """Before the first ballot."""
        return cls([], [], [])

    def add(self, ballot: Ballot, indices: Sequence[int]) -> None:
        """The winners of one more ballot; a negative index is nobody."""
        if not ballot.references:
            raise DataError("there are none, and settings are chosen by them.", field="references")
        known: dict[str, int] = {}
        row = []
        for index in indices:
            if index < 0:
                row.append(index)
                continue
            text = ballot.candidates[index].text
            if text is None:
                raise DataError(
                    "is not known, while references are texts; decode the tokens first.",
                    field=f"candidates[{index}].text",
                )
            if text not in known:
                known[text] = len(self.texts)
                self.texts.append(text)
                self.references.append(ballot.references)
            row.append(known[text])
        self.places.append(row)

    def statistics(self, metric: Metric, units: Units) -> Statistics:
        """The sentence statistics of every setting."""
        if not self.places:
            raise DataError("there are no ballots, so there is nothing to tune on.")
        counted = metric.statistics(Corpus.of(len(self.texts), self.references), units)
        return Statistics(counted.rows(self.texts), np.array(self.places), counted.signature)


@dataclass(frozen=True)
class Statistics:
    """`rows` (different winners, statistics), `places` (ballots, settings) in them."""

    rows: Array
    places: NDArray[np.int64]
    signature: str

    @property
    def ballots(self) -> int:
        """How many there are."""
        return len(self.places)

    def known(self, setting: int) -> bool:
        """Whether the setting has a winner in every ballot."""
        return bool((self.places[:, setting] >= 0).all())

    def of(self, settings: Sequence[int]) -> Array:
        """The statistics of some settings side by side, (ballots, settings x statistics)."""
        found: Array = self.rows[self.places[:, settings]].reshape(self.ballots, -1)
        return found
