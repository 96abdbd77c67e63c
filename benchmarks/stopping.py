"""How many voters a decision takes, and how often it is wrong.

Every rule sees the same simulated electorates (`tests/election/electorates.py`) and is asked after every
voter: the package's rule, the one before it (every pair of the leader and a rival is tested, the error shared
out among the rivals), and what others do without a bound: stop when a Beta posterior says 0.95, stop when
75 % agree, or always take a fixed number.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from common import ROOT, Row, chapter, say, versions
from scipy.stats import beta

sys.path.insert(0, str(ROOT))
from tests.election.electorates import CLOSE, Declared, coins, declared, first, shares, shuffled, similar

#: Electorates of each case of errors, and of each case of speed; voters of an electorate at most.
ERRORS, SPEED, MOST = 2_000, 200, 800
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


def errors(rule: Rule, name: str, alpha: float) -> tuple[int, int]:
    """How many of the close electorates were decided wrongly, and how many at all."""
    wrong = decided = 0
    for seed in range(ERRORS):
        grades, winner = shuffled(CLOSE[name], seed, 150)
        outcome = rule(grades, alpha)
        decided += outcome.winner is not None
        wrong += outcome.winner not in (None, winner)
    return wrong, decided


def error_rows() -> Iterator[Row]:
    for name in CLOSE:
        say(f"errors: {name}")
        found, reached = [], True
        for alpha in ALPHAS:
            wrong, decided = errors(declared, name, alpha)
            found.append(f"{wrong / ERRORS:.1%} (decided {decided / ERRORS:.0%})")
            reached &= wrong / ERRORS <= alpha
        others = [f"{errors(rule, name, 0.05)[0] / ERRORS:.1%}" for rule in (beta_posterior, agreement)]
        measured = f"{' and '.join(found)}; Beta 0.95 {others[0]}, 75 % agree {others[1]}"
        must = " and ".join(f"<= {alpha:.0%}" for alpha in ALPHAS)
        yield Row(f"{name}: wrong at confidence 0.9 and 0.99", must, measured, reached)


def speed_rows() -> Iterator[Row]:
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
            for seed in range(SPEED):
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
    return {
        "errors": list(error_rows()),
        "speeds": list(speed_rows()),
        "versions": versions("rangevote"),
    }


def page(data: dict[str, Any]) -> str:
    about = f"""Every electorate has its seed: the numbers do not depend on the machine. A wrong winner may
        ever be named with probability 1 - confidence, asked after every voter: {ERRORS:,} electorates of up
        to 150 voters in each case, whose best is hardly better. Voters until the decision at confidence
        0.99 where the lead is clear: the mean over {SPEED} electorates of up to {MOST} voters in each case;
        `before` shared the error out among the rivals."""
    rows = [Row(*row) for row in (*data["errors"], *data["speeds"])]
    return chapter("When is a sample enough?", about, data, {"": rows})
