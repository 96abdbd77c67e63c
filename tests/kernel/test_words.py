"""The unit "words": both kernels cut every text alike, by the committed table."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.kernel.plain import word_spans, words
from tests.kernel.both import compiled, each_kernel, needs_compiled


def same_words(kernel, text: str, expected: list[str]) -> bool:
    """Whether a text has just these words; they are read as words too, which must leave them as they are."""
    index = kernel.Index([text, " ".join(expected)], "words", [1, 2], True, True)
    return bool((index.grades(0.0, True) == 1.0).all())


@each_kernel
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is PARIS!", ["it", "is", "paris", "!"]),
        ("l'État l ' état", ["l", "'", "état", "l", "'", "état"]),
        ("don't e-mail 3.5% m² ½", ["don", "'", "t", "e", "-", "mail", "3", ".", "5", "%", "m²", "½"]),
        ("Straße ΟΔΟΣ οδος İstanbul ſ", ["straße", "οδοσ", "οδοσ", "istanbul", "s"]),
        ("你好, 世界 カタカナ ひらがな", [*"你好,世界カタカナひらがな"]),
        ("กิน ກິນ 123", ["กิ", "น", "ກິ", "ນ", "123"]),
        ("한국어 русский", ["한국어", "русский"]),
        ("co\u00adope\u200drate a\u00a0b\u3000c\x00d", ["cooperate", "a", "b", "c", "d"]),
        ("e\u0301t\u0301 =\u0338 \u0301x", ["e\u0301t\u0301", "=\u0338", "\u0301x"]),
        ("❤\ufe0f👍🏽x", ["❤", "👍", "🏽", "x"]),
        ("a" * 30 + "." * 3 + "B" * 17, ["a" * 30, ".", ".", ".", "b" * 17]),
    ],
)
def test_words_are_runs_of_letters_marks_and_digits_in_lower_case(kernel, text, expected):
    assert words(text) == expected
    assert same_words(kernel, text, expected)
    spans = [text[begin:end] for begin, end in word_spans(text)]
    assert [words(span) for span in spans] == [[word] for word in expected]


@needs_compiled
def test_every_code_point_is_cut_alike():
    for first in range(0, sys.maxunicode + 1, 256):
        if 0xD800 <= first < 0xE000:  # surrogates are no characters
            continue
        points = map(chr, range(first, first + 256))
        text = " ".join(f"a{one}B{one} {one}{one}x" for one in points)
        assert same_words(compiled, text, words(text)), hex(first)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_words_read_again_are_themselves(text):
    found = words(text)
    assert words(" ".join(found)) == found
