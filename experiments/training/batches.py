"""Which examples go together: those of like lengths, so that little is padding, in an order of chance."""

from __future__ import annotations

import numpy as np

from rangevote.models.protocol import Integers


def batches(lengths: Integers, tokens: int, rng: np.random.Generator | None = None) -> list[Integers]:
    """Numbers of examples, batch by batch; `lengths` (examples, sides) in tokens.

    A batch's examples times the longest side of any of them is at most `tokens`, but for examples that are
    longer alone. With `rng` examples of equal lengths are mixed, and so are the batches; their number is the
    same for every draw, since only equal lengths change places. Without it they go from short to long.
    """
    order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
    widest = lengths.max(axis=1)  # (examples,)
    by_length = np.lexsort((*lengths[order].T, widest[order]))  # stable: equals stay in their order of chance
    order = order[by_length]
    found = [order[first:last] for first, last in _cuts(widest[order].tolist(), tokens)]
    if rng is None:
        return found
    return [found[number] for number in rng.permutation(len(found))]


def _cuts(rising: list[int], tokens: int) -> list[tuple[int, int]]:
    """Where each batch begins and ends, in lengths that never fall."""
    found, first = [], 0
    for last, length in enumerate(rising):
        if last > first and (last + 1 - first) * length > tokens:
            found.append((first, last))
            first = last
    return [*found, (first, len(rising))] if rising else []
