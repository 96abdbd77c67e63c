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


#: text -> its last number, or None where it is part of something else
NUMBERS = {
    "1,000,000": "1000000",
    "so it is −3": "-3",  # U+2212
    "12-15": None,
    "12–15": None,
    "1e5": "100000",
    r"\frac{1}{2}": "0.5",
    r"-\frac{1}{2}": "-0.5",
    r"\dfrac12": "0.5",
    "１，２００": "1200",
    "٤٢": "42",
    "٤٫٢": "4.2",
    "½": "0.5",
    "1½": "1.5",
    "-1 1/2": "-1.5",
    r"1\frac{1}{2}": "1.5",
    "10⁵": "100000",
    "2.5×10^5": "250000",
    r"2.5 \times 10^{-3}": "0.0025",
    "10⁻³": "0.001",
    "12 cm^2": "12",
    "12 cm²": "12",
    "12㎡": "12",
    r"12 \text{ cm}^2": "12",
    "x^2": None,
    "x2": None,
    "CO2": None,
    r"\frac{\pi}{6}": None,
    r"3\sqrt{2}": None,
    "√2": None,
    "2π": None,
    r"\sqrt{16} = 4": "4",
    "π ≈ 3.14": "3.14",
    "x/2": None,
    "(1+2)/3": None,
    "-$5": "-5",
    r"-\$5": "-5",
    "12 - 15": "15",
    "10%-15%": None,
    "$10-$15": None,
    "1,000-2,000": None,
    "12 -15": None,
    "2024-05-17": None,
    "05/17/2024": None,
    "10:30": None,
    "3.11.2": None,
    "1,5": None,
    "1 000": None,
    "1\u202f000": "1000",
    "1'000": "1000",
    "1{,}000": "1000",
    r"1,\!000": "1000",
    "1.200,50": None,
    "(1,2)": None,
    "wait...5": "5",
    "Rs.50": "50",
    "1/0": None,
    "1/-2": "-0.5",
    "1e999999": None,
    "9" * 5000: None,
    "9^999": None,
    "**42**": "42",
    "COVID-19": "19",
    "- 5 apples": "5",
    "3 ± 2": None,
    "1E+3": "1000",
    "1.5e-3.": "0.0015",
    "0x1F": None,
    "3/4/5": None,
    "100 200 300": None,
    "0,500": None,
    r"\( \frac{x}{2} \) gives 7": "7",
    "1_000": "1000",
    "−½": "-0.5",
    "10^(5)": "100000",
    "0^-1": None,
    "He has 3x10^2 items": "300",
    "$1,234,567.89": "1234567.89",
    "12,34,567": None,
    "3 1/2/4": None,
    "2 5/3": None,
    r"$\approx5$": "5",
    "1e5/1e3": "100",
    r"\frac{-3}{4}": "-0.75",
    r"\frac{1,000}{3}": "1000/3",
    r"\frac{1,5}{3}": None,
}


@pytest.mark.parametrize(("text", "answer"), NUMBERS.items(), ids=lambda text: str(text)[:20])
def test_a_number_is_read_by_its_value_or_not_at_all(text, answer):
    assert last_number(text) == answer
    assert last_number(f"So 7 it is not.\nThe answer: {text}") == answer


@given(st.fractions(max_denominator=999))
def test_equal_values_are_equal_answers(value):
    numerator, denominator = value.numerator, value.denominator
    answer = last_number(f"It is {numerator}/{denominator}.")
    assert Fraction(answer) == value
    assert last_number(rf"$\frac{{{2 * numerator}}}{{{2 * denominator}}}$") == answer


#: text -> the choice in it
LETTERS = {
    "so it is C.": "C",
    "C": "C",
    "I think so": None,
    "I": "I",
    "A dog runs": None,
    "I am sure. A cat sat.": None,
    "It is (B), I think": "B",
    "the answer is A because dogs": "A",
    "The answer is A dog": None,
    "My answer is I don't know": None,
    "So am I.": None,
    "Answer: I": "I",
    "Answer: I'm not sure": None,
    "OK": None,
    "none": None,
    "": None,
    r"\boxed{D}": "D",
    r"\text{(E)}": "E",
    "P(A) is large": None,
    "B. Paris": "B",
    "A) Rome\nB) Paris\nThe answer is **A) Rome**": "A",
    "A is correct": "A",
    "I is the answer": "I",
    "20 °C": None,
    "20℃": None,
    "I use C++": None,
    "in the U.S.A.": None,
    "**I** think so": None,
    "A vitamin, I guess": None,
    "I choose option B because it": "B",
    "I'd pick A": "A",
    "Answer: A\nI hope this helps!": "A",
    "Option A-team is": None,
    "'I' is a pronoun": None,
}


@pytest.mark.parametrize(("text", "answer"), LETTERS.items(), ids=str)
def test_a_letter_is_a_choice_only_where_it_is_marked_as_one(text, answer):
    assert choice(text) == answer


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
