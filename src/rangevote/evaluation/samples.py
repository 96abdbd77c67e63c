"""How well n samples of a question do: how often one of them is right, the answer that they elect, or any;
whether the share of the vote can be trusted; and after how many samples the rule would have stopped.

Of a question with N samples, n are drawn without replacement, and those vote with equal weights:

    maj@n    P(the elected answer is right), over all subsets of n samples; where several answers have most
             votes each is elected equally often, whatever the order in the file
    pass@n   P(at least one of n samples is right) = 1 - C(N - c, n) / C(N, n) with c right ones, the unbiased
             estimator of Chen et al. 2021, "Evaluating Large Language Models Trained on Code"

Both are means over questions, with 95 % intervals over questions drawn again (bootstrap). A sample without an
answer does not vote and is wrong.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rangevote.election.elect import elect
from rangevote.election.streaming import Electorate
from rangevote.errors import DataError, RangevoteWarning, UsageError, warn
from rangevote.evaluation.corpus import as_entries, placed
from rangevote.evaluation.evaluate import Score
from rangevote.evaluation.metrics import right_answers
from rangevote.evaluation.risk_coverage import RiskCurve, risk_curve, risk_panel, risk_table
from rangevote.evaluation.significance import RESAMPLES, SEED, interval, resampled_sums
from rangevote.evaluation.tables import Column, Table, TableRow, range_text, with_interval
from rangevote.formats import Entry
from rangevote.hypothesis import Array, Ballot, Hypotheses
from rangevote.similarity import get_similarity
from rangevote.similarity.base import Measure, Similarity
from rangevote.similarity.exact import Exact

#: Up to so many samples of a question all subsets count; of more, so many are drawn.
MOST_EXACT, SUBSETS = 256, 2_000
#: Intervals of shares in the table of calibration.
BINS = 10
#: Of the stopping rule.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Question:
    """How many samples gave each answer, most first, and which answers are right (None: not known).

    `drawn` is how many samples the stopping rule would have drawn and `stopped_at` the answer it would have
    stopped with; both are None where texts are compared, not answers.
    """

    counts: tuple[int, ...]
    abstained: int = 0
    right: tuple[bool, ...] | None = None
    drawn: int | None = None
    stopped_at: int | None = None

    @classmethod
    def of(cls, keys: Sequence[Hashable], right: Container[Hashable] | None = None) -> Question:
        """Count the answers of samples; None stands for a sample without an answer."""
        counted = _counted(keys)
        rights = None if right is None else tuple(key in right for key, _ in counted)
        return cls(tuple(count for _, count in counted), keys.count(None), rights)

    @property
    def samples(self) -> int:
        return sum(self.counts) + self.abstained

    @property
    def leaders(self) -> range:
        """The answers with most votes."""
        return range(self.counts.count(self.counts[0]) if self.counts else 0)

    @property
    def share(self) -> float:
        """The share of the vote that the leading answer has."""
        return self.counts[0] / self.samples if self.counts else 0.0

    @property
    def accuracy(self) -> float:
        """P(the answer that all samples elect is right): below 1 where a wrong one has as many votes; 0 where
        it is not known."""
        return sum((self.right or ())[: len(self.leaders)]) / max(len(self.leaders), 1)

    @property
    def entropy(self) -> float:
        """Over the answers given, in nats; 0 where all agree."""
        total = sum(self.counts)
        return max(0.0, -math.fsum(n / total * math.log(n / total) for n in self.counts))

    def maj_right(self, sizes: Sequence[int]) -> list[float]:
        """maj@n for every n: P(the answer that n of the samples elect is right)."""
        right, total, most = self.right or (), self.samples, max(sizes)
        if total > MOST_EXACT:
            return [self._maj_right_in_subsets(n) for n in sizes]
        ways = np.zeros(most + 1)  # by n: subsets in which a right answer wins, each tie in equal parts
        for winner in (i for i, one in enumerate(right) if one):
            others = [count for i, count in enumerate(self.counts) if i != winner]
            for votes in range(1, min(self.counts[winner], most) + 1):
                rest = _subsets_below(others, votes, total - self.counts[winner], most - votes)
                ways[votes:] += comb(self.counts[winner], votes) * rest
        return [float(ways[n] / comb(total, n)) for n in sizes]

    def _maj_right_in_subsets(self, n: int) -> float:
        drawn = np.random.default_rng([SEED, n]).multivariate_hypergeometric(
            [*self.counts, self.abstained], n, size=SUBSETS, method="marginals"
        )[:, :-1]
        elected = (drawn == drawn.max(axis=1, keepdims=True, initial=0)) & (drawn > 0)  # (subsets, answers)
        rights = (elected & np.array(self.right or (), dtype=bool)).sum(axis=1)
        return float((rights / np.maximum(elected.sum(axis=1), 1)).mean())

    def pass_right(self, n: int) -> float:
        """pass@n: P(at least one of n samples is right)."""
        wrong = self.samples - sum(n for n, one in zip(self.counts, self.right or (), strict=True) if one)
        return 1 - comb(wrong, n) / comb(self.samples, n)


def _counted(keys: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
    """The answers with their votes, most first."""
    return Counter(key for key in keys if key is not None).most_common()


def _subsets_below(counts: Sequence[int], votes: int, total: int, most: int) -> Array:
    """Ways to draw 0, 1, ... `most` of `total` samples, so that none of the answers with these counts gets
    more than `votes`; divided by 1 + how many get just as many."""
    large = [count for count in counts if count >= votes]  # the others cannot get there
    ways = np.zeros((most // votes + 1, most + 1))  # (with as many votes, drawn)
    ways[0, 0] = 1.0
    for count in large:
        grown = np.zeros_like(ways)
        for some in range(min(votes, most + 1)):
            grown[:, some:] += comb(count, some) * ways[:, : most + 1 - some]
        if votes <= most:
            grown[1:, votes:] += comb(count, votes) * ways[:-1, : most + 1 - votes]
        ways = grown
    parts = 1 / np.arange(1, len(ways) + 1) @ ways
    free = [float(comb(total - sum(large), some)) for some in range(most + 1)]
    return np.convolve(parts, free)[: most + 1]


def right_of(ballot: Ballot, gold: str, measure: Measure) -> set[Hashable]:
    """The right answers to a ballot, as the measure's keys: those in its field `gold`, which it carries, or
    in its references."""
    if not measure.answers:
        raise UsageError(
            f"gold is for answers, and {measure.name} compares texts; use a key (-s exact:last_number)."
        )
    value = ballot.references if gold == "references" else ballot.carry.get(gold)
    if value is None:
        raise DataError("is missing; every question needs its right answer in this field.", field=gold)
    try:
        return right_answers(value, measure)
    except DataError as error:
        raise DataError(error.problem, field=gold) from None


def count_answers(
    ballot: Ballot, measure: Measure, gold: str | None = None, confidence: float = CONFIDENCE
) -> Question:
    """What the samples of a ballot answer: those who vote. `gold` names the field with the right answer, one
    that the ballot carries, or its references.

    Where the measure compares texts, each cluster of similar ones is an answer (`rule="cluster"`).
    """
    samples = Hypotheses.of(ballot.candidates if ballot.voters is None else ballot.voters)
    if not len(samples):
        raise DataError("is empty; every question needs at least one sample.", field="candidates")
    keys: list[Any] = measure.keys(samples)
    right = None if gold is None else right_of(ballot, gold, measure)
    if not measure.answers:
        return Question.of(_clusters(samples, keys, measure))
    question = Question.of(keys, right)
    order = np.random.default_rng(SEED).permutation(len(keys))  # the file may be sorted
    drawn, answer = stop_sampling([keys[i] for i in order], confidence)
    answers = [key for key, _ in _counted(keys)]
    return replace(question, drawn=drawn, stopped_at=None if answer is None else answers.index(answer))


def stop_sampling(keys: Sequence[Hashable], confidence: float = CONFIDENCE) -> tuple[int, Hashable]:
    """How many of these answers, in their order, the stopping rule takes (`Electorate.sample`), and which
    one leads then; None: none was given."""
    numbers = {key: str(i) for i, key in enumerate(keys) if key is not None}
    texts = [numbers.get(key, "") for key in keys]  # so that a key that runs programs is asked once
    electorate = Electorate(similarity=Exact(lambda text: text or None), weights="count")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangevoteWarning)
        result = electorate.sample(lambda some: [texts[i] for i in some], len(texts), confidence=confidence)
    return len(electorate), keys[int(str(result.winner))] if result.winner else None


def _clusters(samples: Hypotheses, keys: Sequence[Any], measure: Measure) -> list[int | None]:
    """A number for each text, the same within the largest group of similar ones, that of those left, ..."""
    numbers: list[int | None] = [None] * len(samples)
    left = [i for i, key in enumerate(keys) if key is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangevoteWarning)
        while left:
            result = elect(samples.pick(left), similarity=measure, rule="cluster", weights="count")
            for i in compress(left, result.weights > 0):  # the largest group
                numbers[i] = len(left)
            left = [i for i in left if numbers[i] is None]
    return numbers


class Bin(NamedTuple):
    """Questions whose leading answer has a share of the vote above `low` and up to `high`."""

    low: float
    high: float
    questions: int
    share: float
    accuracy: float


@dataclass(frozen=True)
class Stopping:
    """What the stopping rule would have done: the mean number of samples drawn, how many questions were
    decided before the last one, how many of those with another answer than all samples elect, and the
    accuracy."""

    confidence: float
    drawn: Score
    early: int
    changed: int
    accuracy: Score | None = None


@dataclass(frozen=True)
class SampleReport:
    """An evaluation of the samples of many questions; accuracies in percent, shares from 0 to 1.

    `maj_at` and `pass_at` have maj@n and pass@n by n; at n = 1 both are the accuracy of one sample. `curve`
    is risk against coverage, where the confidence is the share of the vote of all samples, and
    `calibration_error` the mean distance of that share from the accuracy over `bins`. All of these are None
    or empty without gold; `stopping` is None where texts are compared. `subsets` is 0 where maj@n is exact.
    """

    similarity: str
    questions: int
    samples: tuple[int, int]
    abstained: int
    share: Score
    entropy: Score
    answers: Score
    maj_at: dict[int, Score]
    pass_at: dict[int, Score]
    stopping: Stopping | None = None
    curve: RiskCurve | None = None
    calibration_error: float | None = None
    bins: tuple[Bin, ...] = ()
    subsets: int = 0
    resamples: int = RESAMPLES
    seed: int = SEED

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON has."""
        data: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return data

    def tables(self) -> list[Table]:
        """maj@n and pass@n, risk against coverage, calibration; or what is known without gold."""
        number = range_text(*self.samples)
        plural = "" if self.questions == 1 else "s"
        title = f"{self.questions:,} question{plural}, {number} samples each, {self.similarity}"
        span = "95 % interval"
        notes = self._notes()
        if not self.maj_at:
            rows = [TableRow(name, with_interval(score, 4)) for name, score in self._shares().items()]
            return [Table([Column("mean"), Column(span)], rows, "", title, notes)]
        rows = [
            TableRow(str(n), [*with_interval(maj, 2), *with_interval(self.pass_at[n], 2)])
            for n, maj in self.maj_at.items()
        ]
        columns = [Column("maj@n (%)"), Column(span), Column("pass@n (%)"), Column(span)]
        assert self.curve is not None  # where maj@n is known
        shares = [Column(name, decimals=4) for name in ("mean share", "accuracy")]
        calibration = Table(
            [Column("questions", decimals=0), *shares],
            [TableRow(f"{b.low:.1f} to {b.high:.1f}", list(b[2:])) for b in self.bins],
            "share",
            "share of the vote and accuracy of the answer that all samples elect",
            [f"expected calibration error {self.calibration_error:.4f}"],
        )
        return [Table(columns, rows, "n", title, notes), risk_table(self.curve), calibration]

    def _shares(self) -> dict[str, Score]:
        one = "answer" if self.stopping else "cluster"  # of similar texts
        names = f"share of the leading {one}", f"entropy over {one}s (nats)", f"different {one}s"
        return dict(zip(names, (self.share, self.entropy, self.answers), strict=True))

    def _notes(self) -> list[str]:
        notes = []
        if self.maj_at:
            how = f"over {self.subsets:,} subsets" if self.subsets else "over all subsets of n samples"
            notes.append(f"maj@n: the elected answer is right, {how}; a tie counts in equal parts")
            notes.append("pass@n: at least one of n samples is right")
            means = ", ".join(f"{name} {score.value:.2f}" for name, score in self._shares().items())
            notes.append(f"means: {means}")
        notes.append(f"samples without an answer: {self.abstained:,}")
        if (stop := self.stopping) is not None:
            right = "" if stop.accuracy is None else f"; {stop.accuracy.value:.2f} % right"
            notes.append(
                f"stopping at confidence {stop.confidence:g}: {stop.drawn.value:.1f} samples on average, "
                f"{stop.early:,} of {self.questions:,} questions decided before the last, {stop.changed:,} "
                f"with another answer than all samples{right}"
            )
        if self.resamples:
            notes.append(
                f"intervals over questions: bootstrap, {self.resamples:,} resamples, seed {self.seed}"
            )
        return notes

    def plot(self, path: str | Path) -> None:
        """Draw maj@n and pass@n, risk against coverage, and calibration into one picture."""
        from rangevote.evaluation.plot import Curve, Panel, plot_curves

        if self.curve is None:
            raise UsageError("the curves compare samples with right answers; name their field with --gold.")

        def curve(name: str, scores: dict[int, Score], baseline: bool) -> Curve:
            intervals = [score.interval for score in scores.values() if score.interval is not None]
            return Curve(name, list(scores), [s.value for s in scores.values()], baseline, intervals)

        share, accuracy = [b.share for b in self.bins], [b.accuracy for b in self.bins]
        right = [curve("maj@n", self.maj_at, False), curve("pass@n", self.pass_at, True)]
        calibration = [Curve("share as accuracy", [0, 1], [0, 1], True), Curve("measured", share, accuracy)]
        panels = [
            Panel("right (%), 95 % intervals" if self.resamples else "right (%)", right, x_label="samples n"),
            risk_panel(self.curve),
            Panel("accuracy", calibration, x_label="share of the vote", logarithmic=False),
        ]
        plot_curves(panels, path)


def evaluate_samples(
    ballots: Iterable[Ballot | Entry],
    similarity: str | Similarity = "exact:plain",
    *,
    gold: str | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> SampleReport:
    """Evaluate the samples of ballots, or of entries of a file: accuracy of a vote among n of them, pass@n,
    risk against coverage, calibration. Without `gold`: shares, entropy and when sampling could have stopped.

    `gold` is the field with the right answer, which the ballots carry (`rv.read(path, carry=["answer"])`), or
    "references". `similarity` says what the answer of a sample is, for example "exact:last_number".
    """
    measure = get_similarity(similarity)
    questions = []
    for entry in as_entries(ballots):
        with placed(entry.where):
            questions.append(count_answers(entry.get(), measure, gold, confidence))
    return sample_report(questions, measure, confidence=confidence, resamples=resamples, seed=seed)


def sample_report(
    questions: Sequence[Question],
    measure: Measure,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> SampleReport:
    """The report of questions whose answers are already counted."""
    if not questions:
        raise DataError("there are no samples in the input.")
    abstained, samples = sum(q.abstained for q in questions), [q.samples for q in questions]
    if abstained == sum(samples):
        raise DataError(
            f"{measure.name} finds no answer in any of {abstained:,} samples; look at one of them, and "
            f"choose another key, or the field with the text (--text-field)."
        )
    labelled = questions[0].right is not None
    sizes = sizes_up_to(min(samples)) if labelled else []
    if labelled and not any(any(q.right or ()) for q in questions):
        warn("no sample of any question is right; check that gold and the answers are written alike.")
    votes = np.array([q.maj_right(sizes) for q in questions]) if labelled else np.zeros((len(questions), 0))
    columns: dict[Any, Any] = {
        "share": [q.share for q in questions],
        "entropy": [q.entropy for q in questions],
        "answers": [len(q.counts) for q in questions],
        "drawn": [q.drawn or 0 for q in questions],
        "stopped": [_stopped_right(q) for q in questions],
        **{("maj", n): 100 * votes[:, i] for i, n in enumerate(sizes)},
        **{("pass", n): [100 * q.pass_right(n) for q in questions] for n in sizes},
    }
    scores = _means(columns, resamples, seed)
    curve, error, bins = None, None, tuple[Bin, ...]()
    if labelled:
        accuracies = [q.accuracy for q in questions]
        curve = risk_curve(columns["share"], [1 - accuracy for accuracy in accuracies])
        bins = calibration(columns["share"], accuracies)
        error = math.fsum(b.questions * abs(b.share - b.accuracy) for b in bins) / len(questions)
    return SampleReport(
        similarity=measure.name,
        questions=len(questions),
        samples=(min(samples), max(samples)),
        abstained=abstained,
        share=scores["share"],
        entropy=scores["entropy"],
        answers=scores["answers"],
        maj_at={n: scores["maj", n] for n in sizes},
        pass_at={n: scores["pass", n] for n in sizes},
        stopping=_stopping(questions, confidence, scores["drawn"], scores["stopped"] if labelled else None),
        curve=curve,
        calibration_error=error,
        bins=bins,
        subsets=SUBSETS if labelled and max(samples) > MOST_EXACT else 0,
        resamples=resamples,
        seed=seed,
    )


def sizes_up_to(samples: int) -> list[int]:
    """1, 2, 4, ... and all.

    >>> sizes_up_to(10)
    [1, 2, 4, 8, 10]
    """
    return [*(2**i for i in range((samples - 1).bit_length())), samples]


def calibration(shares: Sequence[float], accuracies: Sequence[float] | Array) -> tuple[Bin, ...]:
    """Mean share and accuracy of the questions in each of `BINS` intervals that has some."""
    share, accuracy = np.asarray(shares, dtype=np.float64), np.asarray(accuracies, dtype=np.float64)
    edges = np.linspace(0, 1, BINS + 1)
    numbers = np.searchsorted(edges[1:-1], share)  # a share of 0.2 is in the interval that ends there
    some = [(i, numbers == i) for i in np.unique(numbers).tolist()]
    return tuple(
        Bin(
            round(float(edges[i]), 9),
            round(float(edges[i + 1]), 9),
            int(inside.sum()),
            float(share[inside].mean()),
            float(accuracy[inside].mean()),
        )
        for i, inside in some
    )


def _stopped_right(question: Question) -> float:
    """Per cent right; where all samples were drawn, ties are in equal parts."""
    if not question.right or question.stopped_at is None or question.drawn == question.samples:
        return 100 * question.accuracy
    return 100.0 * question.right[question.stopped_at]


def _stopping(
    questions: Sequence[Question], confidence: float, drawn: Score, accuracy: Score | None
) -> Stopping | None:
    """None where texts are compared."""
    if any(q.drawn is None for q in questions):
        return None
    early = [q for q in questions if q.drawn != q.samples]
    changed = sum(q.stopped_at not in q.leaders for q in early)
    return Stopping(confidence, drawn, len(early), changed, accuracy)


def _means(columns: dict[Any, Any], resamples: int, seed: int) -> dict[Any, Score]:
    """The mean of each column over questions, with the interval of its resamples."""
    rows = np.column_stack(list(columns.values())).astype(np.float64)  # (questions, columns)
    spans: list[Any] = [None] * len(columns)
    if resamples:
        drawn = resampled_sums(rows, resamples=resamples, seed=seed) / len(rows)
        spans = [interval(column) for column in drawn.T]
    return dict(zip(columns, map(Score, rows.mean(axis=0).tolist(), spans), strict=True))
