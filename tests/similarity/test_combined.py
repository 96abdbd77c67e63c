"""Mixtures of measures, cutoffs, and the rule that elects the best of the largest group."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.similarity import get_similarity
from rangevote.similarity.pairwise import Cutoff
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
    standing, electors = (
        columns(full(rng, sentences(rng, 8))),
        columns(full(rng, sentences(rng, 6)), "voters"),
    )
    weights = weights_for(rng, 6)
    mixture = rv.get_similarity(name)
    grades = sum(share * rv.get_similarity(part).matrix(standing, electors) for share, part in parts)
    np.testing.assert_allclose(mixture.matrix(standing, electors), grades, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        mixture.tally(standing, electors, weights), weights @ grades, rtol=0, atol=1e-12
    )
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


#: Two things are said, and one text that is a little like both.
TEXTS = [
    "take the red bus to the station at ten",
    "take the red bus to the station at noon",
    "go by the blue train from the harbour now",
    "go by the blue train from the harbour later",
    "go by the blue train from the old harbour",
    "the bus the train the station the harbour",
]


@pytest.mark.parametrize("similarity", ["overlap_2", "overlap_1-4@0.25", "chrf", "rouge_l", "embedding"])
def test_grades_below_the_cutoff_are_no_votes(similarity):
    if similarity == "embedding":
        similarity = rv.Custom(lambda v, c: 1.0 if v == c else -0.5, name="cosine")
    plain = get_similarity(similarity, "space")
    weights = [0.3, 0.1, 0.2, 0.2, 0.1, 0.1]
    result = rv.elect(TEXTS, similarity=similarity, cutoff=0.4, weights=weights)
    candidates = result.candidates
    grades = plain.matrix(candidates, candidates)
    expected = np.array(weights) @ np.where(grades >= 0.4, grades, 0.0)
    assert result.scores == pytest.approx(expected, abs=1e-12)
    assert (grades < 0.4).any()
    assert "|cut:0.4|" in result.signature
    assert sum(vote.score for vote in result.explain().voters) == pytest.approx(result.score)


def test_a_cutoff_elects_what_some_say_and_not_the_compromise():
    options = {"similarity": "overlap_1", "weights": "count"}
    plain = rv.elect(TEXTS, **options)
    cut = rv.elect(TEXTS, cutoff=0.7, **options)
    assert cut.winner in TEXTS[2:5]
    assert cut.scores[5] < plain.scores[5]


def test_streamed_votes_are_those_of_one_election():
    electorate = rv.Electorate(TEXTS, similarity="overlap_2", cutoff=0.3)
    for text in TEXTS:
        electorate.add(text)
    together = rv.elect(TEXTS, voters=TEXTS, similarity="overlap_2", cutoff=0.3)
    assert electorate.result().scores.tolist() == together.scores.tolist()


def test_exact_answers_are_as_similar_as_can_be_so_nothing_is_cut_off():
    assert Settings(similarity="exact", cutoff=0.5).measure is get_similarity("exact")
    overlap = get_similarity("overlap_2")
    once = Settings(similarity="overlap_2", cutoff=0.5)
    assert once.replace(cutoff=None).measure is overlap
    again = once.replace(cutoff=0.2).measure
    assert isinstance(again, Cutoff)
    assert (again.inner, again.least) == (overlap, 0.2)
    candidates = rv.elect(TEXTS).candidates
    assert once.measure.keys(candidates) == overlap.keys(candidates)


def naive_cluster(grades: np.ndarray, weights: np.ndarray, least: float) -> tuple[int, np.ndarray]:
    """The heaviest neighbourhood, and the scores that its voters give."""
    cut = np.where(grades >= least, grades, 0.0)
    sizes = [sum(w for w, g in zip(weights, cut[:, c], strict=True) if g > 0) for c in range(cut.shape[1])]
    support = weights @ cut
    center = max(range(len(sizes)), key=lambda c: (round(sizes[c], 12), support[c]))
    scores = np.where(cut[:, center] > 0, weights, 0.0) @ cut
    return int(scores.argmax()), scores


@pytest.mark.parametrize("similarity", ["overlap_1", "overlap_2", "chrf"])
@pytest.mark.parametrize("cutoff", [None, 0.2, 0.8])
def test_the_best_of_the_largest_group_is_elected(similarity, cutoff):
    weights = [0.31, 0.12, 0.2, 0.19, 0.09, 0.09]
    result = rv.elect(TEXTS, similarity=similarity, rule="cluster", cutoff=cutoff, weights=weights)
    grades = get_similarity(similarity, "space").matrix(result.candidates, result.candidates)
    winner, scores = naive_cluster(grades, np.array(weights), 0.5 if cutoff is None else cutoff)
    assert result.scores == pytest.approx(scores, abs=1e-12)
    assert result.index == winner
    assert "|rule:cluster|" in result.signature
    assert f"|cut:{0.5 if cutoff is None else cutoff}|" in result.signature
    assert sum(vote.score for vote in result.explain().voters) == pytest.approx(result.score)


def test_the_largest_group_wins_over_a_compromise_and_the_next_winner_is_of_the_next_group():
    options = {"similarity": "overlap_1", "weights": "count", "cutoff": 0.7, "rule": "cluster"}
    assert rv.elect(TEXTS, **options).winner in TEXTS[2:5]
    first, second = rv.elect(TEXTS, winners=2, **options).winners
    assert first in TEXTS[2:5]
    assert second in TEXTS[:2]
    everyone = rv.elect(TEXTS[:3], similarity="exact", weights="count", rule="cluster", winners=3)
    assert sorted(everyone.elected) == [0, 1, 2]


def test_of_answers_the_largest_group_is_the_majority():
    answers = ["it is 5", "7", "so 5", "8"]
    result = rv.elect(answers, similarity="exact:last_number", rule="cluster")
    assert result.winner == rv.elect(answers, similarity="exact:last_number").winner == "it is 5"


def test_a_cluster_is_not_decided_early():
    electorate = rv.Electorate(TEXTS, similarity="overlap_1", rule="cluster").add(TEXTS)
    with pytest.raises(rv.UsageError, match=r"does not know rule='cluster'"):
        electorate.decided()
