"""Significance over seeds."""

from __future__ import annotations

from experiments.data import Items
from experiments.measuring import Measurer, Scores, answers, questions

from rangevote.evaluation.significance import paired_bootstrap

REFERENCES = [["a dog runs on the grass"], ["a man sits near a tree"], ["a bird is in the water"]]
GOOD = [texts[0] for texts in REFERENCES]
BAD = ["a dog runs on grass", "the man sits near trees", "birds in a water"]


def scores(*seeds):
    measurer = Measurer(Items(["1", "2", "3"], REFERENCES), ["bleu_1"], "space")
    return Scores(measurer, "bleu_1", seeds)


def test_a_seed_alone_differs_as_its_own_paired_bootstrap_says():
    seed = {"beam": {1: BAD}, "overlap_2": {1: GOOD}}
    found = scores(seed)
    metric = found.metric
    rows = [found._measured(point)[0].rows[metric.statistics] for point in (("overlap_2", 1), ("beam", 1))]
    expected = paired_bootstrap(metric.score, *rows, resamples=200)
    [first, *_] = answers(found, [7], 200)
    assert first["seeds"] == [
        {"seed": 7, "difference": expected.value, "interval": list(expected.interval), "p": expected.p}
    ]


def test_the_same_seed_twice_differs_as_once_and_two_seeds_by_their_mean():
    better, equal = {"beam": {1: BAD}, "overlap_2": {1: GOOD}}, {"beam": {1: BAD}, "overlap_2": {1: BAD}}
    [once, *_] = answers(scores(better), [1], 200)
    [twice, *_] = answers(scores(better, better), [1, 2], 200)
    [mixed, *_] = answers(scores(better, equal), [1, 2], 200)
    assert twice["all"] == once["all"]
    assert mixed["all"]["difference"] == once["all"]["difference"] / 2
    assert mixed["ours"] == ("overlap_2", 1)


def test_the_best_of_each_side_meet_and_at_every_k_too():
    seed = {"beam": {1: BAD, 2: GOOD}, "length_normalised": {1: BAD, 2: BAD}, "overlap_1": {1: BAD, 2: BAD}}
    found = {question.asked: question for question in questions(scores(seed, seed))}
    assert found["best voting, best beam search"].theirs == ("beam", 2)
    assert found["best voting, best length normalisation"].theirs == ("length_normalised", 1)
    assert found["best voting, best baseline, k = 2"].ours == ("overlap_1", 2)
    assert not any("blend" in asked for asked in found)


def test_only_what_every_seed_has_is_compared():
    whole = {"beam": {1: BAD, 2: GOOD}, "overlap_2": {1: GOOD, 2: BAD}}
    lacking = {"beam": {1: BAD}, "overlap_2": {1: GOOD}}
    assert scores(whole, lacking).points == [("beam", 1), ("overlap_2", 1)]


def test_samples_which_have_no_k_are_nobodys_best():
    seed = {"beam": {1: BAD}, "overlap_2": {0: GOOD, 1: BAD}}
    assert scores(seed).best(["overlap_2"]) == ("overlap_2", 1)
