"""exact: majority voting by text or by answer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.similarity.exact import boxed, last_letter, last_number, plain
from tests.similarity.samples import columns


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 42.", "42"),
        ("6 * 7 = 42", "42"),
        ("x = 1,200.50", "1200.5"),
        ("x = 1200.5", "1200.5"),
        ("1,000,000", "1000000"),
        ("so it is -3", "-3"),
        ("so it is −3", "-3"),  # U+2212
        ("+5", "5"),
        ("007", "7"),
        (".5", "0.5"),
        ("0.50", "0.5"),
        ("5.0", "5"),
        ("-0.0", "0"),
        ("0", "0"),
        ("100", "100"),
        ("$18", "18"),
        ("18%", "18"),
        ("a, b, c", None),
        ("", None),
        ("12, 13", "13"),
    ],
)
def test_the_last_number_is_found_and_written_plainly(text, answer):
    assert last_number(text) == answer


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_one_answer_however_it_is_written(number):
    assert last_number(f"It is {number}.") == last_number(f"It is {number:,}.0") == str(number)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("so the answer is (B).", "B"), ("A or C", "C"), ("B", "B"), ("OK", None), ("none", None), ("", None)],
)
def test_the_last_letter_that_stands_alone_is_the_choice(text, answer):
    assert last_letter(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"thus \boxed{7}", "7"),
        (r"\boxed{1} then \boxed{ \frac{1}{2} }", r"\frac{1}{2}"),
        (r"\boxed{", None),
        (r"\boxed{1", None),
        (r"\boxed{}", ""),
        ("7", None),
    ],
)
def test_the_last_box_is_the_answer(text, answer):
    assert boxed(text) == answer


@pytest.mark.parametrize("text", ["Yes.", " yes!", "YES", "\u201cYes\u201d"[1:-1] + " ,", "yes"])
def test_plain_ignores_case_outer_punctuation_and_white_space(text):
    assert plain(text) == "yes"
    assert plain("New  York\n") == "new york"


answers = st.lists(st.sampled_from(["a", "b", "c", "", "a "]), min_size=1, max_size=12)


@given(answers)
def test_exact_elects_the_mode_and_scores_are_shares(texts):
    result = rv.elect(texts, similarity="exact")
    counts = Counter(texts)
    assert counts[result.winner] == max(counts.values())
    expected = [counts[text] / len(texts) for text in texts]
    np.testing.assert_allclose(result.scores, expected, rtol=0, atol=1e-12)


def test_self_consistency_elects_the_answer_most_samples_end_with():
    samples = ["2+2 is 4", "I think 5", "well, 4.0", "so 5", "four: 4", "no idea"]
    result = rv.elect(samples, similarity="exact:last_number")
    assert result.winner == "2+2 is 4"
    assert result.score == pytest.approx(3 / 6, abs=1e-15)
    assert result.scores[5] == 0  # no number: abstains, and gets nothing


def test_a_user_may_bring_a_key():
    result = rv.elect(["aa", "b", "cc", "d", "ee"], similarity=rv.Exact(len, name="exact:length"))
    assert result.winner == "aa"
    assert "sim:exact:length|" in result.signature


def test_texts_that_differ_in_white_space_or_encoding_are_different():
    slate = columns(["é", "e\u0301", "é ", "é"])
    grades = rv.Exact().matrix(slate, slate)
    np.testing.assert_array_equal(grades[0], [1, 0, 0, 1])
