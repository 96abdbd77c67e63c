"""Pairs from files, random choices and sides, and what a study is made of."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter

import pytest

from rangevote.errors import DataError, UsageError
from rangevote.study.create import StudyOptions, make_study, pairs_of_outputs, read_pairs
from rangevote.study.plan import BLOCK, SIDES, Pair, balanced_sides, coin, coin_sides, draw, shuffled
from tests.study.samples import SYSTEMS, pairs, png, study_of

#: Two pairs that are shown, and one whose outputs are equal.
EQUAL = [*pairs(2), Pair("x", "same", "same")]
OWN = Pair("own", "one", "other", practice=True)


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


def test_links_have_128_bits_handles_are_unique_and_the_seed_is_drawn_unless_it_is_given():
    one, other = (make_study(SYSTEMS, pairs(5), StudyOptions(annotators=2)) for _ in range(2))
    tokens = [a.token for study in (one, other) for a in study.annotators]
    assert len(set(tokens)) == 4
    assert {len(token) for token in tokens} == {22}  # 16 bytes in base64
    assert len({a.handle for study in (one, other) for a in study.assignments}) == 20
    assert one.plan.seed != other.plan.seed
    assert max(one.plan.seed, other.plan.seed) > 2**48  # of 63 bits
    assert make_study(SYSTEMS, pairs(3), StudyOptions(seed=0)).plan.seed == 0


def test_identical_outputs_are_ties_that_nobody_is_shown_unless_asked_for():
    study = study_of(EQUAL)
    assert (study.plan.automatic, study.plan.stop, keys(study)) == (1, 2, ["1", "2", "x"])
    assert {study.pairs[a.pair].key for a in study.assignments} == {"1", "2"}
    study = study_of(EQUAL, show_identical=True)
    assert (study.plan.automatic, study.plan.stop, len(study.assignments)) == (0, 3, 3)


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
    assert {pair.again for pair in study_of(EQUAL, repeats=2).pairs} == {None, "1", "2"}


@pytest.mark.parametrize(
    ("listed", "options", "message"),
    [
        (5, {"annotators": 2, "per_item": 3}, "--per-item is 3; there are only 2 annotators"),
        (5, {"pass_share": 0.5}, "--pass-share needs attention checks"),
        *((5, {"completion_code": c}, "--completion-code must be") for c in ("", "  ", "a\nb", "x" * 201)),
        (EQUAL, {"repeats": 3}, "--repeats is 3; it must be from 0 to the 2 items that are shown"),
        ([], {}, "no pairs of outputs"),
        ([Pair("1", "a", "b")], {"checks": 1}, "too few or too short to make attention checks"),
        ([*EQUAL, OWN, Pair("two", "a", "b", practice=True)], {}, "'own' and 'two' are both for practice"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(listed, options, message):
    with pytest.raises((DataError, UsageError), match=message):
        study_of(listed, **options)


def test_the_item_for_practice_is_the_users_or_one_that_was_not_drawn_or_made_up():
    study = study_of([*pairs(3), OWN])
    assert study.practice == OWN
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


@pytest.fixture
def files(tmp_path):
    """One file of texts, one as `rangevote vote` writes it."""
    (tmp_path / "beam.txt").write_text("a man\na dog\n\n")
    lines = [
        {"id": n, "winner": text, "signature": "x"} for n, text in enumerate(["a tall man", "a dog", "cat"])
    ]
    (tmp_path / "voted.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "source.txt").write_text("ein Mann\nein Hund\neine Katze\n")
    return tmp_path


def systems(folder):
    return {"beam": str(folder / "beam.txt"), "voted": str(folder / "voted.jsonl")}


def loaded(files):
    return files.load_images(make_study(files.systems, files.pairs, StudyOptions()))


def test_outputs_go_together_line_by_line_with_their_sources(files):
    found = pairs_of_outputs(systems(files), source=str(files / "source.txt"))
    assert found.systems == ("beam", "voted")
    assert [(p.key, p.first, p.second, p.source) for p in found.pairs] == [
        ("1", "a man", "a tall man", "ein Mann"),
        ("2", "a dog", "a dog", "ein Hund"),
        ("3", "", "cat", "eine Katze"),
    ]


def test_images_are_found_by_a_list_of_paths(files):
    (files / "images").mkdir()
    (files / "images" / "a.png").write_bytes(png())
    (files / "list.txt").write_text("images/a.png\nimages/a.png\n\n")
    study, images = loaded(pairs_of_outputs(systems(files), images=str(files / "list.txt")))
    [name] = images
    assert [pair.image for pair in study.pairs] == [name, name, None]


def test_images_are_found_in_a_folder_by_ids(files):
    both = dict.fromkeys(("beam", "same"), str(files / "beam.txt"))
    with pytest.raises(UsageError, match="outputs need ids to find their images by"):
        pairs_of_outputs(both, images=str(files))
    both = {}
    for name in ("beam", "voted"):
        lines = [json.dumps({"id": id, "winner": f"{name} {id}"}) for id in ("x", "y")]
        (files / f"{name}.jsonl").write_text("\n".join(lines))
        both[name] = str(files / f"{name}.jsonl")
    (files / "x.png").write_bytes(png())
    with pytest.raises(DataError, match="there is no image for 'y'"):
        pairs_of_outputs(both, images=str(files))
    (files / "y.png").write_bytes(png(colour=(0, 0, 255)))
    assert len(loaded(pairs_of_outputs(both, images=str(files)))[1]) == 2


def write(folder, *lines):
    path = folder / "pairs.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return str(path)


GOOD = {"id": "a", "outputs": {"beam": "x", "voted": "y"}}


def test_pairs_are_read_from_json_lines_in_any_order_of_their_systems(tmp_path):
    path = write(
        tmp_path,
        "\ufeff",  # a byte order mark is let pass
        GOOD | {"source": "s"},
        {"id": 2, "outputs": {"voted": "w", "beam": "v"}},
        {"source": "t", "outputs": {"beam": "p", "voted": "q"}, "check": "voted"},
    )
    found = read_pairs(path)
    assert found.systems == ("beam", "voted")
    assert [(p.key, p.first, p.second, p.source, p.expected) for p in found.pairs] == [
        ("a", "x", "y", "s", None),
        ("2", "v", "w", None, None),
        ("3", "p", "q", "t", 1),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]\n", "pairs.jsonl:2: "),
        ("{\n", "pairs.jsonl:2: "),
        ('{"id": "\\ud800"}\n', "pairs.jsonl:2: "),
        ({"id": 1}, "pairs.jsonl:2: .*outputs"),
        ({"outputs": {"a": "x"}}, "pairs.jsonl:2: outputs: expected the outputs of two systems"),
        ({"outputs": {"a": "x", "b": "y"}}, r"outputs: has the systems \['a', 'b'\]"),
        ({"outputs": {"beam": "x", "voted": 3}}, "outputs.* expected a string"),
        (GOOD | {"id": True}, "id: expected a"),
        (GOOD | {"id": "b", "source": 3}, "source: expected a string"),
        (GOOD | {"id": "b", "check": "other"}, "check: is 'other'; it must name the system .*: beam"),
        (GOOD | {"id": "b", "practice": 1}, "practice: expected true or false"),
        (GOOD | {"id": "b", "practice": True, "check": "tie"}, "practice: .* not both"),
        (GOOD, "'a' was used before, at .*pairs.jsonl:1"),
        (GOOD | {"id": "b", "source": "x" * (2**22 + 1)}, "at most 4,194,304 can be shown"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        read_pairs(write(tmp_path, GOOD, line))


def test_files_without_pairs_are_refused(tmp_path):
    for first in ("a man on a bench\n", "[]\n", "\n\n  a man\n"):
        with pytest.raises(DataError, match=r"pairs.jsonl: has no pairs, .* goes with a second one"):
            read_pairs(write(tmp_path, first))
    with pytest.raises(DataError, match="is empty"):
        read_pairs(write(tmp_path))


def test_a_bad_image_is_named_with_its_line(tmp_path):
    with pytest.raises(DataError, match=r"pairs.jsonl:1: cannot read the image"):
        loaded(read_pairs(write(tmp_path, GOOD | {"image": "missing.png"})))


KEYS = [str(number) for number in range(1000)]


def test_a_draw_is_the_hmac_of_its_names_which_do_not_run_together():
    digest = hmac.new(b"7", b"4:side11:annotator-12:42", hashlib.sha256).digest()
    assert draw(7, "side", "annotator-1", 42) == int.from_bytes(digest[:16], "big")
    assert draw(1, "ab", "c") != draw(1, "a", "bc")


@pytest.mark.parametrize("name", SIDES)
def test_sides_depend_on_seed_annotator_and_item_alone(name):
    one, again, *others = (SIDES[name](*who, KEYS) for who in ((7, "a"), (7, "a"), (8, "a"), (7, "b")))
    assert one == again
    assert one not in others


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


def test_shuffling_keeps_all_and_is_the_same_again():
    assert sorted(shuffled(range(100), 3, "x")) == list(range(100))
    assert shuffled(range(100), 3, "x") == shuffled(reversed(range(100)), 3, "x") != list(range(100))
    assert {coin(seed, "x") for seed in range(20)} == {True, False}
