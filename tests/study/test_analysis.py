"""Findings: the paper's numbers come out of judgements, and nothing is pooled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.study.agreement import alpha
from rangevote.study.analysis import Answers, Split, analyse, majority, median
from rangevote.study.data import as_data
from rangevote.study.page import page
from rangevote.study.plan import Pair
from rangevote.study.present import tables, written
from rangevote.study.snapshot import take
from rangevote.study.store import Store
from tests.study.making import answer, judge, pairs, study_file


def found(path):
    return analyse(take(path))


@pytest.mark.parametrize(
    ("better", "worse", "p"), [(106, 73, 0.0165), (27, 40, 0.142), (69, 44, 0.0235), (36, 28, 0.382)]
)
def test_the_papers_p_values_come_out(better, worse, p):
    """Sections 4.1.4 and 4.2.4; of the last, the paper says only that it is not significant."""
    assert Split(better, worse).p == pytest.approx(p, abs=5e-4 if p > 0.1 else 5e-5)


#: The paper's captions: better 106 times, much better 27 of these; worse 73 times, much worse 40 of these.
CAPTIONS = [2] * 27 + [1] * 79 + [0] * 321 + [-1] * 33 + [-2] * 40


def test_the_papers_study_of_captions_comes_out_of_500_judgements(tmp_path):
    path = study_file(tmp_path, 500)
    judge(path, CAPTIONS)
    result = found(path)
    assert result.complete
    assert result.answers == Answers((40, 33, 321, 79, 27))
    assert (result.answers.all, result.answers.much) == (Split(106, 73), Split(27, 40))
    assert result.answers.all.p == pytest.approx(0.0165, abs=5e-5)
    assert result.answers.much.p == pytest.approx(0.142, abs=5e-4)
    assert result.ties == 321
    assert result.answers.all.share == pytest.approx(106 / 179)
    shown = written(result)
    assert "all answers but ties     106     73  0.0165*         59.2 %   [51.6, 66.5]" in shown
    assert "complete: all 500 planned judgements are there" in shown
    assert "unit of analysis: the item, judged by one person each" in shown


def test_sides_do_not_move_the_result(tmp_path):
    """Another seed swaps other sides; what was meant is the same."""
    results = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = study_file(folder, 60, seed=seed)
        judge(path, [2, 1, 0, -1, -2, 1] * 10)
        results.append(found(path))
    assert results[0].answers == results[1].answers
    assert results[0].people[0].sides != results[1].people[0].sides


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1], 1),
        ([2, 1, 0], 1),
        ([0, 1], 1),
        ([1, 2], 2),
        ([-2, -1], -2),
        ([-1, 1], 0),
        ([-2, 2, 2], 2),
        ([0, -1], -1),
    ],
)
def test_the_median_is_one_of_the_five_answers(values, expected):
    assert median(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1], 1),
        ([2], 2),
        ([1, -1], 0),
        ([1, 0], 0),
        ([2, 1, -2], 1),
        ([2, 2, -2], 2),
        ([-1, -2, -2], -2),
        ([0, 0, 2], 0),
    ],
)
def test_the_majority_needs_more_than_half(values, expected):
    assert majority(values) == expected


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=7))
def test_combining_is_the_same_for_both_systems(values):
    for combine in (median, majority):
        assert combine([-value for value in values]) == -combine(values)
        assert combine(values) in (-2, -1, 0, 1, 2)


def test_several_annotators_are_combined_before_the_test_and_never_pooled(tmp_path):
    path = study_file(tmp_path, 4, annotators=3)
    for number, values in enumerate([[1, 2, 0, -1], [1, 1, 0, -2], [-1, 2, 1, -1]]):
        judge(path, values, number)
    result = found(path)
    assert result.answers == Answers((0, 1, 1, 1, 1))  # the medians are 1, 2, 0, -1
    assert result.answers.all == Split(2, 1)
    assert result.judgements == 12
    assert result.judged_by_all == 4
    shown = written(result)
    assert "unit of analysis: the item, as the median of its judgements" in shown
    assert "judgements are never pooled" in shown
    assert as_data(result)["sign_test"]["better"] == 2
    assert [person.answers.all for person in result.people] == [Split(2, 1), Split(2, 1), Split(2, 2)]


def test_the_majority_is_used_where_the_plan_says_so(tmp_path):
    path = study_file(tmp_path, 1, annotators=2, combine="majority")
    judge(path, [1], 0)
    judge(path, [0], 1)
    assert found(path).answers == Answers((0, 0, 1, 0, 0))


def test_who_fails_the_attention_checks_is_left_out_by_the_rule_of_the_plan(tmp_path):
    path = study_file(tmp_path, 6, annotators=2, checks=4, pass_share=0.75)
    study = take(path).study
    right = [pair.expected for pair in study.pairs if pair.expected is not None]
    judge(path, [1] * 6 + right, 0)
    judge(path, [-2] * 6 + [right[0], right[1], *(-1 if value == 0 else 0 for value in right[2:])], 1)
    result = found(path)
    assert [(person.passed, person.checked, person.excluded) for person in result.people] == [
        (4, 4, False),
        (2, 4, True),
    ]
    assert result.answers.all == Split(6, 0)
    assert "excluded (fewer than 75 % of the attention checks passed): annotator-2" in written(result)
    assert as_data(result)["exclusion"] == {"pass_share": 0.75, "excluded": ["annotator-2"]}


def test_checks_are_never_among_the_items(tmp_path):
    path = study_file(tmp_path, 6, checks=3)
    judge(path, [0] * 6 + [2] * 3)
    result = found(path)
    assert result.answers == Answers((0, 0, 6, 0, 0))
    assert result.complete
    assert result.people[0].sides == Split(0, 0)


def test_second_judgements_are_no_results_but_tell_who_agrees_with_themselves(tmp_path):
    path = study_file(tmp_path, 4, repeats=4)
    first = {"1": 2, "2": 1, "3": 0, "4": -1}
    second = {"1": 2, "2": 2, "3": 0, "4": 1}
    judge(path, [second[p.again] if p.again else first[p.key] for p in take(path).study.pairs])
    result = found(path)
    assert result.complete
    assert result.judgements == 4
    assert result.answers.counts == result.people[0].answers.counts == (0, 1, 1, 1, 1)
    assert result.people[0].judged == 8
    itself = result.people[0].itself
    assert (itself.items, itself.same, itself.same_direction) == (4, 0.5, 0.75)
    assert itself.alpha == pytest.approx(alpha([[2, 2], [1, 2], [0, 0], [-1, 1]]))
    assert "Judged twice" in written(result)
    assert as_data(result)["annotators"][0]["judged_twice"]["same_answer"] == 0.5
    assert result.agreement.items == 0  # one person is not two


def test_an_item_seen_once_so_far_says_nothing_of_agreement(tmp_path):
    path = study_file(tmp_path, 2, repeats=2)
    judge(path, [1, 1, 1])
    assert found(path).people[0].itself.items == 1
    (tmp_path / "once").mkdir()
    assert "Judged twice" not in written(found(study_file(tmp_path / "once", 2)))


def test_case_66_identical_outputs_count_as_ties_and_are_stated(tmp_path):
    path = study_file(tmp_path, [*pairs(3), Pair("x", "same", "same"), Pair("y", "", "")])
    judge(path, [1, 0, -1])
    result = found(path)
    assert result.ties == 3
    assert "ties, left out: 3, of which 2 have identical outputs and were not shown" in written(result)
    assert as_data(result)["identical_not_shown"] == 2


def test_case_69_a_study_without_judgements_has_no_data(tmp_path):
    path = study_file(tmp_path, 3, annotators=2, checks=1)
    result = found(path)
    assert result.answers.all.p == result.answers.much.p == 1
    assert result.answers.all.share is None
    assert result.agreement.alpha is None
    for text in (written(result), page(result)):
        assert "no data" in text
        assert "alpha is undefined" in text
        assert "NOT COMPLETE: 0 of 6" in text
    assert json.loads(json.dumps(as_data(result)))["sign_test"]["p"] == 1


def test_case_69_all_ties_have_p_1(tmp_path):
    path = study_file(tmp_path, 3, annotators=2)
    for number in (0, 1):
        judge(path, [0, 0, 0], number)
    result = found(path)
    assert result.answers.all.p == 1
    assert "alpha (ordinal) undefined (all answers are the same), same answer 100.0 %" in written(result)


def test_case_69_one_annotator_has_no_alpha(tmp_path):
    path = study_file(tmp_path, 3)
    judge(path, [1, 1, -1])
    assert "no item was judged by two people, so alpha is undefined" in written(found(path))
    assert "alpha is undefined" in page(found(path))


def test_an_unfinished_study_says_so_first(tmp_path):
    path = study_file(tmp_path, 10)
    judge(path, [1, 1])
    [first, *_] = tables(found(path))
    assert first.notes[0].startswith("NOT COMPLETE: 2 of 10 planned judgements are there")


def test_a_lean_to_one_side_is_tested(tmp_path):
    path = study_file(tmp_path, 20)
    store = Store(path)
    for dealt in store.study.assignments:
        store.record(0, answer(dealt.handle, -1))
    store.close()
    [person] = found(path).people
    assert person.sides == Split(20, 0)
    assert person.sides.p == pytest.approx(2 / 2**20)
    assert as_data(found(path))["annotators"][0]["left_right"]["left"] == 20


def test_changes_of_mind_and_missing_pictures_are_told(tmp_path):
    path = study_file(tmp_path, 2)
    store = Store(path)
    [one, two] = [dealt.handle for dealt in store.study.assignments]
    for shown in (1, None, -1):
        store.record(0, answer(one, shown))
    store.record(0, answer(two, 0, image_missing=True))
    store.close()
    [person] = found(path).people
    assert (person.judged, person.changed, person.without_image, person.seconds) == (2, 2, 1, 1.5)
    assert "answers given while the picture could not be shown: 1" in written(found(path))


def test_the_page_is_whole_and_shows_hostile_names_as_text(tmp_path):
    path = study_file(tmp_path, 4, annotators=2, title="<script>alert(1)</script> & more")
    judge(path, [1, 2, -1, 0])
    text = page(found(path))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("<svg viewBox") == 3
    assert "style-src 'sha256-" in text


@pytest.mark.parametrize("format", ["text", "markdown", "latex"])
def test_every_format_holds_every_table(tmp_path, format):
    path = study_file(tmp_path, 4, checks=1)
    text = written(found(path), format)
    for title in ("Answers", "Annotators", "Left and right", "Attention checks"):
        assert title in text
