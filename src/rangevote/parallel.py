"""`map` over several threads or processes: results in order, a bounded look-ahead, errors in their place."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from rangevote.errors import SetupError, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

T = TypeVar("T")
R = TypeVar("R")

#: Items that a thread takes at a time, and batches under way for each worker.
BATCH, AHEAD = 128, 2


def map_in_order(
    work: Callable[[T], R],
    items: Iterable[T],
    workers: int,
    *,
    processes: bool = False,
    together: Callable[[list[T]], list[R | Exception]] | None = None,
    batch: int = BATCH,
) -> Iterator[R]:
    """`map(work, items)` by several workers, each of which takes `batch` items at a time.

    Threads suit elections, whose kernels release the GIL; `together` does the work of many items in one
    call, and gives an error for each that failed. With `processes` the items themselves should be batches:
    each is sent to a process and back.
    """
    if workers == 1:
        yield from map(work, items)
        return
    from concurrent.futures import BrokenExecutor  # slow to import, and one worker needs none

    source = iter(items)
    failure: list[Exception] = []  # of the source itself; raised after what came before it

    def next_batch() -> list[T]:
        taken: list[T] = []
        try:
            for item in islice(source, 0 if failure else 1 if processes else batch):
                taken.append(item)
        except Exception as error:
            failure.append(error)
        return taken

    run = _run_in_process if processes else together or (lambda batch: _run(work, batch))
    waiting: deque[Future[list[Any]]] = deque()
    pool = _process_pool(work, workers) if processes else _thread_pool(workers)
    try:
        while True:
            while len(waiting) < AHEAD * workers and (taken := next_batch()):
                waiting.append(pool.submit(run, taken))
            if not waiting:
                break
            for result in waiting.popleft().result():
                if isinstance(result, Exception):
                    raise result
                yield result
        if failure:
            raise failure[0]
    except BrokenExecutor:
        raise SetupError(
            "a worker process was killed or ended early; if memory ran out, use fewer workers."
        ) from None
    finally:  # also where the caller stopped, or an item failed: what is queued is not begun
        pool.shutdown(cancel_futures=True)


def _run(work: Callable[[T], R], batch: list[T]) -> list[R | Exception]:
    results: list[R | Exception] = []
    for item in batch:
        try:
            results.append(work(item))
        except Exception as error:  # raised by the caller, in the item's place
            results.append(error)
    return results


def _thread_pool(workers: int) -> Executor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(workers, thread_name_prefix="election")


def _process_pool(work: Callable[[T], R], workers: int) -> Executor:
    import pickle
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    try:
        pickled = pickle.dumps(work)
    except Exception as error:  # pickle raises what the objects raise
        raise UsageError(f"these options cannot be used by several processes: {error}") from None
    context = get_context("spawn")  # a fork would copy locks that other threads hold
    return ProcessPoolExecutor(workers, context, initializer=_start_process, initargs=(pickled,))


#: In a worker process: what it does with an item.
_work: Callable[[Any], Any]


def _start_process(pickled: bytes) -> None:
    import pickle
    import signal
    from threading import Thread

    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    Thread(target=_end_with_parent, daemon=True).start()
    _work = pickle.loads(pickled)  # noqa: S301  our own bytes


def _end_with_parent() -> None:
    """A worker holds both ends of the pool's pipes, so a killed parent would leave it waiting for ever."""
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_in_process(batch: list[Any]) -> list[Any]:
    return _run(_work, batch)
