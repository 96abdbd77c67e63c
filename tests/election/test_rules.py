"""Range voting for several winners, reweighted range voting, and the baselines without voters."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.similarity.samples import EVERY, columns, full, measure, sentences, weights_for


def reweighted_by_definition(grades, weights, winners: int, keys) -> list[int]:
    """Smith (2005): each round the highest sum wins; a voter then counts 1 / (1 + what it gave winners).

    Candidates with one key are one.
    """
    voters, candidates = grades.shape
    elected: list[int] = []
    while len(elected) < winners:
        power = [weights[v] / (1 + sum(max(grades[v][e], 0) for e in elected)) for v in range(voters)]
        totals = {
            c: math.fsum(power[v] * grades[v][c] for v in range(voters))
            for c in range(candidates)
            if keys[c] not in [keys[e] for e in elected]
        }
        best = max(totals.values())
        elected.append(next(c for c, total in totals.items() if total >= best - 1e-12))
    return elected


@pytest.mark.parametrize("label", [label for label in EVERY if label != "states"])
@pytest.mark.parametrize("seed", [0])
def test_reweighted_range_voting_follows_smiths_definition(label, seed):
    rng = np.random.default_rng(seed)
    candidates, voters = full(rng, sentences(rng, 6)), full(rng, sentences(rng, 9))
    bare = [Hypothesis(text=h.text, tokens=h.tokens, state=h.state) for h in candidates]  # ties: the first
    weights = weights_for(rng, 9)
    grades = measure(label).matrix(columns(bare), columns(voters, "voters"))
    keys = measure(label).keys(columns(bare))
    winners = min(4, len(set(keys)))
    expected = reweighted_by_definition(grades, weights, winners, keys)
    named, tokenize = EVERY[label]
    options = {"similarity": named, "tokenize": tokenize, "weights": weights.tolist()}
    result = rv.elect(bare, voters=voters, rule="reweighted", winners=winners, **options)
    assert list(result.elected) == expected
    assert result.winners == tuple(bare[i].text for i in expected)


def test_the_second_winner_speaks_for_those_the_first_did_not():
    # three fifths vote for a and its near copy, two fifths for b: proportional, where range voting is not
    candidates, voters = ["a a2", "a a2 a3", "b"], ["a a2"] * 3 + ["b"] * 2
    options = {"voters": voters, "similarity": "overlap_1", "winners": 2}
    assert rv.elect(candidates, rule="range", **options).winners == ("a a2", "a a2 a3")
    assert rv.elect(candidates, rule="reweighted", **options).winners == ("a a2", "b")


def test_one_winner_is_the_same_under_both_rules_and_scores_are_those_of_the_first_round():
    rng = np.random.default_rng(0)
    texts = sentences(rng, 9)
    plain, again = (rv.elect(texts, rule=rule) for rule in ("range", "reweighted"))
    assert plain.index == again.index
    several = rv.elect(texts, rule="reweighted", winners=5)
    assert plain.scores.tobytes() == again.scores.tobytes() == several.scores.tobytes()
    assert several.index == several.elected[0] == plain.index


@pytest.mark.parametrize("rule", ["range", "reweighted", "most_likely", "length_normalised"])
def test_more_winners_than_candidates_elects_all_and_warns(rule):
    with pytest.warns(rv.RangevoteWarning, match=r"5 winners asked of 2 candidates: all of them are elected"):
        result = rv.elect(["a b", "a c"], [-1.0, -2.0], rule=rule, winners=5)
    assert sorted(result.elected) == [0, 1]


def test_most_likely_elects_by_log_probability_alone():
    result = rv.elect(["a b", "a b c", "x"], [-3.0, -2.0, -1.0], rule="most_likely")
    assert (result.winner, result.ranking) == ("x", (2, 1, 0))
    assert result.scores.tolist() == [-3.0, -2.0, -1.0]
    assert len(result.voters) == 0


@pytest.mark.parametrize(
    ("rows", "scores"),
    [
        ([("a b c", None, True), ("x", None, True), ("", None, True)], [-1.0, -2.0, -4.0]),  # and the end
        ([("abc", (1, 2, 3), True), ("a b c d", (9,), True)], [-1.0, -2.0]),
        ([("a b c", None, True), ("a b c d", None, False)], [-1.0, -1.0]),
        ([("a b c", (1, 2, 3), True), ("", (1, 2, 3, 4), False)], [-1.0, -1.0]),
        ([("", (), False)], [-4.0]),
    ],
)
def test_length_normalised_divides_by_tokens_or_words_and_the_end_where_the_model_ended(rows, scores):
    hypotheses = [Hypothesis(text, tokens=ids, logprob=-4.0, finished=ended) for text, ids, ended in rows]
    result = rv.elect(hypotheses, rule="length_normalised")
    assert result.scores.tolist() == scores
    assert result.index == 0


@pytest.mark.parametrize("rule", ["most_likely", "length_normalised"])
@pytest.mark.parametrize("logprobs", [None, [-1.0, None]], ids=str)
def test_the_baselines_need_every_log_probability(rule, logprobs):
    message = rf"candidates\[\d\]\.logprob: is missing; rule='{rule}' needs"
    with pytest.raises(rv.DataError, match=message):
        rv.elect(["a", "b"], logprobs, rule=rule)


@pytest.mark.parametrize("one_call", [True, False])
def test_scores_that_are_equal_on_paper_tie_so_that_the_first_is_elected(one_call):
    """Every text is similar to itself alone, under an exponent with which its grade has other last bits."""
    options = {"similarity": "overlap_1-4@0.25", "weights": "count"}
    for length in range(1, 60):
        texts = [" ".join(f"{i}x{j}" for j in range(length + 3 * i)) for i in range(3)]
        result = rv.elect(texts, voters=None if one_call else {"all": texts}, **options)
        assert len(set(result.scores.tolist())) == 1
        assert (result.index, result.margin) == (0, 0.0)


def test_a_cutoff_of_1_counts_equal_texts():
    for length in range(1, 60):
        text = " ".join(map(str, range(length)))
        result = rv.elect([text, "another one", text], similarity="overlap_1-4@0.25", cutoff=1)
        assert result.scores[0] == pytest.approx(2 / 3)
