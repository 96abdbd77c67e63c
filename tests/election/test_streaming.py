"""Voters that arrive one at a time or in batches."""

from __future__ import annotations

import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import Hypothesis
from tests.similarity.samples import EVERY, SameLength, first_letters, full, sentences

BATCHES = {"one at a time": 1, "in threes": 3, "all at once": 11}


@pytest.mark.parametrize("label", EVERY)
@pytest.mark.parametrize("size", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("weights", ["count", "probability"])
def test_a_streamed_election_equals_the_one_shot_election_bit_for_bit(label, size, weights):
    rng = np.random.default_rng(0)
    candidates, voters = full(rng, sentences(rng, 6)), full(rng, sentences(rng, 11))
    similarity, tokenize = EVERY[label]
    options = {"weights": weights, "tokenize": tokenize}
    electorate = rv.Electorate(candidates, similarity=similarity, **options)
    for start in range(0, len(voters), size):
        electorate.add(voters[start : start + size])
        streamed = electorate.result()
        so_far = voters[: start + size]
        at_once = rv.elect(candidates, voters=so_far, similarity=similarity, **options)
        assert streamed.scores.tobytes() == at_once.scores.tobytes()
        assert streamed.ranking == at_once.ranking
        assert streamed.signature == at_once.signature
        assert len(electorate) == len(so_far)


OPTIONS = {
    "rule": {"rule": "reweighted", "winners": 3},
    "temperature": {"temperature": 2.5, "weights": "probability"},
    "preset": {"preset": "blend"},
    "likelihood": {"likelihood": 0.8},
    "cutoff": {"cutoff": 0.3},
    "normalize": {"normalize": "NFC"},
    "merge": {"merge": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option_of_elect_works_on_a_stream(options):
    candidates = ["é a", "e\u0301 a", "b c", "b c", "b"]
    own = [-4.0, -3.0, -5.0, -2.0, -1.0]
    voters, logprobs = ["e\u0301 a", "b c", "b c", "b", "é a"], [-1.0, -2.0, -3.0, -4.0, -5.0]
    electorate = rv.Electorate(candidates, logprobs=own, **options)
    electorate.add(voters[:2], logprobs[:2]).add(voters[2:], logprobs[2:])
    at_once = rv.elect(candidates, own, voters=voters, voter_logprobs=logprobs, **options)
    streamed = electorate.result()
    assert streamed.scores.tobytes() == at_once.scores.tobytes()
    assert streamed.elected == at_once.elected
    assert streamed.ranking == at_once.ranking
    assert streamed.signature == at_once.signature


BAD_BATCHES = {
    "overlap_2": ["a", "\ud800"],
    "chrf": ["a", "\ud800"],
    "states": [Hypothesis(text="a", state=(1.0, 2.0)), Hypothesis(text="b", state=(1.0,))],
    "0.5*overlap_1+0.5*states": [Hypothesis(text="a")],
    "0.5*exact+0.5*overlap_1": ["a", "\ud800"],
}


@pytest.mark.parametrize(("similarity", "batch"), BAD_BATCHES.items(), ids=BAD_BATCHES)
def test_a_refused_batch_leaves_the_electorate_as_it_was(similarity, batch):
    candidates = [Hypothesis(text="a", state=(1.0, 0.0)), Hypothesis(text="b", state=(0.0, 1.0))]
    electorate = rv.Electorate(candidates, similarity=similarity).add(candidates[:1])
    before = electorate.result()
    with pytest.raises(rv.DataError, match=r"^voters"):
        electorate.add(batch)
    assert len(electorate) == 1
    assert electorate.result().scores.tobytes() == before.scores.tobytes()
    assert electorate.add(candidates[1:]).result().weights.tolist() == [0.5, 0.5]


def test_a_users_measure_grades_nobody_twice_for_decisions():
    by_object, by_function = [], []

    class Counted(SameLength):
        def matrix(self, candidates, voters):
            by_object.extend(voters.texts)
            return super().matrix(candidates, voters)

    def counted(voter, candidate):
        by_function.append((voter, candidate))
        return first_letters(voter, candidate)

    voters, candidates = [f"a{i}" for i in range(6)], ["aa", "b"]
    for similarity in (Counted(), counted):
        electorate = rv.Electorate(candidates, similarity=similarity, weights="count")
        for voter in voters:
            electorate.add([voter])
            assert not electorate.decided(0.999)
    assert by_object == voters
    assert by_function == [(voter, candidate) for voter in voters for candidate in candidates]


def test_before_anybody_votes_there_is_no_result():
    with pytest.raises(rv.DataError, match=r"voters: nobody has voted yet; add voters first"):
        rv.Electorate(["a"]).result()
    with pytest.raises(rv.DataError, match=r"nobody has voted yet"):
        rv.Electorate(["a"]).add([]).result()


@pytest.mark.parametrize("rule", ["most_likely", "length_normalised"])
def test_rules_in_which_nobody_votes_have_no_electorate(rule):
    with pytest.raises(rv.UsageError, match=rf"nobody votes under rule='{rule}'; use elect"):
        rv.Electorate(["a"], rule=rule)
