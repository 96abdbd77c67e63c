"""What chance does to a choice among many settings.

The ballots are drawn anew, as many as there are, with replacement (the paired bootstrap of `report`). In each
resample every setting has a score: their spread is a setting's interval, and the spread of a difference tells
whether two settings differ by more than chance.

The best of many settings looks better than it is, since it was also the luckiest. So in each resample the
best is chosen anew on the ballots that were drawn, and measured on those that were not (on average 37 % of
them): its gain over the default there is what tuning would have brought on ballots it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rangevote.evaluation.bootstrap import draws
from rangevote.evaluation.metric import Metric
from rangevote.hypothesis import Array
from rangevote.tuning.measuring import Statistics


@dataclass(frozen=True)
class Resampled:
    """Scores of some settings (resamples, settings) on the ballots drawn, and on those left out.

    Where a resample leaves nothing out the score is nan.
    """

    drawn: Array
    left_out: Array


def resample(
    statistics: Statistics, settings: Sequence[int], metric: Metric, resamples: int, seed: int
) -> Resampled:
    """Every setting's score in every resample."""
    rows = statistics.of(settings)  # (ballots, settings x statistics)

    def scores(counts: Array) -> Array:
        sums = counts @ rows
        return metric.score(sums.reshape(len(counts), len(settings), rows.shape[1] // len(settings)))

    drawn, left_out = [], []
    for counts in draws(statistics.ballots, resamples, seed):
        drawn.append(scores(counts))
        left = counts == 0
        some = left.any(axis=1)  # of a handful of ballots a resample may leave out none
        found = np.full_like(drawn[-1], np.nan)
        found[some] = scores(left[some].astype(np.float64))
        left_out.append(found)
    return Resampled(np.concatenate(drawn), np.concatenate(left_out))


@dataclass(frozen=True)
class Unseen:
    """What the choice brings on ballots it was not made on: the mean gain, and how often it is a gain."""

    gain: float
    share: float


def unseen(resampled: Resampled, choices: Sequence[int], default: int) -> Unseen | None:
    """Choose the best of `choices` in each resample, and compare it with the default on what was left out.

    None where no resample leaves out enough to tell (a handful of ballots).
    """
    best = np.asarray(choices)[resampled.drawn[:, choices].argmax(axis=1)]  # (resamples,)
    every = np.arange(len(best))
    gains = resampled.left_out[every, best] - resampled.left_out[every, default]
    gains = gains[np.isfinite(gains)]
    if not len(gains):
        return None
    return Unseen(float(gains.mean()), float((gains > 0).mean()))
