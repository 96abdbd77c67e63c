"""Words are split exactly where Python splits them, however long they are and wherever they stand."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.both import each_kernel

SPACES = [chr(i) for i in range(sys.maxunicode + 1) if chr(i).isspace()]
#: Bytes that begin wide white space, without being it; and control characters that are no white space.
NEARLY = [*"\u00ab\u2013\u200b\u1681\u3001\x00\x01\x1b\x7f\x80é日😀"]


def same_words(kernel, text: str, words: list[str]) -> bool:
    """Whether a text has just these words: as bags they are equal, and so in both directions."""
    index = kernel.Index([text], "space", [1], True, True)
    index.add(["\n".join(words)])
    return index.grades(0.0, False)[0, 0] == 1.0 and index.grades(1.0, False)[0, 0] == 1.0


@each_kernel
@pytest.mark.parametrize("before", [0, 1, 8, 15, 16])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 24, 40])
def test_words_of_every_length_at_every_place(kernel, before, length):
    words = ["x" * before, "abcdefgh" * 5][0 if before else 1 :]
    words[-1] = words[-1][:length]
    for tail in ([], ["z"], ["z" * 20]):
        assert same_words(kernel, " ".join(words + tail), words + tail)
        # one letter less is another word
        assert not same_words(kernel, " ".join(words + tail), [*words[:-1], words[-1][:-1] + "!", *tail])


@each_kernel
@pytest.mark.parametrize("character", NEARLY, ids=lambda c: f"U+{ord(c):04X}")
@pytest.mark.parametrize("length", [0, 7, 15])
def test_what_is_nearly_white_space_does_not_split(kernel, character, length):
    text = f"{'a' * length}{character}b c{character} {character}"
    assert len(text.split()) == 3
    assert same_words(kernel, text, text.split())


@each_kernel
@given(
    st.lists(st.sampled_from([*"ab", "ä", *NEARLY, *SPACES, " ", " ", "abcdefg", "hijklmnop"]), max_size=30)
)
def test_any_text_splits_as_in_python(kernel, parts):
    text = "".join(parts)
    words = text.split()
    index = kernel.Index([text, " ".join(words)], "space", [1, 2], True, True)
    grades = index.grades(0.0, True)
    assert np.all(grades == (1.0 if words else 0.0))
