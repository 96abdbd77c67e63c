"""What every measure of the table must do, limits on pairs, majority voting, and what the names mean."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.hypothesis import Hypotheses
from rangevote.similarity import SIMILARITIES
from rangevote.similarity.base import as_measure
from tests.similarity.samples import EVERY, SameLength, columns, full, measure, sentences, weights_for

every_measure = pytest.mark.parametrize("label", EVERY)

#: Measures that say of every sequence that is not empty that it is fully supported by itself.
SELF_SUPPORTING = [
    label
    for label in EVERY
    if not label.startswith(("bleu", "exact:", "0.6*", "a user's function", "a mixture"))
]


def random_election(seed: int, candidates: int = 7, voters: int = 11):
    rng = np.random.default_rng(seed)
    standing = columns(full(rng, sentences(rng, candidates)))
    electors = columns(full(rng, sentences(rng, voters)), role="voters")
    return standing, electors, weights_for(rng, voters)


def test_the_table_of_the_tests_holds_every_measure_of_the_package():
    named = {name for name, _ in EVERY.values() if isinstance(name, str)}
    for stem, listing in SIMILARITIES.items():
        assert any(name == stem or name.startswith((f"{stem}_", f"{stem}:")) for name in named), stem
        assert listing.example in named


@every_measure
@pytest.mark.parametrize("seed", range(2))
def test_a_tally_is_the_weighted_sum_of_the_matrix(label, seed):
    candidates, voters, weights = random_election(seed)
    grades = measure(label).matrix(candidates, voters)
    assert grades.shape == (len(voters), len(candidates))
    tally = measure(label).tally(candidates, voters, weights)
    np.testing.assert_allclose(tally, weights @ grades, rtol=0, atol=1e-12)


@every_measure
def test_candidates_who_vote_count_like_the_same_list_given_as_voters(label):
    candidates, _, _ = random_election(1)
    again = columns(list(candidates), role="voters")
    weights = weights_for(np.random.default_rng(2), len(candidates))
    own, added = (measure(label).tally(candidates, electors, weights) for electors in (candidates, again))
    assert own.tobytes() == added.tobytes()
    own, added = (measure(label).matrix(candidates, electors) for electors in (candidates, again))
    assert own.tobytes() == added.tobytes()


@pytest.mark.parametrize("label", SELF_SUPPORTING)
def test_whoever_is_not_empty_supports_itself_fully(label):
    rng = np.random.default_rng(5)
    texts = [text for text in sentences(rng, 30) if text.strip()]
    standing = columns(full(rng, texts))
    np.testing.assert_allclose(np.diag(measure(label).matrix(standing, standing)), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "label", [label for label in EVERY if not label.startswith(("exact", "a ", "0.2", "0.5", "states"))]
)
@pytest.mark.parametrize("empty", ["", "  ", "\u3000\t\u2028"])
def test_the_empty_sequence_abstains_under_every_text_measure(label, empty):
    if label == "overlap_2 on a function":
        empty = ""  # the function makes tokens of white space
    rng = np.random.default_rng(6)
    standing = columns(full(rng, [empty, "a man sits", "dog"]))
    grades = measure(label).matrix(standing, standing)
    assert not grades[0].any()
    assert not grades[:, 0].any()


@every_measure
def test_a_poll_with_batches_of_voters_counts_as_one_with_all_of_them(label):
    standing, whole, weights = random_election(0, 6, 9)
    poll = as_measure(measure(label)).poll(standing)
    for start, end in pairwise((0, 1, 1, 9)):
        poll.add(columns(list(whole)[start:end], "voters"))
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


@every_measure
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


@pytest.mark.parametrize("label", [label for label in EVERY if isinstance(EVERY[label][0], str)])
def test_a_named_measure_has_a_name_that_names_it_again(label):
    named, tokenize = EVERY[label]
    name = rv.get_similarity(named, tokenize).name
    assert rv.get_similarity(name, tokenize).name == name


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("blend", "overlap_1-4@0.25"),
        ("overlap_02", "overlap_2"),
        ("overlap_3-3", "overlap_3"),
        ("precision_2@0", "precision_2"),
        ("precision_2@.50", "precision_2@0.5"),
        (" 0.50*overlap_2 + .5 * states ", "0.5*overlap_2+0.5*states"),
        ("lstm_states", "states"),
        ("overlap2", "overlap_2"),
        ("BLEU-4", "bleu_4"),
        ("sacrebleu", "bleu_4"),
        ("Smoothed BLEU 4", "smoothed_bleu_4"),
        ("ChrF", "chrf"),
        ("ROUGE-L", "rouge_l"),
        ("0.5*BLEU-4+0.5*ChrF", "0.5*bleu_4+0.5*chrf"),
        ("0.5*chrf+++0.5*overlap_2", "0.5*chrf+++0.5*overlap_2"),
        ("Blend", "overlap_1-4@0.25"),
    ],
)
def test_names_for_one_measure_are_written_in_one_way(name, meaning):
    assert rv.get_similarity(name).name == meaning


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "overlaps_2",
            r"unknown similarity 'overlaps_2'\. Did you mean 'overlap_2'\? Choose from: overlap_2,",
        ),
        ("gleam", r"unknown similarity 'gleam'\. Choose from"),
        ("", r"unknown similarity ''\."),
        ("overlap", r"overlap needs an order from 1.*overlap_1-4@0\.25; got overlap_\."),
        ("overlap_0", r"overlap needs an order from 1.*got overlap_0\."),
        ("precision_1-4@1.5", r"exponent from 0 to 1.*got precision_1-4@1\.5\."),
        ("smoothed_bleu_1-4", r"smoothed_bleu takes one highest order"),
        ("bleu_0", r"bleu_0: the order must be from 1 to 50"),
        ("chrf_3", r"chrf takes no order"),
        ("edit:words", r"edit takes no"),
        (
            "exact:last_numbr",
            r"unknown key of exact 'last_numbr'\. Did you mean 'last_number'\? Choose from: after:",
        ),
        (
            "0.5*overlap_2+states",
            r"cannot read 'states' in the mixture .*; write it as 0\.5\*overlap_2",
        ),
        ("0.5*overlap_2-0.5*states", r"cannot read '0\.5\*overlap_2-0\.5\*states' in the mixture"),
        ("0.5*overlap_2+0.5*sates", r"unknown similarity 'sates'\. Did you mean 'states'\?"),
        ("0.7*overlap_2+0.7*exact", r"coefficients of a mixture sum to 1\.4; they must sum to at most 1"),
        ("0*overlap_2", r"coefficients of a mixture sum to 0;"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_what_is_allowed(name, message):
    with pytest.raises(rv.UsageError, match=message):
        rv.get_similarity(name)
