"""Elections of an input in chunks on one machine, in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from rangevote.errors import SetupError
from rangevote.formats import Entry
from rangevote.formats.reader import SeenIds
from rangevote.scale.chunks import Chunk
from rangevote.scale.job import Done, Job
from rangevote.scale.lines import Line
from rangevote.scale.processes import in_order


def elect_chunks(
    chunks: Iterator[Chunk], job: Job, workers: int, seen: SeenIds | None, warn: Callable[[str], None]
) -> Iterator[Line]:
    """The lines of all chunks, in order."""
    done: Iterator[tuple[Chunk, Done]]
    done = ((chunk, job(chunk)) for chunk in chunks) if workers == 1 else in_order(job, chunks, workers)
    for chunk, made in done:
        for message in made.warnings:
            warn(message)
        yield from job.lines(chunk, made, seen)


def after(
    chunks: Iterator[Chunk], number: int, job: Job, seen: SeenIds | None, fits: Callable[[Entry], None]
) -> Iterator[Chunk]:
    """The chunks beyond the first `number` ballots, which an earlier run has answered.

    Those are read, for their ids; `fits` is asked whether the last of them is the one that was answered.
    """
    left = number
    while left:
        chunk = next(chunks, None)
        if chunk is None:
            raise SetupError(
                f"cannot resume: the output has {number} lines, the input only {number - left}; it changed. "
                f"Use --force to start again."
            )
        old = chunk if len(chunk) <= left else chunk.only(range(left))
        entry = None
        for entry in old.entries(job.reading):
            if seen is not None and entry.ballot is not None and entry.ballot.id is not None:
                seen.add(entry.ballot.id)
        left -= len(old)
        if not left and entry is not None:
            fits(entry)
        if len(old) < len(chunk):
            yield chunk.only(range(len(old), len(chunk)))
    yield from chunks


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
