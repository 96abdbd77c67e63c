"""The ids met so far, in little memory: numbered ones as runs, others as digests of 16 bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from hashlib import blake2b

#: Runs that are kept; an id that begins one more is kept as a digest.
MOST_RUNS = 4096
#: Digits of a number that may be part of a run; longer ones are texts.
MOST_DIGITS = 18
#: Parts of the table of digests; each grows by itself, so that no growth takes long.
PARTS = 256
#: Share of a part that may be filled before it grows, and by how much it does.
FULL, GROWTH = 0.75, 1.5
_DIGITS = "0123456789"

Series = tuple[str | None, int]  # what stands before the number (None: the id is an integer), its width


class Ids:
    """A set of ids that takes no memory to speak of for `0, 1, 2, ...` or `doc-0001, doc-0002, ...`, and
    about 30 bytes for any other id, where Python's own set takes 100 and more."""

    def __init__(self) -> None:
        self._series: dict[Series, Runs] = {}
        self._runs = 0
        self._parts: dict[int, Part] = {}

    def add(self, id: str | int) -> bool:
        """Take an id in; whether it is new."""
        series, number = _split(id)
        if number is None:
            return self._digest(id)
        runs = self._series.get(series)
        if runs is not None and number in runs:
            return False
        if self._parts and self._has_digest(id):
            return False
        if runs is not None and runs.extend(number):
            return True
        if self._runs >= MOST_RUNS:
            return self._digest(id)
        self._runs += 1
        self._series.setdefault(series, Runs()).begin(number)
        return True

    def _digest(self, id: str | int) -> bool:
        place, key = _digest_of(id)
        return self._parts.setdefault(place, Part()).add(*key)

    def _has_digest(self, id: str | int) -> bool:
        place, key = _digest_of(id)
        part = self._parts.get(place)
        return part is not None and part.slot(*key)[1]


class Runs:
    """Numbers without gaps between a first and a last one."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._last: dict[int, int] = {}  # of the run that begins there

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._last[self._firsts[place]]

    def extend(self, number: int) -> bool:
        """Make the number the last one of a run, if it comes right after one."""
        place = bisect_right(self._firsts, number) - 1
        if place < 0 or self._last[self._firsts[place]] != number - 1:
            return False
        self._last[self._firsts[place]] = number
        return True

    def begin(self, number: int) -> None:
        """A run that begins and ends here."""
        insort(self._firsts, number)
        self._last[number] = number


class Part:
    """A table of keys of two 64-bit numbers, open addressing with linear probing; (0, 0) is empty."""

    def __init__(self, size: int = 16) -> None:
        self._keys = array("Q", bytes(16 * size))
        self._size, self._used = size, 0

    def slot(self, high: int, low: int) -> tuple[int, bool]:
        """Where the key is or would be, and whether it is there."""
        keys, place = self._keys, low % self._size
        while True:
            first, second = keys[2 * place], keys[2 * place + 1]
            if first == high and second == low:
                return place, True
            if not first and not second:
                return place, False
            place = place + 1 if place + 1 < self._size else 0

    def add(self, high: int, low: int) -> bool:
        """Take a key in; whether it is new."""
        place, there = self.slot(high, low)
        if there:
            return False
        self._keys[2 * place], self._keys[2 * place + 1] = high, low
        self._used += 1
        if self._used > FULL * self._size:
            self._grow()
        return True

    def _grow(self) -> None:
        old = self._keys
        self._size = int(self._size * GROWTH) + 1
        self._keys = array("Q", bytes(16 * self._size))
        for i in range(0, len(old), 2):
            if old[i] or old[i + 1]:
                place, _ = self.slot(old[i], old[i + 1])
                self._keys[2 * place], self._keys[2 * place + 1] = old[i], old[i + 1]


def _split(id: str | int) -> tuple[Series, int | None]:
    """The series an id belongs to and its number there; no number if it has none."""
    if isinstance(id, int):
        return (None, 0), id
    head = id.rstrip(_DIGITS)
    digits = id[len(head) :]
    if not digits or len(digits) > MOST_DIGITS:
        return (head, 0), None
    # leading zeros belong to the name of the series: 07 is not 7
    return (head, len(digits) if digits[0] == "0" else 0), int(digits)


def _digest_of(id: str | int) -> tuple[int, tuple[int, int]]:
    """The part of the table, and the key in it; 1 and "1" are two ids."""
    named = f"{'i' if isinstance(id, int) else 's'}{id}"
    digest = blake2b(named.encode("utf-8", "surrogatepass"), digest_size=17).digest()
    high, low = int.from_bytes(digest[1:9], "little"), int.from_bytes(digest[9:], "little")
    return digest[0], (high, low or 1)
