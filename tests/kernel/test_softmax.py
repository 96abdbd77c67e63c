"""Weights by probability: compiled and plain agree, and both with the definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.kernel import plain

compiled = pytest.importorskip("rangevote._kernels", reason="the compiled kernels were not built")
kernels = pytest.mark.parametrize("kernel", [plain, compiled], ids=["plain", "compiled"])

logprobs = st.lists(st.floats(-2000, 0) | st.just(-math.inf), max_size=40)


@given(logprobs, st.sampled_from([0.1, 1.0, 2.0, 1e-300, 1e300]))
def test_both_give_the_same_weights_bit_for_bit(values, temperature):
    column = np.array(values, dtype=np.float64)
    again = [i for i in range(len(values)) if i % 3 == 2]
    ours = plain.softmax(column, temperature, again)
    assert ours.tobytes() == compiled.softmax(column, temperature, again).tobytes()


@kernels
@given(values=st.lists(st.floats(-50, 0), min_size=1, max_size=40))
def test_weights_are_the_normalised_probabilities(kernel, values):
    masses = [Fraction(math.exp(value - max(values))) for value in values]
    expected = [float(mass / sum(masses)) for mass in masses]
    np.testing.assert_allclose(kernel.softmax(np.array(values), 1.0, []), expected, rtol=1e-14, atol=1e-17)
