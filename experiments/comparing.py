"""Step "compare": which differences between methods are more than chance, for each seed and over all.

Over all seeds a resample draws the same sentences for every seed, and the difference is the mean of the
seeds' own: so it is one of systems trained anew, on sentences drawn anew. Which k and which measure are the
best is seen on the test set, as in the paper; for "blend", which was fixed before, only k is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.items import read_items
from experiments.measuring import Measurer, Outputs, gathered
from experiments.methods import BASELINES, BEYOND, MBR, VOTING
from experiments.stage import write_json
from rangevote.evaluation.bootstrap import Difference, difference, resampled_sums
from rangevote.evaluation.evaluate import Measured
from rangevote.evaluation.metrics import Metric
from rangevote.hypothesis import Array

#: A method at its k.
Point = tuple[str, int]


@dataclass(frozen=True)
class Question:
    """Whether `ours` differs from `theirs`."""

    asked: str
    ours: Point
    theirs: Point


class Scores:
    """The deciding metric of every method at every k, over all seeds."""

    def __init__(self, measurer: Measurer, metric: str, seeds: Sequence[Outputs]) -> None:
        found = measurer.evaluator.metrics[metric]
        assert isinstance(found, Metric)  # counts of different things have no bootstrap
        self.metric, self._seeds, self._measurer, self._name = found, seeds, measurer, metric
        self.points = [
            (method, k)
            for method, by_k in seeds[0].items()
            for k in by_k
            if all(k in other.get(method, {}) for other in seeds)
        ]

    def values(self, point: Point) -> list[float]:
        """One for each seed."""
        return [measured.values[self._name] for measured in self._measured(point)]

    def mean(self, point: Point) -> float:
        """Over the seeds."""
        return float(np.mean(self.values(point)))

    def best(self, methods: Sequence[str], k: int | None = None) -> Point | None:
        """The best of some methods, at one k or at their best one; the first of equals."""
        chosen = [p for p in self.points if p[0] in methods and p[1] and k in (None, p[1])]
        return max(chosen, key=self.mean, default=None)

    def resampled(self, points: Sequence[Point], resamples: int) -> dict[Point, Array]:
        """Scores of each seed under the same resamples, (seeds, resamples); all sums are one product."""
        tables = [m.rows[self.metric.statistics] for point in points for m in self._measured(point)]
        sums = resampled_sums(np.hstack(tables), resamples=resamples)
        pieces = np.split(sums, len(tables), axis=1)  # all tables have the same statistics
        scores = np.stack([self.metric.score(piece) for piece in pieces])
        shape = (len(points), len(self._seeds), resamples)
        return dict(zip(points, scores.reshape(shape), strict=True))

    def _measured(self, point: Point) -> list[Measured]:
        method, k = point
        return [self._measurer.measure(seed[method][k]) for seed in self._seeds]


def compare(
    output: Path,
    *,
    metric: str,
    words: str,
    resamples: int,
    items: Path,
    **outputs: Sequence[Path],
) -> None:
    """Answer all questions; `outputs` are the files of each seed ("seed_1", ...)."""
    measurer = Measurer(read_items(items), [metric], words)
    scores = Scores(measurer, metric, [gathered(paths)[0] for paths in outputs.values()])
    seeds = [int(name.removeprefix("seed_")) for name in outputs]
    write_json(output, answers(scores, seeds, resamples))


def answers(scores: Scores, seeds: Sequence[int], resamples: int) -> list[dict[str, Any]]:
    """Every question with its answer, for each seed and over all."""
    asked = questions(scores)
    if not asked:
        return []
    points = list(dict.fromkeys(point for one in asked for point in (one.ours, one.theirs)))
    drawn = scores.resampled(points, resamples)
    found = []
    for one in asked:
        observed = np.subtract(scores.values(one.ours), scores.values(one.theirs))  # (seeds,)
        ours, theirs = drawn[one.ours], drawn[one.theirs]
        alone = [
            {"seed": seed, **_data(difference(ours[i], theirs[i], float(observed[i])))}
            for i, seed in enumerate(seeds)
        ]
        together = difference(ours.mean(axis=0), theirs.mean(axis=0), float(observed.mean()))
        means = {"ours_mean": scores.mean(one.ours), "theirs_mean": scores.mean(one.theirs)}
        found.append({**asdict(one), **means, "seeds": alone, "all": _data(together)})
    return found


def questions(scores: Scores) -> list[Question]:
    """The paper's question, then those beyond it: each at the best k, and at every k."""
    found: list[Question | None] = []
    sides = {"best voting": list(VOTING), "best MBR": list(MBR), **{name: [name] for name in BEYOND}}
    rivals = {
        "best beam search": ["beam"],
        "best length normalisation": ["length_normalised"],
        "best baseline": list(BASELINES),
    }
    for side, methods in sides.items():
        for rival, others in rivals.items():
            found.append(_question(f"{side}, {rival}", scores.best(methods), scores.best(others)))
    for k in sorted({k for _, k in scores.points if k}):
        for side, methods in sides.items():
            ours, theirs = scores.best(methods, k), scores.best(list(BASELINES), k)
            found.append(_question(f"{side}, best baseline, k = {k}", ours, theirs))
    return [question for question in found if question is not None]


def _question(asked: str, ours: Point | None, theirs: Point | None) -> Question | None:
    return Question(asked, ours, theirs) if ours and theirs else None


def _data(found: Difference) -> dict[str, Any]:
    return {"difference": found.value, "interval": list(found.interval), "p": found.p}
