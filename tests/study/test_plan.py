"""Random choices and sides: seeded, fair, different for every annotator and item."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from rangevote.study.plan import (
    BLOCK,
    SIDES,
    balanced_sides,
    coin,
    coin_sides,
    draw,
    resolved,
    shuffled,
)

KEYS = [str(number) for number in range(1000)]


def test_a_draw_is_the_hmac_of_its_names_which_do_not_run_together():
    digest = hmac.new(b"7", b"4:side11:annotator-12:42", hashlib.sha256).digest()
    assert draw(7, "side", "annotator-1", 42) == int.from_bytes(digest[:16], "big")
    assert draw(1, "ab", "c") != draw(1, "a", "bc")


@pytest.mark.parametrize("name", SIDES)
def test_sides_depend_on_seed_annotator_and_item_alone(name):
    sides = SIDES[name]
    assert sides(7, "annotator-1", KEYS) == sides(7, "annotator-1", KEYS)
    assert sides(7, "annotator-1", KEYS) != sides(8, "annotator-1", KEYS)
    assert sides(7, "annotator-1", KEYS) != sides(7, "annotator-2", KEYS)


def test_coins_are_fair_and_do_not_depend_on_the_position_of_an_item():
    swapped = coin_sides(7, "annotator-1", KEYS)
    assert 440 < sum(swapped) < 560  # 3.8 standard deviations
    assert coin_sides(7, "annotator-1", KEYS[::-1]) == swapped[::-1]
    both = sum(a == b for a, b in zip(swapped, coin_sides(7, "annotator-2", KEYS), strict=True))
    assert 440 < both < 560  # two annotators agree about half of the time


def test_balanced_sides_swap_half_of_every_block_and_of_an_odd_rest_as_far_as_can_be():
    swapped = balanced_sides(7, "annotator-1", KEYS)
    assert all(sum(swapped[start : start + BLOCK]) == BLOCK // 2 for start in range(0, 1000, BLOCK))
    assert len({tuple(swapped[start : start + BLOCK]) for start in range(0, 1000, BLOCK)}) > 50
    assert {sum(balanced_sides(seed, "annotator-1", KEYS[:3])) for seed in range(20)} == {1, 2}


def test_an_answer_is_turned_round_with_the_sides():
    for shown in (-2, -1, 0, 1, 2):
        assert resolved(shown, False) == shown == -resolved(shown, True)


def test_shuffling_keeps_all_and_is_the_same_again():
    assert sorted(shuffled(range(100), 3, "x")) == list(range(100))
    assert shuffled(range(100), 3, "x") == shuffled(reversed(range(100)), 3, "x") != list(range(100))
    assert {coin(seed, "x") for seed in range(20)} == {True, False}
