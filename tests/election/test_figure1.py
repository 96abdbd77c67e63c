"""The paper's own example, counted by the package and by the equations."""

from __future__ import annotations

import pytest

import rangevote as rv
from tests.figure1 import CAPTIONS, LOGPROBS, TOTAL, WINNER


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


def test_the_winner_shares_many_bigrams_with_others():
    # what the figure's caption says; "sitting on", "on a", "a bench" are worth the most of its bigrams
    best = rv.elect(CAPTIONS, LOGPROBS, preset="paper").explain().ngrams[:3]
    assert {part.ngram for part in best} == {"sitting on", "on a", "a bench"}
