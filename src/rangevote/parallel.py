"""`map` over several threads or processes: results in order, a bounded look-ahead, errors in their place."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from rangevote.errors import SetupError, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

T = TypeVar("T")
R = TypeVar("R")

#: Items that a thread takes at a time, and batches under way for each worker.
BATCH, AHEAD = 128, 2


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and one worker needs none

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

    run = _Processes(work, workers) if processes else together or (lambda batch: _run(work, batch))
    waiting: deque[Future[list[Any]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="election")
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
    finally:  # also where the caller stopped, or an item failed: what is queued is not begun
        pool.shutdown(cancel_futures=True)
        if isinstance(run, _Processes):
            run.close()


def _run(work: Callable[[T], R], batch: list[T]) -> list[R | Exception]:
    results: list[R | Exception] = []
    for item in batch:
        try:
            results.append(work(item))
        except Exception as error:  # raised by the caller, in the item's place
            results.append(error)
    return results


class _Processes:
    """Worker processes, each reached by a pipe of its own.

    `ProcessPoolExecutor` has one pipe for all results: a worker that is killed while it writes to it leaves
    half a message and a lock, and the other workers and the parent wait forever.
    """

    def __init__(self, work: Callable[[Any], Any], workers: int) -> None:
        import pickle
        from multiprocessing import get_context

        try:
            pickled = pickle.dumps(work)
        except Exception as error:  # pickle raises what the objects raise
            raise UsageError(f"these options cannot be used by several processes: {error}") from None
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        self._started: list[tuple[BaseProcess, Connection]] = []
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, pickled), daemon=True)
            process.start()
            theirs.close()  # only the process holds it now: when that ends, so does the pipe
            self._started.append((process, ours))
            self._free.put(ours)

    def __call__(self, batch: list[Any]) -> list[Any]:
        pipe = self._free.get()
        try:
            pipe.send(batch)
            results: list[Any] = pipe.recv()
        except (EOFError, OSError):
            raise SetupError(
                "a worker process was killed or ended early; if memory ran out, use fewer workers."
            ) from None
        finally:
            self._free.put(pipe)
        return results

    def close(self) -> None:
        """End the processes, which stop when their pipe ends."""
        for _, pipe in self._started:
            pipe.close()
        for process, _ in self._started:
            process.join()


def _serve(pipe: Connection, pickled: bytes) -> None:
    """In a process: work on batches until the pipe ends, which it also does when the parent is killed."""
    import pickle
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    work = pickle.loads(pickled)  # noqa: S301  our own bytes
    with suppress(EOFError, OSError):
        while True:
            results = _run(work, pipe.recv())
            try:
                pipe.send(results)
            except (pickle.PicklingError, TypeError, AttributeError) as error:  # before anything was sent
                pipe.send([UsageError(f"a result cannot be sent between processes: {error}")])
