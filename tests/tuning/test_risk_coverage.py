"""Risk against coverage, and thresholds that are chosen by them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import rangevote as rv
from rangevote.evaluation.metrics import accuracy
from rangevote.tuning.risk_coverage import risk_curve, risk_table
from tests.tuning.test_tune import quietly

ACCURACY = accuracy("last_number")


def rows(*right: bool) -> np.ndarray:
    return np.array([(one, 1) for one in right], dtype=np.float64)


def test_the_curve_has_coverage_and_risk_of_every_threshold():
    curve = risk_curve([0.9, 0.5, 0.9, 0.7], rows(True, False, True, False), ACCURACY)
    assert curve.points == ((0.9, 0.5, 0.0), (0.7, 0.75, pytest.approx(1 / 3)), (0.5, 1.0, 0.5))
    assert curve.area == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert (curve.chosen, curve.max_risk) == (None, None)


def test_the_threshold_answers_most_within_the_risk():
    given = [0.9, 0.5, 0.9, 0.7], rows(True, False, True, False), ACCURACY
    assert risk_curve(*given, max_risk=0.4).chosen == (0.7, 0.75, pytest.approx(1 / 3))
    assert risk_curve(*given, max_risk=0.1).chosen == (0.9, 0.5, 0.0)
    assert risk_curve(*given, max_risk=1).chosen.threshold == 0.5
    none = risk_curve([0.9], rows(False), ACCURACY, max_risk=0.1)
    assert none.chosen is None
    assert "none is chosen" in risk_table(none).notes[1]


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
    ballots = answered(200)
    tuning = quietly(ballots, max_risk=0.05, **EXACT)
    share = tuning.options["min_share"]
    results = [rv.elect(ballot, **tuning.options) for ballot in ballots]
    given = [(r, b) for r, b in zip(results, ballots, strict=True) if r.elected]
    wrong = sum(r.answer != b.references[0] for r, b in given)
    assert 0 < len(given) < 200
    assert len(given) / 200 == pytest.approx(tuning.curve.chosen.coverage)
    assert wrong / len(given) == pytest.approx(tuning.curve.chosen.risk)
    assert wrong / len(given) <= 0.05
    everyone = [rv.elect(b, similarity="exact:last_number").answer != b.references[0] for b in ballots]
    assert tuning.curve.points[-1].risk == pytest.approx(np.mean(everyone))
    assert 0 <= tuning.curve.unseen.risk < 0.15
    assert f"min_share = {share!r}" in tuning.profile()
    assert tuning.as_data()["curve"]["chosen"][0] == share


@pytest.mark.parametrize("confident", [False, True])
def test_tune_says_whether_confidence_helps_beyond_chance(confident):
    ballots = answered(150, confident=confident)
    weights = ["count", "confidence", "lowest_confidence"]
    tuning = quietly(ballots, weights=weights, **{**EXACT, "temperatures": [0.2]})
    assert [one.weights for one in tuning.weightings] == weights[1:]
    for gain in tuning.weightings:
        assert (gain.p < 0.05 and gain.gain > 0) is confident
        assert ("helps beyond chance" in str(gain)) is confident
    assert (tuning.options["weights"] == "count") is not confident


def test_a_picture_of_the_curve_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from rangevote.tuning.risk_coverage import plot_risk

    curve = risk_curve([0.9, 0.5, 0.7], rows(True, False, True), ACCURACY, max_risk=0.2)
    plot_risk(curve, tmp_path / "curve.svg")
    assert (
        b"coverage" in (tmp_path / "curve.svg").read_bytes() or (tmp_path / "curve.svg").stat().st_size > 5000
    )


def test_accuracy_compares_answers_and_not_texts():
    from rangevote.evaluation.corpus import EvaluationCorpus, WordUnits

    corpus = EvaluationCorpus.of(3, [["42"], ["1/2", "3"], ["Rome"]])
    statistics = ACCURACY.statistics(corpus, WordUnits())
    found = statistics.rows(["so it is 42.0", r"\frac{1}{2}", "Rome"])
    assert found.tolist() == [[1, 1], [1, 1], [0, 1]]
