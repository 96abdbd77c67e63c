"""Chunks shared out among processes, results in the order of the chunks, never more than a few at a time.

A worker that ends early (killed, out of memory) is noticed at once and named with the ballots it had; workers
whose parent ends, however it does, end too, since nobody holds the other end of their pipe any more.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import NamedTuple

from rangevote.errors import RangevoteError, SetupError
from rangevote.scale.chunks import Chunk
from rangevote.scale.job import Done, Job

#: Chunks in work or waiting for their turn, for each worker.
AHEAD = 4


class Worker(NamedTuple):
    """A process and our end of the pipe to it."""

    process: SpawnProcess
    pipe: Connection


def in_order(job: Job, chunks: Iterable[Chunk], workers: int) -> Iterator[tuple[Chunk, Done]]:
    """Each chunk with what the job made of it, in order; as `map` would, with several processes."""
    crew = [_start(job) for _ in range(workers)]
    try:
        yield from _shared_out(crew, iter(chunks))
    finally:
        for worker in crew:
            worker.pipe.close()
            worker.process.terminate()
        for worker in crew:
            worker.process.join()


def _shared_out(crew: list[Worker], source: Iterator[Chunk]) -> Iterator[tuple[Chunk, Done]]:
    idle, busy = list(crew), dict[Connection, tuple[Worker, int, Chunk]]()
    finished: dict[int, tuple[Chunk, Done]] = {}
    sent = given = 0
    failure: Exception | None = None  # of the source itself; raised after what came before it
    more = True
    while True:
        while more and idle and sent - given < AHEAD * len(crew):
            try:
                chunk = next(source)
            except StopIteration:
                more = False
            except Exception as error:
                more, failure = False, error
            else:
                worker = idle.pop()
                _send(worker, chunk)
                busy[worker.pipe] = worker, sent, chunk
                sent += 1
        while given in finished:
            yield finished.pop(given)
            given += 1
        if busy:
            for pipe in wait(list(busy)):
                worker, number, chunk = busy.pop(pipe)  # type: ignore[call-overload]
                finished[number] = chunk, _receive(worker, chunk)
                idle.append(worker)
        elif not more and given == sent:
            if failure is not None:
                raise failure
            return


def _start(job: Job) -> Worker:
    context = get_context("spawn")  # a fork would take our threads' locks along
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, job), daemon=True, name="rangevote worker")
    process.start()
    theirs.close()
    return Worker(process, ours)


def _work(pipe: Connection, job: Job) -> None:
    """What a worker does until its parent closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent decides
    while True:
        try:
            chunk = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: Done | Exception = job(chunk)
        except MemoryError:
            answer = SetupError(f"{chunk.where(0)} and following: out of memory.")
        except RangevoteError as error:
            answer = error
        try:
            pipe.send(answer)
        except OSError:
            return


def _send(worker: Worker, chunk: Chunk) -> None:
    try:
        worker.pipe.send(chunk)
    except OSError:
        raise _ended(worker, chunk) from None


def _receive(worker: Worker, chunk: Chunk) -> Done:
    try:
        answer: Done | Exception = worker.pipe.recv()
    except (EOFError, OSError):
        raise _ended(worker, chunk) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _ended(worker: Worker, chunk: Chunk) -> SetupError:
    worker.process.join()
    code = worker.process.exitcode
    how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
    return SetupError(
        f"a worker process {how} while it had {chunk.where(0)} to {chunk.where(len(chunk) - 1)}; if memory "
        f"ran out, use fewer --workers."
    )
