"""Who is asking: a secret link for each annotator, and patience only for a few wrong ones."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from rangevote.study.plan import Annotator

#: Wrong links that one address may try within so many seconds.
MOST_WRONG, WINDOW = 20, 60.0
_MOST_ADDRESSES = 10_000


class Unknown(Exception):
    """A link that nobody has; `wait` is the number of seconds to stay away, 0 for none."""

    def __init__(self, wait: int = 0) -> None:
        super().__init__()
        self.wait = wait


class Doorkeeper:
    """Knows the links by their digests. Addresses are held in memory while they matter and never written.

    Once an address has tried too many wrong links, only the links that it used before are looked at: so
    guessing is slow, and those at work behind the same address are not disturbed.
    """

    def __init__(self, annotators: Sequence[Annotator], clock: Callable[[], float] = time.monotonic) -> None:
        self._numbers = {digest(one.token): number for number, one in enumerate(annotators)}
        self._clock = clock
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._welcome: dict[str, set[bytes]] = {}

    def annotator(self, authorization: str, address: str) -> int:
        """The number of the annotator whose link it is."""
        scheme, _, token = authorization.partition(" ")
        found = digest(token.strip()) if scheme.lower() == "bearer" else b""
        wait = self._wait(address)
        if wait and found not in self._welcome.get(address, set()):
            raise Unknown(wait)
        if found in self._numbers:
            self._welcome.setdefault(address, set()).add(found)
            return self._numbers[found]
        self._count(address)
        raise Unknown

    def _wait(self, address: str) -> int:
        tries = self._wrong.get(address, deque())
        now = self._clock()
        while tries and tries[0] <= now - WINDOW:
            tries.popleft()
        return int(tries[0] + WINDOW - now) + 1 if len(tries) >= MOST_WRONG else 0

    def _count(self, address: str) -> None:
        self._wrong.setdefault(address, deque()).append(self._clock())
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)


def digest(token: str) -> bytes:
    """Looked up instead of the token, so that no comparison's time tells how much of it was right."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
