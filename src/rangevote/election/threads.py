"""Work on a stream with several threads, results in the order of the stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

#: Items that one thread takes at a time.
BATCH = 16


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """`map(work, items)` on several threads, with a bounded look-ahead.

    The kernels release the GIL, so elections run side by side. An exception surfaces in its place.
    """
    if threads == 1:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and one thread needs none

    source = iter(items)
    failure: list[BaseException] = []  # of the source itself; raised after what came before it

    def take() -> list[T]:
        taken: list[T] = []
        try:
            for item in islice(source, 0 if failure else BATCH):
                taken.append(item)
        except Exception as error:
            failure.append(error)
        return taken

    def batch(taken: list[T]) -> list[R | Exception]:
        done: list[R | Exception] = []
        for item in taken:
            try:
                done.append(work(item))
            except Exception as error:  # handed to the caller below, in the item's place
                done.append(error)
        return done

    waiting: deque[Future[list[R | Exception]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="election") as pool:
        try:
            while True:
                while len(waiting) < 2 * threads and (taken := take()):
                    waiting.append(pool.submit(batch, taken))
                if not waiting:
                    if failure:
                        raise failure[0]
                    return
                for result in waiting.popleft().result():
                    if isinstance(result, Exception):
                        raise result
                    yield result
        finally:  # the caller stopped, or an election failed: do not start what is queued
            for future in waiting:
                future.cancel()
