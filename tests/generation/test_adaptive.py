"""Voters that are drawn until the election is decided: as many as needed, for each input by itself."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.election.sequential_test import FIRST_ROUND, rounds
from rangevote.election.settings import Settings
from rangevote.generation.generate import Elected, Request, elect_requests
from rangevote.generation.plan import GenerationPlan
from tests.generation.test_generate import same
from tests.models.table import TableModel
from tests.similarity.samples import Sourced

INPUTS = list("abcdefgh")
OPTIONS = {"similarity": "overlap_1", "tokenize": "tokens"}


@pytest.fixture
def model() -> TableModel:
    return TableModel(6, 3, seed=5, sharp=2.0)


def held(model: TableModel, most: int, confidence: float = 0.9, **options: object) -> list[Elected]:
    plan = GenerationPlan.of(
        Settings(**OPTIONS), "beam:5", f"sample:{most},seed=3", adaptive=confidence, **options
    )
    return list(elect_requests({"": model}, [Request.of(i, x) for i, x in enumerate(INPUTS)], plan))


def test_the_ballot_has_the_voters_that_were_drawn_and_elects_the_same(model):
    numbers = set()
    for one in held(model, 400):
        assert one.ballot.voters is not None
        numbers.add(len(one.ballot.voters))
        same(one.result, rv.elect(one.ballot, **OPTIONS))
        assert one.result.signature.endswith(f"vot:{len(one.ballot.voters)}|tie:score,logprob,first")
    assert min(numbers) < 400
    assert len(numbers) > 1  # some elections are closer than others


def test_drawing_stops_at_the_first_round_that_decides(model):
    for one in held(model, 400):
        voters = list(one.ballot.voters or ())
        electorate = rv.Electorate(one.ballot.candidates, **OPTIONS)
        for draws in rounds(len(voters)):
            electorate.add(voters[draws.start : draws.stop])
            assert len(electorate) == len(voters) or not electorate.decided(0.9)
        assert len(voters) == 400 or electorate.decided(0.9)


def test_the_voters_are_the_first_of_those_that_would_all_vote(model):
    all_vote = rv.generate(model, INPUTS, candidates="beam:5", voters="sample:64,seed=3", **OPTIONS)
    for one, result in zip(held(model, 64, 0.999999), all_vote, strict=True):
        tokens = sorted(tuple(h.tokens or ()) for h in result.voters)
        drawn = sorted(tuple(h.tokens or ()) for h in one.ballot.voters or ())
        if len(drawn) == 64:
            assert drawn == tokens
            assert one.result.scores.tolist() == result.scores.tolist()
        else:
            for token in drawn:
                tokens.remove(token)


def test_a_measure_that_looks_at_the_source_gets_that_of_each_input(model):
    measure = Sourced()
    plan = GenerationPlan.of(Settings(similarity=measure), "beam:5", "sample:64,seed=3", adaptive=0.9)
    list(elect_requests({"": model}, [Request.of(i, x) for i, x in enumerate(INPUTS)], plan))
    assert sorted(measure.seen) == INPUTS


def test_batches_change_nothing(model):
    whole = held(model, 100)
    for rows in (1, 50):
        for one, other in zip(held(model, 100, max_rows=rows), whole, strict=True):
            same_voters = sorted(one.ballot.voters or (), key=repr) == sorted(
                other.ballot.voters or (), key=repr
            )
            assert same_voters
            assert one.result.scores.tolist() == other.result.scores.tolist()
            assert one.result.elected == other.result.elected


def test_a_batch_is_as_large_as_its_first_round_allows(model):
    def batch(voters: str, adaptive: float | None) -> int:
        return GenerationPlan.of(Settings(), "beam:4", voters, adaptive=adaptive, max_rows=128).batch

    assert [batch("sample:1000", None), batch("sample:1000", 0.9), batch("sample:2", 0.9)] == [1, 32, 32]


def test_one_candidate_needs_one_round(model):
    for result in rv.generate(model, INPUTS, candidates="beam:1", voters="sample:500", adaptive=True):
        assert len(result.voters) == FIRST_ROUND


def test_rounds_double_up_to_all(model):
    assert [len(draws) for draws in rounds(100)] == [4, 4, 8, 16, 32, 36]
    assert list(rounds(3)) == [range(3)]
    assert sum(map(len, rounds(1000))) == 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"must be samples, but the candidates vote. Use voters='sample:1000'"),
        ({"voters": "beam:10"}, r"must be samples, but the voters are 'beam:10'"),
        ({"voters": "stochastic_beam:10"}, r"must be samples"),
        ({"voters": "sample:9", "weights": "probability"}, r"use weights='count'"),
        ({"voters": "sample:9", "winners": 2}, r"one winner"),
        ({"voters": "sample:9", "rule": "most_likely"}, r"rule='most_likely'"),
        ({"voters": "sample:9", "adaptive": 1.0}, r"got 1.0"),
        ({"voters": "sample:9", "adaptive": "yes"}, r"got 'yes'"),
        ({"voters": "sample:9", "within": 2}, r"within must be a difference of scores from 0 to 1"),
        ({"voters": "sample:9", "within": 0.1, "adaptive": None}, r"so it needs adaptive, as adaptive=0.99"),
    ],
)
def test_what_cannot_be_decided_by_samples_is_refused(model, options, message):
    with pytest.raises(rv.UsageError, match=message):
        rv.generate(model, ["a"], **{"adaptive": 0.9, **options})
