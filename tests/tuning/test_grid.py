"""Which settings are tried."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.errors import UsageError
from rangevote.similarity import PRESETS
from rangevote.tuning.grid import Setting, grid


def test_the_usual_grid_has_a_hundred_settings_with_the_default_and_blend_among_them():
    found = grid()
    assert len(found) == len(set(found)) == 100
    assert Setting("overlap_2") in found
    assert Setting(*PRESETS["blend"]) in found


def test_every_setting_of_the_usual_grid_is_one_that_elect_takes():
    for setting in grid(tokenize=["words", "13a"]):
        result = rv.elect(["a b", "a c", "b"], [-1.0, -1.5, -2.0], **setting.options)
        assert f"sim:{setting.similarity}|on:{setting.tokenize}" in result.signature
        assert f"|T:{setting.temperature:g}|" in result.signature


def test_exponents_are_for_ngram_measures_that_have_none_in_their_name():
    found = grid(["overlap_1-2", "precision_1@0.5", "states", "chrf"], [0, 1], [1])
    assert [one.name for one in found] == [
        "overlap_1-2",
        "overlap_1-2@1",
        "precision_1@0.5",
        "states",
        "chrf",
    ]


def test_a_preset_is_one_setting():
    assert grid(["blend"], [0, 1], [1, 4]) == [Setting("overlap_1-4@0.25", 2.0)]


def test_what_is_named_twice_is_tried_once():
    assert len(grid(["overlap_2", "overlap_2@0.5", "overlap_2"], [0, 0.5], [1, 1.0])) == 2


def test_a_name_tells_what_is_not_usual():
    assert Setting("overlap_2", 0.5, "13a").name == "overlap_2, T = 0.5, 13a"
    assert Setting("overlap_2", rule="most_likely").name == "most_likely"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"similarities": ["overlap_9x"]}, "overlap"),
        ({"similarities": ["nothing"]}, "unknown similarity 'nothing'"),
        ({"similarities": "overlap_2"}, "must be a list"),
        ({"similarities": []}, "must be a list with something in it"),
        ({"exponents": [1.5]}, "exponents go from 0 to 1, got 1.5"),
        ({"exponents": [True]}, "True is not a number"),
        ({"temperatures": [0]}, "temperatures are numbers above 0, got 0"),
        ({"temperatures": ["1"]}, "'1' is not a number"),
        ({"tokenize": ["syllables"]}, "syllables"),
    ],
)
def test_what_cannot_be_tried_is_refused(options, told):
    with pytest.raises(UsageError, match=told):
        grid(**options)
