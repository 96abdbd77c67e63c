"""Winner, ranking, ties, margins and flags."""

from __future__ import annotations

import dataclasses

import pytest

import rangevote as rv


def fixed(*scores: float):
    """A similarity that gives the candidate named by its number the score of that number."""
    return lambda voter, candidate: scores[int(candidate)]


def names(size: int) -> list[str]:
    return [str(i) for i in range(size)]


def test_a_higher_score_ranks_first():
    result = rv.elect(names(4), similarity=fixed(0.1, 0.9, -0.5, 0.4))
    assert (result.index, result.winner, result.ranking) == (1, "1", (1, 3, 0, 2))
    assert result.margin == pytest.approx(0.5)
    assert not result.near_tie


def test_of_equal_scores_the_higher_log_probability_ranks_first():
    result = rv.elect(names(4), [-3.0, -1.0, -2.0, -0.5], similarity=fixed(0.5, 0.5, 0.5, 0.1))
    assert result.ranking == (1, 2, 0, 3)


def test_of_equal_scores_and_log_probabilities_the_first_ranks_first():
    assert rv.elect(names(3), [-1.0] * 3, similarity=fixed(0.5, 0.5, 0.5)).ranking == (0, 1, 2)
    assert rv.elect(names(3), similarity=fixed(0.5, 0.7, 0.7)).ranking == (1, 2, 0)


@pytest.mark.parametrize("size", [2, 3, 9, 200])
def test_clones_are_ranked_by_likelihood_then_place_however_many(size):
    # torch.topk, used by a peer, returns an arbitrary one of many equals
    logprobs = [-5.0] * size
    logprobs[size // 2] = logprobs[-1] = -4.0
    assert rv.elect(["same words here"] * size, logprobs, weights="probability").index == size // 2


@pytest.mark.parametrize(("gap", "near"), [(0.0, True), (9e-10, True), (1.1e-9, False), (1e-3, False)])
def test_a_margin_below_a_billionth_is_a_near_tie(gap, near):
    result = rv.elect(names(2), similarity=fixed(0.5, 0.5 - gap))
    assert result.near_tie is near
    assert result.margin == pytest.approx(gap, abs=1e-15)


def test_a_text_no_voter_shares_anything_with_has_no_support():
    result = rv.elect(["a b", "c d"], [-2.0, -1.0], voters=["x y", "z"])
    assert result.no_support
    assert result.near_tie
    assert result.winner == "c d"  # the tie order decides: the more likely one


def test_the_empty_output_is_never_elected_while_there_is_another_with_support():
    result = rv.elect(["", "a dog", "a cat"], [-0.1, -5.0, -6.0])
    assert result.winner == "a dog"
    assert result.scores[0] == 0.0


def test_a_result_is_frozen():
    result = rv.elect(["a b", "a"], [-1.0, -2.0])
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'signature'"):
        result.signature = "other"
    for column in (result.scores, result.weights):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1.0
