"""Krippendorff's alpha, against the worked example of his paper of 2011."""

from __future__ import annotations

import pytest

from rangevote.study.agreement import DISTANCES, alpha, nominal, share_agreeing

_ = None
#: "Computing Krippendorff's Alpha-Reliability", section C: four observers, twelve units, five values.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


@pytest.mark.parametrize(("name", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_worked_example_of_krippendorff_comes_out(name, expected):
    assert alpha(UNITS, DISTANCES[name]) == pytest.approx(expected, abs=5e-4)


def test_a_unit_with_one_value_says_nothing():
    assert alpha(UNITS) == alpha([unit for unit in UNITS if len(unit) > 1])


def test_two_observers_on_binary_data_match_the_papers_section_a():
    """Section A of the same paper: ten articles, two observers, alpha = 0.095."""
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert alpha(list(zip(meg, owen, strict=True)), nominal) == pytest.approx(0.095, abs=5e-4)


def test_perfect_agreement_is_one():
    assert alpha([[1, 1], [2, 2], [-2, -2]]) == 1


@pytest.mark.parametrize("units", [[], [[1], [2]], [[0, 0], [0, 0, 0]]])
def test_alpha_is_undefined_without_pairs_or_without_variation(units):
    assert alpha(units) is None


def test_the_share_of_pairs_that_agree_is_counted_over_pairs():
    assert share_agreeing([[1, 1, 2], [0, 0]]) == pytest.approx(4 / 8)
    assert share_agreeing([[1], []]) is None
