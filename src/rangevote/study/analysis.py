"""From judgements to findings: answers, sign tests, intervals, agreement.

The unit of analysis is the item. Several judgements of one item are not independent, so they are combined
first, as the plan says, and the sign test counts items.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, permutations

from msgspec import Struct, field

from rangevote.errors import need
from rangevote.evaluation.significance import CONFIDENCE, Interval, sign_test
from rangevote.study.plan import StudyPlan
from rangevote.study.store import Judgement, Snapshot

#: Answers from -2, the baseline is much better, to 2, the challenger is.
VALUES = (-2, -1, 0, 1, 2)


class Split(Struct, frozen=True):
    """Wins and losses without ties, the p-value of the exact two-tailed sign test (1 without data), and the
    share of wins with its exact 95 % interval (None without data)."""

    better: int
    worse: int
    p: float
    share: float | None
    interval: Interval | None


def split(better: int, worse: int) -> Split:
    """The test of wins against losses."""
    total = better + worse
    share = better / total if total else None
    return Split(better, worse, sign_test(better, worse), share, clopper_pearson(better, total))


class Answers(Struct, frozen=True, kw_only=True):
    """How often each of the five answers was given, with the tests of all answers and of "much better"."""

    answers: dict[str, int]
    sign_test: Split
    sign_test_much: Split


def count_answers(values: Iterable[int]) -> Answers:
    counts = Counter(values)
    return Answers(
        answers={str(value): counts[value] for value in VALUES},
        sign_test=split(counts[1] + counts[2], counts[-1] + counts[-2]),
        sign_test_much=split(counts[2], counts[-2]),
    )


class JudgeAgreement(Struct, frozen=True):
    """Of items that were judged several times; None where undefined."""

    items: int
    alpha: float | None = field(name="krippendorff_alpha_ordinal")
    same_answer: float | None
    same_direction: float | None


class Person(Struct, frozen=True, kw_only=True):
    """One annotator. Checks and second judgements are not among `counts`.

    `left_right` tests left against right; `changed` counts answers that were replaced or undone;
    `judged_twice` is the agreement of first and second judgements.
    """

    name: str
    assigned: int
    judged: int
    finished: bool
    excluded: bool
    counts: Answers
    cannot_judge: int
    left_right: Split
    checks_passed: int
    checks_failed: int
    changed: int
    median_seconds: float | None
    without_image: int
    judged_twice: JudgeAgreement


class Opinion(Struct, frozen=True):
    """What an annotator said of an item; `value` is None where they cannot judge."""

    annotator: str
    value: int | None
    comment: str | None


class JudgedItem(Struct, frozen=True):
    """An item with the judgements of those who are not excluded.

    `disagreement`: how far two of its annotators are apart, on average; 0 with fewer than two.
    """

    item: str
    disagreement: float
    outputs: dict[str, str]
    source: str | None
    judgements: list[Opinion]

    @property
    def values(self) -> list[int]:
        return [one.value for one in self.judgements if one.value is not None]


class Findings(Struct, frozen=True, kw_only=True):
    """The result of a study. `counts` are of items, one answer for each.

    `judgements` counts the planned ones that are there, `cannot_judge` those of them that say so: they count
    for nobody. `ties` include identical outputs that nobody was shown. `judged_items` begins with those that
    people disagree about most.
    """

    plan: StudyPlan
    digest: str
    complete: bool
    judgements: int
    cannot_judge: int
    items: int
    ties: int
    judged_by_all: int
    counts: Answers
    agreement: JudgeAgreement
    annotators: list[Person]
    judged_items: list[JudgedItem]


def analyse(snapshot: Snapshot) -> Findings:
    """Everything that a report says of a study."""
    plan, current = snapshot.study.plan, snapshot.current()
    people = [_person(snapshot, number, current) for number in range(len(plan.annotators))]
    real = [row for row in current if snapshot.pair(row).counts]
    opinions = defaultdict(list)
    for row in real:
        if not people[row.annotator].excluded:
            opinions[row.pair].append(Opinion(people[row.annotator].name, row.resolved, row.comment))
    items = []
    for number in sorted(opinions):
        pair, judgements = snapshot.study.pairs[number], opinions[number]
        values = [one.value for one in judgements if one.value is not None]
        apart = [abs(one - other) for one, other in combinations(values, 2)]
        outputs = dict(zip(plan.systems, (pair.first, pair.second), strict=True))
        items.append(JudgedItem(pair.key, statistics.fmean(apart or [0]), outputs, pair.source, judgements))
    judged = [item.values for item in items if item.values]
    counts = count_answers(map(COMBINERS[plan.combine], judged))
    return Findings(
        plan=plan,
        digest=snapshot.digest,
        complete=len(real) >= plan.stop,
        judgements=len(real),
        cannot_judge=sum(row.cannot for row in real),
        items=len(judged),
        ties=counts.answers["0"] + plan.automatic,
        judged_by_all=sum(len(values) >= plan.per_item for values in judged),
        counts=counts,
        agreement=_agreement(judged),
        annotators=people,
        judged_items=sorted(items, key=lambda item: -item.disagreement),
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


def _direction(value: int) -> int:
    return (value > 0) - (value < 0)


def _agreement(units: Sequence[Sequence[int]]) -> JudgeAgreement:
    shared = [unit for unit in units if len(unit) > 1]
    directions = [[_direction(value) for value in unit] for unit in shared]
    return JudgeAgreement(len(shared), alpha(shared), share_agreeing(shared), share_agreeing(directions))


def _person(snapshot: Snapshot, number: int, current: Sequence[Judgement]) -> Person:
    plan = snapshot.study.plan
    mine = [row for row in current if row.annotator == number]
    items = [row for row in mine if snapshot.pair(row).counts]
    # a check is passed by the right direction, however strong, and never by "cannot judge"
    checks = [
        row.resolved is not None and _direction(row.resolved) == snapshot.pair(row).expected
        for row in mine
        if snapshot.pair(row).expected is not None
    ]
    durations = [row.duration_ms for row in mine if row.duration_ms is not None]
    shown = [row.shown for row in items if row.shown is not None]
    # the quotient of a decimal share rounds to that very share: 14 / 25 == 0.56, but 0.56 * 25 > 14
    passes = plan.pass_share is None or not checks or sum(checks) / len(checks) >= plan.pass_share
    return Person(
        name=plan.annotators[number],
        assigned=sum(one.annotator == number for one in snapshot.study.assignments),
        judged=len(mine),
        finished=number in snapshot.finished,
        excluded=not passes,
        counts=count_answers(row.resolved for row in items if row.resolved is not None),
        cannot_judge=sum(row.cannot for row in items),
        left_right=split(sum(value < 0 for value in shown), sum(value > 0 for value in shown)),
        checks_passed=sum(checks),
        checks_failed=len(checks) - sum(checks),
        changed=sum(row.annotator == number and row.supersedes is not None for row in snapshot.rows),
        median_seconds=statistics.median(durations) / 1000 if durations else None,
        without_image=sum(row.image_missing for row in mine),
        judged_twice=_agreement(_twice(snapshot, mine)),
    )


def _twice(snapshot: Snapshot, mine: Sequence[Judgement]) -> list[list[int]]:
    """First and second judgement of what one annotator has judged twice."""
    answers = {snapshot.pair(row).key: row.resolved for row in mine if row.resolved is not None}
    again = {key: snapshot.pair(row).again for row in mine if (key := snapshot.pair(row).key) in answers}
    return [[answers[first], answers[second]] for second, first in again.items() if first in answers]


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
    perfect agreement, 0 for chance. A unit is the list of values that its annotators gave; units with a
    single value are ignored. None where no unit has two values, or all values are the same.
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
