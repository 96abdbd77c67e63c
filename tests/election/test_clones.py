"""The paper's figure 1, and section 3.2: vote splitting, clones, surface forms, and voting as averaging."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.election.draws import likely, measures, texts, weighted
from tests.figure1 import CAPTIONS, LOGPROBS, TOTAL, WINNER


def test_figure_1_elects_the_caption_the_paper_reports():
    result = rv.elect(CAPTIONS, LOGPROBS, similarity="overlap_2")
    assert (result.winner, str(result), result.index) == (WINNER, WINNER, 2)


def test_the_scores_of_figure_1_before_normalisation_are_known():
    result = rv.elect(CAPTIONS, LOGPROBS, preset="paper")
    first, second = (result.scores[i] * TOTAL for i in result.ranking[:2])
    assert round(first, 6) == 0.004257
    assert round(second, 6) == 0.004217
    assert result.margin == pytest.approx((first - second) / TOTAL)


def test_the_winner_of_figure_1_shares_many_bigrams_with_others():
    # what the figure's caption says; "sitting on", "on a", "a bench" are worth the most of its bigrams
    best = rv.elect(CAPTIONS, LOGPROBS, preset="paper").explain().ngrams[:3]
    assert {part.ngram for part in best} == {"sitting on", "on a", "a bench"}


@given(st.data(), texts, weighted(), measures)
def test_range_voting_is_independent_of_clones(data, candidates, voters, measure):
    # Tideman: add a candidate identical to i; if i won, i or the clone wins; if not, the winner stays
    i = data.draw(st.integers(0, len(candidates) - 1))
    copies = data.draw(st.integers(1, 3))
    before = rv.elect(candidates, voters=voters[0], weights=voters[1], similarity=measure)
    grown = candidates + [candidates[i]] * copies
    after = rv.elect(grown, voters=voters[0], weights=voters[1], similarity=measure)
    assert after.winner == before.winner
    assert after.score == before.score


@given(st.data(), likely(), measures)
def test_a_duplicate_in_a_beam_neither_votes_again_nor_changes_the_winner(data, ballot, measure):
    candidates, logprobs = ballot
    options = {"similarity": measure, "weights": "probability"}
    i = data.draw(st.integers(0, len(candidates) - 1))
    before = rv.elect(candidates, logprobs, **options)
    after = rv.elect([*candidates, candidates[i]], [*logprobs, logprobs[i]], **options)
    assert after.scores[:-1].tobytes() == before.scores.tobytes()
    assert after.scores[-1] == after.scores[i]
    assert after.winner == before.winner


def test_a_duplicate_that_lifts_the_list_over_a_power_of_two_changes_no_bit():
    # the sum of the weights is counted in a unit that depends on how many sequences there are
    candidates, logprobs = ["a b", "a c", "b c"], [-0.7, -4.6, -1.6]
    before = rv.elect(candidates, logprobs)
    for copies in range(1, 30):
        again = ["a c"] * copies, [-4.6] * copies
        after = rv.elect([*candidates, *again[0]], [*logprobs, *again[1]], weights="probability")
        assert after.scores[:3].tobytes() == before.scores.tobytes()


def test_the_most_likely_output_does_suffer_from_vote_splitting():
    split = {"yes": 0.4, "no, thank you": 0.3, "no, thanks": 0.3}
    logprobs = [math.log(p) for p in split.values()]
    assert rv.elect(split, logprobs, rule="most_likely").winner == "yes"
    assert rv.elect(split, logprobs, similarity="overlap_1").winner.startswith("no")


def test_one_text_under_two_encodings_votes_with_both_masses():
    hypotheses = [
        Hypothesis(text="a dog", tokens=(1, 2), logprob=math.log(0.4)),
        Hypothesis(text="a cat", tokens=(1, 3), logprob=math.log(0.3)),
        Hypothesis(text="a cat", tokens=(4,), logprob=math.log(0.3)),
    ]
    for similarity in ("exact", "overlap_2", "chrf", "edit"):
        result = rv.elect(hypotheses, similarity=similarity)
        assert result.winner == "a cat"
        assert result.index == 1  # an exact tie with its clone: the first, at equal log-probability
        assert result.scores[1] == result.scores[2]
    assert rv.elect(hypotheses, similarity="exact").scores.tolist() == pytest.approx([0.4, 0.6, 0.6])


# Voting as averaging: real numbers, written as texts, with the similarities of section 3.2.
SPAN = 200  # numbers lie in [-100, 100], so 1 - |x - y| / SPAN and 1 - (x - y)^2 / SPAN^2 lie in [0, 1]


def linear(v: str, c: str) -> float:
    return float(1 - abs(Fraction(v) - Fraction(c)) / SPAN)


def quadratic(v: str, c: str) -> float:
    return float(1 - ((Fraction(v) - Fraction(c)) / SPAN) ** 2)


numbers = st.lists(st.fractions(-100, 100, max_denominator=4), min_size=1, max_size=9)


@given(numbers, numbers)
def test_voting_with_quadratic_similarity_elects_the_candidate_nearest_the_mean(voters, others):
    mean = sum(voters, Fraction(0)) / len(voters)
    candidates = [*others, mean]
    result = rv.elect(list(map(str, candidates)), voters=list(map(str, voters)), similarity=quadratic)
    assert float(abs(Fraction(result.winner) - mean)) < 1e-2  # (c - mean)^2 / SPAN^2 below a near-tie
    assert result.scores[-1] >= result.score - 1e-12


@given(numbers, numbers)
def test_voting_with_linear_similarity_elects_a_median(voters, others):
    candidates = [*others, *voters]
    result = rv.elect(list(map(str, candidates)), voters=list(map(str, voters)), similarity=linear)
    winner = Fraction(result.winner)
    # a median: at most half of the voters on either side; or as good as one, at a rounding's distance
    below, above = (sum(v < winner for v in voters), sum(v > winner for v in voters))
    assert max(below, above) * 2 <= len(voters) or result.near_tie
