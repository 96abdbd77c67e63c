"""Weighted mixtures of measures."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from tests.similarity.samples import columns, full, sentences, weights_for

PARTS = {
    "0.5*overlap_2+0.5*states": [(0.5, "overlap_2"), (0.5, "states")],
    "0.25*bleu_4+0.25*chrf+0.5*edit": [(0.25, "bleu_4"), (0.25, "chrf"), (0.5, "edit")],
    "0.75*precision_1-4@0.25+-0.25*exact": [(0.75, "precision_1-4@0.25"), (-0.25, "exact")],
    "1*overlap_1": [(1.0, "overlap_1")],
}


@pytest.mark.parametrize(("name", "parts"), PARTS.items(), ids=PARTS)
def test_a_mixture_is_the_weighted_sum_of_its_parts(name, parts):
    rng = np.random.default_rng(0)
    slate, roll = columns(full(rng, sentences(rng, 8))), columns(full(rng, sentences(rng, 6)), "voters")
    weights = weights_for(rng, 6)
    mixture = rv.get_similarity(name)
    grades = sum(share * rv.get_similarity(part).matrix(slate, roll) for share, part in parts)
    np.testing.assert_allclose(mixture.matrix(slate, roll), grades, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mixture.tally(slate, roll, weights), weights @ grades, rtol=0, atol=1e-12)
    assert mixture.name == name


@pytest.mark.parametrize(
    ("name", "linear", "lowest"),
    [
        ("0.5*overlap_2+0.5*exact", True, 0.0),
        ("0.5*overlap_2+0.5*states", True, -1.0),
        ("0.5*overlap_2+0.5*chrf", False, 0.0),
        ("0.5*overlap_2+-0.5*exact", True, -1.0),
    ],
)
def test_a_mixture_is_linear_where_all_its_parts_are_and_negative_where_one_can_be(name, linear, lowest):
    mixture = rv.get_similarity(name)
    assert mixture.linear is linear
    assert mixture.lowest == lowest


def test_a_mixture_says_what_its_parts_are_made_of():
    result = rv.elect(["a b", "a c"], similarity="0.5*overlap_2+0.5*chrf", tokenize="13a")
    assert "|sim:0.5*overlap_2+0.5*chrf|on:13a+chars|" in result.signature


@pytest.mark.parametrize(
    "parts", [[], [(0.0, "exact")], [(0.6, "exact"), (-0.6, "chrf")], [(float("nan"), "exact")]]
)
def test_coefficients_must_sum_to_at_most_1(parts):
    with pytest.raises(
        rv.UsageError, match=r"coefficients of a mixture sum to .*; they must sum to at most 1"
    ):
        rv.Mixture([(share, rv.get_similarity(part)) for share, part in parts])
