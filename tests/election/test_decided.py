"""The stopping rule: how often it is wrong, that it decides at all, and what does not block it.

A wrong leader may ever be declared with probability 1 - confidence. Here voters are sampled from
distributions whose best candidates are nearly tied, so that errors show, and the rule is asked after
every voter. A rule that is not anytime-valid fails on the same electorates (last test but one).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import rangevote as rv
from rangevote.election.electorate import BETS, log_wealth

CONFIDENCE = 0.9
ELECTORATES = 60  # for each of the six settings
VOTERS = 80


class Table(rv.Custom):
    """Grades that a voter carries with it: '0.5,0.25' gives candidate 1 a quarter."""

    def __init__(self, lowest: float = 0.0) -> None:
        super().__init__(self.read, batched=True, name="table")
        self.lowest = lowest

    @staticmethod
    def read(voters: list[str], candidates: list[str]) -> list[list[float]]:
        return [[float(voter.split(",")[int(c)]) for c in candidates] for voter in voters]


def answers(*probabilities: float):
    """Samples of one of several answers, compared by `exact`; the rest are answers nobody stands for."""
    candidates = [f"answer {i}" for i in range(len(probabilities))]
    everything = [*candidates, "another"]
    p = [*probabilities, 1 - sum(probabilities)]

    def sample(rng: np.random.Generator) -> list[str]:
        return [everything[i] for i in rng.choice(len(everything), size=VOTERS, p=p)]

    return candidates, "exact", sample


def graded(draw, candidates: int, lowest: float = 0.0):
    """Samples of voters who grade; the first candidate is the best by a hair."""

    def sample(rng: np.random.Generator) -> list[str]:
        return [",".join(map(str, row)) for row in draw(rng, (VOTERS, candidates)).tolist()]

    return [str(i) for i in range(candidates)], Table(lowest), sample


def coins(rng, shape):  # means 0.505 and 0.5: grades are 0 or 1
    return (rng.random(shape) < np.r_[0.505, np.full(shape[1] - 1, 0.5)]).astype(float)


def uniforms(rng, shape):  # means 0.505 and 0.5
    return np.minimum(rng.random(shape) + np.r_[0.005, np.zeros(shape[1] - 1)], 1.0)


def signs(rng, shape):  # grades are -1 or 1
    return np.where(rng.random(shape) < np.r_[0.505, np.full(shape[1] - 1, 0.5)], 1.0, -1.0)


#: name -> candidates, similarity, how voters are sampled; and after how many voters the rule is asked
SETTINGS = {
    "two answers": (answers(0.505, 0.495), 1),
    "three answers": (answers(0.34, 0.33, 0.33), 2),
    "two rare answers": (answers(0.201, 0.199), 1),
    "two coins": (graded(coins, 2), 1),
    "five uniforms": (graded(uniforms, 5), 5),
    "signs": (graded(signs, 3, lowest=-1.0), 2),
}


def declared(setting, batch: int, seed: int) -> int | None:
    """Whom the rule declares, asked after every batch, or None."""
    candidates, similarity, sample = setting
    voters = sample(np.random.default_rng(seed))
    electorate = rv.Electorate(candidates, similarity=similarity)
    for start in range(0, VOTERS, batch):
        if electorate.add(voters[start : start + batch]).decided(CONFIDENCE):
            return electorate.result().index
    return None


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wrong_leader_is_declared_no_more_often_than_allowed(name):
    setting, batch = SETTINGS[name]
    outcomes = [declared(setting, batch, seed) for seed in range(ELECTORATES)]
    wrong = sum(outcome not in (None, 0) for outcome in outcomes)
    assert wrong <= (1 - CONFIDENCE) * ELECTORATES


def test_the_nearly_tied_electorates_would_show_a_rule_that_is_not_anytime_valid():
    # the usual test at the same level, looked at after every voter from the tenth
    (candidates, _, sample), _ = SETTINGS["two coins"]
    wrong = 0
    for seed in range(ELECTORATES):
        grades = np.array([list(map(float, v.split(","))) for v in sample(np.random.default_rng(seed))])
        x = np.cumsum(grades[:, 0] - grades[:, 1])[9:]
        n = np.arange(10, VOTERS + 1)
        z = x / np.sqrt(n * 0.5)  # the difference of two fair coins has variance 1/2
        crossed = np.flatnonzero(np.abs(z) > 1.2816)  # one-sided 90 %
        wrong += bool(len(crossed)) and z[crossed[0]] < 0
    assert wrong > 2 * (1 - CONFIDENCE) * ELECTORATES
    assert len(candidates) == 2


@pytest.mark.parametrize(
    ("probabilities", "confidence", "enough"),
    [
        ((0.9, 0.1), 0.99, 40),
        ((0.6, 0.2, 0.2), 0.99, 250),
        ((0.6, 0.4), 0.95, 600),
        ((0.5, *[0.05] * 10), 0.9, 150),
    ],
)
def test_clear_cases_are_decided_and_rightly(probabilities, confidence, enough):
    candidates = [str(i) for i in range(len(probabilities))]
    decided = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        electorate = rv.Electorate(candidates, similarity="exact")
        for _ in range(enough // 10):
            electorate.add([str(i) for i in rng.choice(len(candidates), size=10, p=probabilities)])
            if electorate.decided(confidence):
                decided += 1
                assert electorate.result().winner == "0"
                break
    assert decided >= 7


def test_a_unanimous_electorate_of_two_is_decided_as_soon_as_the_best_bet_allows():
    # W = mean over bets of (1 + b)^n must reach 1 / 0.01
    needed = next(n for n in range(1, 100) if np.mean((1 + BETS) ** n) >= 100)
    electorate = rv.Electorate(["a", "b"], similarity="exact")
    decisions = [electorate.add("a").decided(0.99) for _ in range(needed)]
    assert decisions == [False] * (needed - 1) + [True]


def test_the_wealth_of_a_fair_game_does_not_grow_on_average():
    # all 2^12 sequences of wins and losses, equally likely: the mean wealth is exactly 1
    plays = np.array([[1 if i >> j & 1 else -1 for i in range(2**12)] for j in range(12)], dtype=float)
    assert np.mean(np.exp(log_wealth(plays))) == pytest.approx(1.0, rel=1e-12)


CLONES = {
    "the same text": (["a b", "a b", "x"], "overlap_1"),
    "the same tokens": ([[1, 2], [1, 2], [9]], "overlap_1"),
    "white space": (["a b c", "a b c\n", "x"], "overlap_2"),
    "the same n-grams": (["a b a", "b a b", "x"], "overlap_2"),
    "the same answer in other words": (["it is 5", "so 5.0", "it is 7"], "exact:last_number"),
}


@pytest.mark.parametrize(("candidates", "similarity"), CLONES.values(), ids=CLONES)
def test_clones_of_the_leader_do_not_block_a_decision(candidates, similarity):
    electorate = rv.Electorate(candidates, similarity=similarity)
    electorate.add([candidates[0]] * 40)
    assert electorate.result().index == 0
    assert electorate.decided(0.99)


def test_one_candidate_is_decided_and_an_even_split_is_not():
    assert rv.Electorate(["a"]).decided()
    assert not rv.Electorate(["a", "b"], similarity="exact").decided()
    assert not rv.Electorate(["a", "b"], similarity="exact").add(["a", "b"] * 300).decided(0.5)


@pytest.mark.parametrize("rule", ["range", "reweighted"])
def test_several_winners_are_decided_when_every_seat_is(rule):
    options = {"similarity": "exact", "winners": 2, "rule": rule}
    electorate = rv.Electorate(["a", "b", "c"], **options).add(["a"] * 60 + ["b", "c"] * 10)
    assert rv.Electorate(["a", "b", "c"], similarity="exact").add(["a"] * 60 + ["b", "c"] * 10).decided()
    assert not electorate.decided()  # the second seat is open
    assert electorate.add(["b"] * 60 + ["a"] * 100).decided()
    assert electorate.result().winners == ("a", "b")
    assert not rv.Electorate(["a", "b"], **options).add(["a", "b"] * 9).decided()  # nor is their order


@pytest.mark.parametrize("weights", ["probability", None])
def test_voters_weighed_by_probability_are_refused(weights):
    electorate = rv.Electorate(["a", "b"], weights=weights).add(["a", "b"], [-1.0, -2.0])
    with pytest.raises(
        rv.UsageError, match=r"for sampled voters.*weights='probability'.*use weights='count'"
    ):
        electorate.decided()
    assert rv.Electorate(["a", "b"], weights="count").add(["a"], [-1.0]).decided() is False


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, 99, math.nan])
def test_a_confidence_lies_between_0_and_1(confidence):
    with pytest.raises(rv.UsageError, match=r"confidence must lie between 0 and 1"):
        rv.Electorate(["a", "b"]).decided(confidence)
