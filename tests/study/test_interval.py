"""The exact interval of a share, against scipy and closed forms."""

from __future__ import annotations

import pytest

from rangevote.errors import UsageError
from rangevote.study.interval import at_least, clopper_pearson

COUNTS = [(106, 179), (27, 67), (69, 113), (36, 64), (0, 10), (10, 10), (1, 1), (0, 1), (250, 500), (3, 2000)]


@pytest.mark.parametrize(("wins", "trials"), COUNTS)
def test_the_interval_is_that_of_scipy(wins, trials):
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(wins, trials).proportion_ci(confidence_level=0.95, method="exact")
    assert clopper_pearson(wins, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("trials", [1, 5, 100])
def test_without_wins_the_upper_end_is_known_in_closed_form(trials):
    interval = clopper_pearson(0, trials)
    assert interval.low == 0
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / trials), abs=1e-12)


def test_swapping_wins_and_losses_mirrors_the_interval():
    one, other = clopper_pearson(106, 179), clopper_pearson(73, 179)
    assert one.low == pytest.approx(1 - other.high, abs=1e-12)
    assert one.high == pytest.approx(1 - other.low, abs=1e-12)


def test_the_ends_are_where_the_tails_are_a_fortieth():
    low, high = clopper_pearson(106, 179)
    assert at_least(106, 179, low) == pytest.approx(0.025, abs=1e-9)
    assert 1 - at_least(107, 179, high) == pytest.approx(0.025, abs=1e-9)


def test_without_trials_there_is_no_interval():
    assert clopper_pearson(0, 0) is None


def test_more_wins_than_trials_are_refused():
    with pytest.raises(UsageError, match="3 wins in 2 trials cannot be"):
        clopper_pearson(3, 2)
