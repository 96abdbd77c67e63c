"""A cut-off: only voters that similar count; and the rule that elects the best of the largest group."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from rangevote.election.settings import Settings
from rangevote.similarity import get_similarity
from rangevote.similarity.combined import Cutoff

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


@pytest.mark.parametrize("cutoff", [0, -0.1, 1.5, True, "0.5", float("nan")])
def test_a_cutoff_is_a_similarity(cutoff):
    with pytest.raises(rv.UsageError, match=r"^cutoff must be"):
        rv.elect(TEXTS, cutoff=cutoff)


def test_a_cutoff_needs_votes():
    with pytest.raises(rv.UsageError, match=r"nobody votes under rule='most_likely'"):
        rv.elect(TEXTS, [-1.0] * 6, cutoff=0.5, rule="most_likely")


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
