"""What n-grams are made of: both kernels cut every text where Python does, or by the committed table."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.kernel.plain import UNITS, word_spans, words
from tests.kernel.both import compiled, each_kernel, needs_compiled

SPACES = [chr(i) for i in range(sys.maxunicode + 1) if chr(i).isspace()]
#: Bytes that begin wide white space, without being it; and control characters that are no white space.
NEARLY = [*"\u00ab\u2013\u200b\u1681\u3001\x00\x01\x1b\x7f\x80é日😀"]


def same_words(kernel, text: str, expected: list[str], unit: str) -> bool:
    """Whether a text has just these words; they are cut by the unit too, but are as many only if whole."""
    index = kernel.Index([text, "\n".join(expected), "\n".join(expected[:-1])], unit, [1], True, True)
    grades = index.grades(0.0, True)
    size = max(1, len(expected))
    return (
        grades[0, 1] == grades[1, 0] == bool(expected) and grades[0, 2] == (len(expected or " ") - 1) / size
    )


@each_kernel
@pytest.mark.parametrize("before", [0, 1, 8, 15, 16])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 24, 40])
def test_words_of_every_length_at_every_place(kernel, before, length):
    words = ["x" * before, "abcdefgh" * 5][0 if before else 1 :]
    words[-1] = words[-1][:length]
    for tail in ([], ["z"], ["z" * 20]):
        assert same_words(kernel, " ".join(words + tail), words + tail, "space")
        # one letter less is another word
        assert not same_words(
            kernel, " ".join(words + tail), [*words[:-1], words[-1][:-1] + "!", *tail], "space"
        )


@each_kernel
@given(
    st.lists(st.sampled_from([*"ab", "ä", *NEARLY, *SPACES, " ", " ", "abcdefg", "hijklmnop"]), max_size=30)
)
def test_any_text_splits_as_in_python(kernel, parts):
    text = "".join(parts)
    assert same_words(kernel, text, text.split(), "space")


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
    assert same_words(kernel, text, expected, "words")
    spans = [text[begin:end] for begin, end in word_spans(text)]
    assert [words(span) for span in spans] == [[word] for word in expected]


@needs_compiled
@pytest.mark.parametrize("unit", ["space", "words", "chars"])
def test_every_code_point_is_cut_alike(unit):
    for first in range(0, sys.maxunicode + 1, 256):
        if 0xD800 <= first < 0xE000:  # surrogates are no characters
            continue
        points = map(chr, range(first, first + 256))
        text = " ".join(f"a{one}B{one} {one}{one}x" for one in points)
        assert same_words(compiled, text, list(UNITS[unit](text)), unit), hex(first)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_words_read_again_are_themselves(text):
    found = words(text)
    assert words(" ".join(found)) == found
