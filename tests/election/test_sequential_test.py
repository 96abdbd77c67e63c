"""The stopping rule: how often it is wrong, that it decides at all, and what does not block it.

A wrong leader may ever be declared with probability 1 - confidence. Here voters are sampled from
distributions whose best candidates are nearly tied, so that errors show, and the rule is asked after
every voter. A test of fixed size at the same level, asked as often, is wrong more than twice as often.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import rangevote as rv
from rangevote.election.sequential_test import PURSES, STAKES, Bets, deal, rounds
from tests.election.electorates import CLOSE, Declared, dealt, declared, errors, shares, shuffled, similar

ALPHA = 0.1
MANY, FEW, VOTERS = 2_000, 300, 150
#: After so many equal votes 0.99 is reached: one names the leader, then the mean of (1 + b)^n must be 100.
UNANIMOUS = next(n for n in range(1, 100) if PURSES @ (1 + STAKES) ** n >= 100) + 1


class Table(rv.Custom):
    """Grades that a voter carries with it: '0.5,0.25' gives candidate 1 a quarter."""

    def __init__(self, lowest: float = 0.0) -> None:
        super().__init__(self.read, batched=True, name="table")
        self.lowest = lowest

    @staticmethod
    def read(voters: list[str], candidates: list[str]) -> list[list[float]]:
        return [[float(voter.split(",")[int(c)]) for c in candidates] for voter in voters]


def lines(grades: np.ndarray) -> list[str]:
    return [",".join(map(str, row)) for row in grades.tolist()]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, 60 if "60" in name else FEW) for name in CLOSE),
        *(pytest.param(name, MANY, marks=pytest.mark.slow) for name in CLOSE),
    ],
)
def test_a_wrong_leader_is_declared_no_more_often_than_allowed(name, number):
    assert errors(CLOSE[name], number, VOTERS, ALPHA) <= ALPHA * number


@pytest.mark.parametrize("name", ["two coins", "skewed", "three answers"])
@pytest.mark.parametrize("within", [0.0, 0.02])
def test_an_electorate_that_is_asked_after_every_voter_declares_what_the_bets_say(name, within):
    decided = 0
    for seed in range(4):
        grades, _ = shuffled(CLOSE[name], seed, 40)
        electorate = rv.Electorate([str(i) for i in range(grades.shape[1])], similarity=Table())
        outcome = Declared(None, None)
        for n, voter in enumerate(lines(grades), 1):
            if electorate.add(voter).decided(0.5, within):
                outcome = Declared(n, electorate.result().index)
                break
        assert outcome == declared(grades, 0.5, within=within)
        decided += outcome.winner is not None
    assert decided or within


@pytest.mark.parametrize("seed", range(2))
def test_answers_that_nobody_gave_yet_are_rivals_as_if_they_had_stood_from_the_beginning(seed):
    grades, _ = shuffled(shares(0.75, 0.1, 0.1, 0.05), seed, 60)
    answers = [str(row.argmax()) for row in grades]
    standing = rv.Electorate([*dict.fromkeys(answers), "never"], similarity="exact")
    everyone = rv.Electorate(similarity="exact")
    decisions = [(standing.add(one).decided(0.6), everyone.add(one).decided(0.6)) for one in answers]
    assert all(first == second for first, second in decisions)
    assert (True, True) in decisions
    assert standing.result().winner == everyone.result().winner


@pytest.mark.parametrize("candidates", [None, ["a", "b"]])  # others could still be given, or stand
def test_an_answer_that_all_give_is_decided_as_soon_as_the_bets_allow(candidates):
    electorate = rv.Electorate(candidates, similarity="exact")
    decisions = [electorate.add("a").decided(0.99) for _ in range(UNANIMOUS)]
    assert decisions == [False] * (UNANIMOUS - 1) + [True]
    assert UNANIMOUS <= 11
    assert rv.Electorate(candidates, similarity="exact").add(["a"] * UNANIMOUS).decided(0.99)


def test_a_tolerance_allows_a_leader_that_far_below_the_best_and_no_further():
    beyond, sooner, allowed = 0, 0, 0.05
    for seed in range(10):
        close = similar(3, 0.01)(np.random.default_rng(seed), 200) - np.array([0, 0, 0, 2 * allowed])
        grades = np.clip(close, 0.0, 1.0)
        plain, loose = declared(grades, ALPHA), declared(grades, ALPHA, within=allowed)
        beyond += loose.winner == 3
        sooner += (loose.voters or 201) < (plain.voters or 201)
    assert beyond <= 2
    assert sooner >= 5


@pytest.mark.parametrize(
    ("probabilities", "confidence", "enough"),
    [
        ((0.9, 0.1), 0.99, 40),
        ((0.6, 0.2, 0.2), 0.99, 250),
        ((0.7, 0.3), 0.95, 300),
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


def test_the_wealth_of_a_fair_game_does_not_grow_on_average():
    # all 2^11 sequences of voters for one or the other, after one for the first: nobody is better
    ends, wealth = np.arange(1, 13), []
    for i in range(2**11):
        first = np.array([1.0, *(float(i >> j & 1) for j in range(11))])
        grades = np.stack([first, 1 - first], axis=1)
        wealth.append(np.exp(Bets(grades, np.zeros(2), 1.0, ends).log_wealth()[-1]))
    assert np.mean(wealth, axis=0) == pytest.approx([1.0, 1.0], rel=1e-12)
    assert PURSES.sum() == pytest.approx(1.0)
    assert STAKES.max() == 0.999


def test_the_wealth_of_a_fair_panel_does_not_grow_on_average():
    # three members of shares 0.5, 0.3, 0.2 who give the first answer with these probabilities: a tie in all
    shares, chances = np.array([0.5, 0.3, 0.2]), np.array([0.34, 0.7, 0.6])
    assert shares @ chances == pytest.approx(0.5)
    powers, mean = np.tile(shares / shares.max(), 4), np.zeros(2)
    for i in range(2**9):
        bits = np.array([i >> j & 1 for j in range(9)], dtype=float)
        first = np.concatenate([[1.0, 1.0, 1.0], bits])  # a round that names the leader
        odds = np.where(bits == 1, np.tile(chances, 3), 1 - np.tile(chances, 3)).prod()
        grades = np.stack([first, 1 - first], axis=1)
        wealth = Bets(grades, np.zeros(2), 1.0, np.array([3, 6, 9, 12]), 0.0, powers).log_wealth()
        mean += odds * np.exp(wealth[-1])
    assert mean.max() <= 1.0
    assert mean.min() > 0.2  # and they do bet


def test_a_panel_of_equal_shares_is_decided_by_as_many_voters_as_one_model():
    one = rv.Electorate(["a", "b"], similarity="exact").add(["a"] * 16)
    panel = rv.Electorate(["a", "b"], similarity="exact")
    for number in (8, 8):
        panel.add(["a"] * number, member=f"m{len(panel)}")
    for confidence in (0.9, 0.99, 0.995, 0.999):
        assert panel.decided(confidence) == one.decided(confidence)
    missing = rv.Electorate(["a", "b"], similarity="exact", shares={"m": 1.0, "n": 1.0})
    assert not missing.add(["a"] * 99, member="m").decided(0.9)  # n has not voted


def test_a_panel_is_wrong_no_more_often_than_allowed():
    # a, of share 0.7, says x in half of all cases, b, of share 0.3, in 38 of 100: y wins by 0.07
    shares, wrong = {"a": 0.7, "b": 0.3}, 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        electorate = rv.Electorate(similarity="exact", shares=shares)
        for size in (4, 4, 8, 16, 32):
            for name, chance in (("a", 0.5), ("b", 0.38)):
                electorate.add(["x" if one < chance else "y" for one in rng.random(size)], member=name)
            if electorate.decided(0.8):
                wrong += electorate.result().winner == "x"
                break
    assert wrong <= 0.2 * 150


#: Batches in which a rule that orders them by what they vote, or deals anew, is wrong too often.
DESIGNS = {
    "64 at once, then singly": ((0.40, 0.39), [64, *range(65, 165)], 0.05),
    "one batch of 107": ((0.505, 0.495), [107], 0.05),
    "one batch of 113": ((0.505, 0.495), [113], 0.1),
    "doubled": ((0.34, 0.33, 0.33), [4, 8, 16, 32, 64, 128], 0.1),
}


@pytest.mark.parametrize("electorates", [100, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("answers", "ends", "alpha"), DESIGNS.values(), ids=DESIGNS)
def test_batches_declare_a_wrong_answer_no_more_often_than_allowed(answers, ends, alpha, electorates):
    wrong = 0
    for seed in range(electorates):
        rng = np.random.default_rng(seed)
        one_off = np.flatnonzero((chosen := rng.random(ends[-1])) >= sum(answers))
        given = np.searchsorted(np.cumsum(answers), chosen, side="right")
        given[one_off] = len(answers) + np.arange(len(one_off))  # answers that nobody else gives
        first_win = dealt(np.eye(len(answers) + len(one_off))[given], ends, alpha)
        wrong += first_win.winner not in (None, 0)
    assert wrong <= alpha * electorates


def test_what_was_dealt_stays_and_does_not_depend_on_votes():
    order, looks = deal([5, 6, 20])
    later, _ = deal([5, 6, 20, 23])
    assert sorted(order) == list(range(20))
    assert later[:20].tolist() == order.tolist()
    assert looks.tolist() == [1, 2, 4, 5, 6, 8, 16, 20]
    assert deal([])[0].tolist() == []


@pytest.mark.parametrize("seed", range(6))
def test_an_electorate_of_batches_declares_what_the_bets_in_dealt_order_say(seed):
    rng, ends = np.random.default_rng(seed), [6, 7, 30, 60]
    grades = shares(0.7, 0.2, 0.1)(rng, 60)
    electorate, outcome = rv.Electorate(similarity="exact"), Declared(None, None)
    for start, stop in zip([0, *ends], ends, strict=False):
        electorate.add([str(row.argmax()) for row in grades[start:stop]])
        if electorate.decided(0.8):
            outcome = Declared(stop, int(electorate.result().winner))
            break
    assert outcome == dealt(grades, ends, 0.2)


def test_voters_are_drawn_in_rounds_until_the_election_is_decided():
    drawn = []

    def draw(numbers: range) -> list[str]:
        drawn.append(numbers)
        return ["a"] * len(numbers)

    result = rv.Electorate(["a", "b"], similarity="exact").sample(draw, 1000, first=4)
    assert (result.winner, drawn) == ("a", [range(4), range(4, 8), range(8, 16)])
    assert drawn == list(rounds(16, 4))
    assert len(rv.Electorate(similarity="exact").sample(lambda n: [*map(str, n)], 50).voters) == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "overlap_2"}, r"left out where answers are compared.*not by 'overlap_2'"),
        ({"similarity": "exact", "logprobs": [-1.0]}, r"need candidates"),
        ({"similarity": "exact", "likelihood": 0.5}, r"need candidates"),
        ({"similarity": "exact", "winners": 2}, r"need candidates"),
    ],
)
def test_every_voter_can_stand_only_where_answers_are_compared(options, message):
    with pytest.raises(rv.UsageError, match=message):
        rv.Electorate(**options)


def test_an_electorate_without_candidates_is_that_of_its_voters():
    answers = ["it is 5", "so 5.0", "7", "no number", "5"]
    electorate = rv.Electorate(similarity="exact:last_number")
    assert not electorate.decided()
    result = electorate.add(answers[:2]).add(answers[2:]).result()
    expected = rv.elect(answers, similarity="exact:last_number")
    assert (result.winner, result.scores.tolist()) == (expected.winner, expected.scores.tolist())
    assert result.signature == expected.signature


@pytest.mark.parametrize("within", [-0.1, 1, True, "0.1", math.nan])
def test_a_tolerance_is_a_difference_of_scores(within):
    with pytest.raises(rv.UsageError, match="within must be a difference of scores from 0 to 1"):
        rv.Electorate(["a", "b"]).decided(0.9, within)


@pytest.mark.parametrize(
    ("candidates", "similarity"),
    [(["a b c", "a b c\n", "x"], "overlap_2"), (["it is 5", "so 5.0", "it is 7"], "exact:last_number")],
)
def test_clones_of_the_leader_do_not_block_a_decision(candidates, similarity):
    electorate = rv.Electorate(candidates, similarity=similarity).add([candidates[0]] * 40)
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
