"""Unicode normal forms, and merging of equal texts."""

from __future__ import annotations

import math
import unicodedata

import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import Hypothesis

COMPOSED, DECOMPOSED = "café", "cafe\u0301"


def test_texts_that_differ_in_encoding_only_are_distinct_by_default():
    assert unicodedata.normalize("NFC", DECOMPOSED) == COMPOSED
    result = rv.elect([COMPOSED, DECOMPOSED, "tea", "tea"], similarity="exact")
    assert result.winner == "tea"


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_a_normal_form_makes_them_one(form):
    result = rv.elect(["tea", COMPOSED, DECOMPOSED, "tea", DECOMPOSED], similarity="exact", normalize=form)
    assert result.winner == unicodedata.normalize(form, COMPOSED)
    assert f"|norm:{form}|" in result.signature


def test_merging_gives_the_first_of_equal_texts_the_mass_of_all():
    hypotheses = [
        Hypothesis(text="a cat", tokens=(1, 2), logprob=math.log(0.2)),
        Hypothesis(text="a dog", tokens=(3,), logprob=math.log(0.4)),
        Hypothesis(text="a cat", tokens=(4,), logprob=math.log(0.4)),
    ]
    result = rv.elect(hypotheses, merge=True, similarity="exact")
    assert result.weights.tolist() == pytest.approx([0.6, 0.4, 0.0])
    assert result.index == 0  # indices keep their meaning
    assert rv.elect(hypotheses, merge=True, rule="most_likely").index == 0
    assert rv.elect(hypotheses, rule="most_likely").index == 1


def test_merging_keeps_the_mass_of_a_text_whose_first_has_the_tokens_of_another_text():
    # the second is a duplicate, which adds nothing, so the third has to carry the mass of "a dog"
    hypotheses = [
        Hypothesis(text="a cat", tokens=(1,), logprob=math.log(0.4)),
        Hypothesis(text="a dog", tokens=(1,), logprob=math.log(0.4)),
        Hypothesis(text="a dog", tokens=(2,), logprob=math.log(0.3)),
        Hypothesis(text="a dog", tokens=(3,), logprob=math.log(0.2)),
    ]
    for merge, weights in ((False, [4, 0, 3, 2]), (True, [4, 0, 5, 0])):
        result = rv.elect(hypotheses, merge=merge, similarity="exact", weights="probability")
        assert result.weights.tolist() == pytest.approx([weight / 9 for weight in weights])
        assert result.winner == "a dog"


@pytest.mark.parametrize("similarity", ["overlap_2", "chrf", "exact", "edit"])
def test_merging_changes_no_score_since_voting_merges_surface_forms_anyway(similarity):
    rng = np.random.default_rng(0)
    texts = rng.choice(["a b", "a c", "b c d", "x"], size=12).tolist()
    logprobs = np.log(rng.dirichlet(np.ones(12))).tolist()
    plain, merged = (rv.elect(texts, logprobs, similarity=similarity, merge=m) for m in (False, True))
    np.testing.assert_allclose(merged.scores, plain.scores, rtol=0, atol=1e-12)
    assert merged.winner == plain.winner


@pytest.mark.parametrize("second", [0.31, 0.3])
def test_merging_after_normalising_unites_encodings(second):
    # at 0.3 too: these were two texts before they were normalised, not one that was listed twice
    logprobs = [math.log(p) for p in (0.3, 0.39, second)]
    options = {"normalize": "NFC", "similarity": "exact"}
    for merge in (True, False):
        result = rv.elect([COMPOSED, "tea", DECOMPOSED], logprobs, merge=merge, **options)
        assert result.winner == COMPOSED
        assert result.score == pytest.approx((0.3 + second) / (0.69 + second))


def test_merged_masses_above_1_are_refused():
    with pytest.raises(rv.DataError, match=r"candidates\[0\].logprob: .* sum to 1.7"):
        rv.elect(["a", "a", "b"], [math.log(mass) for mass in (0.9, 0.8, 0.6)], merge=True)
