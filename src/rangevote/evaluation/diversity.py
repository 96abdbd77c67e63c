"""How many different outputs and n-grams there are (Li et al. 2016; tables 2 and 6 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def distinct_outputs(outputs: Sequence[Sequence[str]]) -> int:
    """Different outputs, word by word; the empty one is one of them."""
    return len({tuple(words) for words in outputs})


def distinct_ngrams(order: int) -> Callable[[Sequence[Sequence[str]]], int]:
    """Different n-grams in all outputs together.

    >>> distinct_ngrams(2)([["a", "b", "a"], ["b", "a", "c"]])  # ab, ba, ac
    3
    """

    def count(outputs: Sequence[Sequence[str]]) -> int:
        found: set[tuple[str, ...]] = set()
        for words in outputs:
            found.update(zip(*(words[i:] for i in range(order)), strict=False))
        return len(found)

    return count
