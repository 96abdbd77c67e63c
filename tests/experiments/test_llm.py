"""Samples of an LLM: shares of right answers, scores of elected texts."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from experiments import llm

RIGHT, WRONG = "Steps\nAnswer: 4 * 6 = 24", "Steps\nAnswer: 4 + 6 = 24"


def task(right, wrong):
    return {"ys": [RIGHT] * right + [WRONG] * wrong, "infos": [{"r": 1}] * right + [{"r": 0}] * wrong}


def test_a_clear_majority_is_elected_whatever_is_drawn():
    found = llm.puzzles([task(8, 2), task(1, 9)], [llm.ANSWER], [9, 10])
    assert found["sample"]["mean"] == pytest.approx(45)
    assert found["any"]["mean"] == 100
    assert found["elected"][llm.ANSWER]["10"]["mean"] == 50
    assert found["elected"][llm.ANSWER]["9"]["mean"] == 50
    low, high = found["elected"][llm.ANSWER]["10"]["interval"]
    assert low <= 50 <= high


def test_a_draw_without_any_answer_is_not_right():
    silent = {"ys": ["no idea", "24?"], "infos": [{"r": 0}] * 2}
    elected = llm.puzzles([silent], [llm.ANSWER], [1, 2])["elected"][llm.ANSWER]
    assert (elected["1"]["mean"], elected["2"]["mean"]) == (0, 0)


def test_the_score_of_the_elected_text_stands_beside_mean_best_and_longest():
    texts = ["a b c", "a b d", "x y z z z"]
    found = llm.writing([{"ys": texts, "infos": [{"r": 6.0}, {"r": 5.0}, {"r": 1.0}]}], ["overlap_1"])
    assert (found["mean"]["mean"], found["best"]["mean"], found["longest"]["mean"]) == (4.0, 6.0, 1.0)
    assert found["elected"]["overlap_1"]["mean"] == 6.0
