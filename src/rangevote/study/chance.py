"""Seeded chance that depends on names and nothing else: not on the order of calls, nor Python's version."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def draw(seed: int, *names: object) -> int:
    """128 bits for these names: the first half of HMAC-SHA256(seed, names).

    Every name goes in with its length, so that no two lists of names are the same message.
    """
    message = b"".join(b"%d:%b" % (len(part), part) for part in (str(name).encode() for name in names))
    return int.from_bytes(hmac.digest(str(seed).encode(), message, hashlib.sha256)[:16], "big")


def coin(seed: int, *names: object) -> bool:
    """Heads or tails."""
    return bool(draw(seed, *names) & 1)


def shuffled(values: Iterable[T], seed: int, *names: object) -> list[T]:
    """The values in random order; it depends on how they are written (`str`)."""
    return sorted(values, key=lambda value: draw(seed, *names, value))
