"""Units to parts on Ray Data: each task reads its own unit, holds its elections and writes its own part.

So no ballot passes through the driver or Ray's object store, memory does not grow with the input, and a task
that is run again (its worker was killed, or the whole run was) writes the same part under the same name.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rangevote import __version__
from rangevote.errors import DataError, RangevoteError, SetupError
from rangevote.formats.reader import SeenIds
from rangevote.scale.job import Job
from rangevote.scale.ray.parts import PartNotes, Parts
from rangevote.scale.ray.places import PURPOSE
from rangevote.scale.ray.units import Range, Unit, count_lines

#: Warnings of one unit that are handed on.
MOST_WARNINGS = 20


class Report(NamedTuple):
    """What became of a unit: notes of its part, or why there is none."""

    number: int
    notes: PartNotes | None
    error: RangevoteError | None
    warnings: list[str]


class Task:
    """What is done with one unit; sent to the workers once.

    `taken` holds ids that ballots before a unit have: those of the unit are errors then.
    """

    def __init__(
        self, job: Job, parts: Parts, *, skip: bool, taken: dict[int, frozenset[Any]] | None = None
    ) -> None:
        self._job, self._parts, self._skip, self._taken = job, parts, skip, taken or {}
        self._version = __version__

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch of units as Ray Data brings them; reports go back."""
        reports = [self.report(pickle.loads(unit)) for unit in batch["unit"]]  # noqa: S301  our own bytes
        return {"report": np.array([pickle.dumps(report) for report in reports], object)}

    def report(self, unit: Unit) -> Report:
        """Do one unit."""
        warnings: dict[str, None] = {}
        try:
            return Report(unit.number, self._do(unit, warnings), None, list(warnings)[:MOST_WARNINGS])
        except RangevoteError as error:
            return Report(unit.number, None, error, list(warnings)[:MOST_WARNINGS])
        except OSError as error:
            reason = (error.strerror or " ".join(str(error).split())).lower()
            place = self._parts.path(unit.number).name
            return Report(unit.number, None, SetupError(f"cannot write {place}: {reason}."), [])
        except MemoryError:
            return Report(unit.number, None, SetupError(f"{unit.place.name}: out of memory."), [])

    def _do(self, unit: Unit, warnings: dict[str, None]) -> PartNotes:
        if self._version != __version__:
            raise SetupError(
                f"a worker of Ray has rangevote {__version__}, the driver {self._version}; use one version."
            )
        lines: list[bytes] = []
        skipped = 0
        seen, read = self._seen(unit), hashlib.sha256()
        with unit.chunks(self._job.reading, read) as chunks:
            for chunk in chunks:
                done = self._job(chunk)
                warnings |= dict.fromkeys(done.warnings)
                for line in self._job.lines(chunk, done, seen):
                    if line.error is not None:
                        if not (self._skip and isinstance(line.error, DataError)):
                            unit.check_unchanged()  # the reason, if it is one
                            raise line.error
                        warnings[f"skipped: {line.error}"] = None
                        skipped += 1
                    lines.append(line.content)
        unit.check_unchanged()
        digest = read.hexdigest() if unit.groups is None else None
        return self._parts.write(unit, lines, skipped, digest, taken=bool(self._taken.get(unit.number)))

    def _seen(self, unit: Unit) -> SeenIds | None:
        if not self._job.reading.unique_ids:
            return None
        seen = SeenIds()
        for id in self._taken.get(unit.number, ()):
            seen.add(id)
        return seen


def reports(ray: Any, units: Sequence[Unit], task: Task) -> Iterator[Report]:
    """Do units on Ray Data; reports come as they are ready."""
    if not units:
        return
    context = ray.data.DataContext.get_current()
    bars, context.enable_progress_bars = context.enable_progress_bars, False  # progress is ours to show
    try:
        items = [{"unit": pickle.dumps(unit)} for unit in units]
        data = ray.data.from_items(items, override_num_blocks=len(items))
        data = data.map_batches(task, batch_size=1, num_cpus=1)
        for batch in data.iter_batches(batch_size=None, prefetch_batches=0):
            yield from map(pickle.loads, batch["report"])
    except ray.exceptions.RayError as error:
        raise SetupError(f"Ray could not finish: {' '.join(str(error).split())[:500]}") from error
    finally:
        context.enable_progress_bars = bars


def counted(ray: Any, ranges: Sequence[Range]) -> Sequence[int]:
    """The line ends of ranges, counted by Ray's workers."""
    count = ray.remote(count_lines)
    try:
        found: list[int] = ray.get([count.remote(*one) for one in ranges])
    except ray.exceptions.RayError as error:
        raise SetupError(f"{PURPOSE} could not count lines: {' '.join(str(error).split())[:500]}") from error
    return found


def kept(ray: Any, parts: Parts, units: Sequence[Unit]) -> dict[int, PartNotes]:
    """The notes of the units whose parts can be kept; Ray's workers read the parts to see that."""
    noted = parts.noted()
    units = [unit for unit in units if unit.number in noted]
    done = ray.remote(_done)
    try:
        found = ray.get([done.remote(parts, unit) for unit in units])
    except ray.exceptions.RayError as error:
        raise SetupError(
            f"{PURPOSE} could not look at parts: {' '.join(str(error).split())[:500]}"
        ) from error
    return {unit.number: notes for unit, notes in zip(units, found, strict=True) if notes is not None}


def _done(parts: Parts, unit: Unit) -> PartNotes | None:
    return parts.done(unit)


def repeated_ids(parts: Parts, number: int) -> dict[int, frozenset[Any]]:
    """The units in which there are ids for a second time, and those of the ids that a unit before has."""
    seen = SeenIds()
    found: dict[int, set[Any]] = {}
    for unit in range(number):
        own: set[Any] = set()
        for id in parts.ids(unit):
            if id is None:
                continue
            if seen.add(id):
                own.add(id)
            else:
                found.setdefault(unit, set()).update({id} - own)
    return {unit: frozenset(ids) for unit, ids in found.items()}
