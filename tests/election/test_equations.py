"""The oracle itself, against values worked out by hand."""

from __future__ import annotations

import pytest

from tests.election import equations


@pytest.mark.parametrize(
    ("v", "c", "n", "overlap", "precision"),
    [
        ("aab", "ab", 1, 1.0, 2 / 3),
        ("ab", "aab", 1, 1.0, 1.0),
        ("abcd", "bcd", 2, 2 / 3, 2 / 3),
        ("abab", "ab", 2, 1 / 2, 1 / 3),
        ("", "ab", 1, 0.0, 0.0),
        ("ab", "", 1, 0.0, 0.0),
        ("", "", 1, 0.0, 0.0),
        ("a", "a", 3, 1.0, 1.0),
    ],
)
def test_equations_2_and_3(v, c, n, overlap, precision):
    assert equations.overlap(v, c, n) == overlap
    assert equations.precision(v, c, n) == precision


def test_the_family_holds_the_papers_measures_and_averages_orders():
    assert equations.family("aab", "ab", [1], 0.0, True) == equations.precision("aab", "ab", 1)
    assert equations.family("aab", "ab", [1], 0.0, False) == equations.overlap("aab", "ab", 1)
    assert equations.family("aab", "ab", [1], 1.0, True) == 1.0
    assert equations.family("abcd", "a", [1], 0.5, False) == 0.5
    assert equations.family("ab", "ab", [1, 2], 0.25, True) == pytest.approx(1.0)
    assert equations.family("ab", "ba", [1, 2], 0.0, True) == 0.5
