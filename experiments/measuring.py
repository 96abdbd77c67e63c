"""Steps "evaluate" and "compare": the numbers of every method at every k, and which differences are real.

Over all seeds a resample draws the same sentences for every seed, and the difference is the mean of the
seeds' own: so it is one of systems trained anew, on sentences drawn anew. Which k and which measure are the
best is seen on the test set, as in the paper; for "blend", which was fixed before, only k is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.checkpoint import is_checkpoint, read_card
from experiments.data import Items, read_items
from experiments.findings import BASELINES, BEYOND, MBR, VOTING
from experiments.searching import read_ballots
from experiments.steps import write_json
from experiments.voting import read_outputs
from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits
from rangevote.evaluation.evaluate import Evaluator, Measured, selection, texts_of
from rangevote.evaluation.metrics import Metric
from rangevote.evaluation.significance import (
    RESAMPLES,
    Difference,
    difference,
    paired_bootstrap,
    resampled_sums,
)
from rangevote.hypothesis import Array

#: method -> k -> outputs; k is 0 for what does not depend on it
Outputs = dict[str, dict[int, list[str]]]


class Measurer:
    """Measures lists of outputs, equal ones once: at k = 1 most methods put out the same."""

    def __init__(self, items: Items, metrics: Sequence[str], words: str) -> None:
        corpus = EvaluationCorpus.of(len(items), items.references, items.sources)
        self.evaluator = Evaluator(corpus, metrics, WordUnits(tokenize=words))
        self._known: dict[tuple[str, ...], Measured] = {}

    def measure(self, texts: Sequence[str]) -> Measured:
        """Values, and the sentence statistics behind them."""
        key = tuple(texts)
        if key not in self._known:
            self._known[key] = self.evaluator.measure(texts)
        return self._known[key]


def evaluate(
    output: Path,
    *,
    metrics: Sequence[str],
    words: str,
    first: int,
    small: Sequence[int],
    followed: Mapping[str, str],
    model: Path,
    items: Path,
    outputs: Sequence[Path],
    large: Sequence[Path],
) -> None:
    """Measure everything; `followed` are the methods whose winners at `small` k are looked for in the `large`
    lists, with the search that made the list. `first`: so many items were searched (0: all)."""
    measurer = Measurer(read_items(items).first(first), metrics, words)
    found, unfinished = gathered(outputs)
    methods = {
        name: {
            str(k): {**measurer.measure(texts).values, "unfinished": unfinished[name, k]}
            for k, texts in by_k.items()
        }
        for name, by_k in found.items()
    }
    facts = read_card(model)["training"] if is_checkpoint(model) else {}
    kept = ("dev_loss", "best_step", "steps", "tokens", "examples", "threads")  # no times: they differ
    data = {
        "methods": methods,
        "references": measurer.evaluator.references(),
        "signatures": {name: measurer.evaluator.signature(name) for name in metrics},
        "items": measurer.evaluator.corpus.size,
        "selection": list(_selections(found, small, followed, large)),
        "training": {name: facts[name] for name in kept if facts},
    }
    write_json(output, data)


def evaluate_voters(
    output: Path,
    *,
    metric: str,
    metrics: Sequence[str],
    words: str,
    resamples: int,
    items: Path,
    outputs: Sequence[Path],
) -> None:
    """Figure 3: kind of voters -> measure -> number of voters -> values, on the items that have voters.

    `gains` are how far the most voters are above the fewest, in the deciding metric.
    """
    known = [read_outputs(path) for path in outputs]
    size = len(next(iter(known[0]["methods"].values()))["texts"])
    measurer = Measurer(read_items(items).first(size), metrics, words)
    measured: dict[str, dict[str, dict[int, Measured]]] = {}
    for one in known:
        for measure, found in one["methods"].items():
            points = measured.setdefault(one["search"], {}).setdefault(measure, {})
            points[one["k"]] = measurer.measure(found["texts"])
    deciding = measurer.evaluator.metrics[metric]
    curves: dict[str, Any] = {}
    gains: dict[str, Any] = {}
    for kind, measures in measured.items():
        for measure, points in measures.items():
            curves.setdefault(kind, {})[measure] = {str(n): one.values for n, one in points.items()}
            most, fewest = points[max(points)], points[min(points)]
            gains.setdefault(kind, {})[measure] = bootstrapped(deciding, most, fewest, resamples)
    write_json(output, {"items": size, "curves": curves, "gains": gains})


def bootstrapped(
    metric: Metric, ours: Measured, theirs: Measured, resamples: int = RESAMPLES
) -> dict[str, Any]:
    """How far one list of outputs is above another, by paired bootstrap."""
    assert metric.resampled  # counts of different things have no bootstrap
    rows = (one.rows[metric.statistics] for one in (ours, theirs))
    return _data(paired_bootstrap(metric.score, *rows, resamples=resamples))


def gathered(paths: Iterable[Path]) -> tuple[Outputs, dict[tuple[str, int], int]]:
    """The outputs in all files, and how many of each were cut by the length limit."""
    outputs: Outputs = {}
    unfinished: dict[tuple[str, int], int] = {}
    for path in paths:
        found = read_outputs(path)
        for name, method in found["methods"].items():
            outputs.setdefault(name, {})[found["k"]] = method["texts"]
            unfinished[name, found["k"]] = method["unfinished"]
    return outputs, unfinished


def _selections(
    outputs: Outputs, small: Sequence[int], followed: Mapping[str, str], large: Sequence[Path]
) -> Iterator[dict[str, Any]]:
    """Shares of the winners that the larger list lacks, and that it elects again (section 4.2.1)."""
    for path in large:
        search, k = name_of(path)
        methods = [m for m, s in followed.items() if s == search and k in outputs.get(m, {})]
        if not methods:
            continue
        lists = [texts_of(ballot) for ballot in read_ballots(path)]
        for method in methods:
            for smaller in small:
                if smaller in outputs[method]:
                    one = selection(outputs[method][smaller], lists, outputs[method][k])
                    yield {
                        "method": method,
                        "k": smaller,
                        "large": k,
                        "absent": one.absent,
                        "again": one.chosen_again,
                    }


def name_of(path: Path) -> tuple[str, int]:
    """The search and the k that a file of ballots is named after.

    >>> name_of(Path("test-no_copy-k100.jsonl.gz"))
    ('no_copy', 100)
    """
    _, search, k = path.name.partition(".")[0].split("-")
    return search, int(k.removeprefix("k"))


def read_numbers(path: Path) -> dict[str, Any]:
    """What an "evaluate" or a "compare" step wrote."""
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


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
        assert found.resampled  # counts of different things have no bootstrap
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
    found = [gathered(paths)[0] for paths in outputs.values()]
    size = len(next(texts for by_k in found[0].values() for texts in by_k.values()))
    measurer = Measurer(read_items(items).first(size), [metric], words)
    scores = Scores(measurer, metric, found)
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
