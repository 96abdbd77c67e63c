"""Threads for what takes long, so that the loop stays awake; so many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Workers:
    """A few threads that count votes, or one that runs a model."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"rangevote-{name}")

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which a cancelled caller leaves to end by itself."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """No more work; what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
