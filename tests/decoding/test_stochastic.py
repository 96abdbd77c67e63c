"""Stochastic beam search: what it samples, and what its weights estimate, against enumeration.

Every input of a run is an independent draw, so one run over N copies of an input is N draws.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from rangevote.decoding import search
from rangevote.decoding.stochastic import StochasticBeam, importance
from rangevote.models.protocol import Step
from tests.decoding import twins
from tests.decoding.compare import ALPHA, assert_mean, chi_square, ranking
from tests.decoding.models import Bent, InTorch
from tests.models.table import TableModel, enumerate_sequences


def draws(model, n, method):
    return search(model, ["a"] * n, method, max_rows=1024)


def truth(model, limit=64):
    return {
        (one.tokens, one.finished): math.exp(one.logprob) for one in enumerate_sequences(model, "a", limit)
    }


def first_is_drawn_from(found, probabilities):
    counts = Counter(ranking(listed)[0] for listed in found)
    assert set(counts) <= set(probabilities)
    return chi_square([counts[key] for key in probabilities], list(probabilities.values()))


SEVEN = TableModel(3, 2, seed=4, sharp=1.5)  # as many sequences


def without_replacement():
    """P(first, second, third) = p1 * p2 / (1 - p1) * p3 / (1 - p1 - p2) for all orders of three sequences."""
    expected = {}
    for order in permutations(truth(SEVEN).items(), 3):
        left, probability = 1.0, 1.0
        for _, p in order:
            probability *= p / left
            left -= p
        expected[tuple(key for key, _ in order)] = probability
    assert len(expected) == 7 * 6 * 5
    return expected


def test_the_order_is_that_of_drawing_without_replacement():
    expected = without_replacement()
    counts = Counter(tuple(ranking(found)) for found in draws(SEVEN, 1500, StochasticBeam(3, seed=5)))
    assert set(counts) <= set(expected)
    assert chi_square([counts[key] for key in expected], list(expected.values())) > ALPHA


FUNCTIONS = {
    "one": lambda tokens: 1.0,
    "length": len,
    "has a 2": lambda tokens: float(2 in tokens),
    "is empty": lambda tokens: float(not tokens),
    "ends in 1 3": lambda tokens: float(tuple(tokens[-2:]) == (1, 3)),
}


@pytest.mark.parametrize(("k", "limit"), [(3, 64), (8, 2)])
def test_the_weights_give_unbiased_estimates_of_sums_over_all_sequences(k, limit):
    model = TableModel(4, 3, seed=7, sharp=1.3)  # 40 sequences
    found = draws(model, 1000, StochasticBeam(k, seed=8, max_new_tokens=limit))
    for function in FUNCTIONS.values():
        exact = sum(p * function(tokens) for (tokens, _), p in truth(model, limit).items())
        estimates = [sum(one.weight * function(one.tokens) for one in listed) for listed in found]
        assert_mean(estimates, exact)


@pytest.mark.parametrize("kind", [TableModel, InTorch])
def test_perturbed_values_are_log_probabilities_plus_independent_gumbel_numbers(kind):
    pytest.importorskip("torch")
    model = kind(3, 3, seed=3)  # 15 sequences
    found = draws(model, 300, StochasticBeam(15, seed=13))
    order = sorted(truth(model))
    noise = np.array(
        [
            [one.ranked_by - one.logprob for one in sorted(listed, key=lambda one: tuple(one.tokens))]
            for listed in found
        ]
    )  # (draws, sequences)
    assert noise.shape == (300, len(order))
    assert stats.kstest(noise.ravel(), stats.gumbel_r.cdf).pvalue > ALPHA
    for column in noise.T:
        assert stats.kstest(column, stats.gumbel_r.cdf).pvalue > ALPHA / len(order)
    correlations = np.corrcoef(noise.T)[np.triu_indices(len(order), 1)]
    assert np.abs(correlations).max() < 6.5 / math.sqrt(300)  # a normal number, 105 of them


@pytest.mark.parametrize("k", [40, 500])
def test_all_sequences_come_with_their_probability_where_k_is_enough(k):
    model = TableModel(4, 3, seed=0)  # 40 sequences
    for found in draws(model, 3, StochasticBeam(k, seed=3)):
        assert {key: one.weight for key, one in zip(ranking(found), found, strict=True)} == pytest.approx(
            truth(model)
        )


def test_weights_are_finite_however_unlikely_a_sample_or_its_threshold_is():
    assert importance(-1000.0, -5.0) == pytest.approx(math.exp(-5))  # a long sample: q = x = P / exp(kappa)
    assert importance(-760.0, -50.0) == pytest.approx(math.exp(-50))
    assert importance(-1.0, -1000.0) == pytest.approx(math.exp(-1))  # one that is sure to be in: q = 1
    for logprob in (-9.0, -5.1, -5.0, -4.9, -1.0):
        q = 1 - math.exp(-math.exp(logprob + 5.0))
        assert importance(logprob, -5.0) == pytest.approx(math.exp(logprob) / q)


def test_weights_follow_from_the_threshold():
    # w = P / (1 - exp(-exp(log P - kappa))): one kappa, below all perturbed values, explains all weights
    model = TableModel(5, 4, seed=1)
    for found in draws(model, 50, StochasticBeam(6, seed=4)):
        kappas = []
        for one in found:
            p = math.exp(one.logprob)
            assert 0 < p < one.weight
            kappas.append(one.logprob - math.log(-math.log1p(-p / one.weight)))
        assert kappas == pytest.approx([kappas[0]] * len(found), abs=1e-6)
        assert kappas[0] < found[-1].ranked_by
        values = [one.ranked_by for one in found]
        assert values == sorted(values, reverse=True)
        assert len(set(ranking(found))) == len(found)  # none is drawn twice


def test_the_models_ranking_is_what_is_sampled_from():
    model = Bent(4, 3, seed=1)
    probabilities = twins.distribution(model, "a", 64)
    assert sum(probabilities.values()) == pytest.approx(1)
    found = draws(model, 1000, StochasticBeam(3, seed=14))
    assert first_is_drawn_from(found, probabilities) > ALPHA
    assert first_is_drawn_from(found, truth(model)) < ALPHA
    assert_mean(
        [sum(one.weight * len(one.tokens) for one in listed) for listed in found],
        sum(p * len(tokens) for (tokens, _), p in probabilities.items()),
    )


class Peaked:
    """Tokens 1 and 2 have one half each; 20,000 others e^-60 each, so that none will ever be seen."""

    ends = (0,)

    def start(self, inputs):
        return len(inputs)

    def step(self, rows, tokens):
        log_probs = np.full((rows, 20_000), -60.0)
        log_probs[:, 1:3] = math.log(0.5)
        return Step(log_probs, rows)

    def select(self, state, rows):
        return len(rows)

    def room(self, state):
        return None

    def text(self, tokens):
        return None

    def source(self, input):
        return []


def test_a_large_vocabulary_of_hopeless_tokens_never_wins():
    # float32 exponentials are 0 once in 2^23 numbers: then a hopeless token gets a Gumbel number of 87
    found = [
        one
        for seed in range(4)
        for one in search(Peaked(), [0] * 64, StochasticBeam(1, seed=seed, max_new_tokens=1))
    ]
    assert {listed[0].tokens[0] for listed in found} == {1, 2}
