"""How many voters a decision takes, and how often it is wrong.

Every rule sees the same simulated electorates (`tests/election/electorates.py`) and is asked after every
voter: the package's rule, the one before it (every pair of the leader and a rival is tested, the error shared
out among the rivals), and what others do without a bound: stop when a Beta posterior says 0.95, stop when
75 % agree, or always take a fixed number.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from common import ROOT, Row, chapter, say, versions
from scipy.stats import beta

from rangevote.evaluation.significance import wilson

sys.path.insert(0, str(ROOT))
from tests.election.electorates import CLOSE, Declared, coins, declared, first, shares, shuffled, similar

#: Voters of an electorate at most, where decisions are counted and where voters are.
FEW, MOST = 150, 800
ALPHAS = (0.1, 0.01)
RIVALS = (1, 3, 10, 30, 60)
Rule = Callable[[np.ndarray, float], Declared]


def union_bound(grades: np.ndarray, alpha: float) -> Declared:
    """The rule before: the leader of the moment against each rival, from the first voter on, at alpha / R."""
    stakes = 0.5 ** np.arange(0.25, 7.0, 0.75)
    leaders = grades.cumsum(axis=0).argmax(axis=1)
    decided = np.zeros(len(grades), dtype=bool)
    enough = math.log((grades.shape[1] - 1) / alpha)
    for leader in np.unique(leaders):
        wins, wealth = grades[:, [leader]] - grades, np.full(grades.shape, -np.inf)
        for stake in stakes:
            np.logaddexp(wealth, np.log1p(stake * wins).cumsum(axis=0), out=wealth)
        wealth[:, leader] = np.inf
        decided |= (leaders == leader) & (wealth - math.log(len(stakes)) >= enough).all(axis=1)
    return first(decided, leaders)


def standings(grades: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """After each voter: the leader, its votes, and those of the second."""
    sums = grades.cumsum(axis=0)
    ordered = np.sort(sums, axis=1)
    return sums.argmax(axis=1), ordered[:, -1], ordered[:, -2]


def beta_posterior(grades: np.ndarray, alpha: float) -> Declared:
    """P(the leader's share of the first two is above a half) >= 0.95 (adaptive self-consistency)."""
    leaders, best, second = standings(grades)
    return first(beta.sf(0.5, best + 1, second + 1) >= 0.95, leaders)


def agreement(grades: np.ndarray, alpha: float, share: float = 0.75, least: int = 4) -> Declared:
    """A share of the voters agrees, of at least so many."""
    leaders, best, _ = standings(grades)
    number = np.arange(1, len(grades) + 1)
    return first((best >= share * number) & (number >= least), leaders)


def fixed(grades: np.ndarray, alpha: float, number: int = 40) -> Declared:
    leaders, _, _ = standings(grades)
    return Declared(number, int(leaders[number - 1]))


def cases(rivals: int) -> dict[str, Callable[..., np.ndarray]]:
    """Clear leads, of answers and of graded texts."""
    half, rest = 0.5, [0.5 / rivals] * rivals
    made = {
        "answers, 80 %": shares(0.8, *[0.2 / rivals] * rivals),
        "coins, 0.75 to 0.5": coins(0.75, *[0.5] * rivals),
        "texts, 0.05 ahead": similar(rivals, 0.05),
    }
    return made if rivals == 1 else {"answers, 50 %": shares(half, *rest), **made}


def error_rows(number: int) -> Iterator[Row]:
    """How many of the close electorates were decided wrongly, and how many at all."""
    rules: dict[str, Rule] = {"Beta 0.95": beta_posterior, "75 % agree": agreement}
    for name, draw in CLOSE.items():
        say(f"errors: {name}")
        wrong: Counter[str | float] = Counter()
        decided: Counter[str | float] = Counter()
        for seed in range(number):
            grades, winner = shuffled(draw, seed, FEW)
            outcomes = {alpha: declared(grades, alpha) for alpha in ALPHAS}
            for rule, one in (outcomes | {other: of(grades, 0.05) for other, of in rules.items()}).items():
                decided[rule] += one.winner is not None
                wrong[rule] += one.winner not in (None, winner)
        shown = [f"{wrong[alpha] / number:.1%} (decided {decided[alpha] / number:.0%})" for alpha in ALPHAS]
        others = ", ".join(f"{other} {wrong[other] / number:.1%}" for other in rules)
        must = " and ".join(f"<= {alpha:.0%}" for alpha in ALPHAS)
        reached = all(wrong[alpha] <= alpha * number for alpha in ALPHAS)
        measured = f"{' and '.join(shown)}; {others}"
        yield Row(f"{name}: wrong at confidence 0.9 and 0.99", must, measured, reached)


def speed_rows(number: int) -> Iterator[Row]:
    """Mean voters until the decision, over the cases of so many rivals."""
    rules: dict[str, Rule] = {
        "now": declared,
        "before": union_bound,
        "Beta 0.95": beta_posterior,
        "75 % agree": agreement,
        "always 40": partial(fixed, number=40),
    }
    for rivals in RIVALS:
        voters: dict[str, list[int]] = {name: [] for name in rules}
        wrong = dict.fromkeys(rules, 0)
        for case, draw in cases(rivals).items():
            say(f"voters: {rivals} rivals, {case}")
            for seed in range(number):
                grades, winner = shuffled(draw, seed, MOST)
                for name, rule in rules.items():
                    outcome = rule(grades, 0.01)
                    voters[name].append(outcome.voters or MOST)
                    wrong[name] += outcome.winner not in (None, winner)
        cells = [
            f"{name} {np.mean(voters[name]):.0f} ({wrong[name] / len(voters[name]):.1%})" for name in rules
        ]
        share = wrong["now"] / len(voters["now"])
        yield Row(f"{rivals} rivals: voters (wrong)", "<= 1 % wrong", ", ".join(cells), share <= 0.01)


def measure(quick: bool) -> dict[str, Any]:
    errors, speeds = (50, 5) if quick else (2_000, 200)
    return {
        "electorates": [errors, speeds],
        "errors": list(error_rows(errors)),
        "speeds": list(speed_rows(speeds)),
        "versions": versions("rangevote"),
    }


def page(data: dict[str, Any]) -> str:
    errors, speeds = data["electorates"]
    low, high = wilson(ALPHAS[0], errors)
    about = f"""Every electorate has its seed: the numbers do not depend on the machine. A wrong winner may
        ever be named with probability 1 - confidence, asked after every voter: {errors:,} electorates of up
        to {FEW} voters in each case, whose best is hardly better, so that {ALPHAS[0]:.0%} would show as
        {low:.1%} to {high:.1%} (95 % interval). Voters until the decision at confidence 0.99 where the lead
        is clear: the mean over {speeds:,} electorates of up to {MOST} voters in each case; `before` shared
        the error out among the rivals."""
    rows = [Row(*row) for row in (*data["errors"], *data["speeds"])]
    return chapter("When is a sample enough?", about, data, {"": rows})
