"""How much a client may ask for, and how many are answered at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from typing import Any

from rangevote.errors import UsageError
from rangevote.service.problem import Problem


@dataclass(frozen=True)
class Limits:
    """Sizes, numbers and seconds; each can be set in the table `limits` of the configuration.

    `orders` of n-grams, over all parts of a measure, take memory each; `pairwise_chars` are the characters of
    all samples where every pair of them is compared. `in_flight` elections are under way at a time, `queue`
    more wait, the rest is turned away. `workers` are threads that count votes. `hold` is how long a stream
    waits for a real status before it begins, `keep_alive` its pause between signs of life, `drain` how long a
    stopping service finishes what it has.
    """

    body_bytes: int = 2**20
    body_seconds: float = 10.0
    header_bytes: int = 32 * 2**10
    header_seconds: float = 10.0
    samples: int = 64
    messages: int = 256
    prompt_chars: int = 500_000
    candidate_tokens: int = 20_000
    orders: int = 8
    pairwise_chars: int = 2**20
    in_flight: int = 16
    queue: int = 64
    workers: int = 2
    upstream_calls: int = 64
    connect_seconds: float = 5.0
    read_seconds: float = 120.0
    total_seconds: float = 300.0
    response_bytes: int = 4 * 2**20
    retries: int = 2
    max_tokens: int = 4096
    hold: float = 1.0
    keep_alive: float = 10.0
    drain: float = 30.0

    def __post_init__(self) -> None:
        """Numbers above 0; only a queue, a hold and retries may be nothing."""
        for field in fields(self):
            value: Any = getattr(self, field.name)
            whole = field.type == "int"
            kinds = (int,) if whole else (int, float)
            least: float = 0 if field.name in ("queue", "retries", "hold", "drain") else 1 if whole else 0.001
            if type(value) not in kinds or not least <= value < 2**53:  # True is no number here
                kind = "a whole number" if whole else "a number"
                raise UsageError(f"the limit {field.name} must be {kind} from {least:g}, got {value!r}.")


class Gate:
    """Turns for elections: so many at a time, so many waiting, and a 503 for the others."""

    def __init__(self, limits: Limits) -> None:
        self._places = limits.in_flight + limits.queue
        self._turns = asyncio.Semaphore(limits.in_flight)
        self.present = self.running = 0

    @property
    def waiting(self) -> int:
        """Requests that are read or wait for their turn."""
        return self.present - self.running

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place in the queue, taken before a request's body is read: so memory is bounded."""
        if self.present >= self._places:
            raise Problem(503, "the service is busy; try again", code="overloaded", retry_after=1)
        self.present += 1
        try:
            yield
        finally:
            self.present -= 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One of the elections under way."""
        async with self._turns:
            self.running += 1
            try:
                yield
            finally:
                self.running -= 1
