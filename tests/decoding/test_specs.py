"""Searches by name, size and options, as on the command line; and what is said about those that cannot be."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.decoding import SEARCHES, get_search
from rangevote.decoding.base import SearchSum
from rangevote.decoding.beam import Beam, LengthNormalised
from rangevote.decoding.diverse import DiverseBeam, DiverseDecoding
from rangevote.decoding.sample import Epsilon, MinP, Nucleus, Sample, TopK
from rangevote.decoding.stochastic import StochasticBeam
from rangevote.errors import UsageError
from rangevote.generation.plan import CONSENSUS_VOTERS
from rangevote.models.ngram import NgramModel
from tests.decoding.every import EVERY
from tests.models.table import TableModel

READ = {
    "beam:10": Beam(10),
    "greedy": Beam(1),
    "greedy,max_new_tokens=5": Beam(1, max_new_tokens=5),
    "beam:10,copy_filter=0.5": Beam(10, copy_filter=0.5),
    "beam:10,copy_filter=none": Beam(10),
    "beam:10,copy_filter=0.5,copy_prunes=finished": Beam(10, copy_filter=0.5, copy_prunes="finished"),
    " beam : 10 , max_new_tokens = 7 ,": Beam(10, max_new_tokens=7),
    "beam:4,finish=transformers,length_penalty=1,early_stopping=true": Beam(
        4, finish="transformers", length_penalty=1, early_stopping=True
    ),
    "beam:4,finish=transformers,early_stopping=never": Beam(4, finish="transformers", early_stopping="never"),
    "beam:4,finish=transformers,early_stopping=False": Beam(4, finish="transformers"),
    "length_normalised:3,alpha=0.6,form=wu": LengthNormalised(3, alpha=0.6, form="wu"),
    "diverse_decoding:3,gamma=1e-1": DiverseDecoding(3, gamma=0.1),
    "diverse_decoding:3,gamma=1e+0": DiverseDecoding(3, gamma=1.0),  # not a sum
    "diverse_beam:6,groups=3,penalty=2": DiverseBeam(6, groups=3, penalty=2),
    "stochastic_beam:5,seed=9": StochasticBeam(5, seed=9),
    "sample:100,temperature=0.7,seed=3": Sample(100, temperature=0.7, seed=3),
    "top_k:100,top=5": TopK(100, top=5),
    "nucleus:100,p=0.8": Nucleus(100, p=0.8),
    "epsilon:100,epsilon=0.05": Epsilon(100, epsilon=0.05),
    "min_p:100,p=0.2,min_new_tokens=2": MinP(100, p=0.2, min_new_tokens=2),
    "sample:50 + nucleus:50,p=0.8": SearchSum((Sample(50), Nucleus(50, p=0.8))),
}


@pytest.mark.parametrize(("spec", "wanted"), READ.items(), ids=READ)
def test_a_search_is_read_from_its_name_size_and_options(spec, wanted):
    assert get_search(spec) == wanted
    assert type(get_search(spec)) is type(wanted)


@pytest.mark.parametrize(
    "method", [*EVERY, *READ.values(), Beam(2, copy_filter=1 / 3, min_new_tokens=3)], ids=str
)
def test_a_search_prints_as_it_is_read(method):
    assert get_search(str(method)) == method
    assert get_search(method) is method


def test_the_print_names_only_what_differs_from_the_default():
    assert str(Beam(10)) == "beam:10"
    assert str(Sample(3, seed=0, temperature=1.0)) == "sample:3"
    assert str(DiverseBeam(4, penalty=0.7)) == "diverse_beam:4,penalty=0.7"


def test_a_search_may_be_named_or_left_out():
    model = TableModel(4, 3, seed=0)
    assert rv.search(model, ["a"], "beam:3") == rv.search(model, ["a"], Beam(3))
    assert rv.search(model, ["a"]) == rv.search(model, ["a"], Beam(10))


WRONG = {
    "beem:10": r"unknown search 'beem'\. Did you mean 'beam'\? Choose from: beam, diverse_beam, .*, top_k\.",
    "beam:10,copyfilter=0.5": r"unknown option of search beam 'copyfilter'\. Did you mean 'copy_filter'\?",
    "beam:10,seed=1": r"unknown option of search beam 'seed'\..* Choose from: copy_filter, copy_prunes",
    "beam:4,finish=compet": r"unknown finish 'compet'\. Did you mean 'compete'\?",
    "length_normalised:4,form=wo": r"unknown form of length normalisation 'wo'\. Did you mean 'wu'\?",
    "beam": r"search 'beam': say how many hypotheses, as in 'beam:10'\.",
    "beam:-3": r"search 'beam:-3': say how many hypotheses",
    "sample,seed=3": r"search 'sample,seed=3': say how many hypotheses, as in 'sample:10'\.",
    "beam:0": r"Beam: k must be a whole number from 1, got 0\.",
    "beam:4,max_new_tokens": r"option 'max_new_tokens' needs a value, as in 'max_new_tokens=\.\.\.'\.",
    "beam:4,max_new_tokens=0": r"Beam: max_new_tokens must be a whole number from 1, got 0\.",
    "beam:4,min_new_tokens=-1": r"Beam: min_new_tokens must be a whole number from 0, got -1\.",
    "beam:4,copy_filter=0": r"Beam: copy_filter must be a share above 0 and up to 1, got 0\.",
    "beam:4,copy_prunes=all": r"Beam: copy_prunes must be 'live' or 'finished', got 'all'\.",
    "beam:4,length_penalty=1": r"Beam: length_penalty and early_stopping belong to finish='transformers'",
    "beam:4,finish=transformers,length_penalty=inf": r"Beam: length_penalty must be a number, got inf\.",
    "beam:4,finish=transformers,early_stopping=soon": r"Beam: early_stopping must be True, False or 'never'",
    "length_normalised:4,alpha=nan": r"LengthNormalised: alpha must be a number, got nan\.",
    "diverse_decoding:4,gamma=-1": r"DiverseDecoding: gamma must be a number from 0, got -1\.",
    "diverse_beam:5": r"DiverseBeam: k=5 hypotheses do not divide into groups=2 equal groups\.",
    "stochastic_beam:4,seed=-1": r"StochasticBeam: seed must be a whole number from 0, got -1\.",
    "sample:4,temperature=0": r"Sample: temperature must be a number above 0, got 0\.",
    "nucleus:4,p=0": r"Nucleus: p must be a share above 0 and up to 1, got 0\.",
    "epsilon:4,epsilon=1": r"Epsilon: epsilon must be a probability below 1, got 1\.",
    "min_p:4,p=2": r"MinP: p must be a share from 0 to 1, got 2\.",
}


@pytest.mark.parametrize(("spec", "message"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_meant_is_told(spec, message):
    with pytest.raises(UsageError, match=message):
        get_search(spec)


@pytest.mark.parametrize("value", [True, "3", 2.0, None])
def test_a_size_is_a_whole_number(value):
    for kind in SEARCHES.values():
        with pytest.raises(UsageError, match=r"(k|n) must be a whole number from 1, got"):
            kind(value)


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
