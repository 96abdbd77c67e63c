"""Measuring one system and several."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rangevote.errors import DataError, MissingExtra, UnknownName, UsageError
from rangevote.evaluation.evaluate import compare, evaluate, selection, texts_of
from rangevote.evaluation.metrics import METRICS, Metric, by_output, mean
from rangevote.evaluation.tables import difference_table, evaluation_table, score_table, stars
from rangevote.hypothesis import Ballot, Hypothesis

REFERENCES = [["a dog runs fast", "the dog runs"], ["a cat sits", "one cat is sitting there"], ["yes", "no"]]
SOURCES = ["ein Hund", "eine Katze", "ja"]
GOOD = ["a dog runs", "a cat sits", "yes"]
POOR = ["ein Hund", "a mouse", ""]
NO_TEXT = Ballot([Hypothesis("a"), Hypothesis(tokens=[1])])


def test_without_a_choice_everything_is_measured_that_can_be():
    pytest.importorskip("sacrebleu")
    assert set(evaluate(GOOD, REFERENCES, SOURCES).first.scores) == {
        name for name, metric in METRICS.items() if metric.usual
    }
    known = {name for name, metric in METRICS.items() if not metric.needs}
    assert set(evaluate(GOOD).first.scores) == known
    assert "exact_copies" in evaluate(GOOD, sources=SOURCES).first.scores


def test_the_numbers_of_an_example_worked_by_hand():
    found = evaluate(POOR, REFERENCES, SOURCES, metrics=["bleu_1", "length", "exact_copies"])
    # one word matches ("a") of five, since NLTK takes an empty output for one word that does not match; 4
    # words are said where the closest references have 3 + 3 + 1
    assert found.first.scores["bleu_1"].value == pytest.approx(100 * 1 / 5 * math.exp(1 - 7 / 4))
    assert found.first.scores["length"].value == pytest.approx(4 / 3)
    assert found.first.scores["exact_copies"].value == pytest.approx(100 / 3)


def test_the_references_are_measured_one_an_item_and_averaged():
    found = evaluate(GOOD, REFERENCES, metrics=["length", "distinct_bigrams", "distinct_outputs"])
    assert found.references["length"] == pytest.approx((8 + 9) / 2 / 3)
    assert found.references["distinct_bigrams"] == (5 + 6) / 2
    assert found.references["distinct_outputs"] == 3
    uneven = evaluate(["a", "b"], [["x y"], ["x", "u v w"]], metrics=["length"])
    assert uneven.references_per_item == (1, 2)
    assert uneven.references["length"] == pytest.approx((2 + 1 + 2 + 3) / 4)


def test_stars_tell_what_differs_from_the_first_system():
    systems = {"poor": POOR * 40, "good": GOOD * 40, "poor again": POOR * 40}
    found = compare(systems, REFERENCES * 40, metrics=["bleu_1", "length", "distinct_bigrams"])
    assert found.first.against_first == {}
    good, same = found.systems[1:]
    assert set(good.against_first) == {"bleu_1", "length"}  # a count of distinct things is not resampled
    assert good.against_first["bleu_1"].p < 0.001
    # "a mouse" and "ein Hund" lose to "a cat sits" and "a dog runs", nothing to "yes"
    assert (good.against_first["bleu_1"].above, good.against_first["bleu_1"].below) == (120, 0)
    assert good.against_first["bleu_1"].sign_test_p == pytest.approx(2 / 2**120)
    assert same.against_first["bleu_1"].p == 1
    length = good.against_first["length"]  # each output is one word longer, whatever is drawn
    assert (length.difference, *length.interval) == pytest.approx((1, 1, 1))
    assert [stars(p) for p in (0.0009, 0.001, 0.01, 0.049, 0.05)] == ["***", "**", "*", "*", ""]


def test_a_comparison_is_the_same_with_other_systems_beside_it():
    pair = compare({"a": POOR, "b": GOOD}, REFERENCES, metrics=["chrf"], resamples=100)
    systems = {"a": POOR, "x": SOURCES, "b": GOOD}
    more = compare(systems, REFERENCES, metrics=["length", "chrf"], resamples=100)
    assert pair.systems[1].against_first["chrf"] == more.systems[2].against_first["chrf"]


def test_without_resamples_there_are_no_intervals():
    found = compare({"a": POOR, "b": GOOD}, REFERENCES, metrics=["chrf"], resamples=0)
    assert found.systems[1].against_first == {}
    assert found.systems[1].scores["chrf"].interval is None
    assert "interval" not in str(evaluation_table(found).columns)


def test_a_users_own_metric_needs_statistics_and_a_score():
    def vowels(corpus, units):
        return by_output("vowels", lambda _, text: (sum(c in "aeiou" for c in text), 1))

    metrics = {"vowels": Metric("vowels", vowels, mean, needs="")}
    found = compare({"a": ["aa", "b"], "b": ["eee", "ooo"]}, metrics=metrics)
    assert [system.scores["vowels"].value for system in found.systems] == [1, 3]
    assert found.systems[1].against_first["vowels"].above == 2


def test_tables_hold_all_systems_and_the_references():
    found = compare({"poor": POOR, "good": GOOD}, REFERENCES, metrics=["bleu_1", "length"])
    table = score_table(found)
    assert [row.name for row in table.rows] == ["poor", "good", "references"]
    # the closest length to the references' 2.83 is the best one
    assert table.best() == {(1, 0), (1, 1)}
    assert [row.name for row in difference_table(found).rows][2:] == ["good, BLEU-1", "good, length"]
    assert [row.name for row in evaluation_table(found).rows] == ["BLEU-1", "length"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate([]), DataError, r"there are no outputs"),
        (lambda: texts_of(NO_TEXT), DataError, r"candidates\[1\]: has no text"),
        (lambda: evaluate(["a"], ["a", "b"]), DataError, r"there are 1 outputs but 2 references"),
        (lambda: evaluate(["a"], sources=[]), DataError, r"there are 1 outputs but 0 sources"),
        (lambda: evaluate(["a"], [[]]), DataError, r"references\[0\]: is empty; every output needs"),
        (lambda: evaluate(["a"], "a"), UsageError, r"references is one string; pass a list"),
        (lambda: evaluate(["a"], ["a"], metrics=["blue"]), UnknownName, r"'blue'\. Did you mean 'bleu'\?"),
        (lambda: evaluate(["a"], ["a"], metrics="bleu"), UsageError, r"metrics is one string, 'bleu'"),
        (lambda: evaluate(["a"], metrics=["chrf"]), UsageError, r"'chrf' needs references; there are none"),
        (lambda: evaluate(["a"], metrics=["exact_copies"]), UsageError, r"'exact_copies' needs sources"),
        (lambda: compare({}), UsageError, r"there are no systems to compare"),
        (lambda: compare({"a": ["x"], "b": []}), DataError, r"there are 0 outputs but 1 items"),
        (lambda: compare({"a": ["x"]}, resamples=-1), UsageError, r"resamples must be 0 .* or more, got -1"),
        (lambda: compare({"a": ["x"]}, p_value="t"), UnknownName, r"unknown p-value 't'"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_missing_sacrebleu_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu.metrics", None)
    with pytest.raises(MissingExtra, match=r'BLEU needs the package .*"rangevote\[evaluate\]"'):
        evaluate(["a"], ["a"], metrics=["bleu"])
    assert np.isfinite(evaluate(["a"], ["a"], metrics=["bleu_4"]).first.scores["bleu_4"].value)


def test_winners_are_absent_or_lost_or_chosen_again():
    beam = [["a", "x"], ["b", "x"], ["x"], ["d", "x"]]
    found = selection(["a", "b", "c", "d"], beam, ["a", "x", "x", "d"])
    assert (found.absent, found.chosen_again) == (25, 50)


def test_the_beam_of_a_ballot_is_its_candidates_texts():
    assert texts_of(Ballot([Hypothesis("a b"), Hypothesis("")])) == ["a b", ""]
