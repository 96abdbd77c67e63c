"""Samples changed at random: in the tests, and where atheris, which is led by coverage, is not installed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

LONGEST = 4096
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
NUMBERS = (b"0", b"-1", b"1", b"-0.0", b"1e308", b"-1e308", b"1e400", b"9223372036854775808", b"NaN", b"null")


class Mutations:
    """Inputs made of samples and tokens; the same seed gives the same inputs."""

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes], seed: int) -> None:
        self._seeds, self._tokens = list(seeds) or [b""], list(tokens) or [b"a"]
        self._random = random.Random(seed)

    def next(self) -> bytes:
        """A sample with a few changes."""
        data = self._random.choice(self._seeds)
        for _ in range(self._random.randint(1, 4)):
            data = self._change(data)
        return data[:LONGEST]

    def _change(self, data: bytes) -> bytes:
        choose = self._random.choice
        begin = self._random.randint(0, len(data))
        end = min(len(data), begin + choose((1, 2, 4, 8, 32)))
        match choose(("byte", "token", "token", "cut", "repeat", "end", "splice", "number")):
            case "byte":
                byte = choose((0, 10, 34, 92, 255, self._random.randrange(256)))
                return data[:begin] + bytes([byte]) + data[begin + 1 :]
            case "token":
                return data[:begin] + choose(self._tokens) + data[choose((begin, end)) :]
            case "cut":
                return data[:begin] + data[end:]
            case "repeat":
                return data[:end] + data[begin:end] * choose((1, 2, 50)) + data[end:]
            case "end":
                return data[:begin]
            case "splice":
                other = choose(self._seeds)
                return data[:begin] + other[self._random.randint(0, len(other)) :]
        numbers = list(_NUMBER.finditer(data))
        if not numbers:
            return data
        number = choose(numbers)
        return data[: number.start()] + choose(NUMBERS) + data[number.end() :]


def smallest(data: bytes, bad: Callable[[bytes], bool], tries: int = 2000) -> bytes:
    """A shorter input that is bad as well: parts are left out, large ones first."""
    size = max(1, len(data) // 2)
    while size and tries > 0:
        begin = 0
        while begin < len(data) and tries > 0:
            less = data[:begin] + data[begin + size :]
            tries -= 1
            if bad(less):
                data = less
            else:
                begin += size
        size //= 2
    return data
