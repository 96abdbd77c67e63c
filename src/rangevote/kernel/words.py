"""The unit "words": what n-grams are made of where texts are not cut at white space alone.

A word is a run of letters, marks and digits in lower case; every other visible character is a word by
itself, and so is every letter of the scripts that put no spaces between words (Han, Kana, Thai, Lao, Khmer,
Myanmar). A mark belongs to the character before it. Invisible characters, such as soft hyphens, are left
out.

>>> words("It is PARIS!"), words("l'État"), words("你好, world")
(['it', 'is', 'paris', '!'], ['l', "'", 'état'], ['你', '好', ',', 'world'])

`characters.inc` says what each character is (`kernels/make_characters.py`); the compiled kernels use the
same table.
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import cache
from pathlib import Path

#: The kinds of characters: white space, left out, letter or digit, mark, a word by itself.
KINDS = "skwma"
_EVEN, _ODD = 1 << 21, (1 << 21) + 1
#: A word, in a text whose characters are written as their kinds.
_WORD = re.compile("[wm](?:k*[wm])*|a(?:k*m)*")


@cache
def _rows() -> tuple[list[int], list[tuple[int, int]]]:
    """Where each row of the table begins, and its kind and shift."""
    lines = Path(__file__).with_name("characters.inc").read_text(encoding="utf-8").splitlines()[1:]
    rows = [tuple(map(int, line.rstrip(",").split(","))) for line in lines]
    return [first for first, _, _ in rows], [(kind, shift) for _, kind, shift in rows]


class _Kinds(dict[int, str]):
    """Code point -> kind, looked up in the table once."""

    def __missing__(self, point: int) -> str:
        firsts, rows = _rows()
        self[point] = KINDS[rows[bisect(firsts, point) - 1][0]]
        return self[point]


class _Lower(dict[int, int | None]):
    """Code point -> lower case, None where it is left out."""

    def __missing__(self, point: int) -> int | None:
        firsts, rows = _rows()
        kind, shift = rows[bisect(firsts, point) - 1]
        if shift in (_EVEN, _ODD):
            shift = int(point % 2 == shift - _EVEN)
        self[point] = None if KINDS[kind] == "k" else point + shift
        return self[point]


_kinds, _lower = _Kinds(), _Lower()


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end."""
    return [match.span() for match in _WORD.finditer(text.translate(_kinds))]


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return [text[begin:end].translate(_lower) for begin, end in word_spans(text)]
