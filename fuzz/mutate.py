"""Inputs by chance where no coverage leads the way: in the tests, and where atheris is not installed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

MOST = 4096
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
NUMBERS = (b"0", b"-1", b"1", b"-0.0", b"1e308", b"-1e308", b"1e400", b"9223372036854775808", b"NaN", b"null")


class Mutations:
    """Inputs made of samples and tokens; the same seed gives the same inputs."""

    def __init__(self, seeds: Sequence[bytes], tokens: Sequence[bytes], seed: int) -> None:
        self._seeds, self._tokens = list(seeds) or [b""], list(tokens) or [b"a"]
        self._random = random.Random(seed)

    def next(self) -> bytes:
        """A sample, changed in a few places."""
        data = self._random.choice(self._seeds)
        for _ in range(self._random.randint(1, 4)):
            data = self._random.choice(CHANGES)(self, data)
        return data[:MOST]

    def _span(self, data: bytes) -> tuple[int, int]:
        begin = self._random.randint(0, len(data))
        return begin, min(len(data), begin + self._random.choice((1, 2, 4, 8, 32)))

    def _byte(self, data: bytes) -> bytes:
        begin, _ = self._span(data)
        return (
            data[:begin]
            + bytes([self._random.choice((0, 10, 34, 92, 255, self._random.randrange(256)))])
            + data[begin + 1 :]
        )

    def _token(self, data: bytes) -> bytes:
        begin, end = self._span(data)
        return data[:begin] + self._random.choice(self._tokens) + data[self._random.choice((begin, end)) :]

    def _cut(self, data: bytes) -> bytes:
        begin, end = self._span(data)
        return data[:begin] + data[end:]

    def _again(self, data: bytes) -> bytes:
        begin, end = self._span(data)
        return data[:end] + data[begin:end] * self._random.choice((1, 2, 50)) + data[end:]

    def _end(self, data: bytes) -> bytes:
        return data[: self._span(data)[0]]

    def _splice(self, data: bytes) -> bytes:
        other = self._random.choice(self._seeds)
        return data[: self._span(data)[0]] + other[self._span(other)[0] :]

    def _number(self, data: bytes) -> bytes:
        found = list(_NUMBER.finditer(data))
        if not found:
            return data
        one = self._random.choice(found)
        return data[: one.start()] + self._random.choice(NUMBERS) + data[one.end() :]


CHANGES: tuple[Callable[[Mutations, bytes], bytes], ...] = (
    Mutations._byte,
    Mutations._token,
    Mutations._token,
    Mutations._cut,
    Mutations._again,
    Mutations._end,
    Mutations._splice,
    Mutations._number,
)


def smallest(data: bytes, bad: Callable[[bytes], bool], tries: int = 2000) -> bytes:
    """A shorter input that is bad as well: parts are left out, large ones first, as long as that goes on."""
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
