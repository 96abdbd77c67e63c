"""What must hold of every election, whatever its texts and weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rangevote as rv
from tests.election.draws import MEASURES, likely, measures, shuffled, texts, weighted

each_measure = pytest.mark.parametrize("measure", MEASURES)


@each_measure
@settings(max_examples=10)
@given(candidates=texts, voters=weighted())
def test_a_score_lies_between_0_and_1(measure, candidates, voters):
    result = rv.elect(candidates, voters=voters[0], weights=voters[1], similarity=measure)
    assert (result.scores >= 0).all()
    assert (result.scores <= 1 + 1e-12).all()
    assert math.isclose(math.fsum(result.weights), 1.0, abs_tol=1e-12)


@given(st.data(), texts, weighted(), measures)
def test_the_order_of_the_voters_changes_no_bit(data, candidates, voters, measure):
    order = shuffled(data.draw, len(voters[0]))
    there = rv.elect(candidates, voters=voters[0], weights=voters[1], similarity=measure)
    again = rv.elect(
        candidates,
        voters=[voters[0][i] for i in order],
        weights=[voters[1][i] for i in order],
        similarity=measure,
    )
    assert there.scores.tobytes() == again.scores.tobytes()


@given(st.data(), likely(), measures)
def test_the_order_of_voters_weighed_by_probability_changes_no_bit(data, voters, measure):
    order = shuffled(data.draw, len(voters[0]))
    candidates = sorted(set(voters[0]))
    options = {"similarity": measure, "weights": "probability"}
    there = rv.elect(candidates, voters=voters[0], voter_logprobs=voters[1], **options)
    mixed = [voters[0][i] for i in order], [voters[1][i] for i in order]
    again = rv.elect(candidates, voters=mixed[0], voter_logprobs=mixed[1], **options)
    assert there.scores.tobytes() == again.scores.tobytes()


@given(st.data(), likely(), measures)
def test_the_order_of_the_candidates_matters_only_for_ties(data, ballot, measure):
    candidates, logprobs = ballot
    order = shuffled(data.draw, len(candidates))
    options = {"similarity": measure, "weights": "probability"}
    there = rv.elect(candidates, logprobs, **options)
    again = rv.elect([candidates[i] for i in order], [logprobs[i] for i in order], **options)
    assert again.scores.tobytes() == there.scores[order].tobytes()
    rank = [(there.scores[i], logprobs[i]) for i in there.ranking]
    assert rank == [(again.scores[i], again.candidates.logprob(i)) for i in again.ranking]
    assert rank == sorted(rank, reverse=True)


@given(st.data(), texts, weighted(), measures)
def test_splitting_a_voters_mass_among_clones_moves_scores_by_rounding_only(
    data, candidates, voters, measure
):
    electors, weights = voters
    i = data.draw(st.integers(0, len(electors) - 1))
    parts = data.draw(st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
    shares = [weights[i] * part / math.fsum(parts) for part in parts]
    whole = rv.elect(candidates, voters=electors, weights=weights, similarity=measure)
    split = rv.elect(
        candidates,
        voters=electors[:i] + [electors[i]] * len(shares) + electors[i + 1 :],
        weights=weights[:i] + shares + weights[i + 1 :],
        similarity=measure,
    )
    np.testing.assert_allclose(split.scores, whole.scores, rtol=0, atol=1e-13)
    if not whole.near_tie:
        assert split.index == whole.index


@given(texts, weighted(), measures, st.integers(-900, 900))
def test_scaling_all_weights_by_a_power_of_two_changes_nothing(candidates, voters, measure, power):
    electors, weights = voters
    scaled = [math.ldexp(weight, power) for weight in weights]
    assume(all(math.ldexp(s, -power) == w for s, w in zip(scaled, weights, strict=True)))  # no underflow
    there = rv.elect(candidates, voters=electors, weights=weights, similarity=measure)
    again = rv.elect(candidates, voters=electors, weights=scaled, similarity=measure)
    assert there.scores.tobytes() == again.scores.tobytes()


@given(likely(), measures, st.integers(-2000, -1))
def test_only_the_ratios_of_probabilities_matter(ballot, measure, shift):
    candidates, logprobs = ballot[0], [round(lp * 64) / 64 for lp in ballot[1]]  # so that the sums are exact
    options = {"similarity": measure, "weights": "probability"}
    there = rv.elect(candidates, logprobs, **options)
    again = rv.elect(candidates, [lp + shift for lp in logprobs], **options)
    assert again.scores.tobytes() == there.scores.tobytes()
    assert again.ranking == there.ranking


@given(texts, weighted(), measures)
def test_who_else_stands_changes_nobodys_score(candidates, voters, measure):
    everybody = rv.elect(candidates, voters=voters[0], weights=voters[1], similarity=measure)
    for i, candidate in enumerate(candidates):
        alone = rv.elect([candidate], voters=voters[0], weights=voters[1], similarity=measure)
        assert alone.scores[0] == everybody.scores[i]
