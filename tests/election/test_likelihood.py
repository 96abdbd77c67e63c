"""score(c) = sum of P(v) sim(v, c) + x log P(c) / |c|: a candidate's own likelihood beside the votes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.election.draws import MEASURES, logprob, text, weighted
from tests.election.equations import overlap
from tests.election.equations import scores as voted

each_measure = pytest.mark.parametrize("measure", MEASURES)


@st.composite
def candidates(draw: st.DrawFn) -> list[Hypothesis]:
    """Texts with log-probabilities, some ended by the model; either all have token ids or none."""
    tokens = draw(st.booleans())
    return [
        Hypothesis(
            text=draw(text),
            tokens=draw(st.lists(st.integers(1, 9), max_size=6)) if tokens else None,
            logprob=draw(logprob),
            finished=draw(st.booleans()),
        )
        for _ in range(draw(st.integers(1, 6)))
    ]


def own(candidate: Hypothesis, x: float) -> float:
    """x log P(c) / |c|, from the definition."""
    units = candidate.text.split() if candidate.tokens is None else candidate.tokens
    return x * candidate.logprob / max(len(units) + (1 if candidate.finished else 0), 1)


@settings(max_examples=25)
@given(candidates(), weighted(), st.floats(0.01, 5))
def test_the_score_is_that_of_the_equation(hypotheses, voters, x):
    result = rv.elect(hypotheses, voters=voters[0], weights=voters[1], similarity="overlap_2", likelihood=x)
    votes = voted(
        [c.text.split() for c in hypotheses],
        [v.split() for v in voters[0]],
        result.weights.tolist(),
        lambda v, c: overlap(v, c, 2),
    )
    expected = [vote + own(c, x) for vote, c in zip(votes, hypotheses, strict=True)]
    assert result.scores.tolist() == pytest.approx(expected, abs=1e-12)
    assert result.evidence.tolist() == pytest.approx([own(c, x) for c in hypotheses], abs=1e-12)
    assert expected[result.leader] >= max(expected) - 1e-12


@each_measure
@settings(max_examples=5)
@given(candidates(), weighted())
def test_it_is_added_to_the_votes_of_every_measure(measure, hypotheses, voters):
    votes = rv.elect(hypotheses, voters=voters[0], weights=voters[1], similarity=measure)
    result = rv.elect(hypotheses, voters=voters[0], weights=voters[1], similarity=measure, likelihood=0.8)
    assert (votes.scores + result.evidence).tobytes() == result.scores.tobytes()


@pytest.mark.parametrize("nothing", [None, 0, 0.0])
def test_a_likelihood_of_0_is_none(nothing):
    plain = rv.elect(["a b", "a c", "b"], [-1.0, -2.0, -3.0])
    result = rv.elect(["a b", "a c", "b"], [-1.0, -2.0, -3.0], likelihood=nothing)
    assert result.scores.tobytes() == plain.scores.tobytes()
    assert (result.signature, result.evidence) == (plain.signature, None)
    rv.elect(["a", "b"], [-1.0, -2.0], rule="most_likely", likelihood=nothing)
    rv.elect(["a", "b"], likelihood=nothing)  # needs no log-probabilities


def test_clones_of_one_log_probability_tie_exactly_and_the_better_put_of_a_group_speaks_for_it():
    hypotheses = ["a b a", "b a b", "a b a", "x y"]  # the first three have the same n-grams
    voters = ["a b a", "b a", "x y"]
    options = {"voters": voters, "similarity": "overlap_2", "likelihood": 0.4}
    result = rv.elect(hypotheses, [-6.0, -4.0, -6.0, -3.0], **options)
    assert result.scores[0] == result.scores[2] < result.scores[1]
    assert result.index == 1
    groups = [(group.candidates, group.score) for group in result.groups]
    assert groups == [((1, 0, 2), result.scores[1]), ((3,), result.scores[3])]
    assert result.margin == result.scores[1] - result.scores[3]  # not the distance to its own group
    several = rv.elect(hypotheses, [-6.0, -4.0, -6.0, -3.0], winners=2, **options)
    assert several.elected == (1, 3)


def test_reweighted_voters_leave_votes_and_likelihood_in_proportion():
    hypotheses, logprobs = ["a", "b c", "b d e"], [-4.0, -6.0, -5.0]
    voters, x = ["a", "a b", "b c", "b d"], 0.3
    options = {"voters": voters, "similarity": "overlap_1", "likelihood": x, "rule": "reweighted"}
    grades = [[overlap(v.split(), c.split(), 1) for c in hypotheses] for v in voters]
    lengths = [2, 3, 4]
    power, elected = [1 / 4] * 4, []
    for _ in hypotheses:
        totals = {
            c: sum(p * (row[c] + x * logprobs[c] / lengths[c]) for p, row in zip(power, grades, strict=True))
            for c in range(3)
            if c not in elected
        }
        elected.append(max(totals, key=totals.__getitem__))
        power = [1 / 4 / (1 + sum(row[e] for e in elected)) for row in grades]
    assert list(rv.elect(hypotheses, logprobs, winners=3, **options).elected) == elected


def test_a_candidate_without_probability_is_elected_only_among_its_like():
    impossible = [-math.inf, -9.0]
    result = rv.elect(["a b", "x"], impossible, voters=["a b"], likelihood=1)
    assert (result.winner, result.scores.tolist(), result.margin) == ("x", [-math.inf, -4.5], math.inf)
    result = rv.elect(["a b", "x"], [-math.inf] * 2, voters=["a b"], likelihood=1)
    assert (result.index, result.margin) == (0, 0.0)
    assert rv.elect(["a", "b"], [-5.0, -1.0], likelihood=1e308).winner == "b"  # beyond all floats


def test_no_support_is_about_votes():
    options = {"voters": ["z"], "likelihood": 0.5}
    assert rv.elect(["a", "b"], [-1.0, -2.0], **options).no_support
    assert not rv.elect(["a", "z"], [-1.0, -2.0], **options).no_support


def test_merged_texts_have_the_probability_of_all_and_the_length_of_the_first():
    rows = [
        Hypothesis(text="a b", tokens=(1, 2, 3), logprob=math.log(0.2)),
        Hypothesis(text="x", tokens=(9,), logprob=math.log(0.1)),
        Hypothesis(text="a b", tokens=(4, 5), logprob=math.log(0.3)),
    ]
    result = rv.elect(rows, likelihood=2, merge=True)
    assert result.evidence.tolist() == pytest.approx([2 * math.log(0.5) / 4, math.log(0.1), -math.inf])


@pytest.mark.parametrize("logprobs", [None, [-1.0, None]], ids=str)
@pytest.mark.parametrize("elect", [rv.elect, rv.Electorate])
def test_a_candidate_without_log_probability_is_named(elect, logprobs):
    index = 0 if logprobs is None else 1
    message = rf"candidates\[{index}\]\.logprob: is missing; likelihood=0\.8 needs .* leave likelihood"
    with pytest.raises(rv.DataError, match=message):
        elect(["a", "b"], logprobs, weights="count", likelihood=0.8)


def test_sampling_is_decided_by_votes_and_likelihood_together():
    # the votes are even, so that only the constant difference of 0.2 can decide
    options = {"similarity": "exact", "likelihood": 0.4, "weights": "count"}
    electorate = rv.Electorate(["a", "b"], [-1.0, -2.0], **options)
    assert not electorate.add(["a", "b"] * 5).decided(0.99)
    assert electorate.add(["a", "b"] * 300).decided(0.99)
    assert electorate.result().winner == "a"
    # a sure lead by own likelihood needs few voters, and P = 0 is no rival
    assert rv.Electorate(["a", "b"], [-1.0, -200.0], **options).add(["a", "b"] * 4).decided()
    assert rv.Electorate(["a", "b"], [-1.0, -math.inf], **options).decided()
    assert not rv.Electorate(["a", "b"], [-math.inf] * 2, **options).add(["a", "b"]).decided()


def test_a_wrong_leader_is_declared_no_more_often_than_allowed():
    # b is the better one by 0.01: 0.05 less votes, 0.06 more by its own likelihood
    wrong, confidence = 0, 0.9
    for seed in range(30):
        votes = np.random.default_rng(seed).choice(["a", "b"], size=(10, 5), p=[0.525, 0.475])
        electorate = rv.Electorate(["a", "b"], [-1.12, -1.0], similarity="exact", likelihood=1)
        for batch in votes.tolist():
            if electorate.add(batch).decided(confidence):
                wrong += electorate.result().winner == "a"
                break
    assert wrong <= (1 - confidence) * 30
