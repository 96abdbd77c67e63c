"""What n samples are worth: right answers, votes, coverage, calibration, stopping."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import rangevote as rv
from rangevote.errors import DataError, UsageError
from rangevote.evaluation import samples
from rangevote.evaluation.metrics import right_answers
from rangevote.evaluation.samples import Question, calibration, count_answers, evaluate_samples, sample_report
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.similarity import get_similarity

NUMBER = get_similarity("exact:last_number")


@pytest.mark.parametrize(
    ("key", "gold", "right"),
    [
        ("last_number", "6 * 3 = 18\n#### 18", {"18"}),
        ("last_number", 18, {"18"}),
        ("last_number", 18.0, {"18"}),
        ("last_number", ["18", 1.5], {"18", "1.5"}),
        ("choice", "B", {"B"}),
        ("after:the answer is", "Rome", {"Rome"}),  # the key finds nothing: gold is the answer itself
        ("json:price", {"price": 3.0}, {"3"}),
        ("json:price", 3, {"3"}),
    ],
)
def test_gold_passes_through_the_key_of_the_samples(key, gold, right):
    assert right_answers(gold, get_similarity(f"exact:{key}")) == right


@pytest.mark.parametrize("gold", [None, [], [None], {"answer": 3}, [["3"]]])
def test_gold_of_another_type_is_refused(gold):
    with pytest.raises(DataError):
        right_answers(gold, NUMBER)


def test_a_sample_without_an_answer_is_wrong():
    question = count_answers(ballot(4, "4.0", None, 5, gold="4"), NUMBER, "answer")
    assert (question.counts, question.abstained, question.right) == ((2, 1), 1, (True, False))


def ballot(*answers, gold="1", **fields):
    texts = [Hypothesis("no idea" if answer is None else f"so {answer}") for answer in answers]
    return Ballot(texts, carry={"answer": gold}, **fields)


def enumerated(question, n):
    """maj@n by every subset of n samples, each tie in equal parts."""
    answers = [i for i, count in enumerate(question.counts) for _ in range(count)]
    answers += [None] * question.abstained
    won = []
    for drawn in combinations(answers, n):
        votes = [drawn.count(i) for i in range(len(question.counts))]
        best = [i for i, count in enumerate(votes) if count == max(votes) and count]
        won.append(sum(question.right[i] for i in best) / len(best) if best else 0.0)
    return sum(won) / len(won)


QUESTIONS = [
    Question((3, 2, 1), 1, (True, False, False)),
    Question((4, 4), 0, (False, True)),
    Question((2, 2, 2, 2), 0, (False, False, True, False)),
    Question((1,) * 6, 3, (True, True) + (False,) * 4),  # two answers are right
    Question((5, 3, 1, 1), 2, (False, True, False, True)),
    Question((9,), 0, (True,)),
    Question((), 4, ()),
    Question((3,), 5, (True,)),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_vote_among_n_samples_is_that_over_all_their_subsets(question):
    sizes = range(1, question.samples + 1)
    expected = [enumerated(question, n) for n in sizes]
    assert question.maj_right(sizes) == pytest.approx(expected, abs=1e-12)
    assert expected[-1] == pytest.approx(question.accuracy)  # all samples


@pytest.mark.parametrize("question", QUESTIONS)
def test_pass_is_the_share_of_subsets_with_a_right_sample(question):
    marks = np.repeat([*question.right, False], [*question.counts, question.abstained])
    for n in range(1, len(marks) + 1):
        subsets = [any(drawn) for drawn in combinations(marks, n)]
        assert question.pass_right(n) == pytest.approx(np.mean(subsets))


def test_of_very_many_samples_subsets_are_drawn(monkeypatch):
    question = Question((50, 40, 9), 1, (False, True, False))
    sizes = [1, 4, 16, 64, 100]
    exact = question.maj_right(sizes)
    monkeypatch.setattr(samples, "MOST_EXACT", 99)
    drawn = question.maj_right(sizes)
    assert drawn != exact
    assert drawn == pytest.approx(exact, abs=0.04)  # 3.5 standard errors of 2,000 subsets
    assert sample_report([question], NUMBER, resamples=0).subsets == samples.SUBSETS


def test_the_order_of_samples_does_not_matter():
    """Where two answers tie, list order would always elect the first."""
    forward = evaluate_samples([ballot(1, 2)], NUMBER, gold="answer", resamples=0)
    backward = evaluate_samples([ballot(2, 1)], NUMBER, gold="answer", resamples=0)
    assert forward.maj_at == backward.maj_at
    assert forward.maj_at[2].value == forward.stopping.accuracy.value == 50
    assert forward.stopping == backward.stopping


def test_a_report_has_means_over_questions_with_intervals():
    ballots = [ballot(1, 1, 1, 2), ballot(1, 2, 2, None), ballot(1, 1, 3, 4), ballot(2, 2, 2, 2)]
    found = evaluate_samples(ballots, NUMBER, gold="answer", resamples=2000)
    assert list(found.maj_at) == list(found.pass_at) == [1, 2, 4]
    assert found.maj_at[1].value == found.pass_at[1].value == pytest.approx(100 * 6 / 16)
    assert found.maj_at[4].value == 50
    assert found.pass_at[4].value == 75
    assert found.maj_at[4].interval == (0, 100)
    assert (found.questions, found.samples, found.abstained) == (4, (4, 4), 1)
    assert found.share.value == pytest.approx((3 + 2 + 2 + 4) / 16)
    assert found.answers.value == pytest.approx((2 + 2 + 3 + 1) / 4)
    # the surest is wrong, then one right, then one of two
    assert found.curve.points == ((1.0, 0.25, 1.0), (0.75, 0.5, 0.5), (0.5, 1.0, 0.5))
    assert found.curve.area == pytest.approx((1 + 0.5 + 0.5 + 0.5) / 4)


def test_the_largest_n_is_the_fewest_samples_of_a_question():
    found = evaluate_samples([ballot(1, 1, 1, 1, 1), ballot(1, 2, 1)], NUMBER, gold="answer", resamples=0)
    assert list(found.maj_at) == [1, 2, 3]
    assert found.samples == (3, 5)
    assert found.maj_at[1].interval is None


def test_calibration_is_that_of_scikit_learn():
    curves = pytest.importorskip("sklearn.calibration")
    chance = np.random.default_rng(1)
    shares = np.append(chance.integers(1, 21, size=400) / 20, [0.1, 0.3, 1.0])  # many on an edge
    right = chance.random(len(shares)) < shares**2
    found = calibration(shares.tolist(), right)
    accuracy, share = curves.calibration_curve(right, shares, n_bins=10)
    assert [one.accuracy for one in found] == pytest.approx(accuracy)
    assert [one.share for one in found] == pytest.approx(share)
    assert sum(one.questions for one in found) == len(shares)


def test_the_calibration_error_weighs_the_bins_by_their_questions():
    ballots = [ballot(1, 1, 1, 1), ballot(2, 2, 2, 2), ballot(1, 1, 1, 1), ballot(1, 1, 2, 3)]
    found = evaluate_samples(ballots, NUMBER, gold="answer", resamples=0)
    assert found.calibration_error == pytest.approx(3 / 4 * abs(1 - 2 / 3) + 1 / 4 * abs(0.5 - 1))


def test_without_gold_there_are_shares_entropy_and_stopping():
    found = evaluate_samples([ballot(*[1] * 60, 2, 3), ballot(1, 2)], NUMBER, resamples=0)
    assert (found.maj_at, found.pass_at, found.curve, found.bins) == ({}, {}, None, ())
    assert found.entropy.value == pytest.approx(
        (-60 / 62 * math.log(60 / 62) - 2 / 62 * math.log(1 / 62) + math.log(2)) / 2
    )
    assert (found.stopping.early, found.stopping.changed, found.stopping.accuracy) == (1, 0, None)
    [table] = found.tables()
    assert len(table.rows) == 3


def test_the_stopping_rule_is_that_of_a_streaming_election():
    chance = np.random.default_rng(5)
    answers = chance.choice([1, 2, 3], p=[0.9, 0.06, 0.04], size=64).tolist()
    order = np.random.default_rng(samples.SEED).permutation(64)
    texts = [f"so {answers[i]}" for i in order]
    electorate = rv.Electorate(similarity=NUMBER)
    electorate.sample(lambda some: [texts[i] for i in some], 64, confidence=0.9)
    question = count_answers(ballot(*answers), NUMBER, confidence=0.9)
    assert question.drawn == len(electorate) < 64
    assert question.stopped_at == 0


def test_of_texts_clusters_are_the_answers():
    texts = ["a dog runs fast", "a dog runs very fast", "the dog runs fast", "cats sleep", "cats sleep", ""]
    listed = Ballot([Hypothesis(text) for text in texts])
    question = count_answers(listed, get_similarity("overlap_1"))
    assert (question.counts, question.abstained, question.drawn) == ((3, 2), 1, None)
    found = evaluate_samples([listed], "overlap_1")
    assert found.stopping is None
    assert [row.name for row in found.tables()[0].rows][2] == "different clusters"


def test_samples_are_those_who_vote():
    listed = Ballot([Hypothesis("7")], [Hypothesis(text) for text in "112"], references=["1"])
    question = count_answers(listed, NUMBER, "references")
    assert (question.counts, question.right) == ((2, 1), (True, False))


@pytest.mark.parametrize(
    ("listed", "measure", "gold", "error", "told"),
    [
        (
            [Entry("a:7", ballot(1, 2))],
            NUMBER,
            "missing",
            DataError,
            r"^a:7: missing: is missing",
        ),
        ([ballot(1, gold={"a": 1})], NUMBER, "answer", DataError, r"^ballots\[0\]: answer: is"),
        ([ballot(None, None)], NUMBER, None, DataError, "no answer in any of 2 samples"),
        ([], NUMBER, None, DataError, "no samples"),
        ([Ballot([])], NUMBER, None, DataError, r"^ballots\[0\]: candidates: is empty"),
        ([ballot(1, 2)], "overlap_1", "answer", UsageError, "compares texts"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(listed, measure, gold, error, told):
    with pytest.raises(error, match=told):
        evaluate_samples(listed, measure, gold=gold)


def test_where_no_sample_is_right_a_warning_asks_how_answers_are_written():
    with pytest.warns(rv.RangevoteWarning, match="no sample of any question is right"):
        evaluate_samples([ballot(7, 8)], NUMBER, gold="answer")


def test_the_curves_are_one_picture(tmp_path):
    pytest.importorskip("matplotlib")
    found = evaluate_samples([ballot(1, 1, 2), ballot(None, None, 1)], NUMBER, gold="answer", resamples=100)
    found.plot(tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").stat().st_size > 5000
    with pytest.raises(UsageError):
        evaluate_samples([ballot(1, 1, 2)], NUMBER, resamples=0).plot(tmp_path / "none.svg")
