"""rangevote, called as a user calls it: texts and log-probabilities in, a winner out."""

from __future__ import annotations

from collections.abc import Iterable

import rangevote as rv
from rangevote import kernel


def elect(texts: list[str], logprobs: list[float], *, similarity: str) -> tuple[int, Iterable[float]]:
    """The winner's index and all scores."""
    result = rv.elect(texts, logprobs, similarity=similarity)
    return result.index, result.scores


def version() -> str:
    """Which rangevote, and whether its kernels are the compiled ones."""
    return f"{rv.__version__} ({'compiled' if kernel.COMPILED else 'plain'} kernels)"
