"""From judgements to findings: answers, sign tests, intervals, agreement.

The unit of analysis is the item. Where several people judged an item, their judgements are combined first, as
the plan says: judgements of one item are not independent, so the sign test must not count them apart.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

from rangevote.errors import need
from rangevote.evaluation.significance import CONFIDENCE, Interval, sign_test
from rangevote.study.plan import Pair, StudyPlan
from rangevote.study.store import Judgement, Snapshot

#: Answers from -2, the baseline is much better, to 2, the challenger is.
VALUES = (-2, -1, 0, 1, 2)


@dataclass(frozen=True)
class Split:
    """How often one was better and how often worse; ties are left out."""

    better: int
    worse: int

    @property
    def p(self) -> float:
        """Of the exact two-tailed sign test; 1 without any judgement that is not a tie."""
        return sign_test(self.better, self.worse)

    @property
    def share(self) -> float | None:
        """The share of wins, None without data."""
        total = self.better + self.worse
        return self.better / total if total else None

    @property
    def interval(self) -> Interval | None:
        """The exact 95 % interval of the share, None without data."""
        return clopper_pearson(self.better, self.better + self.worse)


@dataclass(frozen=True)
class AnswerCounts:
    """How often each of the five answers was given, from -2 to 2."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: Iterable[int]) -> AnswerCounts:
        listed = list(values)
        return cls(tuple(listed.count(value) for value in VALUES))

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def ties(self) -> int:
        return self.counts[2]

    @property
    def all(self) -> Split:
        """Better and worse, slightly or much."""
        return Split(self.counts[3] + self.counts[4], self.counts[0] + self.counts[1])

    @property
    def much(self) -> Split:
        """Only the strong answers, as in the paper."""
        return Split(self.counts[4], self.counts[0])


@dataclass(frozen=True)
class Agreement:
    """Over items that were judged several times; None where undefined."""

    items: int
    alpha: float | None
    same: float | None
    same_direction: float | None


@dataclass(frozen=True)
class Person:
    """One annotator's share; checks and second judgements are not among `answers`.

    `sides` counts left better against right better, `cannot` the items that they could not judge; `changed`
    answers that were replaced or undone.
    `itself` is the agreement of first and second judgements.
    """

    name: str
    assigned: int
    judged: int
    finished: bool
    answers: AnswerCounts
    cannot: int
    sides: Split
    passed: int
    checked: int
    excluded: bool
    seconds: float | None
    changed: int
    without_image: int
    itself: Agreement


class Opinion(NamedTuple):
    """What an annotator said of an item; `value` is None where they cannot judge."""

    annotator: str
    value: int | None
    comment: str | None


@dataclass(frozen=True)
class JudgedItem:
    """An item with all that was said of it by those who are not left out."""

    pair: Pair
    opinions: Sequence[Opinion]

    @property
    def values(self) -> list[int]:
        return [one.value for one in self.opinions if one.value is not None]

    @property
    def disagreement(self) -> float:
        """How far two of its annotators are apart, on average; 0 where fewer than two judge it."""
        gaps = [abs(one - other) for one, other in combinations(self.values, 2)]
        return statistics.mean(gaps) if gaps else 0.0


@dataclass(frozen=True)
class Findings:
    """The result of a study. `answers` are of items, one for each that anybody judged who is not left out.

    `judgements` counts what was planned and is there, `cannot` those of them that say "cannot judge": they
    are no answer and count for nobody. `items` begins with those that people disagree about most.
    """

    plan: StudyPlan
    digest: str
    judgements: int
    cannot: int
    answers: AnswerCounts
    judged_by_all: int
    agreement: Agreement
    people: Sequence[Person]
    items: Sequence[JudgedItem]

    @property
    def complete(self) -> bool:
        return self.judgements >= self.plan.stop

    @property
    def ties(self) -> int:
        """Ties in all: judged ones, and identical outputs that nobody was shown."""
        return self.answers.ties + self.plan.automatic


def analyse(snapshot: Snapshot) -> Findings:
    """Everything that a report says of a study."""
    plan, current = snapshot.study.plan, snapshot.current()
    people = [_person(snapshot, number, current) for number in range(len(plan.annotators))]
    kept = {number for number, person in enumerate(people) if not person.excluded}
    real = [row for row in current if snapshot.pair(row).counts]
    opinions = defaultdict(list)
    for row in real:
        if row.annotator in kept:
            opinions[row.pair].append(Opinion(people[row.annotator].name, row.resolved, row.comment))
    items = [JudgedItem(snapshot.study.pairs[number], opinions[number]) for number in sorted(opinions)]
    judged = [item.values for item in items if item.values]
    combine = COMBINERS[plan.combine]
    return Findings(
        plan=plan,
        digest=snapshot.digest,
        judgements=len(real),
        cannot=sum(row.cannot for row in real),
        answers=AnswerCounts.of(combine(values) for values in judged),
        judged_by_all=sum(len(values) >= plan.per_item for values in judged),
        agreement=_agreement(judged),
        people=people,
        items=sorted(items, key=lambda item: -item.disagreement),
    )


def median(values: Sequence[int]) -> int:
    """The median; one that falls between two answers is rounded away from no difference."""
    middle = statistics.median(values)
    return math.ceil(middle) if middle > 0 else math.floor(middle)


def majority(values: Sequence[int]) -> int:
    """The direction of more than half of the answers, else a tie; much, if more than half say much."""
    for sign in (1, -1):
        strengths = [value * sign for value in values if value * sign > 0]
        if 2 * len(strengths) > len(values):
            return sign * (2 if 2 * strengths.count(2) > len(values) else 1)
    return 0


COMBINERS: dict[str, Callable[[Sequence[int]], int]] = {"majority": majority, "median": median}


def _agreement(units: Sequence[Sequence[int]]) -> Agreement:
    shared = [unit for unit in units if len(unit) > 1]
    directions = [[(value > 0) - (value < 0) for value in unit] for unit in shared]
    return Agreement(len(shared), alpha(shared), share_agreeing(shared), share_agreeing(directions))


def _person(snapshot: Snapshot, number: int, current: Sequence[Judgement]) -> Person:
    plan = snapshot.study.plan
    mine = [row for row in current if row.annotator == number]
    items = [row for row in mine if snapshot.pair(row).counts]
    checks = [row for row in mine if snapshot.pair(row).expected is not None]
    passed = sum(_passes(row, snapshot.pair(row).expected) for row in checks)
    durations = [row.duration_ms for row in mine if row.duration_ms is not None]
    shown = [row.shown for row in items if row.shown is not None]
    return Person(
        name=plan.annotators[number],
        assigned=sum(one.annotator == number for one in snapshot.study.assignments),
        judged=len(mine),
        finished=number in snapshot.finished,
        answers=AnswerCounts.of(row.resolved for row in items if row.resolved is not None),
        cannot=sum(row.cannot for row in items),
        sides=Split(sum(value < 0 for value in shown), sum(value > 0 for value in shown)),
        passed=passed,
        checked=len(checks),
        # the quotient of a decimal share rounds to that very share: 14 / 25 == 0.56, but 0.56 * 25 > 14
        excluded=plan.pass_share is not None and bool(checks) and passed / len(checks) < plan.pass_share,
        seconds=statistics.median(durations) / 1000 if durations else None,
        changed=sum(row.annotator == number and row.supersedes is not None for row in snapshot.rows),
        without_image=sum(row.image_missing for row in mine),
        itself=_agreement(_twice(snapshot, mine)),
    )


def _twice(snapshot: Snapshot, mine: Sequence[Judgement]) -> list[list[int]]:
    """First and second judgement of what one annotator has judged twice."""
    answers = {snapshot.pair(row).key: row.resolved for row in mine if row.resolved is not None}
    again = {key: snapshot.pair(row).again for row in mine if (key := snapshot.pair(row).key) in answers}
    return [[answers[first], answers[second]] for second, first in again.items() if first in answers]


def _passes(row: Judgement, expected: int | None) -> bool:
    """A check is passed by the right direction, however strong; not by "cannot judge"."""
    return row.resolved is not None and (row.resolved > 0) - (row.resolved < 0) == expected


def clopper_pearson(wins: int, trials: int) -> Interval | None:
    """The exact interval: all shares under which neither `wins` or more nor `wins` or fewer has a probability
    below (1 - CONFIDENCE) / 2 (Clopper and Pearson 1934). None without trials.

    >>> round(clopper_pearson(0, 10).high, 6)  # 1 - 0.025 ** (1 / 10)
    0.308497
    """
    if trials == 0:
        return None
    beta = need("scipy.special", "web", "the interval of a share").betaincinv
    tail, losses = (1 - CONFIDENCE) / 2, trials - wins
    low = float(beta(wins, losses + 1, tail)) if wins else 0.0
    high = float(beta(wins + 1, losses, 1 - tail)) if losses else 1.0
    return Interval(low, high)


def alpha(units: Sequence[Sequence[int]]) -> float | None:
    """Krippendorff's alpha of ordinal values (2011, "Computing Krippendorff's Alpha-Reliability"):

        alpha = 1 - D_o / D_e,    D = sum over values c, k of coincidences(c, k) * distance(c, k)^2

    with the coincidences observed within units, and those expected if values were dealt out at random: 1 for
    perfect agreement, 0 for that of chance. A unit is the list of values that its annotators gave.

    Units with a single value say nothing and are passed over. None where alpha is undefined: no unit has two
    values, or all values are the same.
    """
    pairable = [unit for unit in units if len(unit) > 1]
    totals = Counter(value for unit in pairable for value in unit)

    def squared_distance(c: int, k: int) -> float:
        """The number of values from c to k, both ends counted half, squared."""
        between = sum(n for value, n in totals.items() if min(c, k) <= value <= max(c, k))
        return (between - (totals[c] + totals[k]) / 2) ** 2 if c != k else 0.0

    disagreement = 0.0
    for unit in pairable:
        observed = Counter(permutations(unit, 2))
        disagreement += sum(n * squared_distance(c, k) for (c, k), n in observed.items()) / (len(unit) - 1)
    expected = sum(totals[c] * totals[k] * squared_distance(c, k) for c in totals for k in totals)
    return 1 - disagreement * (totals.total() - 1) / expected if expected else None


def share_agreeing(units: Sequence[Sequence[int]]) -> float | None:
    """The share of pairs of annotators, over all units, that gave the same value; None without pairs."""
    same = sum(c == k for unit in units for c, k in permutations(unit, 2))
    pairs = sum(len(unit) * (len(unit) - 1) for unit in units)
    return same / pairs if pairs else None
