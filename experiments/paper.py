"""The numbers of the paper's tables and text (Borgeaud and Emerson 2020), typed in.

Captions: MSCOCO, 40,504 validation images. Translation: newstest2014 English-German, 2,737 sentences,
Transformer big. Voting on translations is on the beams with the copy filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One quantity: the table's number, the beam sizes, a row for each method, and the references' own."""

    table: int
    ks: tuple[int, ...]
    rows: Mapping[str, tuple[float, ...]]
    references: float | None = None

    def at(self, method: str, k: int) -> float | None:
        """One number, None where the table has none."""
        if method not in self.rows or k not in self.ks:
            return None
        return self.rows[method][self.ks.index(k)]


CAPTION_METHODS = (
    *("beam", "length_normalised", "diverse_decoding", "overlap_1", "precision_1"),
    *("overlap_2", "precision_2", "states", "bleu_4", "smoothed_bleu_4"),
)
TRANSLATION_METHODS = (
    *("beam", "length_normalised", "diverse_decoding", "diverse_beam", "no_copy", "overlap_1"),
    *("precision_1", "overlap_2", "precision_2", "states", "bleu_4", "smoothed_bleu_4"),
)


def _rows(methods: tuple[str, ...], text: str) -> dict[str, tuple[float, ...]]:
    """A block of numbers, one line a method, in the order of the paper's tables."""
    lines = [tuple(map(float, line.split())) for line in text.strip().splitlines()]
    return dict(zip(methods, lines, strict=True))


_BLEU_1 = """
66.66 67.97 67.22 66.18
66.66 68.47 64.72 63.10
66.66 67.90 67.24 66.43
66.66 68.55 66.26 66.36
66.66 68.54 66.31 66.46
66.66 68.20 67.36 67.19
66.66 68.20 67.63 67.21
66.66 67.97 68.42 69.10
66.66 67.93 67.66 68.56
66.66 67.98 67.87 69.45
"""
_BLEU_4 = """
25.39 26.83 27.16 26.31
25.39 26.72 25.76 24.72
25.39 26.68 26.93 26.37
25.39 26.47 25.61 24.60
25.39 26.47 25.62 24.58
25.39 26.82 27.22 27.13
25.39 26.82 27.23 27.13
25.39 26.83 27.96 28.23
25.39 26.83 27.80 28.71
25.39 26.84 27.89 29.19
"""
_CAPTIONS = """
9208 5488 4150
9978 6418 5039
9942 6424 4403
10727 8916 10808
10727 8902 10768
9519 7598 9221
9522 7590 9248
9208 7613 10133
9159 6512 6763
9206 6522 7019
"""
_UNIGRAMS = """
668 621 605
681 627 587
672 646 612
687 646 628
687 645 638
673 620 580
673 620 581
668 629 655
667 612 570
667 613 560
"""
_BIGRAMS = """
3395 2778 2479
3502 2863 2471
3402 3023 2561
3576 3232 3596
3572 3238 3607
3446 2854 2887
3444 2848 2892
3395 2891 3331
3392 2666 2446
3396 2675 2415
"""
_CAPTION_LENGTH = """
8.41 8.79 9.18 9.11
8.41 9.19 10.24 10.43
8.41 8.71 9.12 9.15
8.41 9.22 10.40 11.20
8.41 9.21 10.38 11.15
8.41 8.96 9.86 10.55
8.41 8.96 9.86 10.55
8.41 8.79 9.17 8.82
8.41 8.77 9.27 9.32
8.41 8.79 9.24 9.13
"""
_BLEU = """
24.04 25.10 25.36 24.91 23.46 20.56
24.04 25.19 25.59 25.55 24.40 21.78
24.04 24.88 25.17 24.71 23.49 20.82
24.04 24.55 24.70 23.93 22.14 18.38
23.96 25.10 25.43 25.23 24.38 22.59
23.96 25.17 25.48 25.55 24.97 24.20
23.96 25.17 25.47 25.54 24.95 24.21
23.96 25.14 25.49 25.70 25.08 24.62
23.96 25.20 25.53 25.39 24.69 23.96
23.96 25.10 25.44 25.51 24.67 23.36
23.96 25.09 25.42 25.51 24.79 23.53
23.96 25.10 25.42 25.51 24.81 23.65
"""
_LENGTH = """
19.74 19.53 19.42 19.15 18.88 17.99
19.74 19.86 20.02 20.19 20.36 21.09
19.74 19.57 19.38 19.19 19.08 18.69
19.74 19.33 19.13 18.60 17.93 16.68
19.66 19.50 19.39 19.09 18.73 17.59
19.66 19.79 19.86 19.93 20.03 19.96
19.66 19.79 19.86 19.93 20.03 19.96
19.66 19.69 19.70 19.67 19.61 19.39
19.66 19.95 19.98 20.09 20.21 20.36
19.66 19.50 19.48 19.31 19.12 18.27
19.66 19.50 19.46 19.28 19.06 18.18
19.66 19.50 19.46 19.28 19.06 18.30
"""
_TRANSLATION_BIGRAMS = """
38629 39029 39205 38894 38424 37135
38629 39445 39971 40263 40638 41195
38629 39307 39217 38989 38870 38227
38629 38661 38611 37740 36575 34266
38473 38956 39073 38593 37694 35609
38473 39353 39743 39775 39636 39334
38473 39354 39739 39772 39634 39334
38473 39221 39528 39396 39015 38526
38473 39617 39955 40195 40170 40426
38473 38956 39223 38930 38277 36787
38473 38957 39157 38792 38166 36564
38473 38961 39169 38799 38166 36645
"""

_KS, _DIVERSE_KS, _MT_KS = (1, 2, 10, 100), (2, 10, 100), (1, 2, 4, 10, 30, 100)
#: experiment -> metric -> the paper's numbers
TABLES: dict[str, dict[str, Published]] = {
    "captions": {
        "bleu_1": Published(1, _KS, _rows(CAPTION_METHODS, _BLEU_1)),
        "bleu_4": Published(1, _KS, _rows(CAPTION_METHODS, _BLEU_4)),
        "distinct_outputs": Published(2, _DIVERSE_KS, _rows(CAPTION_METHODS, _CAPTIONS)),
        "distinct_unigrams": Published(2, _DIVERSE_KS, _rows(CAPTION_METHODS, _UNIGRAMS)),
        "distinct_bigrams": Published(2, _DIVERSE_KS, _rows(CAPTION_METHODS, _BIGRAMS)),
        "length": Published(3, _KS, _rows(CAPTION_METHODS, _CAPTION_LENGTH), 10.59),
    },
    "translation": {
        "bleu": Published(4, _MT_KS, _rows(TRANSLATION_METHODS, _BLEU)),
        "length": Published(5, _MT_KS, _rows(TRANSLATION_METHODS, _LENGTH), 21.66),
        "distinct_bigrams": Published(6, _MT_KS, _rows(TRANSLATION_METHODS, _TRANSLATION_BIGRAMS), 39533),
    },
}
#: experiment -> sampling method -> BLEU (sections 4.1.1 and 4.2.1)
SAMPLING = {
    "captions": {"top_k_4": 17.15, "top_k_10": 13.79, "nucleus": 13.62},
    "translation": {"top_k_4": 17.39, "top_k_10": 15.21, "nucleus": 10.10},
}
#: k -> percent of beam search's outputs that are copies of the source (section 4.2)
EXACT_COPIES, PARTIAL_COPIES = {4: 0.4, 100: 3.8}, {4: 1.3, 100: 12.4}
#: method -> k -> percent of the winners missing at k = 100 ("about"), and chosen again (section 4.2.1)
ABSENT = {"beam": {4: 10.0, 10: 5.0}, "overlap_2": {4: 10.0, 10: 5.0}}
AGAIN = {"beam": {4: 48.0, 10: 61.0}, "overlap_2": {4: 32.0, 10: 36.0}}
