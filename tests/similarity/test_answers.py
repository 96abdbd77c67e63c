"""The keys of exact: which answer is read in a text, and where none is."""

from __future__ import annotations

import pickle
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.similarity.answers import boxed, choice, get_key, last_number, plain
from tests.similarity.answer_texts import BOX, CHOICE, NUMBER


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_one_answer_however_it_is_written(number):
    assert last_number(f"It is {number}.") == last_number(f"It is {number:,}.0") == str(number)


@pytest.mark.parametrize(
    ("key", "text", "answer"),
    [
        (key, text, answer)
        for key, texts in ((choice, CHOICE), (last_number, NUMBER), (boxed, BOX))
        for text, answer in texts.items()
    ],
)
def test_an_answer_is_read_as_a_reader_reads_it(key, text, answer):
    assert key(text) == answer


@pytest.mark.parametrize("text", ["Yes.", " yes!", "YES", "\u201cYes\u201d"[1:-1] + " ,", "yes"])
def test_plain_ignores_case_outer_punctuation_and_white_space(text):
    assert plain(text) == "yes"
    assert plain("New  York\n") == "new york"


@given(st.fractions(max_denominator=999))
def test_equal_values_are_equal_answers(value):
    numerator, denominator = value.numerator, value.denominator
    answer = last_number(f"It is {numerator}/{denominator}.")
    assert Fraction(answer) == value
    assert last_number(rf"$\frac{{{2 * numerator}}}{{{2 * denominator}}}$") == answer


@pytest.mark.parametrize("key", [last_number, choice])
@given(st.text(st.sampled_from("19 .,/^-*x=(){}\\$AI\n'") | st.characters(), max_size=60))
def test_every_text_has_an_answer_or_none(key, text):
    answer = key(text)
    assert answer is None or (key is choice or Fraction(answer) is not None)


@pytest.mark.parametrize(
    ("key", "text", "answer"),
    [
        (r"regex:= (\d+)", "x = 12, so y = 13", "13"),
        (r"regex:\d+", "12 or 13", "13"),
        (r"regex:yes|no", "yes and no", "no"),
        (r"regex:(a)|(b)", "a b", "b"),
        (r"regex:\d+", "none", None),
        ("after:the answer is", "So The Answer is: **Paris**.\nDone", "paris"),
        ("after:answer:", "Answer: 4. No, answer: 5", "5"),
        ("after:the answer is", "the answer is\n5", None),
        ("after:the answer is", "it is 5", None),
        ("line:last", "Hm.\n\n  Rome.  \n\n", "rome"),
        ("line:first", "\nRome\nHm", "rome"),
        ("line:last", " \n", None),
        ("json:price", '{"price": 12.50}', "12.5"),
        ("json:items[1].name", '```json\n{"items": [0, {"name": "a b"}]}\n```', "a b"),
        ('json:$."two words"[0]', '{"two words": [[1, 2.0]]}', "[1,2]"),
        ("json", '{"b": 1, "a": 2}', '{"a":2,"b":1}'),
        ("json:price", '{"prize": 12.50}', None),
        ("json:price.x", '{"price": "12"}', None),
        ("json:price", "price: 12", None),
    ],
)
def test_a_key_that_is_made_of_words_finds_its_answer_or_none(key, text, answer):
    assert get_key(key)(text) == answer


@pytest.mark.parametrize(
    "text",
    ["<think>7 or 8?</think>\nIt is 9", "7 or 8?\n</think>It is 9", "It is 9"],
)
def test_reasoning_is_cut_before_a_key_looks(text):
    assert rv.Exact(last_number).keys(rv.Hypotheses.of([text])) == ["9"]


def test_a_sample_that_was_cut_off_in_its_reasoning_abstains():
    assert rv.Exact(last_number).keys(rv.Hypotheses.of(["<think>so 7, or"])) == [None]


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("last_numbr", "unknown key of exact 'last_numbr'. Did you mean 'last_number'"),
        ("regex", r"write it as 'exact:regex:= \(\\d\+\)'"),
        ("regex:(", "is not a valid regular expression: missing"),
        ("after:", "write it as 'exact:after:the answer is'"),
        ("line:third", "'exact:line:last' or 'exact:line:first', got 'third'"),
        ("json:a..b", r"cannot read the path 'a..b' at '..b'; write it as items\[0\].price"),
        ("math:x", "write it as 'exact:math'"),
        ("command:ls", "write it as 'exact:command=python -I'"),
        ("command='", "no closing quotation"),
        ("command=no-such-program-here x", "there is no program 'no-such-program-here'"),
    ],
)
def test_a_key_that_cannot_be_meant_is_refused_with_what_to_write(key, problem):
    with pytest.raises(rv.UsageError, match=problem):
        rv.get_similarity(f"exact:{key}")


def test_a_pattern_may_hold_what_elsewhere_makes_a_mixture_or_parts_a_signature():
    result = rv.elect(["a1b", "b22", "aa22"], similarity="exact:regex:(1+|2*)$")
    assert (result.index, "|sim:exact:regex:(1+%7C2*)$|" in result.signature) == (1, True)


def test_measures_with_keys_can_be_sent_to_other_processes():
    for key in ("regex:a+", "json:a[0]", "after:so", "line:last", f"command={sys.executable} -I"):
        measure = pickle.loads(pickle.dumps(rv.get_similarity(f"exact:{key}")))
        assert measure.name == rv.get_similarity(f"exact:{key}").name
