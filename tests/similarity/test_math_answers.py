"""exact:math: the same mathematics is one answer."""

from __future__ import annotations

import sys
import time

import pytest

import rangevote as rv
from rangevote.similarity import answers, math_answers
from rangevote.similarity.math_answers import math_answer

pytest.importorskip("math_verify", reason="the extra math is not installed")

#: Each row is one answer in several spellings; no two rows are the same answer.
MATH = [
    [r"\boxed{10^{20}}", r"\boxed{100000000000000000000}", r"\boxed{1 \times 10^{20}}"],
    [r"\boxed{10^{20}+1}", r"\boxed{100000000000000000001}"],
    [r"\boxed{123456789012345678}", "$123456789012345678$"],
    [r"\boxed{123456789012345679}"],
    [r"\boxed{\frac{1}{3}}", r"\boxed{\frac{2}{6}}", r"\boxed{1/3}"],
    [r"\boxed{0.333}"],
    [r"\boxed{\sqrt{2}}", r"\boxed{\frac{2}{\sqrt{2}}}", r"\boxed{2^{1/2}}"],
    [r"\boxed{\ln 2}", r"\boxed{\ln(2)}", r"\boxed{\frac{\ln 4}{2}}"],
    [r"\boxed{2+3i}", r"\boxed{3i+2}"],
    [r"\boxed{2-3i}"],
    [r"\boxed{3+4i}", r"\boxed{(2+i)^2}"],
    [r"\boxed{i}", r"\boxed{\sqrt{-1}}", r"\boxed{e^{i\pi/2}}"],
    [r"\boxed{\emptyset}", r"\boxed{\varnothing}"],
    [r"\boxed{x^2+1}", r"\boxed{1+x^2}"],
    [r"\boxed{x^2+2}"],
    [r"\boxed{\frac{\pi}{2}}", r"\boxed{0.5\pi}"],
    [r"\boxed{-\frac{3}{4}}", r"\boxed{-0.75}", r"The answer is $-\frac{3}{4}$."],
    [r"\boxed{\sqrt{8}}", r"so \boxed{2\sqrt{2}}"],
    [r"\boxed{2.828}"],
    [r"\boxed{\frac{1}{2}}", r"\boxed{0.5}", r"\boxed{50\%}", r"\boxed{\frac12}"],
    [r"\boxed{(x+1)^2}", r"\boxed{x^2 + 2x + 1}"],
    [r"\boxed{x = 5}", "the answer is 5"],
    [r"\boxed{\{1, 2\}}", r"\boxed{2, 1}"],
    [r"\boxed{\sin^2 x + \cos^2 x}", r"\boxed{1}"],
    [r"\boxed{1,234}", r"\boxed{1234}"],
    [r"\boxed{\text{Paris}}", r"\boxed{\text{paris}}"],
    [r"\boxed{x+1}"],
    [r"\boxed{y+1}"],
    [r"\boxed{[0,1)}"],
    [r"\boxed{[0,1]}"],
    [r"\boxed{10^{10^{10}}}"],
    [r"\boxed{10^{10^{11}}}"],
    [r"\boxed{99999!}"],
    [r"\boxed{99999}"],
    [r"\boxed{-3}"],
    [r"\boxed{3}"],
]


def test_spellings_of_one_answer_are_equal_and_no_two_answers_are():
    rows = [{math_answer(text) for text in spellings} for spellings in MATH]
    assert [len(row) for row in rows] == [1] * len(MATH)
    assert len(set.union(*rows) - {None}) == len(MATH)


def test_a_text_without_mathematics_abstains():
    assert math_answer("I do not know.") is None
    assert math_answer("") is None


@pytest.mark.parametrize("evil", [r"9^{9^{9^9}}", "9" * 10_000 + "!", r"\int_0^1 e^{x^x} dx", "(" * 5000])
def test_nothing_takes_forever(evil):
    began = time.monotonic()
    math_answer(rf"\boxed{{{evil}}}")
    math_answer(f"It is ${evil}$")
    assert time.monotonic() - began < 10


def test_the_majority_is_found_however_it_is_written():
    texts = [
        r"\boxed{3}",
        r"\boxed{\sqrt{12}}",
        r"\boxed{2\sqrt3}",
        r"\boxed{3.0}",
        r"\boxed{\frac{6}{\sqrt3}}",
    ]
    result = rv.elect(texts, similarity="exact:math")
    assert (result.index, result.score) == (1, pytest.approx(0.6))


def test_without_a_reader_of_mathematics_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(answers, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(rv.MissingExtra, match=r'exact:math needs .*pip install "rangevote\[math\]"'):
        answers.get_key("math")


def test_sympy_alone_reads_a_box(monkeypatch):
    pytest.importorskip("lark", reason="sympy's parser of LaTeX is not installed")
    monkeypatch.setattr(math_answers, "find_spec", lambda name: name != "math_verify")
    assert math_answer(r"\boxed{\sqrt{8}}") == math_answer(r"\boxed{2\sqrt{2}}")
    assert math_answer(r"\boxed{5}") == math_answer("it is 5")
