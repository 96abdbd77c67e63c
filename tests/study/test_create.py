"""What a study is made of."""

from __future__ import annotations

from collections import Counter

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.study.create import StudyOptions, make_study
from rangevote.study.plan import Pair
from tests.study.samples import SYSTEMS, pairs, study_of


def keys(study):
    return [pair.key for pair in study.pairs]


def test_five_hundred_items_are_drawn_unless_told_otherwise():
    study = study_of(620)
    assert len(study.pairs) == study.plan.items == study.plan.stop == 500
    assert study.plan.available == 620
    assert keys(study) == sorted(keys(study), key=int)
    assert keys(study) == keys(study_of(620)) != keys(study_of(620, seed=1))
    assert study_of(7).plan.items == 7


def test_every_annotator_sees_every_item_in_an_order_of_their_own():
    study = study_of(30, annotators=3)
    orders = [[a.pair for a in study.assignments if a.annotator == number] for number in range(3)]
    assert all(sorted(order) == list(range(30)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    sides = [{a.pair: a.swapped for a in study.assignments if a.annotator == number} for number in range(3)]
    assert sides[0] != sides[1] != sides[2]


def test_items_can_be_dealt_out_so_that_some_of_the_annotators_judge_each():
    study = study_of(30, annotators=3, per_item=2, checks=2)
    times = Counter(a.pair for a in study.assignments)
    items = [times[number] for number, pair in enumerate(study.pairs) if pair.expected is None]
    assert set(items) == {2}
    assert Counter(a.annotator for a in study.assignments) == {0: 22, 1: 22, 2: 22}
    assert study.plan.stop == 60


def test_links_have_128_bits_and_handles_are_unique():
    one, other = study_of(5, annotators=2), study_of(5, annotators=2)
    tokens = [a.token for study in (one, other) for a in study.annotators]
    assert len(set(tokens)) == 4
    assert {len(token) for token in tokens} == {22}  # 16 bytes in base64
    handles = {a.handle for study in (one, other) for a in study.assignments}
    assert len(handles) == 20


def test_identical_outputs_are_ties_that_nobody_is_shown_unless_asked_for():
    study = study_of([*pairs(4), Pair("x", "same", "same")])
    assert study.plan.automatic == 1
    assert study.plan.stop == 4
    assert "x" in keys(study)
    assert all(study.pairs[a.pair].key != "x" for a in study.assignments)
    study = study_of([*pairs(4), Pair("x", "same", "same")], show_identical=True)
    assert (study.plan.automatic, study.plan.stop, len(study.assignments)) == (0, 5, 5)


def test_attention_checks_have_one_broken_side_or_two_equal_ones():
    study = study_of(20, items=10, checks=6)
    checks = [pair for pair in study.pairs if pair.expected is not None]
    assert [pair.expected == 0 for pair in checks] == [False, True] * 3
    texts = {text for pair in pairs(20) for text in (pair.first, pair.second)}
    for pair in checks:
        intact, other = (pair.first, pair.second) if pair.expected != 1 else (pair.second, pair.first)
        assert intact in texts
        assert other == intact if pair.expected == 0 else other not in texts
        assert any(sorted(other.split()) == sorted(text.split()) for text in texts)
    drawn = {pair.key for pair in study.pairs if pair.expected is None}
    assert len(drawn) == 10
    intact = {pair.second if pair.expected == 1 else pair.first for pair in checks}
    assert intact.isdisjoint({p.first for p in study.pairs if p.key in drawn})  # made of what was not drawn


def test_a_check_does_not_take_the_key_of_an_item_and_users_have_checks_of_their_own():
    named = [Pair("check-1", "one two three", "four five six"), *pairs(3)]
    assert len(set(keys(study_of(named, checks=1)))) == 5
    study = study_of([*pairs(3), Pair("mine", "good", "bad", expected=-1)])
    assert (study.plan.items, study.plan.checks, study.plan.stop) == (3, 1, 3)


def test_items_that_are_shown_twice_come_back_later_to_those_who_had_them():
    study = study_of([*pairs(60), Pair("1 again", "x", "y")], items=100, annotators=3, per_item=2, repeats=12)
    again = {number: pair for number, pair in enumerate(study.pairs) if pair.again is not None}
    assert len(again) == study.plan.repeats == 12
    assert len(set(keys(study))) == len(study.pairs)  # no item's name is taken
    assert study.plan.stop == 2 * 61
    swapped = set()
    for who in range(3):
        mine = {study.pairs[a.pair].key: a for a in study.assignments if a.annotator == who}
        for pair in again.values():
            assert (pair.key in mine) == (pair.again in mine)
            if pair.key in mine:
                first, second = mine[pair.again], mine[pair.key]
                assert second.position - first.position >= sum(p.key in mine for p in again.values())
                swapped.add(first.swapped == second.swapped)
        assert sorted(a.position for a in mine.values()) == list(range(len(mine)))
    assert swapped == {True, False}  # sides are set anew
    originals = {pair.key: pair for pair in study.pairs}
    for pair in again.values():
        assert (pair.first, pair.second) == (originals[pair.again].first, originals[pair.again].second)
        assert not pair.counts


def test_what_nobody_is_shown_is_not_shown_twice():
    study = study_of([*pairs(2), Pair("x", "same", "same")], repeats=2)
    assert {pair.again for pair in study.pairs} == {None, "1", "2"}
    with pytest.raises(UsageError, match="--repeats is 3; it must be from 0 to the 2 items that are shown"):
        study_of([*pairs(2), Pair("x", "same", "same")], repeats=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotators": 2, "per_item": 3}, "--per-item is 3; there are only 2 annotators"),
        ({"pass_share": 0.5}, "--pass-share needs attention checks"),
        *(({"completion_code": code}, "--completion-code must be") for code in ("", "  ", "a\nb", "x" * 201)),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        study_of(5, **options)


def test_a_study_needs_pairs_and_checks_need_outputs_that_can_be_scrambled():
    with pytest.raises(DataError, match="no pairs of outputs"):
        study_of([])
    with pytest.raises(DataError, match="too few or too short to make attention checks"):
        study_of([Pair("1", "a", "b")], checks=1)


def test_the_item_for_practice_is_the_users_or_one_that_was_not_drawn_or_made_up():
    own = Pair("own", "one", "other", practice=True)
    study = study_of([*pairs(3), own])
    assert study.practice == own
    assert keys(study) == ["1", "2", "3"]
    study = study_of(20, items=10, checks=4)
    assert study.practice.practice
    assert study.practice.key not in keys(study)
    assert study.plan.available == 20
    texts = {pair.first for pair in study.pairs}
    assert study.practice.first not in texts  # no check is made of it either
    study = study_of([*pairs(2), Pair("practice", "a", "b")])
    assert study.practice.key == "practice'"
    assert len(study.assignments) == 3
    with pytest.raises(DataError, match="'own' and 'two' are both for practice; there can be one"):
        study_of([*pairs(3), own, Pair("two", "one", "other", practice=True)])


def test_checks_show_outputs_of_either_system_and_prefer_items_that_were_not_drawn():
    study = study_of(40, items=25, checks=24)
    checks = [pair for pair in study.pairs if pair.expected is not None]
    intact = [pair.second if pair.expected == 1 else pair.first for pair in checks]
    of_first = {pair.first for pair in pairs(40)}
    assert 4 < sum(text in of_first for text in intact) < 20
    drawn = [pair for pair in study.pairs if pair.expected is None]
    seen = {text for pair in drawn for text in (pair.first, pair.second)}
    spare = [text not in seen for text in intact]
    assert spare == [True] * 14 + [False] * 10  # one of the 15 is for practice


def test_the_seed_is_drawn_unless_it_is_given():
    seeds = {make_study(SYSTEMS, pairs(3), StudyOptions()).plan.seed for _ in range(5)}
    assert len(seeds) == 5
    assert max(seeds) > 2**53
    assert make_study(SYSTEMS, pairs(3), StudyOptions(seed=0)).plan.seed == 0
