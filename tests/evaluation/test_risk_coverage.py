"""Risk against coverage, and thresholds that are chosen by them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import rangevote as rv
from rangevote.evaluation.risk_coverage import risk_curve, risk_table
from tests.tuning.test_tune import quietly


def test_the_curve_has_coverage_and_risk_of_every_threshold():
    curve = risk_curve([0.9, 0.5, 0.9, 0.7], [0, 1, 0, 1])
    assert curve.points == ((0.9, 0.5, 0.0), (0.7, 0.75, pytest.approx(1 / 3)), (0.5, 1.0, 0.5))
    assert curve.area == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert (curve.chosen, curve.max_risk) == (None, None)


def test_the_threshold_answers_most_of_those_that_keep_the_risk_with_confidence():
    """400 sure answers, all right, then 400 of which every tenth is wrong."""
    confidences = [1.0] * 400 + [0.5] * 400
    losses = [0] * 400 + [float(i % 10 == 0) for i in range(400)]
    sure, all_of_them = (1.0, 0.5, 0.0), (0.5, 1.0, 0.05)
    # 5 % are wrong of all, but that does not show that at most 5.5 % are
    for max_risk, chosen in ((0.02, sure), (0.055, sure), (0.08, all_of_them), (1, all_of_them)):
        assert risk_curve(confidences, losses, max_risk=max_risk).chosen == chosen


@pytest.mark.parametrize(("number", "max_risk"), [(50, 0.01), (400, 0.0), (1, 0.5)])
def test_too_few_ballots_promise_nothing_even_if_all_are_right(number, max_risk):
    curve = risk_curve([0.9] * number, [0.0] * number, max_risk=max_risk)
    assert curve.chosen is None
    assert f"{number} ballots cannot show" in risk_table(curve).notes[1]


#: Shares of the vote, how often they occur, and how often they are wrong.
SHARES = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
OCCUR = np.array([0.3, 0.2, 0.2, 0.2, 0.1])
WRONG = np.array([0.01, 0.04, 0.12, 0.3, 0.6])


@pytest.mark.parametrize("number", [60, 200, 1000])
@pytest.mark.parametrize("max_risk", [0.02, 0.05, 0.15])
def test_the_risk_on_new_ballots_is_above_the_promised_one_in_at_most_5_percent(number, max_risk):
    """300 choices, each with its exact risk on new ballots."""
    risks = dict(zip(SHARES, np.cumsum(OCCUR * WRONG) / np.cumsum(OCCUR), strict=True))
    chance = np.random.default_rng(number)
    broken = 0
    for _ in range(300):
        kind = chance.choice(5, size=number, p=OCCUR)
        wrong = chance.random(number) < WRONG[kind]
        chosen = risk_curve(SHARES[kind], wrong, max_risk=max_risk).chosen
        broken += chosen is not None and risks[chosen.threshold] > max_risk
    assert broken / 300 <= 0.05


def test_losses_between_0_and_1_keep_the_promise_too():
    """Losses of one half for every answer: a mean of 0.5, which 200 ballots show to be below 0.65."""
    curves = [risk_curve([0.5] * 200, [0.5] * 200, max_risk=r) for r in (0.4, 0.5, 0.65)]
    assert [curve.chosen is not None for curve in curves] == [False, False, True]


def answered(number: int, seed: int = 0, confident: bool = False) -> list[rv.Ballot]:
    """Questions of different difficulty, each with 9 samples; where `confident`, right ones are surer."""
    chance, ballots = random.Random(seed), []
    for i in range(number):
        skill, samples = chance.uniform(0.2, 0.95), []
        for _ in range(9):
            right = chance.random() < skill
            text = f"It is {i if right else i + chance.randint(1, 4)}"
            sure = -0.1 if right and confident else -chance.uniform(0.1, 2.0)
            samples.append(rv.Hypothesis(text, sampled=True, token_logprobs=[sure] * 5))
        ballots.append(rv.Ballot(samples, references=[str(i)], id=i))
    return ballots


EXACT = {
    "similarities": ["exact:last_number"],
    "temperatures": [1.0],
    "likelihoods": [0],
    "metric": "accuracy:last_number",
    "resamples": 200,
}


def test_tune_chooses_a_share_that_keeps_the_risk_and_votes_by_it():
    ballots = answered(600)
    tuning = quietly(ballots, max_risk=0.05, **EXACT)
    share = tuning.options["min_share"]
    results = [rv.elect(ballot, **tuning.options) for ballot in ballots]
    given = [(r, b) for r, b in zip(results, ballots, strict=True) if r.elected]
    wrong = sum(r.answer != b.references[0] for r, b in given)
    assert tuning.curve.ballots == 600  # with one setting there is no choice, and no half to make it on
    assert 0 < len(given) / 600 == pytest.approx(tuning.curve.chosen.coverage)
    assert wrong / len(given) == pytest.approx(tuning.curve.chosen.risk)
    assert wrong / len(given) < 0.05
    everyone = [rv.elect(b, similarity="exact:last_number").answer != b.references[0] for b in ballots]
    assert tuning.curve.points[-1].risk == pytest.approx(np.mean(everyone))
    assert f"min_share = {share!r}" in tuning.profile()
    assert tuning.as_data()["curve"]["chosen"][0] == share


def test_where_a_setting_is_chosen_the_threshold_is_chosen_on_other_ballots():
    tuning = quietly(answered(101), max_risk=0.3, weights=["count", "confidence"], **EXACT)
    assert (tuning.ballots, tuning.curve.ballots) == (50, 51)


def test_a_risk_that_cannot_be_promised_is_warned_about():
    with pytest.warns(rv.RangevoteWarning, match=r"no threshold is chosen.* 20 ballots cannot show"):
        tuning = rv.tune(answered(20), max_risk=0.01, **EXACT)
    assert "min_share" not in tuning.options


@pytest.mark.parametrize("confident", [False, True])
def test_tune_says_whether_confidence_helps_beyond_chance(confident):
    ballots = answered(150, confident=confident)
    weights = ["count", "confidence", "lowest_confidence"]
    tuning = quietly(ballots, weights=weights, **{**EXACT, "temperatures": [0.2]})
    assert [one.value for one in tuning.gains] == weights[1:]
    for gain in tuning.gains:
        assert (gain.p < 0.05 and gain.gain > 0) is confident
        assert ("helps beyond chance" in str(gain)) is confident
    assert (tuning.options["weights"] == "count") is not confident
