"""Simulated electorates, in which errors of a stopping rule would show, and what the rule does with them.

An electorate is an array of grades (voters, groups); the true winner is group 0, by a hair or clearly. Group
columns that nobody votes for among the first voters are answers that are not seen yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rangevote.election.sequential_test import Bets, deal

Draw = Callable[[np.random.Generator, int], np.ndarray]


class Declared(NamedTuple):
    """After how many voters a rule first named a winner, and whom; None: never."""

    voters: int | None
    winner: int | None


def shares(*p: float) -> Draw:
    """Every voter gives one of these answers, or one that nobody else gives."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        answers = rng.choice(len(p) + 1, size=n, p=[*p, max(0.0, 1 - sum(p))])
        return np.eye(len(p) + 1)[answers][:, :-1]

    return draw


def coins(*p: float) -> Draw:
    """Independent grades of 0 or 1."""
    return lambda rng, n: (rng.random((n, len(p))) < np.array(p)).astype(float)


def anticorrelated(rng: np.random.Generator, n: int) -> np.ndarray:
    """Whoever likes one dislikes the other."""
    first = (rng.random(n) < 0.505).astype(float)
    return np.stack([first, 1 - first], axis=1)


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rarely much better, mostly a little worse: the better one looks worse for long."""
    rare = rng.random(n) < 0.06
    return np.stack([np.where(rare, 1.0, 0.0), np.full(n, 0.055)], axis=1)


def similar(rivals: int, lead: float) -> Draw:
    """Grades as of texts: voters differ more than candidates do."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        voters = 0.4 + 0.15 * rng.standard_normal((n, 1))
        grades = voters + 0.1 * rng.standard_normal((n, rivals + 1)) + lead * np.eye(rivals + 1)[0]
        return np.clip(grades, 0.0, 1.0)

    return draw


#: The best is hardly better: a rule that errs too often shows it here.
CLOSE: dict[str, Draw] = {
    "two coins": coins(0.505, 0.5),
    "anticorrelated": anticorrelated,
    "skewed": skewed,
    "60 rivals": coins(0.505, *[0.5] * 60),
    "60 rival answers": shares(0.03, *[0.0158] * 60),
    "unseen winner": shares(0.3, 0.29, 0.29),
    "three answers": shares(0.34, 0.33, 0.33),
    "similar texts": similar(3, 0.002),
}


def decisions(grades: np.ndarray, looks: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether the package's rule names a winner at each look, and who leads then."""
    wealth = np.maximum.accumulate(Bets(grades, np.zeros(grades.shape[1]), 1.0, looks).log_wealth(), axis=0)
    left = wealth < -math.log(alpha)  # (looks, groups)
    leaders = grades.cumsum(axis=0)[looks - 1].argmax(axis=1)
    return (left.sum(axis=1) == 1) & left[np.arange(len(looks)), leaders], leaders


def dealt(grades: np.ndarray, ends: list[int], alpha: float) -> Declared:
    """The package's rule for answers that came in batches, asked after each of them."""
    order, looks = deal(ends)
    grades = grades[order]
    grades = np.hstack([np.zeros((len(grades), 1)), grades])  # the answer that nobody gave leads when all tie
    columns = np.argsort(np.where(grades.any(axis=0), grades.argmax(axis=0), -1), kind="stable")
    voters, winner = first(np.isin(looks, ends), *decisions(grades[:, columns], looks, alpha))
    if voters is None or winner is None:
        return Declared(None, None)
    return Declared(int(looks[voters - 1]), int(columns[winner]) - 1)


def declared(grades: np.ndarray, alpha: float, *, within: float = 0.0) -> Declared:
    """The package's rule, asked after every voter."""
    ends, groups = np.arange(1, len(grades) + 1), np.arange(grades.shape[1])
    if not within:
        return first(*decisions(grades, ends, alpha))
    for n in ends:  # the wealth is that of whoever leads, so each leader is looked at by itself
        wealth = Bets(grades[:n], 0.0 * groups, 1.0, ends[:n], within).log_wealth()
        leader = int(grades[:n].sum(axis=0).argmax())
        if ((wealth.max(axis=0) >= -math.log(alpha)) | (groups == leader)).all():
            return Declared(int(n), leader)
    return Declared(None, None)


def first(*conditions: np.ndarray) -> Declared:
    """The first voter at whom all conditions hold; the last array has the leaders."""
    *needed, leaders = conditions
    at = np.flatnonzero(np.logical_and.reduce(needed))
    return Declared(int(at[0]) + 1, int(leaders[at[0]])) if len(at) else Declared(None, None)


def shuffled(draw: Draw, seed: int, voters: int) -> tuple[np.ndarray, int]:
    """An electorate with its groups in any order, by which no rule may profit, and where the winner is."""
    rng = np.random.default_rng(seed)
    grades = draw(rng, voters)
    order = rng.permutation(grades.shape[1])
    return grades[:, order], int(np.flatnonzero(order == 0)[0])


def errors(draw: Draw, number: int, voters: int, alpha: float) -> int:
    """In how many electorates a wrong winner is ever named."""
    wrong = 0
    for seed in range(number):
        grades, winner = shuffled(draw, seed, voters)
        wrong += declared(grades, alpha).winner not in (None, winner)
    return wrong
