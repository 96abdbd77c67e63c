"""Findings: the paper's numbers come out of judgements, and nothing is pooled."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.study.analysis import alpha, clopper_pearson, majority, median, share_agreeing, split
from rangevote.study.store import take_snapshot
from tests.study.samples import findings, judge, judged, record, right_answers, study_file


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(106, 73, 0.0165), (27, 40, 0.142), (69, 44, 0.0235), (36, 28, 0.382)]
)
def test_the_papers_p_values_come_out(better, worse, p):
    """Sections 4.1.4 and 4.2.4; of the last, the paper says only that it is not significant."""
    assert split(better, worse).p == pytest.approx(p, abs=5e-4 if p > 0.1 else 5e-5)


#: The paper's captions: better 106 times, much better 27 of these; worse 73 times, much worse 40 of these.
CAPTIONS = [2] * 27 + [1] * 79 + [0] * 321 + [-1] * 33 + [-2] * 40


def test_the_papers_study_of_captions_comes_out_of_500_judgements(tmp_path):
    result = findings(judged(tmp_path, 500, CAPTIONS))
    assert result.complete
    assert tuple(result.counts.answers.values()) == (40, 33, 321, 79, 27)
    assert (result.counts.sign_test, result.counts.sign_test_much) == (split(106, 73), split(27, 40))
    assert result.ties == 321
    assert result.counts.sign_test.share == pytest.approx(106 / 179)


def test_sides_do_not_move_the_result(tmp_path):
    """Another seed swaps other sides; what was meant is the same."""
    one, other = (findings(judged(tmp_path, 60, [2, 1, 0, -1, -2, 1] * 10, seed=seed)) for seed in (1, 2))
    assert one.counts == other.counts
    assert one.annotators[0].left_right != other.annotators[0].left_right


@pytest.mark.parametrize(
    ("combine", "cases"),
    [
        (median, {(1,): 1, (2, 1, 0): 1, (0, 1): 1, (1, 2): 2, (-2, -1): -2, (-1, 1): 0, (-2, 2, 2): 2}),
        (majority, {(2,): 2, (1, -1): 0, (1, 0): 0, (2, 1, -2): 1, (2, 2, -2): 2, (0, 0, 2): 0}),
    ],
)
def test_several_answers_are_combined_into_one_of_the_five(combine, cases):
    for values, expected in cases.items():
        assert combine(values) == expected


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=7))
def test_combining_is_the_same_for_both_systems(values):
    for combine in (median, majority):
        assert combine([-value for value in values]) == -combine(values)
        assert combine(values) in (-2, -1, 0, 1, 2)


def test_several_annotators_are_combined_before_the_test_and_never_pooled(tmp_path):
    result = findings(judged(tmp_path, 4, [1, 2, 0, -1], [1, 1, 0, -2], [-1, 2, 1, -1]))
    assert tuple(result.counts.answers.values()) == (0, 1, 1, 1, 1)  # the medians are 1, 2, 0, -1
    assert result.counts.sign_test == split(2, 1)
    assert (result.judgements, result.judged_by_all) == (12, 4)
    tests = [person.counts.sign_test for person in result.annotators]
    assert tests == [split(2, 1), split(2, 1), split(2, 2)]
    result = findings(judged(tmp_path, 1, [1], [0], combine="majority"))
    assert tuple(result.counts.answers.values()) == (0, 0, 1, 0, 0)  # the median is 1


def test_who_fails_the_attention_checks_is_left_out_and_checks_are_never_among_the_items(tmp_path):
    path = study_file(tmp_path, 6, annotators=2, checks=4, pass_share=0.75)
    right = right_answers(path)
    judge(path, [1] * 6 + right, 0)
    judge(path, [-2] * 6 + right[:2] + [-1 if value == 0 else 0 for value in right[2:]], 1)
    result = findings(path)
    outcomes = [(person.checks_passed, person.checks_failed, person.excluded) for person in result.annotators]
    assert outcomes == [(4, 0, False), (2, 2, True)]
    assert tuple(result.counts.answers.values()) == (0, 0, 0, 6, 0)
    assert result.complete


@pytest.mark.parametrize(("passed", "excluded"), [(14, False), (13, True)])
def test_who_passes_exactly_the_share_of_the_attention_checks_stays(tmp_path, passed, excluded):
    path = study_file(tmp_path, 25, checks=25, pass_share=0.56)
    right = right_answers(path)
    judge(path, [1] * 25 + right[:passed] + [-1 if value == 0 else 0 for value in right[passed:]])
    [person] = findings(path).annotators
    assert (person.checks_passed, person.checks_failed, person.excluded) == (passed, 25 - passed, excluded)


def test_second_judgements_are_no_results_but_show_who_agrees_with_themselves(tmp_path):
    path = study_file(tmp_path, 4, repeats=4)
    first = {"1": 2, "2": 1, "3": 0, "4": -1}
    second = {"1": 2, "2": 2, "3": 0, "4": 1}
    values = [second[p.again] if p.again else first[p.key] for p in take_snapshot(path).study.pairs]
    judge(path, values[:5])
    assert findings(path).annotators[0].judged_twice.items == 1
    judge(path, values)
    result = findings(path)
    [person] = result.annotators
    assert (result.complete, result.judgements, person.judged) == (True, 4, 8)
    assert result.counts == person.counts
    assert tuple(result.counts.answers.values()) == (0, 1, 1, 1, 1)
    itself = person.judged_twice
    assert (itself.items, itself.same_answer, itself.same_direction) == (4, 0.5, 0.75)
    assert itself.alpha == pytest.approx(alpha([[2, 2], [1, 2], [0, 0], [-1, 1]]))
    assert result.agreement.items == 0  # one person is not two


def test_a_bias_to_one_side_is_tested(tmp_path):
    path = study_file(tmp_path, 20)
    record(path, *((position, -1) for position in range(20)))
    [person] = findings(path).annotators
    assert person.left_right == split(20, 0)
    assert person.left_right.p == pytest.approx(2 / 2**20)


def test_changes_of_mind_and_missing_images_are_counted(tmp_path):
    path = study_file(tmp_path, 2)
    record(path, (0, 1), (0, None), (0, -1))
    record(path, (1, 0), image_missing=True)
    [person] = findings(path).annotators
    assert (person.judged, person.changed, person.without_image, person.median_seconds) == (2, 2, 1, 1.5)


_ = None
#: "Computing Krippendorff's Alpha-Reliability", section C: four observers, twelve units, five values.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


def test_the_worked_examples_of_krippendorff_come_out():
    """Section C, and section A of the same paper: ten articles, two observers, two values, alpha = 0.095."""
    assert alpha(UNITS) == pytest.approx(0.815, abs=5e-4)
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert alpha(list(zip(meg, owen, strict=True))) == pytest.approx(0.095, abs=5e-4)


def test_alpha_of_perfect_agreement_is_one_and_without_pairs_or_variation_undefined():
    assert alpha([[1, 1], [2, 2], [-2, -2]]) == 1
    assert alpha(UNITS) == alpha([unit for unit in UNITS if len(unit) > 1])  # one value says nothing
    for units in ([], [[1], [2]], [[0, 0], [0, 0, 0]]):
        assert alpha(units) is None
    assert share_agreeing([[1, 1, 2], [0, 0]]) == pytest.approx(4 / 8)
    assert share_agreeing([[1], []]) is None


def test_the_interval_has_the_tails_of_its_definition():
    def at_least(wins, trials, p):
        return sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(wins, trials + 1))

    for wins, trials in [(106, 179), (27, 67), (1, 2), (3, 200)]:
        low, high = clopper_pearson(wins, trials)
        assert at_least(wins, trials, low) == pytest.approx(0.025, abs=1e-9)
        assert 1 - at_least(wins + 1, trials, high) == pytest.approx(0.025, abs=1e-9)
    for trials in (1, 5, 100):
        assert clopper_pearson(0, trials) == (0, pytest.approx(1 - 0.025 ** (1 / trials), abs=1e-12))
        assert clopper_pearson(trials, trials) == (pytest.approx(0.025 ** (1 / trials), abs=1e-12), 1)
    assert clopper_pearson(0, 0) is None


def test_who_cannot_judge_has_done_their_part_and_counts_for_nobody(tmp_path):
    path = study_file(tmp_path, 3, annotators=2, checks=1, pass_share=1)
    judge(path, [2, 1, "cannot", *right_answers(path)], 0)
    judge(path, [1, "cannot", "cannot", *right_answers(path)], 1)
    result = findings(path)
    assert result.complete
    assert (result.judgements, result.cannot_judge) == (6, 3)
    assert tuple(result.counts.answers.values()) == (0, 0, 0, 1, 1)  # the third item has no answer
    assert result.agreement.items == 1
    assert [person.cannot_judge for person in result.annotators] == [1, 2]
    judge(path, [1, 1, 1, "cannot"], 1)  # nor does it pass a check
    assert [person.excluded for person in findings(path).annotators] == [False, True]


def test_items_come_in_the_order_of_disagreement(tmp_path):
    items = findings(judged(tmp_path, 4, [1, 2, 0, "cannot"], [1, -2, 1, 2], [1, 2, 0, -2])).judged_items
    assert [item.item for item in items] == ["4", "2", "3", "1"]
    assert [item.disagreement for item in items] == [4, 8 / 3, 2 / 3, 0]
    assert items[0].values == [2, -2]
    assert [one.value for one in items[0].judgements] == [None, 2, -2]
