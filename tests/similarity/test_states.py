"""states: cosines of the averaged state vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.similarity.samples import columns, weights_for


def with_states(vectors, role="candidates"):
    return columns([Hypothesis(text=str(i), state=tuple(v)) for i, v in enumerate(vectors)], role)


def cosine(u, v) -> float:
    dot = math.fsum(a * b for a, b in zip(u, v, strict=True))
    return dot / (math.hypot(*u) * math.hypot(*v))


@pytest.mark.parametrize("dimension", [1, 2, 7, 512])
def test_grades_are_cosines(dimension):
    rng = np.random.default_rng(dimension)
    candidates, voters = rng.normal(size=(6, dimension)), rng.normal(size=(9, dimension)) * 1e3
    expected = [[cosine(v, c) for c in candidates] for v in voters]
    measure, slate, roll = rv.States(), with_states(candidates), with_states(voters)
    np.testing.assert_allclose(measure.matrix(slate, roll), expected, rtol=0, atol=1e-13)
    weights = weights_for(rng, 9)
    np.testing.assert_allclose(measure.tally(slate, roll, weights), weights @ expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e300])
def test_the_length_of_a_vector_does_not_matter(scale):
    slate = with_states([(3.0, 4.0), (scale * 3.0, scale * 4.0), (-scale, 0.0)])
    expected = [[1, 1, -0.6], [1, 1, -0.6], [-0.6, -0.6, 1]]
    np.testing.assert_allclose(rv.States().matrix(slate, slate), expected, atol=1e-15)


def test_the_papers_names_are_the_same_measure():
    slate = with_states(np.random.default_rng(0).normal(size=(4, 3)))
    grades = {
        rv.get_similarity(n).matrix(slate, slate).tobytes()
        for n in ("states", "lstm_states", "transformer_states")
    }
    assert len(grades) == 1


def test_arrays_are_taken_as_states():
    vectors = np.eye(3, dtype=np.float32)
    result = rv.elect([Hypothesis(text="a", state=v) for v in vectors], similarity="states")
    np.testing.assert_allclose(result.scores, [1 / 3] * 3, atol=1e-15)


def test_a_zero_vector_is_warned_of_and_its_cosine_is_0():
    hypotheses = [Hypothesis(text="a", state=(0.0, 0.0)), Hypothesis(text="b", state=(1.0, 0.0))]
    with pytest.warns(rv.RangevoteWarning, match=r"candidates\[0\]\.state is a zero vector.*counts as 0"):
        result = rv.elect(hypotheses, similarity="states")
    assert result.scores.tolist() == [0.0, 0.5]


def test_a_zero_vector_among_the_voters_is_named_as_a_voter():
    voters = [Hypothesis(text="v", state=(1.0,)), Hypothesis(text="w", state=(0.0,))]
    with pytest.warns(rv.RangevoteWarning, match=r"voters\[1\]\.state is a zero vector"):
        rv.elect([Hypothesis(text="c", state=(1.0,))], voters=voters, similarity="states")


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([None, None], r"^candidates: have no state vectors, which the measure 'states' needs"),
        ([(1.0, 2.0), None], r"^candidates\[1\]\.state: is missing"),
        ([(1.0, 2.0), (1.0,)], r"^candidates\[1\]\.state: has 1 numbers, others have 2"),
        ([(1.0, 2.0), (1.0, float("nan"))], r"^candidates\[1\]\.state\[1\]: nan is not a finite number"),
        ([(float("inf"), 2.0), (1.0, 1.0)], r"^candidates\[0\]\.state\[0\]: inf is not a finite number"),
        ([(1.0, 2.0), ("x", 2.0)], r"^candidates\[\]\.state: must hold numbers only"),
    ],
)
def test_states_that_cannot_be_compared_are_named(states, message):
    hypotheses = [Hypothesis(text="t", state=state) for state in states]
    with pytest.raises(rv.DataError, match=message):
        rv.elect(hypotheses, similarity="states")


def test_voters_need_states_of_the_candidates_dimension():
    candidates = [Hypothesis(text="c", state=(1.0, 2.0))]
    with pytest.raises(rv.DataError, match=r"voters\[0\]\.state: has 3 numbers, others have 2"):
        rv.elect(candidates, voters=[Hypothesis(text="v", state=(1.0, 2.0, 3.0))], similarity="states")
    with pytest.raises(rv.DataError, match=r"voters: have no state vectors"):
        rv.elect(candidates, voters=["v"], similarity="states")
