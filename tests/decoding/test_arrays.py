"""The operations over vocabularies: numpy against plain loops, torch against numpy, both against formulas."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.decoding.arrays import Truncation, arrays_of
from rangevote.decoding.numpy_arrays import NumpyArrays

torch = pytest.importorskip("torch")

from rangevote.decoding.torch_arrays import BLOCK, TorchArrays  # noqa: E402

KINDS = ["numpy", "torch"]
SIZES = [1, 2, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 700]


def arrays(kind):
    return NumpyArrays() if kind == "numpy" else TorchArrays(torch.device("cpu"))


def as_kind(kind, array):
    """A copy of a numpy array for this implementation."""
    return array.copy() if kind == "numpy" else torch.from_numpy(array.copy())


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
    """The right values, at places that have them, none twice."""
    picks = arrays(kind).best(as_kind(kind, scores), base, np.array(bounds), n)
    wanted = naive_best(scores, base, bounds, n)
    contests = np.searchsorted(bounds, picks.rows, side="right") - 1
    assert contests.tolist() == [contest for contest, *_ in wanted]
    assert picks.values.dtype == np.float64
    assert picks.values.tolist() == pytest.approx([value for *_, value in wanted], abs=tolerance)
    at = scores[picks.rows, picks.tokens].astype(np.float64) + base[picks.rows]
    assert at.tolist() == pytest.approx(picks.values.tolist(), abs=tolerance)
    assert len(set(zip(picks.rows.tolist(), picks.tokens.tolist(), strict=True))) == len(picks.rows)
    return picks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "bounds", [[0, 1], [0, 3], [0, 2, 4, 6], [0, 1, 2], [0, 1, 4], [0, 5, 6, 8]], ids=str
)
def test_the_best_of_every_contest(kind, size, bounds):
    rng = np.random.default_rng(size)
    scores = rng.normal(size=(bounds[-1], size))
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    base = rng.normal(size=bounds[-1])
    for n in (1, 2, 7, 300):
        picks = assert_best(kind, scores, base, bounds, n)
        exact = naive_best(scores, base, bounds, n)
        assert picks.rows.tolist() == [row for _, row, _, _ in exact]  # without ties there is one answer
        assert picks.tokens.tolist() == [token for _, _, token, _ in exact]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60)
def test_the_best_of_any_contests_with_ties_and_impossible_ones(kind, data):
    size = data.draw(st.sampled_from([1, 3, 63, 64, 65, 128, 200, 257]))
    steps = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    bounds = [0, *np.cumsum(steps).tolist()]
    n = data.draw(st.sampled_from([1, 2, 3, 5, 20, 1000]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    few = data.draw(st.sampled_from([1, 3, 50]))  # how many different values
    scores = -rng.integers(few, size=(bounds[-1], size)).astype(float)
    scores[rng.random(scores.shape) < data.draw(st.sampled_from([0.0, 0.5, 0.99, 1.0]))] = -np.inf
    base = -rng.integers(3, size=bounds[-1]).astype(float)
    assert_best(kind, scores, base, bounds, n)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_in_float32(kind):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 1000)).astype(np.float32)
    base = rng.normal(size=6) * 100
    for bounds in ([0, 2, 4, 6], [0, 1, 6]):
        for n in (1, 5, 40):
            assert_best(kind, scores, base, bounds, n, tolerance=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1 + 20 * BLOCK, 20 * BLOCK - 1, 20 * BLOCK])
def test_the_last_token_is_chosen_once_also_where_its_block_is_short(kind, size):
    scores = np.random.default_rng(0).normal(size=(3, size))
    scores[:, -1] = [9.0, 8.0, 7.0]
    for bounds in ([0, 3], [0, 1, 3]):
        picks = assert_best(kind, scores, np.zeros(3), bounds, 3)
        assert picks.tokens[0] == size - 1
    tokens, _ = arrays(kind).top(as_kind(kind, scores), 3)
    assert (tokens == size - 1).sum(axis=1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("n", [1, 4, 17])
def test_of_equals_numpy_takes_the_first(n):
    scores = np.zeros((3, 20))
    scores[:, 7] = 1.0
    picks = NumpyArrays().best(scores, np.zeros(3), np.array([0, 3]), n)
    order = sorted(range(60), key=lambda place: (-scores.ravel()[place], place))[:n]
    assert (picks.rows * 20 + picks.tokens).tolist() == order


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [3, 64, 65, 1000])
@pytest.mark.parametrize("bounds", [[0, 2, 4], [0, 1, 4]], ids=str)
@pytest.mark.parametrize("n", [1, 3, 9])
def test_nan_comes_back(kind, size, bounds, n):
    rng = np.random.default_rng(size)
    for nans in (1, 2, size):
        scores = rng.normal(size=(4, size))
        scores[3, rng.choice(size, nans, replace=False)] = np.nan
        picks = arrays(kind).best(as_kind(kind, scores), np.zeros(4), np.array(bounds), n)
        back = np.isnan(picks.values)
        assert back.sum() == min(n, nans)
        assert np.isnan(scores[picks.rows[back], picks.tokens[back]]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_the_top_of_every_row(kind, size):
    rng = np.random.default_rng(size)
    scores = rng.normal(size=(4, size))
    scores[1, : size // 2] = -np.inf
    for n in (1, 2, 5, 300, 1000):
        tokens, values = arrays(kind).top(as_kind(kind, scores), n)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
        assert tokens.shape == values.shape == (4, min(n, size))
        assert values == pytest.approx(np.take_along_axis(scores, order, axis=1), abs=0)
        possible = values > -np.inf
        assert (tokens[possible] == order[possible]).all()
        for row in tokens.tolist():
            assert len(set(row)) == len(row)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [5, 64, 200, 1000])
def test_the_top_of_a_row_has_its_nan(kind, size):
    scores = np.random.default_rng(0).normal(size=(2, size))
    scores[1, 3] = np.nan
    for n in (1, 2, 5):
        tokens, values = arrays(kind).top(as_kind(kind, scores), n)
        assert np.isnan(values[1]).sum() == 1
        assert tokens[1][np.isnan(values[1])] == [3]
        assert not np.isnan(values[0]).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_places_are_read_and_forbidden(kind, dtype):
    scores = np.random.default_rng(0).normal(size=(5, 70)).astype(dtype)
    rows, tokens = np.array([0, 4, 4, 2]), np.array([69, 0, 64, 2])
    ours = as_kind(kind, scores)
    values = arrays(kind).at(ours, rows, tokens)
    assert values.dtype == np.float64
    assert values.tolist() == scores[rows, tokens].astype(np.float64).tolist()
    arrays(kind).forbid(ours, rows, tokens)
    wanted = scores.copy()
    wanted[rows, tokens] = -np.inf
    assert np.array_equal(np.asarray(ours), wanted)
    nothing = np.zeros(0, dtype=np.int64)
    arrays(kind).forbid(ours, nothing, nothing)
    assert np.array_equal(np.asarray(ours), wanted)
    assert arrays(kind).at(ours, nothing, nothing).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_taken_and_zeros_made(kind):
    array = np.random.default_rng(0).normal(size=(5, 3))
    ours = arrays(kind)
    assert np.array_equal(ours.numpy(ours.take(as_kind(kind, array), np.array([4, 0, 0]))), array[[4, 0, 0]])
    assert ours.numpy(ours.take(as_kind(kind, array), np.zeros(0, dtype=np.int64))).shape == (0, 3)
    zeros = ours.numpy(ours.zeros(as_kind(kind, array)))
    assert zeros.dtype == np.float32
    assert np.array_equal(zeros, np.zeros((5, 3)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_nan_are_found_and_those_with_impossible_tokens_are_not_taken_for_them(kind, dtype):
    scores = np.random.default_rng(0).normal(size=(6, 300)).astype(dtype) - 1e3
    scores[1, 299] = scores[4] = np.nan
    scores[2, :200] = scores[3] = scores[1, :5] = -np.inf
    assert arrays(kind).unsound(as_kind(kind, scores)).tolist() == [False, True, False, False, True, False]


def test_the_operations_are_those_of_the_models_arrays():
    assert isinstance(arrays_of(np.zeros(3)), NumpyArrays)
    assert isinstance(arrays_of(torch.zeros(3)), TorchArrays)


TRUNCATIONS = [
    Truncation(),
    Truncation(0.7),
    Truncation(1.5, top_k=3),
    Truncation(top_k=70),
    Truncation(top_p=0.8),
    Truncation(2.0, top_p=0.95),
    Truncation(min_p=0.2),
    Truncation(epsilon=0.01),
]


@given(st.data())
def test_torch_draws_what_numpy_draws(data):
    size = data.draw(st.sampled_from([1, 3, 63, 64, 65, 128, 129, 400]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = rng.normal(size=(30, size)) * data.draw(st.sampled_from([0.1, 1.0, 5.0]))
    scores[rng.random(scores.shape) < data.draw(st.sampled_from([0.0, 0.5, 0.95]))] = -np.inf
    scores[np.arange(30), rng.integers(size, size=30)] = 0.0
    uniforms, truncation = rng.random(30), data.draw(st.sampled_from(TRUNCATIONS))
    plain = NumpyArrays().draw(scores.copy(), uniforms, truncation)
    assert arrays("torch").draw(torch.from_numpy(scores), uniforms, truncation).tolist() == plain.tolist()


def test_float32_draws_nearly_always_what_float64_draws():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(2000, 3000)) * 2
    uniforms = rng.random(2000)
    double = arrays("torch").draw(torch.from_numpy(scores), uniforms, Truncation())
    single = arrays("torch").draw(torch.from_numpy(scores).float(), uniforms, Truncation())
    # a number lands elsewhere if it is within rounding, some 1e-7 of the mass, of one of two edges
    assert (double != single).sum() <= 10
    assert (abs(double - single) <= 1).all()


def test_inverting_the_sum_is_what_is_drawn():
    rng = np.random.default_rng(4)
    for size in (3, 64, 200):
        scores = rng.normal(size=(50, size))
        uniforms = rng.random(50)
        for kind in KINDS:
            drawn = arrays(kind).draw(as_kind(kind, scores), uniforms, Truncation())
            for row, uniform, token in zip(scores, uniforms, drawn.tolist(), strict=True):
                shares = np.exp(row) / np.exp(row).sum()
                assert shares[:token].sum() <= uniform + 1e-12
                assert shares[: token + 1].sum() > uniform - 1e-12


def exact_perturbation(mpmath, scores, exponentials, proposal, perturbed):
    """Kool et al. (2019), appendix B.3: -log(exp(-T) - exp(-Z) + exp(-G)), in 80 digits."""
    with mpmath.workdps(80):
        normaliser = mpmath.log(sum(mpmath.exp(one) for one in scores))
        children = [mpmath.mpf(one) - normaliser + mpmath.mpf(proposal) for one in scores]
        gumbels = [c - mpmath.log(mpmath.mpf(e)) for c, e in zip(children, exponentials, strict=True)]
        largest = max(gumbels)
        return [float(c) for c in children], [
            float(-mpmath.log(mpmath.exp(-mpmath.mpf(perturbed)) - mpmath.exp(-largest) + mpmath.exp(-g)))
            for g in gumbels
        ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.01, 1.0, 10.0])
def test_perturbed_children_are_those_of_the_formula(kind, spread):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(8, 30)) * spread - 3.0  # not normalised
    exponentials = rng.standard_exponential((8, 30))
    proposal, perturbed = -rng.exponential(size=8) * 20, rng.normal(size=8) * 10 - 10
    perturbed[0] = proposal[0] + 40.0
    perturbed[1] = proposal[1] - 40.0
    children, values = arrays(kind).perturb(as_kind(kind, scores), exponentials, proposal, perturbed)
    for i in range(8):
        exact = exact_perturbation(mpmath, scores[i], exponentials[i], proposal[i], perturbed[i])
        assert np.asarray(children)[i] == pytest.approx(exact[0], abs=1e-10)
        assert np.asarray(values)[i] == pytest.approx(exact[1], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60)
def test_the_largest_child_has_its_parents_value_and_none_has_more(kind, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    size = data.draw(st.integers(1, 90))
    scores = rng.normal(size=(5, size)) * data.draw(st.sampled_from([0.0, 1e-3, 1.0, 30.0]))
    scores[rng.random(scores.shape) < data.draw(st.sampled_from([0.0, 0.6]))] = -np.inf
    scores[np.arange(5), rng.integers(size, size=5)] = 0.0
    exponentials = rng.standard_exponential((5, size))
    proposal = -rng.exponential(size=5) * data.draw(st.sampled_from([0.0, 1.0, 200.0]))
    perturbed = proposal + rng.gumbel(size=5)
    children, values = (
        np.asarray(found)
        for found in arrays(kind).perturb(as_kind(kind, scores), exponentials, proposal, perturbed)
    )
    assert values.max(axis=1).tolist() == perturbed.tolist()  # in every bit
    assert not np.isnan(values).any()
    assert (np.isneginf(values) == np.isneginf(scores)).all()
    assert np.logaddexp.reduce(children, axis=1) == pytest.approx(proposal, abs=1e-9)
    gumbels = children - np.log(exponentials)
    order = np.argsort(-gumbels, axis=1, kind="stable")  # the order of the values is that of the noise
    assert (
        np.diff(np.take_along_axis(values, order, axis=1)[:, : (scores > -np.inf).sum(axis=1).min()]) <= 0
    ).all()


def test_torch_and_numpy_perturb_alike_in_float32():
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(6, 200)).astype(np.float32)
    exponentials = rng.standard_exponential((6, 200))
    proposal, perturbed = -rng.exponential(size=6), rng.gumbel(size=6)
    plain = NumpyArrays().perturb(scores, exponentials, proposal, perturbed)
    ours = arrays("torch").perturb(torch.from_numpy(scores), exponentials, proposal, perturbed)
    for one, other in zip(ours, plain, strict=True):
        assert one.dtype == torch.float64
        assert one.numpy() == pytest.approx(other, abs=1e-5)
    assert math.isfinite(float(ours[1].sum()))
