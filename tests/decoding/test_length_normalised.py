"""Length normalisation during the search, in both forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.decoding import search
from rangevote.decoding.beam import Beam, LengthNormalised
from tests.decoding import twins
from tests.decoding.compare import assert_same, ranking
from tests.decoding.models import Bent, Written
from tests.models.table import TableModel, enumerate_sequences

INPUTS = ["a", "b", (3, 1), 7]


def worth(form, alpha):
    """What hypotheses compete by: log P over the length, or over Wu et al.'s equation 14."""
    if form == "length":
        return lambda score, length: score / length**alpha
    return lambda score, length: score / ((5 + length) ** alpha / (5 + 1) ** alpha)


@given(
    st.integers(2, 7),
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(1, 6),
    st.floats(-1, 3),
    st.sampled_from(["length", "wu"]),
)
def test_any_normalised_beam_is_what_its_definition_says(vocab, seed, k, limit, alpha, form):
    model = TableModel(vocab, 5, seed)
    method = LengthNormalised(k, alpha=alpha, form=form, max_new_tokens=limit)
    (found,) = search(model, ["x"], method)
    assert_same(found, twins.beam(model, "x", k, limit, worth=worth(form, alpha)))


@pytest.mark.parametrize("form", ["length", "wu"])
@pytest.mark.parametrize("k", [1, 10])
def test_alpha_0_is_beam_search(k, form):
    model = TableModel(5, 5, seed=9)
    assert search(model, INPUTS, LengthNormalised(k, alpha=0.0, form=form)) == search(model, INPUTS, Beam(k))


@pytest.mark.parametrize("form", ["length", "wu"])
def test_with_all_sequences_the_order_is_that_of_the_normalised_log_probabilities(form):
    model = TableModel(3, 4, seed=3)
    listed = enumerate_sequences(model, "a", 64)
    (found,) = search(model, ["a"], LengthNormalised(len(listed), alpha=0.7, form=form))
    # when a beam of all sequences is wide enough for all prefixes at once, nothing is ever lost
    by_worth = sorted(listed, key=lambda one: -worth(form, 0.7)(one.logprob, len(one.tokens) + 1))
    assert ranking(found) == [(one.tokens, True) for one in by_worth]
    assert [one.tokens for one in by_worth] != [one.tokens for one in listed]


def test_the_longer_hypothesis_wins_when_normalised():
    # "end" has 0.4 at once, "a end" 0.6 * 0.6 = 0.36: -0.916 / 1 against -1.022 / 2
    model = Written(2, {(): (0.4, 0.6), (1,): (0.6, 0.4)})
    (plain,) = search(model, [0], Beam(2, max_new_tokens=2))
    (found,) = search(model, [0], LengthNormalised(2, max_new_tokens=2))
    assert [one.tokens for one in plain] == [(), (1,)]
    assert [one.tokens for one in found] == [(1,), (1, 1)]
    assert [one.ranked_by for one in found] == pytest.approx([math.log(0.36) / 2, math.log(0.24) / 2])
    assert [one.logprob for one in found] == pytest.approx([math.log(0.36), math.log(0.24)])
    (found,) = search(model, [0], LengthNormalised(2, form="wu", alpha=2.0, max_new_tokens=2))
    # Wu: -0.916 / 1 against -1.022 / (7/6)^2 = -0.751 and -1.427 / (7/6)^2 = -1.049
    assert [one.tokens for one in found] == [(1,), ()]
    assert found[0].ranked_by == pytest.approx(math.log(0.36) * 36 / 49)


def test_the_models_ranking_is_what_is_normalised():
    model = Bent(5, 4, seed=6)
    for found, input in zip(search(model, INPUTS, LengthNormalised(4)), INPUTS, strict=True):
        assert_same(found, twins.beam(model, input, 4, 64, worth=worth("length", 1.0)))
