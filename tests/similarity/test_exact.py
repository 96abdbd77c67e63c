"""exact: majority voting by text or by answer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from tests.similarity.samples import columns

answers = st.lists(st.sampled_from(["a", "b", "c", "", "a "]), min_size=1, max_size=12)


@given(answers)
def test_exact_elects_the_mode_and_scores_are_shares(texts):
    result = rv.elect(texts, similarity="exact")
    counts = Counter(texts)
    assert counts[result.winner] == max(counts.values())
    expected = [counts[text] / len(texts) for text in texts]
    np.testing.assert_allclose(result.scores, expected, rtol=0, atol=1e-12)


def test_self_consistency_elects_the_answer_most_samples_end_with():
    samples = ["2+2 is 4", "I think 5", "well, 4.0", "so 5", "four: 4", "no idea"]
    result = rv.elect(samples, similarity="exact:last_number")
    assert result.winner == "2+2 is 4"
    assert result.score == pytest.approx(3 / 6, abs=1e-15)
    assert result.scores[5] == 0  # no number: abstains, and gets nothing


def test_a_user_may_bring_a_key():
    result = rv.elect(["aa", "b", "cc", "d", "ee"], similarity=rv.Exact(len, name="exact:length"))
    assert result.winner == "aa"
    assert "sim:exact:length|" in result.signature


def test_texts_that_differ_in_white_space_or_encoding_are_different():
    standing = columns(["é", "e\u0301", "é ", "é"])
    grades = rv.Exact().matrix(standing, standing)
    np.testing.assert_array_equal(grades[0], [1, 0, 0, 1])
