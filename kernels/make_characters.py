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
    """The kind of every code point. One that is not assigned is like its neighbours, else alone."""
    known = [kind(point) for point in range(sys.maxunicode + 1)]
    filled: list[int] = []
    start = 0
    while start < len(known):
        end = start
        while end < len(known) and known[end] is None:
            end += 1
        if end > start:
            before, after = filled[-1] if filled else None, known[end] if end < len(known) else None
            filled += [WORD if before == after == WORD else ALONE] * (end - start)
        if end < len(known):
            filled.append(known[end] or 0)
        start = end + 1
    return filled


def rows() -> list[tuple[int, int, int]]:
    """The fewest rows from left to right: each goes on for as long as one shift serves."""
    every, found = kinds(), []
    shifts = [lower(point) - point for point in range(len(every))]

    def serves(shift: int, point: int) -> bool:
        if shift in (EVEN, ODD):
            return shifts[point] == (1 if point % 2 == shift - EVEN else 0)
        return shifts[point] == shift

    start = 0
    while start < len(every):
        ends = {}
        for shift in (shifts[start], EVEN, ODD):
            end = start
            while end < len(every) and every[end] == every[start] and serves(shift, end):
                end += 1
            ends[shift] = end
        shift = max(ends, key=lambda one: (ends[one], one == shifts[start]))
        found.append((start, every[start], shift))
        start = ends[shift]
    return found


if __name__ == "__main__":
    lines = [
        f"// Unicode {unicodedata.unidata_version}, written by kernels/make_characters.py: first, kind, shift"
    ]
    lines += [f"{first},{kind},{shift}," for first, kind, shift in rows()]
    OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
