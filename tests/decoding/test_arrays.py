"""The operations over vocabularies: in numpy and torch against plain loops, formulas, and transformers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.decoding.arrays import (
    BLOCK,
    Truncation,
    best_extensions,
    best_tokens,
    draw_tokens,
    perturb,
    truncated,
)
from tests.decoding.compare import warped

torch = pytest.importorskip("torch")

#: A copy of a numpy array for each library.
KINDS = {"numpy": np.copy, "torch": lambda array: torch.from_numpy(array.copy())}
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
BELOW_1 = float(np.nextafter(1.0, 0.0))


def naive_best(scores, base, bounds, n):
    """[(contest, row, token, value)]: the n best of each contest, best first, without the impossible ones."""
    found = []
    for contest, (first, last) in enumerate(pairwise(bounds)):
        listed = [
            (contest, row, token, float(scores[row, token]) + float(base[row]))
            for row in range(first, last)
            for token in range(scores.shape[1])
            if scores[row, token] != -np.inf
        ]
        found += sorted(listed, key=lambda one: -one[3])[:n]
    return found


def assert_best(kind, scores, base, bounds, n, tolerance=1e-12):
    """The right values, at cells that have them, none twice."""
    rows, tokens, values = picks = best_extensions(kind(scores), base, np.array(bounds), n)
    wanted = naive_best(scores, base, bounds, n)
    contests = np.searchsorted(bounds, rows, side="right") - 1
    assert contests.tolist() == [contest for contest, *_ in wanted]
    assert values.dtype == np.float64
    assert values.tolist() == pytest.approx([value for *_, value in wanted], abs=tolerance)
    at = scores[rows, tokens].astype(np.float64) + base[rows]
    assert at.tolist() == pytest.approx(values.tolist(), abs=tolerance)
    assert len(set(zip(rows.tolist(), tokens.tolist(), strict=True))) == len(rows)
    return picks


@both
@given(data=st.data())
@settings(max_examples=30)
def test_the_best_of_any_contests_with_ties_and_impossible_ones(kind, data):
    size = data.draw(st.sampled_from([1, 3, 63, 64, 65, 257, 700]))
    steps = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    bounds = [0, *np.cumsum(steps).tolist()]
    n = data.draw(st.sampled_from([1, 2, 3, 5, 20, 1000]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    few = data.draw(st.sampled_from([1, 3, 50]))  # how many different values
    scores = -rng.integers(few, size=(bounds[-1], size)).astype(float)
    scores[rng.random(scores.shape) < data.draw(st.sampled_from([0.0, 0.5, 0.99, 1.0]))] = -np.inf
    base = -rng.integers(3, size=bounds[-1]).astype(float)
    rows, tokens, _ = assert_best(kind, scores, base, bounds, n)
    if kind is np.copy:  # of equals numpy takes the first
        exact = naive_best(scores, base, bounds, n)
        cells = list(zip(rows.tolist(), tokens.tolist(), strict=True))
        assert cells == [(row, token) for _, row, token, _ in exact]


@both
@pytest.mark.parametrize("size", [1, 5, BLOCK, BLOCK + 1, 20 * BLOCK - 1])
def test_the_best_tokens_of_every_row(kind, size):
    scores = np.random.default_rng(size).normal(size=(4, size))
    scores[1, : size // 2] = -np.inf
    scores[:, -1] = 9.0  # in a last block that may be short
    for n in (1, 2, 5, 300):
        tokens = best_tokens(kind(scores), n)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
        possible = np.take_along_axis(scores, tokens, axis=1) > -np.inf
        assert tokens.shape == (4, min(n, size))
        assert (tokens[possible] == order[possible]).all()
        assert all(len(set(row)) == len(row) for row in tokens.tolist())


def test_of_equals_in_two_blocks_numpy_takes_the_first():
    scores = np.zeros((1, 10 * BLOCK))
    scores[0, [7, BLOCK + 3, BLOCK + 5]] = 1, 2, 1
    assert best_tokens(scores, 2).tolist() == [[BLOCK + 3, 7]]


def drawn_counts(kind, log_probs, truncation, points):
    """How many of so many evenly spaced numbers in [0, 1) give each token: its probability, to 1 / points."""
    uniforms = (np.arange(points) + 0.5) / points
    drawn = draw_tokens(kind(np.repeat(log_probs[None], points, axis=0)), uniforms, truncation)
    return np.bincount(drawn, minlength=len(log_probs))


CUTS = [
    (Truncation(), []),
    (Truncation(0.3), [("Temperature", 0.3)]),
    *((Truncation(1.0, "top_k", k), [("TopK", k)]) for k in (1, 7, 500)),
    *((Truncation(1.0, "top_p", p), [("TopP", p)]) for p in (0.05, 0.9)),
    *((Truncation(1.0, "min_p", p), [("MinP", p)]) for p in (0.01, 1.0)),
    *((Truncation(1.0, "epsilon", e), [("Epsilon", e)]) for e in (0.001, 0.9)),
    (Truncation(0.5, "top_k", 5), [("Temperature", 0.5), ("TopK", 5)]),
    (Truncation(2.0, "top_p", 0.8), [("Temperature", 2.0), ("TopP", 0.8)]),
    (Truncation(2.0, "min_p", 0.1), [("Temperature", 2.0), ("MinP", 0.1)]),
    (Truncation(2.0, "epsilon", 0.02), [("Temperature", 2.0), ("Epsilon", 0.02)]),
]


@both
@pytest.mark.parametrize(("truncation", "warpers"), CUTS, ids=str)
def test_a_token_is_drawn_with_the_probability_that_transformers_gives_it(truncation, warpers, kind):
    points = 600
    for seed, vocab in enumerate((3, 130)):
        logits = np.random.default_rng(seed).normal(size=vocab) * 2
        log_probs = logits - np.logaddexp.reduce(logits)
        wanted = warped(*warpers)(np.exp(log_probs)) * points
        counts = drawn_counts(kind, log_probs, truncation, points)
        assert np.abs(counts - wanted).max() < 1 + 1e-6
        assert not counts[wanted == 0].any()
        assert counts[wanted > 1.01].all()


@both
def test_ties_of_the_last_of_the_top_k_all_stay_as_in_transformers(kind):
    probabilities = np.zeros(70)
    probabilities[[0, 1, 2, 3, 69]] = 0.4, 0.15, 0.15, 0.15, 0.15
    with np.errstate(divide="ignore"):
        log_probs = np.log(probabilities)
    wanted = warped(("TopK", 2))(probabilities)
    assert (wanted > 0).sum() == 5
    assert drawn_counts(kind, log_probs, Truncation(1.0, "top_k", 2), 1000) == pytest.approx(
        wanted * 1000, abs=1
    )


def kept(kind, log_probs, *cut):
    masses = kind(np.exp(log_probs - log_probs.max())[None])
    return np.flatnonzero(np.asarray(truncated(masses, Truncation(1.0, *cut)))[0]).tolist()


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_nucleus_is_the_smallest_there_is_and_of_equal_tokens_the_first_stay(kind, dtype):
    for n, p, size in [(10, 0.5, 5), (10, 0.7, 7), (10, 0.9, 9), (10, 0.51, 6), (10, 0.05, 1), (3, 1 / 3, 1)]:
        log_probs = np.full(n, -np.log(n), dtype=dtype)
        assert kept(kind, log_probs, "top_p", p) == list(range(size))
        if dtype == np.float32:  # as many as in transformers; in float64 0.1 is more than 1 - 0.9 there
            assert (warped(("TopP", p))(np.exp(log_probs)) > 0).sum() == size
    uneven = np.log(np.array([0.1, 0.2, 0.2, 0.3, 0.2], dtype=dtype))
    assert [kept(kind, uneven, "top_p", p) for p in (0.3, 0.5, 0.6, 0.7, 0.75)] == [
        [3],
        [1, 3],
        [1, 2, 3],
        [1, 2, 3],
        [1, 2, 3, 4],
    ]


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_nucleus_of_everything_cuts_nothing_off(kind, dtype):
    log_probs = np.linspace(0, -60, 5000).astype(dtype)
    assert len(kept(kind, log_probs, "top_p", 1.0)) == 5000


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("vocab", [1, 64, 65, 1000])
def test_only_tokens_with_mass_are_drawn_the_first_at_0_and_the_last_just_below_1(kind, dtype, vocab):
    rng = np.random.default_rng(vocab)
    scores = rng.normal(size=(40, vocab)).astype(dtype) * 3
    scores[rng.random(scores.shape) < 0.7] = -np.inf
    scores[:10, : vocab // 2] = -np.inf  # whole blocks without mass, in front
    scores[10:20, (vocab + 1) // 2 :] = -np.inf  # and behind
    scores[np.arange(40), rng.integers(vocab, size=40)] = 0.0
    possible = [np.flatnonzero(row > -np.inf) for row in scores]
    first, last = (draw_tokens(kind(scores), np.full(40, u), Truncation()) for u in (0.0, BELOW_1))
    assert first.tolist() == [int(row[0]) for row in possible]
    if dtype == np.float64:  # in float32 the sum of a block may round past its last token
        assert last.tolist() == [int(row[-1]) for row in possible]
    for truncation in (Truncation(), Truncation(2.0, "top_p", 0.95), Truncation(1.0, "top_k", 3)):
        for uniforms in (rng.random(40), np.full(40, BELOW_1), rng.random(40) * 1e-18):
            drawn = draw_tokens(kind(scores), uniforms, truncation)
            assert (scores[np.arange(40), drawn] > -np.inf).all()


@both
def test_where_nothing_can_be_drawn_there_is_no_token(kind):
    rows = kind(np.array([[-1.0, -2.0, -1.5], [-np.inf] * 3]))
    for truncation in (
        Truncation(),
        Truncation(1.0, "top_k", 2),
        Truncation(1.0, "top_p", 0.5),
        Truncation(2.0, "min_p", 0.1),
    ):
        drawn = draw_tokens(rows, np.array([0.5, 0.5]), truncation)
        assert drawn[0] >= 0
        assert drawn[1] == -1


@both
def test_a_high_temperature_reaches_tokens_however_improbable(kind):
    # -800 / 1000 = -0.8: probabilities 0.69 and 0.31
    wanted = np.exp([0.0, -0.8]) / np.exp([0.0, -0.8]).sum()
    counts = drawn_counts(kind, np.array([0.0, -800.0]), Truncation(1000.0), 1000)
    assert counts == pytest.approx(wanted * 1000, abs=1)


def test_float32_draws_nearly_always_what_float64_draws():
    rng = np.random.default_rng(3)
    scores, uniforms = rng.normal(size=(500, 3000)) * 2, rng.random(500)
    double, single, plain = (
        draw_tokens(array, uniforms, Truncation())
        for array in (torch.from_numpy(scores), torch.from_numpy(scores).float(), scores)
    )
    # a number lands elsewhere if it is within rounding, some 1e-7 of the mass, of one of two edges
    assert (double != single).sum() <= 4
    assert (abs(double - single) <= 1).all()
    assert double.tolist() == plain.tolist()


def exact_perturbation(mpmath, scores, exponentials, proposal, perturbed):
    """Kool et al. (2019), appendix B.3: -log(exp(-T) - exp(-Z) + exp(-G)), in 80 digits."""
    with mpmath.workdps(80):
        normaliser = mpmath.log(sum(mpmath.exp(one) for one in scores))
        children = [mpmath.mpf(one) - normaliser + mpmath.mpf(proposal) for one in scores]
        gumbels = [c - mpmath.log(mpmath.mpf(e)) for c, e in zip(children, exponentials, strict=True)]
        largest = max(gumbels)
        return children, [
            -mpmath.log(mpmath.exp(-mpmath.mpf(perturbed)) - mpmath.exp(-largest) + mpmath.exp(-g))
            for g in gumbels
        ]


@both
@pytest.mark.parametrize("n", [1, 6, 20])
@pytest.mark.parametrize("spread", [0.01, 10.0])
def test_perturbed_children_are_the_best_of_the_formula(kind, spread, n):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(4, 20)) * spread - 3.0  # not normalised
    exponentials = rng.standard_exponential((4, 20))
    proposal = -rng.exponential(size=4) * 20
    perturbed = proposal + np.array([40.0, -40.0, 3.0, -1.0])
    tokens, children, values = perturb(kind(scores), exponentials, proposal, perturbed, n)
    for i in range(4):
        exact = exact_perturbation(mpmath, scores[i], exponentials[i], proposal[i], perturbed[i])
        best = sorted(range(20), key=lambda token: exact[1][token], reverse=True)[:n]
        assert tokens[i].tolist() == best
        assert children[i] == pytest.approx([float(exact[0][token]) for token in best], abs=1e-10)
        assert values[i] == pytest.approx([float(exact[1][token]) for token in best], abs=1e-9)


@both
def test_a_row_in_which_nothing_is_possible_has_no_children(kind):
    scores = np.array([[-np.inf] * 5, [0.0] * 5])
    _, children, values = perturb(kind(scores), np.ones((2, 5)), np.zeros(2), np.zeros(2), 3)
    assert np.isneginf(children[0]).all()
    assert np.isneginf(values[0]).all()
    assert values[1].tolist() == [0.0] * 3


@both
@given(data=st.data())
@settings(max_examples=30)
def test_the_largest_child_has_its_parents_value_and_none_has_more(kind, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    size = data.draw(st.integers(1, 90))
    scores = rng.normal(size=(5, size)) * data.draw(st.sampled_from([0.0, 1e-3, 1.0, 30.0]))
    scores[rng.random(scores.shape) < data.draw(st.sampled_from([0.0, 0.6]))] = -np.inf
    scores[np.arange(5), rng.integers(size, size=5)] = 0.0
    exponentials = rng.standard_exponential((5, size))
    proposal = -rng.exponential(size=5) * data.draw(st.sampled_from([0.0, 1.0, 200.0]))
    perturbed = proposal + rng.gumbel(size=5)
    tokens, children, values = perturb(kind(scores), exponentials, proposal, perturbed, size)
    assert values[:, 0].tolist() == perturbed.tolist()  # in every bit
    assert not np.isnan(values).any()
    assert (np.isneginf(values) == np.isneginf(np.take_along_axis(scores, tokens, axis=1))).all()
    assert np.logaddexp.reduce(children, axis=1) == pytest.approx(proposal, abs=1e-9)
    possible = (scores > -np.inf).sum(axis=1).min()  # the order of the values is that of the noise
    assert (np.diff(values[:, :possible]) <= 0).all()
