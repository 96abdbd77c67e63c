"""Sampling: whole sequences against enumeration, truncations against those of transformers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rangevote.decoding import Batch, search
from rangevote.decoding.base import random_generator
from rangevote.decoding.sample import Epsilon, MinP, Nucleus, Sample, TopK
from rangevote.decoding.stochastic import StochasticBeam
from tests.decoding import twins
from tests.decoding.compare import ALPHA, chi_square, ranking, warped
from tests.decoding.every import SAMPLINGS
from tests.decoding.models import Bent, InTorch, Written
from tests.models.table import TableModel, enumerate_sequences

N = 4000


def p_value(found, probabilities):
    counts = Counter(ranking(found))
    assert set(counts) <= set(probabilities)
    assert len(found) == N
    return chi_square([counts[key] for key in probabilities], list(probabilities.values()))


@pytest.mark.parametrize("kind", [TableModel, InTorch])
@pytest.mark.parametrize("limit", [2, 64])
def test_ancestral_samples_have_the_models_distribution(kind, limit):
    if kind is InTorch:
        pytest.importorskip("torch")
    model = kind(4, 3, seed=1, sharp=1.5)
    (found,) = search(model, ["a"], Sample(N, seed=2, max_new_tokens=limit), max_rows=10**6)
    listed = enumerate_sequences(model, "a", limit)
    assert p_value(found, {(one.tokens, one.finished): math.exp(one.logprob) for one in listed}) > ALPHA


TRUNCATED = [
    (TopK(N, top=3, temperature=1.7, seed=3), [("Temperature", 1.7), ("TopK", 3)]),
    (Nucleus(N, p=0.9, temperature=0.6, seed=3), [("Temperature", 0.6), ("TopP", 0.9)]),
    (MinP(N, p=0.4, temperature=2.0, seed=3), [("Temperature", 2.0), ("MinP", 0.4)]),
    (Epsilon(N, epsilon=0.2, temperature=0.7, seed=3), [("Temperature", 0.7), ("Epsilon", 0.2)]),
]


@pytest.mark.parametrize(("method", "warpers"), TRUNCATED, ids=lambda value: str(value))
def test_truncated_samples_have_the_distribution_of_transformers_warpers(method, warpers):
    model = TableModel(5, 2, seed=6, sharp=1.2)
    (found,) = search(model, ["a"], method, max_rows=10**6)
    probabilities = twins.distribution(model, "a", 64, shape=warped(*warpers))
    assert p_value(found, probabilities) > ALPHA
    assert p_value(found, twins.distribution(model, "a", 64)) < ALPHA  # it does cut something off


@pytest.mark.parametrize(
    "method", [TopK(20, top=1), Nucleus(20, p=1e-9), MinP(20, p=1.0), Epsilon(20, epsilon=0.999)], ids=str
)
def test_the_best_token_always_stays(method):
    model = TableModel(5, 5, seed=2)
    greedy = search(model, ["a", "b"], "greedy")
    for found, best in zip(search(model, ["a", "b"], method), greedy, strict=True):
        assert ranking(found) == ranking(best) * 20


@pytest.mark.parametrize(
    "method", [TopK(30, top=99), Nucleus(30, p=1.0), MinP(30, p=0.0), Epsilon(30, epsilon=0.0)], ids=str
)
@pytest.mark.parametrize("kind", [TableModel, InTorch])
def test_a_truncation_that_cuts_nothing_is_ancestral_sampling(method, kind):
    if kind is InTorch:
        pytest.importorskip("torch")
    model = kind(5, 5, seed=2)
    assert search(model, ["a", "b"], method) == search(model, ["a", "b"], Sample(30))


@pytest.mark.parametrize("method", [*SAMPLINGS, StochasticBeam(6, seed=5)], ids=str)
def test_seed_stream_and_number_fix_every_sample_alone_or_in_any_batch(method):
    model, inputs = TableModel(6, 4, seed=3), ["a", "b", "a", "c", "d"]
    found = search(model, inputs, method)
    assert search(model, inputs, method) == found
    assert search(model, inputs, replace(method, seed=6)) != found
    assert found[0] != found[2]  # the same input at another place is drawn anew
    for i, input in enumerate(inputs):
        assert Batch(model, [input], [i]).search(method) == [found[i]]
    assert Batch(model, inputs[2:], [2, 3, 4]).search(method, max_rows=5) == found[2:]
    voters = Batch(model, inputs, range(5)).search(method, stream=1)
    assert all(one != other for one, other in zip(voters, found, strict=True))


@pytest.mark.parametrize("method", SAMPLINGS, ids=str)
def test_draws_come_in_rounds_as_they_come_at_once(method):
    model, inputs = TableModel(6, 4, seed=3), ["a", "b", "c"]
    method = replace(method, n=12)
    whole = search(model, inputs, method)
    batch = Batch(model, inputs, range(3))
    rounds = [batch.run(method, draws=part) for part in (range(0, 1), range(1, 7), range(7, 12))]
    again = batch.run(method, draws=range(3, 8))
    some = batch.run(method, draws=range(3, 8), wanted=[2, 0])
    assert batch.run(method, draws=range(0), wanted=[]) == [[], [], []]
    for i in range(3):
        assert sorted(map(str, (one for found in rounds for one in found[i]))) == sorted(map(str, whole[i]))
    assert [some[0], some[2]] == [again[0], again[2]]
    assert some[1] == []
    assert [len(found) for found in again] == [5, 5, 5]
    assert not Counter(map(str, again[1])) - Counter(map(str, whole[1]))


def test_no_two_draws_share_their_random_numbers():
    # a counter that begins one later would give another draw's numbers, shifted
    seen = [
        random_generator(seed, stream, input, draw).random(300)
        for seed in (0, 1)
        for stream in (0, 1)
        for input in (0, 1, 2)
        for draw in (0, 1, 2, 1000)
    ]
    assert len(set(np.concatenate(seen).tolist())) == 48 * 300
    assert (random_generator(3, 1, 2, 5).random(9) == random_generator(3, 1, 2, 5).random(9)).all()


@pytest.mark.parametrize("method", SAMPLINGS, ids=str)
def test_samples_come_with_their_multiplicity_most_likely_first_and_say_that_they_are_samples(method):
    model = Written(3, {(): (0.5, 0.3, 0.2)})
    method = replace(method, n=50)
    for max_rows in (7, 256):
        (found,) = search(model, ["a"], method, max_rows=max_rows)
        assert len(found) == 50
        assert all(one.sampled and one.weight is None and one.ranked_by is None for one in found)
        logprobs = [one.logprob for one in found]
        assert logprobs == sorted(logprobs, reverse=True)


def test_the_models_ranking_is_what_is_drawn_from():
    model = Bent(4, 3, seed=1)
    (found,) = search(model, ["a"], Sample(N, seed=4), max_rows=10**6)
    assert p_value(found, twins.distribution(model, "a", 64)) > ALPHA
