"""overlap_n, precision_n and their family against the equations, pair by pair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rangevote as rv
from tests.election import equations
from tests.similarity.samples import columns, sentences, weights_for

FAMILY = {
    "overlap_1": ((1,), 0.0, False),
    "overlap_2": ((2,), 0.0, False),
    "overlap_5": ((5,), 0.0, False),
    "overlap_1-4": ((1, 2, 3, 4), 0.0, False),
    "overlap_1-4@0.25": ((1, 2, 3, 4), 0.25, False),
    "overlap_2@0.5": ((2,), 0.5, False),
    "overlap_3@1": ((3,), 1.0, False),
    "precision_1": ((1,), 0.0, True),
    "precision_2": ((2,), 0.0, True),
    "precision_2-3": ((2, 3), 0.0, True),
    "precision_1-4@0.25": ((1, 2, 3, 4), 0.25, True),
    "precision_1@1": ((1,), 1.0, True),
}
the_family = pytest.mark.parametrize(("name", "setting"), FAMILY.items(), ids=FAMILY)
texts = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "aa", "b c"[0]]), max_size=8).map(" ".join),
    min_size=1,
    max_size=6,
)


def naive(candidates, voters, setting):
    """The matrix (voters, candidates) from the equations."""
    orders, a, bag = setting
    return np.array(
        [[equations.family(v.split(), c.split(), orders, a, bag) for c in candidates] for v in voters]
    )


@the_family
@pytest.mark.parametrize("seed", range(4))
def test_the_linear_count_equals_the_sum_over_all_pairs(name, setting, seed):
    rng = np.random.default_rng(seed)
    candidates, voters = sentences(rng, 12), sentences(rng, 15)
    weights = weights_for(rng, len(voters))
    grades = naive(candidates, voters, setting)
    measure = rv.get_similarity(name)
    np.testing.assert_allclose(
        measure.matrix(columns(candidates), columns(voters)), grades, rtol=0, atol=1e-14
    )
    tally = measure.tally(columns(candidates), columns(voters), weights)
    np.testing.assert_allclose(tally, weights @ grades, rtol=0, atol=1e-12)


@the_family
@settings(max_examples=40)
@given(candidates=texts, voters=texts)
def test_any_two_lists_are_graded_as_the_equations_say(name, setting, candidates, voters):
    grades = rv.get_similarity(name).matrix(columns(candidates), columns(voters))
    np.testing.assert_allclose(grades, naive(candidates, voters, setting), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "voter", "candidate", "grade"),
    [
        ("overlap_1", "a a b", "a c", Fraction(1, 2)),
        ("precision_1", "a a b", "a c", Fraction(1, 3)),
        ("precision_1", "a a b", "a a a", Fraction(2, 3)),
        ("overlap_2", "a b c d", "b c d e", Fraction(2, 3)),
        ("overlap_2", "b c d e", "b c d e a b", Fraction(1)),
        ("overlap_2", "b c d e a b", "b c d e", Fraction(3, 5)),
        ("overlap_2", "a b", "b a", Fraction(0)),
        ("precision_2", "a b a b", "a b", Fraction(1, 3)),
        ("overlap_2", "a b a b", "a b", Fraction(1, 2)),
        ("overlap_2", "yes", "yes", Fraction(1)),  # shorter than n: its own only n-gram
        ("overlap_2", "yes", "yes yes", Fraction(0)),
        ("overlap_2", "yes yes", "yes", Fraction(0)),
        ("overlap_3", "oh yes", "oh yes", Fraction(1)),
        ("overlap_3", "yes", "oh yes", Fraction(0)),
        ("overlap_1-2", "yes", "yes yes", Fraction(1, 2)),
        ("overlap_1-2", "a b c", "a b", (Fraction(2, 3) + Fraction(1, 2)) / 2),
        ("overlap_1@1", "a b c", "a b", Fraction(1)),
        ("overlap_1@1", "a b", "a b c", Fraction(2, 3)),
        ("overlap_1@0.5", "a b c d", "a", Fraction(1, 2)),
        ("precision_1@1", "a", "a a a a", Fraction(1, 4)),
    ],
)
def test_worked_examples(name, voter, candidate, grade):
    (found,) = rv.get_similarity(name).matrix(columns([candidate]), columns([voter])).ravel()
    assert found == pytest.approx(float(grade), abs=1e-15)


def test_the_measures_are_asymmetric_so_that_more_information_wins():
    short, long = "a man on a bench", "a man on a bench with a dog"
    grades = rv.get_similarity("overlap_2").matrix(columns([short, long]), columns([short, long]))
    assert grades[0, 1] == 1.0  # the short one supports the long one fully
    assert grades[1, 0] < 1.0


@given(texts)
def test_without_repeated_ngrams_overlap_and_precision_are_the_same(lists):
    distinct = [" ".join(dict.fromkeys(text.split())) for text in lists]
    slate = columns(distinct)
    for n in (1, 2, 3):
        sets, bags = (
            rv.get_similarity(f"{kind}_{n}").matrix(slate, slate) for kind in ("overlap", "precision")
        )
        assert sets.tobytes() == bags.tobytes()


@pytest.mark.parametrize(
    ("orders", "a"),
    [
        (range(0, 3), 0.0),
        (range(2, 2), 0.0),
        (range(1, 3), -0.1),
        (range(1, 3), 1.01),
        (range(1, 3), float("nan")),
    ],
)
def test_orders_below_1_and_exponents_outside_0_and_1_are_refused(orders, a):
    with pytest.raises(rv.UsageError, match=r"orders start at 1, the exponent is from 0 to 1"):
        rv.Ngrams(orders, bag=False, a=a)


@pytest.mark.parametrize(
    "measure", [rv.Ngrams(range(2, 4), bag=True, a=0.5), rv.Ngrams(range(1, 2), bag=False)]
)
def test_an_object_is_named_as_the_name_that_makes_it(measure):
    named = rv.get_similarity(measure.name)
    slate = columns(["a b c", "a b", "c a b"])
    assert named.matrix(slate, slate).tobytes() == measure.matrix(slate, slate).tobytes()


def test_weights_that_sum_to_more_than_one_are_counted_or_refused_but_never_overflow():
    # found with weights 10 and 20: the tally in units of 2^-60 left 64 bits and came out as 0
    candidates, voters, weights = columns(["a", "b"]), columns(["a", "a"]), np.array([10.0, 20.0])
    for name in ("overlap_1", "bleu_1", "chrf", "exact", "edit"):
        try:
            tally = rv.get_similarity(name).tally(candidates, voters, weights)
        except rv.UsageError:
            continue
        np.testing.assert_allclose(tally, [30.0, 0.0], rtol=1e-12)


def test_orders_with_gaps_are_refused_since_their_name_could_not_say_so():
    with pytest.raises(rv.UsageError, match=r"orders have no gaps"):
        rv.Ngrams(range(1, 10, 2), bag=False)
