"""Learning rates against the formulas of the papers."""

from __future__ import annotations

import math

import pytest
from experiments.training.schedules import SCHEDULES, constant, cosine, inverse_sqrt


def test_the_inverse_square_root_is_the_formula_of_vaswani_et_al():
    size, warmup = 512, 4000
    peak = size**-0.5 * warmup**-0.5
    for step in (1, 100, 4000, 4001, 100_000):
        theirs = size**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert peak * inverse_sqrt(step, 10**6, warmup) == pytest.approx(theirs, rel=1e-12)


def test_the_cosine_falls_from_one_to_nothing_at_the_last_step():
    shares = [cosine(step, 100, 0) for step in range(1, 101)]
    assert shares == sorted(shares, reverse=True)
    assert cosine(50, 100, 0) == pytest.approx(0.5)
    assert cosine(25, 100, 0) == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert cosine(100, 100, 0) == pytest.approx(0)


@pytest.mark.parametrize("schedule", SCHEDULES.values())
def test_every_schedule_rises_evenly_to_one_and_never_beyond(schedule):
    assert [schedule(step, 100, 10) for step in (1, 5, 10)] == pytest.approx([0.1, 0.5, 1.0])
    assert all(0 <= schedule(step, 100, 10) <= 1 for step in range(1, 101))


def test_a_constant_rate_stays():
    assert {constant(step, 100, 0) for step in range(1, 101)} == {1.0}
