"""Which of the two outputs stands on the left, for each annotator and item."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rangevote.study.chance import coin, shuffled

#: Items in a block of which half have their sides swapped.
BLOCK = 10

#: (seed, annotator, keys of the items in the order of being seen) -> for each, whether its sides are swapped
Sides = Callable[[int, str, Sequence[str]], list[bool]]


def coins(seed: int, annotator: str, keys: Sequence[str]) -> list[bool]:
    """A fair coin for each annotator and item, as in the paper."""
    return [coin(seed, "side", annotator, key) for key in keys]


def balanced(seed: int, annotator: str, keys: Sequence[str]) -> list[bool]:
    """Half of each block of ten is swapped, so that a lean to one side favours neither system."""
    swapped: list[bool] = []
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        mixed = shuffled(block, seed, "side", annotator, start)
        odd = len(block) % 2 and coin(seed, "odd", annotator, start)
        chosen = set(mixed[: len(block) // 2 + odd])
        swapped += [key in chosen for key in block]
    return swapped


SIDES: dict[str, Sides] = {"balanced": balanced, "coin": coins}


def resolved(shown: int, swapped: bool) -> int:
    """What an answer means for the second system: -2 (the first is much better) to 2 (the second is).

    `shown` is -2 (left much better) to 2 (right much better); the second system stands on the right unless
    the sides are swapped.
    """
    return -shown if swapped else shown
