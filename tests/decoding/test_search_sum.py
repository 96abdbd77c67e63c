"""A sum of searches has the hypotheses of all its parts, each as if it ran alone."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.decoding import get_search
from rangevote.decoding.base import SearchSum
from rangevote.generation.plan import CONSENSUS_VOTERS
from rangevote.models.ngram import NgramModel

MODEL = NgramModel.train(
    2 * ["the train leaves at ten", "a train leaves at noon", "the train is late"], order=3
)


def texts(hypotheses):
    return [one.text for one in hypotheses]


def test_a_sum_has_the_hypotheses_of_its_parts_in_their_order():
    (both,) = rv.search(MODEL, ["the"], "beam:2+sample:3,seed=5")
    (beam,) = rv.search(MODEL, ["the"], "beam:2")
    assert texts(both[:2]) == texts(beam)
    assert [one.sampled for one in both] == [False, False, True, True, True]


def test_two_samplings_with_one_seed_are_different_draws():
    (both,) = rv.search(MODEL, [""], "sample:20,seed=1+sample:20,seed=1")
    (alone,) = rv.search(MODEL, [""], "sample:20,seed=1")
    assert texts(both[:20]) == texts(alone)
    assert texts(both[20:]) != texts(alone)


def test_a_sum_is_written_as_it_is_read():
    spec = "sample:50+nucleus:50,p=0.8"
    assert str(get_search(spec)) == spec
    assert get_search("beam:5+epsilon:4,epsilon=1e-5").size == 9


def test_options_reach_the_parts_that_have_them_and_do_not_set_them():
    search = get_search("beam:2+nucleus:3,seed=4", seed=7, max_new_tokens=9)
    assert str(search) == "beam:2,max_new_tokens=9+nucleus:3,max_new_tokens=9,seed=4"
    assert (
        str(search.with_options(max_new_tokens=5))
        == "beam:2,max_new_tokens=5+nucleus:3,max_new_tokens=5,seed=4"
    )


@pytest.mark.parametrize("parts", [("beam:2",), (get_search("beam:1+beam:2"),)])
def test_the_parts_of_a_sum_are_single_searches(parts):
    with pytest.raises(rv.UsageError, match="a sum has searches as its parts"):
        SearchSum(parts)


def test_a_consensus_is_beams_elected_by_samples_of_two_kinds():
    (result,) = rv.generate(MODEL, ["the"], preset="consensus")
    assert len(result.voters) == get_search(CONSENSUS_VOTERS).size == 100
    assert all(voter.sampled for voter in result.voters)
    assert not any(one.sampled for one in result.candidates)
    assert "|sim:overlap_1-4|on:words|w:count|L:0.4|" in result.signature
    (other,) = rv.generate(MODEL, ["the"], preset="consensus", voters="sample:7")
    assert len(other.voters) == 7


def test_a_sum_of_samplings_is_not_drawn_until_decided():
    with pytest.raises(rv.UsageError, match=r"must be samples, but the voters are 'sample:5\+nucleus:5'"):
        rv.generate(MODEL, ["the"], voters="sample:5+nucleus:5", adaptive=0.9)
