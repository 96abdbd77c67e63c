"""Voters of other models than that of the candidates: one, or a panel of several."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.errors import DataError
from rangevote.models.ngram import NgramModel

INPUTS = ["the train", "the bus"]
SHARED = {"similarity": "overlap_1", "candidates": "beam:4"}


@pytest.fixture
def small() -> NgramModel:
    return NgramModel.train(4 * ["the train leaves at ten", "the bus leaves at ten"], order=3)


@pytest.fixture
def large() -> NgramModel:
    return NgramModel.train(4 * ["the train leaves at noon", "the bus leaves at noon", "the bus"], order=3)


class Failing(NgramModel):
    """A model that cannot read anything."""

    def start(self, inputs):
        raise DataError("is too long.", field="inputs[0]")


def test_another_model_votes_on_the_candidates_of_the_first(small, large):
    results = rv.generate(small, INPUTS, voters="sample:30,seed=1", voter_models={"large": large}, **SHARED)
    drawn = rv.generate(large, INPUTS, candidates="beam:2", voters="sample:30,seed=1")
    stand = rv.generate(small, INPUTS, candidates="beam:4")
    for result, voters, candidates in zip(results, drawn, stand, strict=True):
        assert [one.text for one in result.voters] == [one.text for one in voters.voters]
        assert [one.text for one in result.candidates] == [one.text for one in candidates.candidates]
        assert result.panel is None
        expected = rv.elect(candidates.candidates, voters=list(voters.voters), similarity="overlap_1")
        assert result.scores.tolist() == expected.scores.tolist()


def test_several_models_vote_as_a_panel_with_equal_shares_or_those_given(small, large):
    both = {"small": small, "large": large}
    for result in rv.generate(small, INPUTS, voters="sample:20,seed=1", voter_models=both, **SHARED):
        assert result.panel is not None
        assert result.panel.shares == {"large": 0.5, "small": 0.5}
        assert len(result.voters) == 40
    options = {"voters": "sample:20,seed=1", "voter_models": both, "shares": {"small": 1, "large": 3}}
    assert rv.generate(small, INPUTS, **options, **SHARED)[0].panel.shares == {"large": 0.75, "small": 0.25}


@pytest.mark.filterwarnings("ignore::rangevote.RangevoteWarning")
def test_a_model_that_fails_is_left_out_and_named(small):
    failing = Failing.train(["a b"], order=2)
    with pytest.warns(rv.RangevoteWarning, match=r"panel member 'broken' failed and is left out: .*too long"):
        [result, _] = rv.generate(
            small, INPUTS, voters="sample:9", voter_models={"small": small, "broken": failing}, **SHARED
        )
    assert (result.panel.shares, result.panel.left_out) == ({"small": 1.0}, ("broken",))
    assert "|panel:small=1|out:broken|" in result.signature
    with pytest.raises(rv.DataError, match="too long"):
        rv.generate(small, INPUTS, voters="sample:9", voter_models={"broken": failing}, **SHARED)


def test_sampling_until_it_is_decided_draws_from_the_voters_model(small, large):
    [result, _] = rv.generate(
        small, INPUTS, voters="sample:400,seed=1", voter_models={"large": large}, adaptive=0.9, **SHARED
    )
    [whole, _] = rv.generate(large, INPUTS, candidates="beam:2", voters="sample:400,seed=1")
    assert {one.text for one in result.voters} <= {one.text for one in whole.voters}
    assert len(result.voters) < 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"need a search, such as voters='sample:100'"),
        ({"voters": "sample:9", "shares": {"small": 1.0}}, r"a number for each model that votes"),
        ({"voters": "sample:9", "shares": "agreement", "similarity": "exact"}, r"vote --shares agreement"),
        ({"voters": "sample:9", "escalate": "share<1"}, r"needs a panel"),
        ({"voters": "sample:9", "tokenize": "tokens"}, r"tokens of different models cannot be compared"),
        (
            {"voters": "sample:9", "voter_models": {"a": "b"}},
            r"model 'a' must be a language model",
        ),
    ],
)
def test_what_other_models_cannot_do_is_refused(small, large, options, message):
    models = {"voter_models": {"small": small, "large": large}}
    with pytest.raises(rv.UsageError, match=message):
        rv.generate(small, INPUTS, **{**models, **options})
