"""100,000 tokens: no tally overflows, and none loses what the equations say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.kernel.both import each_kernel

N = 100_000
EXPONENTS = [0.25, 1.0]


def family(shared: int, voter: int, candidate: int, a: float) -> float:
    """|v and c| / (|v|^(1-a) |c|^a), exact for the exponents that are fractions of whole powers."""
    if a in (0.0, 1.0):
        return float(Fraction(shared, voter if a == 0 else candidate))
    return shared / (voter ** (1 - a) * candidate**a)


@each_kernel
@pytest.mark.parametrize("a", EXPONENTS)
def test_a_hundred_thousand_tokens_are_counted_without_overflow(kernel, a):
    candidates = [list(range(N)), list(range(N // 2)), [0], list(range(N // 2, N + 7))]
    voters = [list(range(N)), list(range(0, N, 3)), [0], list(range(N - 5, 2 * N))]
    weights = [0.4, 0.3, 0.2, 0.1]
    index = kernel.Index(candidates, "ids", [1], True, True)
    index.add(voters)
    sets = [set(v) for v in voters], [set(c) for c in candidates]
    expected = [
        math.fsum(w * family(len(v & c), len(v), len(c), a) for w, v in zip(weights, sets[0], strict=True))
        for c in sets[1]
    ]
    np.testing.assert_allclose(index.tally(np.array(weights), a, False), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.array(weights) @ index.grades(a, False), expected, rtol=0, atol=1e-12)


@each_kernel
@pytest.mark.parametrize("a", EXPONENTS)
def test_one_word_a_hundred_thousand_times_is_counted_without_overflow(kernel, a):
    index = kernel.Index([[5] * N, [5], [5] * 300], "ids", [1], True, True)
    weights = np.array([1.0])
    index.add([[5] * N])
    expected = [1.0, family(1, N, 1, a), family(300, N, 300, a)]
    np.testing.assert_allclose(index.tally(weights, a, False), expected, rtol=0, atol=1e-12)


@each_kernel
@pytest.mark.parametrize("a", EXPONENTS)
def test_one_long_voter_does_not_blur_the_count_of_many_short_ones(kernel, a):
    # the unit of a tally must not depend on the longest voter so much that 10,000 roundings show
    short = 10_000
    index = kernel.Index(["w", "x"], "space", [1], False, True)
    index.add(["w"] * short + [" ".join(map(str, range(N)))])
    weights = np.full(short + 1, 1 / (short + 1))
    expected = float(Fraction(short, short + 1))
    np.testing.assert_allclose(index.tally(weights, a, False), [expected, 0.0], rtol=0, atol=1e-12)


@each_kernel
def test_bleu_and_chrf_of_long_texts_stay_finite(kernel):
    text = " ".join(map(str, range(N // 2)))
    words = kernel.Index([text, text + " x"], "space", [1, 2, 3], True, False)
    for formula in ("bleu", "smoothed_bleu"):
        grades = words.grades(0.0, True, formula)
        assert grades[0, 0] == grades[1, 1] == 1.0
        assert 0.9999 < grades[1, 0] < 1
    letters = kernel.Index([text[:N]], "chars", [1, 2], True, False)
    assert letters.grades(2.0, True, "chrf")[0, 0] == pytest.approx(1.0, abs=1e-15)
