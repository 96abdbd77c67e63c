"""The compiled kernel and its plain twin give the same bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.kernel import plain
from tests.kernel.both import compiled, each_kernel, needs_compiled, same_bits
from tests.similarity.samples import sentences, weights_for

pytestmark = needs_compiled

ORDERS = [[1], [2, 4], [1, 2, 3, 4], [1, 7]]
settings_of_an_index = pytest.mark.parametrize(
    ("bag", "short"), [(True, False), (True, True), (False, True), (False, False)]
)


def sequences(rng: np.random.Generator, unit: str, size: int) -> list:
    if unit != "ids":
        return sentences(rng, size, longest=12)
    return [rng.integers(-3, 4, size=rng.integers(0, 12)).tolist() for _ in range(size)]


@pytest.mark.parametrize("unit", ["space", "words", "chars", "ids"])
@pytest.mark.parametrize("orders", ORDERS, ids=str)
@settings_of_an_index
def test_random_elections(unit, orders, bag, short):
    rng = np.random.default_rng(len(orders))
    for batches in (1, 3):
        candidates, voters = sequences(rng, unit, 8), sequences(rng, unit, 11)
        same_bits(candidates, voters, unit, orders, bag, short, weights_for(rng, 11), batches)


# A candidate's matches are summed in bytes and moved on after 255 items: lengths around its multiples.
@pytest.mark.parametrize("length", [254, 255, 256, 511])
def test_long_sequences_and_grams_repeated_hundreds_of_times(length):
    candidates = [
        "x " * length,
        " ".join(map(str, range(length))),
        "x y " * (length // 2),
        "x",
        "y " * (length // 3) + "x " * 300,
    ]
    voters = [*candidates, "z " * length + "x " * 301]
    weights = np.full(len(voters), 1 / len(voters))
    same_bits(candidates, voters, "space", [1, 2, 3, 4], True, False, weights)
    same_bits(candidates, voters, "space", [1, 2], False, True, weights)
    same_bits(["".join(c.split()) for c in candidates], voters, "chars", [1, 2, 3], True, False, weights)


texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=4)
masses = st.lists(st.floats(0, 1), min_size=4, max_size=4)


@given(
    candidates=texts,
    voters=texts,
    drawn=masses,
    unit=st.sampled_from(["space", "words", "chars"]),
    short=st.booleans(),
)
def test_any_text_there_is(candidates, voters, drawn, unit, short):
    weights = np.array(drawn[: len(voters)])
    weights = weights / max(1.0, weights.sum())
    same_bits(candidates, voters, unit, [1, 2, 3], True, short, weights)


ids = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6), min_size=1, max_size=4)


@given(candidates=ids, voters=ids, bag=st.booleans(), short=st.booleans())
def test_any_64_bit_token_ids(candidates, voters, bag, short):
    same_bits(candidates, voters, "ids", [1, 2], bag, short, np.full(len(voters), 1 / len(voters)))


@pytest.mark.parametrize("power", [0, -30, -59, -60, -61, -1074])
def test_votes_around_and_below_the_unit_are_rounded_alike(power):
    rng = np.random.default_rng(7)
    candidates = sequences(rng, "space", 9)
    weights = np.ldexp(rng.random(9) / 9, power)
    same_bits(candidates, candidates, "space", [1, 2, 3, 4], True, False, weights)
    same_bits(candidates, candidates, "space", [1, 2], False, True, weights)


def test_half_a_unit_is_rounded_to_even():
    # 2^-61 is half a unit: even zero; 3 * 2^-61 is one and a half: even two
    for vote, units in ((2.0**-61, 0), (3 * 2.0**-61, 2), (5 * 2.0**-61, 2), (1.5 * 2.0**-61, 1)):
        same_bits(["a"], ["a"], "space", [1], True, False, np.array([vote]))
        index = plain.Index(["a"], "space", [1], True, False)
        index.add(["a"])
        assert index.tally(np.array([vote]), 0.0, False)[0] == units * 2.0**-60


logprobs = st.lists(st.floats(-2000, 0) | st.just(-math.inf), max_size=40)


@given(logprobs, st.sampled_from([0.1, 1.0, 2.0, 1e-300, 1e300]))
def test_both_give_the_same_weights_bit_for_bit(values, temperature):
    column = np.array(values, dtype=np.float64)
    again = [i for i in range(len(values)) if i % 3 == 2]
    ours = plain.softmax(column, temperature, again)
    assert ours.tobytes() == compiled.softmax(column, temperature, again).tobytes()


@each_kernel
@given(values=st.lists(st.floats(-50, 0), min_size=1, max_size=40))
def test_weights_are_the_normalised_probabilities(kernel, values):
    masses = [Fraction(math.exp(value - max(values))) for value in values]
    expected = [float(mass / sum(masses)) for mass in masses]
    np.testing.assert_allclose(kernel.softmax(np.array(values), 1.0, []), expected, rtol=1e-14, atol=1e-17)
