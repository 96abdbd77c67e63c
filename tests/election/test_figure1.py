"""The paper's own example, counted by the package and by the equations."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from tests.election import equations
from tests.figure1 import CAPTIONS, LOGPROBS, PROBABILITIES, TOTAL, WINNER

MEASURES = {
    "overlap_2": lambda v, c: equations.overlap(v, c, 2),
    "overlap_1": lambda v, c: equations.overlap(v, c, 1),
    "precision_2": lambda v, c: equations.precision(v, c, 2),
    "precision_1": lambda v, c: equations.precision(v, c, 1),
}


def test_figure_1_elects_the_caption_the_paper_reports():
    result = rv.elect(CAPTIONS, LOGPROBS, similarity="overlap_2")
    assert result.winner == WINNER
    assert str(result) == WINNER
    assert result.index == 2


def test_the_scores_before_normalisation_are_those_of_the_issue():
    result = rv.elect(CAPTIONS, LOGPROBS, preset="paper")
    first, second = (result.scores[i] * TOTAL for i in result.ranking[:2])
    assert round(first, 6) == 0.004257
    assert round(second, 6) == 0.004217
    assert result.margin == pytest.approx((first - second) / TOTAL)


@pytest.mark.parametrize(("name", "sim"), MEASURES.items(), ids=MEASURES)
def test_scores_and_ranking_follow_from_the_equations(name, sim):
    words = [caption.split() for caption in CAPTIONS]
    expected = np.array(equations.scores(words, words, PROBABILITIES, sim)) / TOTAL
    result = rv.elect(CAPTIONS, LOGPROBS, similarity=name)
    np.testing.assert_allclose(result.scores, expected, rtol=0, atol=1e-12)
    assert list(result.ranking) == np.argsort(-expected, kind="stable").tolist()
    assert result.score == result.scores[result.ranking[0]]


def test_the_winner_shares_many_bigrams_with_others():
    # what the figure's caption says; "sitting on", "on a", "a bench" are worth the most of its bigrams
    best = rv.elect(CAPTIONS, LOGPROBS, preset="paper").explain().ngrams[:3]
    assert {part.ngram for part in best} == {"sitting on", "on a", "a bench"}
