"""What is a similarity, polls that take voters in batches, limits on pairs, and majority voting."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.hypothesis import Hypotheses
from rangevote.similarity.base import as_measure
from tests.similarity.samples import EVERY, SameLength, columns, full, measure, sentences, weights_for


@pytest.mark.parametrize("label", EVERY)
def test_a_poll_with_batches_of_voters_counts_as_one_with_all_of_them(label):
    rng = np.random.default_rng(0)
    standing, voters = columns(full(rng, sentences(rng, 6))), full(rng, sentences(rng, 9))
    weights = weights_for(rng, 9)
    poll = as_measure(measure(label)).poll(standing)
    for start, end in pairwise((0, 1, 1, 9)):
        poll.add(columns(voters[start:end], "voters"))
    whole = columns(voters, "voters")
    assert poll.tally(weights).tobytes() == measure(label).tally(standing, whole, weights).tobytes()
    np.testing.assert_allclose(poll.matrix(), measure(label).matrix(standing, whole), rtol=0, atol=1e-15)


@pytest.mark.parametrize("label", ["overlap_2", "bleu_4", "chrf", "exact", "states", "edit"])
def test_the_candidates_may_vote_first_and_others_after_them(label):
    rng = np.random.default_rng(2)
    standing, more = columns(full(rng, sentences(rng, 5))), full(rng, sentences(rng, 4))
    poll = as_measure(measure(label)).poll(standing)
    poll.add(standing)
    poll.add(columns(more, "voters"))
    poll.add(standing)
    weights = weights_for(rng, 14)
    everybody = columns([*standing, *more, *standing], "voters")
    assert poll.tally(weights).tobytes() == measure(label).tally(standing, everybody, weights).tobytes()


def test_any_object_with_a_name_a_tally_and_a_matrix_is_a_similarity():
    assert isinstance(SameLength(), rv.Similarity)
    assert not isinstance("overlap_2", rv.Similarity)
    result = rv.elect(["a", "bb", "c"], similarity=SameLength())
    assert result.scores.tolist() == pytest.approx([2 / 3, 1 / 3, 2 / 3])
    assert "|sim:same_length|" in result.signature


@pytest.mark.parametrize("similarity", ["bleu_4", "rouge_l", "0.5*overlap_2+0.5*chrf"])
def test_every_measure_of_pairs_has_the_limit_and_the_environment_moves_it(monkeypatch, similarity):
    monkeypatch.setenv("RANGEVOTE_MAX_PAIRS", "8")
    message = (
        r"3 voters x 3 candidates are 9 pairs \(0\.0 GB as a matrix\), over the limit of 8\. "
        r"Use a linear measure .* or set RANGEVOTE_MAX_PAIRS higher"
    )
    with pytest.raises(rv.UsageError, match=message):
        rv.elect(["a", "b", "c"], similarity=similarity)
    monkeypatch.setenv("RANGEVOTE_MAX_PAIRS", "9")
    assert rv.elect(["a", "b", "c"], similarity=similarity).index == 0


@pytest.mark.parametrize("similarity", ["overlap_2", "bleu_4", "exact", "edit"])
def test_a_matrix_of_more_than_two_gigabytes_is_refused(similarity):
    texts = columns([str(i) for i in range(20_000)])
    message = (
        r"400,000,000 pairs \(3\.2 GB as a matrix\), over the limit of 250,000,000.*tally instead of matrix"
    )
    with pytest.raises(rv.UsageError, match=message):
        rv.get_similarity(similarity).matrix(texts, texts)


@pytest.mark.parametrize("label", EVERY)
def test_nobody_voting_gives_an_empty_matrix_and_zero_scores(label):
    rng = np.random.default_rng(3)
    standing, nobody = columns(full(rng, ["a b", "c"])), Hypotheses.of([], role="voters")
    assert measure(label).matrix(standing, nobody).shape == (0, 2)
    assert measure(label).tally(standing, nobody, np.zeros(0)).tolist() == [0.0, 0.0]


answers = st.lists(st.sampled_from(["a", "b", "c", "", "a "]), min_size=1, max_size=12)


@given(answers)
def test_exact_elects_the_mode_and_scores_are_shares(texts):
    result = rv.elect(texts, similarity="exact")
    counts = Counter(texts)
    assert counts[result.winner] == max(counts.values())
    expected = [counts[text] / len(texts) for text in texts]
    np.testing.assert_allclose(result.scores, expected, rtol=0, atol=1e-12)


def test_a_user_may_bring_a_key():
    result = rv.elect(["aa", "b", "cc", "d", "ee"], similarity=rv.Exact(len, name="exact:length"))
    assert result.winner == "aa"
    assert "sim:exact:length|" in result.signature


def test_texts_that_differ_in_white_space_or_encoding_are_different():
    standing = columns(["é", "e\u0301", "é ", "é"])
    grades = rv.Exact().matrix(standing, standing)
    np.testing.assert_array_equal(grades[0], [1, 0, 0, 1])
