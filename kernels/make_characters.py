"""Write `src/rangevote/kernel/characters.inc`: what the unit "words" makes of every character.

    python kernels/make_characters.py

The table is committed, so that results do not change with the Unicode version of a Python. A row is `first,
kind, shift`: the characters from `first` to the next row are of one kind, and their lower case is `shift`
further on (EVEN: that of even ones is the next; ODD: that of odd ones). C++ includes the file, Python reads
it.
"""

from __future__ import annotations

import sys
import unicodedata
from itertools import groupby
from pathlib import Path

SPACE, SKIP, WORD, MARK, ALONE = range(5)
EVEN, ODD = 1 << 21, (1 << 21) + 1
#: How the names of letters begin whose scripts put no spaces between words.
WITHOUT_SPACES = (
    *("CJK UNIFIED", "CJK COMPATIBILITY IDEO", "IDEOGRAPHIC", "HANGZHOU", "HIRAGANA", "KATAKANA"),
    *("HALFWIDTH KATAKANA", "HENTAIGANA", "THAI", "LAO", "KHMER", "MYANMAR"),
)
#: Invisible characters that Unicode counts among the marks: variation selectors, the grapheme joiner.
INVISIBLE = {0x034F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
OUTPUT = Path(__file__).parents[1] / "src" / "rangevote" / "kernel" / "characters.inc"


def kind(point: int) -> int | None:
    """The kind of a character; None where none is assigned."""
    character = chr(point)
    category = unicodedata.category(character)
    if category == "Cn":
        return None
    if character.isspace() or category == "Cc":
        return SPACE
    if category == "Cf" or point in INVISIBLE:
        return SKIP
    if category[0] == "M":
        return MARK
    if category in ("Lo", "Lm", "Nl") and unicodedata.name(character, "").startswith(WITHOUT_SPACES):
        return ALONE
    return WORD if category[0] in "LN" else ALONE


def lower(point: int) -> int:
    """The lower case, by case folding where that is one character."""
    if point == 0x130:  # whose lower case is i with a dot above; Unicode's simple mapping is i
        return ord("i")
    for folded in (chr(point).casefold(), chr(point).lower()):
        if len(folded) == 1:
            return ord(folded)
    return point


def kinds() -> list[int]:
    """The kind of every code point. Those that are not assigned are words between words, otherwise alone."""
    runs = [(value, len(list(run))) for value, run in groupby(map(kind, range(sys.maxunicode + 1)))]
    filled: list[int] = []
    for i, (value, size) in enumerate(runs):
        if value is None:
            beside = [other for other, _ in runs[i - 1 : i + 2 : 2]]
            value = WORD if beside == [WORD, WORD] else ALONE
        filled += [value] * size
    return filled


def rows() -> list[tuple[int, int, int]]:
    """The fewest rows from left to right: each goes on for as long as one shift serves."""
    every, table = kinds(), []
    shifts = [lower(point) - point for point in range(len(every))]

    def end_of(start: int, shift: int) -> int:
        """Where a row with this shift ends."""
        for point in range(start, len(every)):
            expected = int(point % 2 == shift - EVEN) if shift in (EVEN, ODD) else shift
            if every[point] != every[start] or shifts[point] != expected:
                return point
        return len(every)

    start = 0
    while start < len(every):
        shift = max((shifts[start], EVEN, ODD), key=lambda shift: end_of(start, shift))
        table.append((start, every[start], shift))
        start = end_of(start, shift)
    return table


if __name__ == "__main__":
    lines = [
        f"// Unicode {unicodedata.unidata_version}, written by kernels/make_characters.py: first, kind, shift"
    ]
    lines += [f"{first},{kind},{shift}," for first, kind, shift in rows()]
    OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
