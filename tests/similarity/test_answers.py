"""The keys of exact: which answer is read in a text, and where none is."""

from __future__ import annotations

import pickle
import sys
import time
from fractions import Fraction
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.similarity import exact, math_answers
from rangevote.similarity.answers import boxed, choice, last_number, plain
from rangevote.similarity.exact import Command, get_key
from rangevote.similarity.math_answers import math_answer
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
        ("math x", "write it as 'exact:math'"),
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


needs_math_verify = pytest.mark.skipif(
    find_spec("math_verify") is None, reason="the extra math is not installed"
)

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


@needs_math_verify
def test_spellings_of_one_answer_are_equal_and_no_two_answers_are():
    rows = [{math_answer(text) for text in spellings} for spellings in MATH]
    assert [len(row) for row in rows] == [1] * len(MATH)
    assert len(set.union(*rows) - {None}) == len(MATH)


@needs_math_verify
def test_a_text_without_mathematics_abstains():
    assert math_answer("I do not know.") is None
    assert math_answer("") is None


@needs_math_verify
@pytest.mark.parametrize("evil", [r"9^{9^{9^9}}", "9" * 10_000 + "!", r"\int_0^1 e^{x^x} dx", "(" * 5000])
def test_nothing_takes_forever(evil):
    began = time.monotonic()
    math_answer(rf"\boxed{{{evil}}}")
    math_answer(f"It is ${evil}$")
    assert time.monotonic() - began < 10


@needs_math_verify
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
    monkeypatch.setattr(exact, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(rv.MissingExtra, match=r'exact:math needs .*pip install "rangevote\[math\]"'):
        get_key("math")


@needs_math_verify
def test_sympy_alone_reads_a_box(monkeypatch):
    pytest.importorskip("lark", reason="sympy's parser of LaTeX is not installed")
    monkeypatch.setattr(math_answers, "find_spec", lambda name: name != "math_verify")
    assert math_answer(r"\boxed{\sqrt{8}}") == math_answer(r"\boxed{2\sqrt{2}}")
    assert math_answer(r"\boxed{5}") == math_answer("it is 5")


PYTHON = f"{sys.executable} -I -S"


def test_programs_that_print_the_same_are_one_answer():
    programs = [
        "print(sum(range(4)))",
        "print(7)",
        "raise SystemExit(1)",
        "print(6)",
        "print(2 * 3)",
        "print(7)",
    ]
    result = rv.elect(programs, similarity=f"exact:command={PYTHON}")
    assert (result.index, result.score) == (0, 0.5)
    assert result.groups[0].candidates == (0, 3, 4)


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "while True: print('x' * 10**6)",
        "print(1); raise SystemExit(3)",
        "pass",
        "import os, time; os.fork() or time.sleep(60)\nwhile True: pass",
    ],
)
def test_what_fails_prints_nothing_or_has_no_end_abstains(monkeypatch, program):
    monkeypatch.setenv("RANGEVOTE_COMMAND_SECONDS", "0.5")
    began = time.monotonic()
    assert Command(PYTHON)(program) is None
    assert time.monotonic() - began < 20


def test_no_shell_sees_the_command_and_the_text_comes_on_standard_input(tmp_path):
    evil = tmp_path / "made"
    assert Command(f"cat - ';' touch {evil}")("a") is None  # cat has no file of that name
    assert not evil.exists()
    assert Command("cat")("$(ls) é\n") == "$(ls) é"


def test_a_text_is_handed_over_once(tmp_path):
    log = tmp_path / "log"
    log.touch()
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nopen({str(log)!r}, 'a').write('x')\nprint(len(sys.stdin.read()))")
    result = rv.elect(["ab", "cd", "ab", "abc"], similarity=f"exact:command={PYTHON} {script}")
    assert (result.winner, result.margin, len(result.groups)) == ("ab", 0.5, 2)
    assert log.read_text() == "xxx"


def test_a_signature_tells_commands_apart_without_showing_them():
    names = [Command(f"cat --secret={n}").__name__ for n in (1, 2)]
    assert names[0] != names[1]
    assert all(name.startswith("command=cat#") and "secret" not in name for name in names)


def test_a_time_limit_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("RANGEVOTE_COMMAND_SECONDS", "soon")
    with pytest.raises(rv.UsageError, match="RANGEVOTE_COMMAND_SECONDS is 'soon'"):
        Command("cat")
