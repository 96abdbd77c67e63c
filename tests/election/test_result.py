"""Winner, ranking, ties, margins and flags."""

from __future__ import annotations

import dataclasses
import math
import warnings

import pytest

import rangevote as rv
from rangevote.election.result import first


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


@pytest.mark.parametrize(
    ("scores", "logprobs", "ranking"),
    [
        ((0.5, 0.5, 0.5, 0.1), [-3.0, -1.0, -2.0, -0.5], (1, 2, 0, 3)),
        ((0.5, 0.5, 0.5), [-1.0] * 3, (0, 1, 2)),
        ((0.5, 0.7, 0.7), None, (1, 2, 0)),
    ],
)
def test_of_equal_scores_the_higher_log_probability_ranks_first_then_the_first(scores, logprobs, ranking):
    assert rv.elect(names(len(scores)), logprobs, similarity=fixed(*scores)).ranking == ranking


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
    assert result.margin == pytest.approx(gap, abs=2**-47)


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


# Groups: what the similarity cannot tell apart does not compete.

TWINS = {
    "the same text": (["a b c", "a b c", "x y z"], "overlap_2"),
    "white space": (["a b c", "a b c\n", "x y z"], "overlap_2"),
    "the same n-grams": (["a b a", "b a b", "x y z"], "overlap_2"),
    "letters": (["a b c", "ab c", "x y z"], "chrf"),
    "words of bleu": (["a b c", " a  b c", "x y z"], "smoothed_bleu_4"),
    "words of edits": (["a b c", "a b  c", "x y z"], "edit"),
    "a mixture": (["a b c", "a b  c", "x y z"], "0.5*overlap_1+0.5*rouge_l"),
    "the answer": (["it is 5", "so 5", "it is 7"], "exact:last_number"),
    "token ids": ([[1, 2], [1, 2], [3]], "overlap_1"),
}


@pytest.mark.parametrize(("candidates", "similarity"), TWINS.values(), ids=TWINS)
def test_candidates_that_the_similarity_cannot_tell_apart_are_one_group(candidates, similarity):
    result = rv.elect(candidates, similarity=similarity)
    assert [group.candidates for group in result.groups] == [(0, 1), (2,)]
    assert [group.share for group in result.groups] == pytest.approx([2 / 3, 1 / 3])
    assert [group.score for group in result.groups] == [result.scores[0], result.scores[2]]
    assert result.margin == pytest.approx(result.scores[0] - result.scores[2])
    assert not result.near_tie
    with pytest.warns(rv.RangevoteWarning, match="3 winners asked of 3 candidates: the 2 that"):
        assert rv.elect(candidates, similarity=similarity, winners=3).elected == (0, 2)
    alone = rv.elect(candidates[:2], similarity=similarity)
    assert (alone.margin, alone.near_tie) == (None, False)


def test_equal_texts_with_other_states_are_two_groups():
    states = [(1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
    result = rv.elect([rv.Hypothesis(text="a", state=state) for state in states], similarity="states")
    assert [group.candidates for group in result.groups] == [(0, 2), (1,)]
    assert result.margin == pytest.approx(1 / 3)


def test_the_best_of_another_group_may_tie_with_a_group():
    result = rv.elect(["a b", "a b", "c d", "c d"])
    assert result.margin == 0.0
    assert result.near_tie


def test_the_share_of_a_group_is_the_weight_of_the_voters_like_it():
    voters = ["so 5", "5 it is", "7", "no idea"]
    result = rv.elect(["it is 5", "it is 7", "who knows"], voters=voters, similarity="exact:last_number")
    assert [group.candidates for group in result.groups] == [(0,), (1,), (2,)]
    assert [group.share for group in result.groups] == [0.5, 0.25, 0.0]
    assert math.fsum(group.score for group in result.groups) == 0.75


@pytest.mark.parametrize("rule", ["range", "reweighted", "most_likely", "length_normalised"])
def test_several_winners_are_of_different_groups(rule):
    texts, logprobs = ["a b", "a b", "c d", "a b", "c d", "e f"], [-1.0, -1.1, -1.2, -1.3, -1.4, -9.0]
    result = rv.elect(texts, logprobs, rule=rule, winners=3)
    assert result.winners == ("a b", "c d", "e f")
    assert first(result, 5)[:3] == result.elected


def test_the_most_likely_text_is_as_far_above_the_next_text_as_that_is_likely():
    assert rv.elect(["a", "a", "b"], [-1.0, -1.5, -3.0], rule="most_likely").margin == 2.0


@pytest.mark.parametrize(
    ("texts", "options", "no_support"),
    [
        (["a b", "c d", "e f"], {}, True),
        (["a b", "c d", "a e"], {}, False),
        (["a b", "c d", "a b"], {}, False),  # clones support each other
        (["a b", "c d"], {"similarity": "chrf"}, True),
        (["a b", "c d"], {"similarity": "edit"}, True),
        (["1", "2", "3"], {"similarity": "exact:last_number"}, True),
        (["1", "2", "so 1"], {"similarity": "exact:last_number"}, False),
        (["a b", "c d"], {"similarity": lambda v, c: 0.9 if v == c else 0.05}, False),
        (["a b"], {}, False),
    ],
)
def test_without_support_by_others_a_warning_says_so(texts, options, no_support):
    if options.get("similarity") == "edit":
        pytest.importorskip("rapidfuzz")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rv.elect(texts, **options)
        streamed = rv.Electorate(texts, **options).add(texts).result()
    assert result.no_support is no_support
    assert any("no voter supports" in str(warning.message) for warning in caught) is no_support
    assert result.to_dict().get("no_support", False) is no_support
    assert streamed.index == result.index


@pytest.mark.parametrize("options", [{}, {"rule": "cluster"}, {"winners": 2, "rule": "reweighted"}])
def test_where_no_voter_gives_an_answer_nobody_is_elected(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rv.elect(["no idea", "who knows"], similarity="exact:last_number", **options)
    assert (result.winner, result.index, result.elected, str(result)) == (None, None, (), "")
    assert result.no_winner == result.fields()["no_winner"] == "no voter gave an answer"


@pytest.mark.parametrize(
    ("voters", "options"),
    [
        (["", " "], {}),
        (["", "..."], {"similarity": "overlap_1", "tokenize": "json"}),
        ([""], {"similarity": "bleu"}),
        (["", ""], {"similarity": "chrf++"}),
        ([""], {"similarity": "edit"}),
        ([""], {"similarity": "ter"}),
        (["", " "], {"similarity": "0.5*overlap_2+0.5*chrf"}),
        (["", ""], {"cutoff": 0.5}),
        (["", ""], {"likelihood": 0.5}),
    ],
    ids=str,
)
def test_where_all_voters_abstain_nobody_is_elected(voters, options):
    if {"edit", "ter"} & {options.get("similarity")}:
        pytest.importorskip("sacrebleu")
        pytest.importorskip("rapidfuzz")
    logprobs = [-1.0, -2.0]
    result = rv.elect(["a b", "c d"], logprobs, voters=voters, **options)
    streamed = rv.Electorate(["a b", "c d"], logprobs, **options).add(voters).result()
    [many] = rv.elect_many([rv.Ballot(result.candidates, voters)], **options)
    for one in (result, streamed, many):
        assert (one.winner, one.elected, one.no_support) == (None, (), True)
        assert "finds nothing to compare in any voter, so that all abstain" in one.no_winner


@pytest.mark.parametrize(
    ("answers", "least", "elected"),
    [
        ("111222", 0.5, False),
        ("1112223", 0.4, True),
        ("1112", 0.5, True),
        ("1122", 0.4, True),
        ("12", 0.5, False),
    ],
)
def test_a_tie_is_not_a_majority(answers, least, elected):
    result = rv.elect(list(answers), similarity="exact:last_number", min_share=least, weights="count")
    assert bool(result.elected) is elected


def test_the_rule_cluster_reports_the_shares_of_all_answers():
    result = rv.elect(["1", "1", "2", "so 1"], similarity="exact:last_number", rule="cluster")
    assert {name: vote.share for name, vote in result.votes.items()} == {"1": 0.75, "2": 0.25}
    assert [group.share for group in result.groups] == [0.75, 0.25]
