"""What KenLM says, in natural logs, and ARPA files made by hand for it to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest


def arpa(*sections: Sequence[str], end: str = "\\end\\\n") -> str:
    """An ARPA file with these lines in its sections; a space after the first field stands for a tab."""
    text = "\\data\\\n" + "".join(f"ngram {n}={len(section)}\n" for n, section in enumerate(sections, 1))
    for n, section in enumerate(sections, 1):
        text += f"\n\\{n}-grams:\n" + "".join(f"{_tabbed(line, n)}\n" for line in section)
    return text + "\n" + end


def _tabbed(line: str, n: int) -> str:
    fields = line.split(" ")
    return "\t".join([fields[0], " ".join(fields[1 : n + 1]), *fields[n + 1 :]])


def kenlm_scores(path: Path, sentences: Sequence[str]) -> list[np.ndarray]:
    """KenLM's natural log P of each word and of the end, for each sentence."""
    kenlm = pytest.importorskip("kenlm", reason="kenlm, the judge of n-gram scores, is not installed")
    config = kenlm.Config()
    config.show_progress, config.arpa_complain = False, kenlm.ARPALoadComplain.NONE
    model = kenlm.Model(str(path), config)
    return [
        np.array([logprob for logprob, _, _ in model.full_scores(sentence)]) * math.log(10)
        for sentence in sentences
    ]


def every_sentence(words: Sequence[str], length: int) -> list[str]:
    """All sentences of up to `length` of these words."""
    found, last = [""], [""]
    for _ in range(length):
        last = [f"{sentence} {word}".strip() for sentence in last for word in words]
        found += last
    return found
