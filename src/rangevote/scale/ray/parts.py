"""The results of units: a part for each, with notes beside it, so that a run can go on where one stopped.

FOLDER/part-00000.jsonl      the results of the first unit, whole or not there
FOLDER/_rangevote/run.json   the options that decide the content, and whether all parts are there
FOLDER/_rangevote/part-00000.json   which unit the part is of, and how large it is
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rangevote.errors import SetupError, need
from rangevote.scale.lines import Shape
from rangevote.scale.ray.places import Place
from rangevote.scale.ray.units import Unit
from rangevote.scale.table import id_of, kind_of_ids, write_table

NOTES = "_rangevote"


class PartNotes(msgspec.Struct, frozen=True):
    """What is known of a part: its unit, its ballots, how many were skipped, its bytes, the kind of ids."""

    unit: dict[str, Any]
    ballots: int
    skipped: int
    size: int
    ids: str | None


class RunNotes(msgspec.Struct, frozen=True):
    """What is known of a run."""

    fingerprint: str
    options: dict[str, str]
    complete: bool = False
    parts: int = 0
    ballots: int = 0
    skipped: int = 0


class Parts:
    """The folder of a run; can be sent to other machines."""

    def __init__(self, folder: Place, shape: Shape, *, tables: bool) -> None:
        self.folder, self._shape, self._tables = folder, shape, tables

    def path(self, number: int) -> Place:
        """Where the results of a unit are."""
        return self.folder.inside(f"part-{number:05}.{'parquet' if self._tables else 'jsonl'}")

    def _notes(self, number: int) -> Place:
        return self.folder.inside(NOTES, f"part-{number:05}.json")

    def begin(self, run: RunNotes) -> None:
        """Make the folder, and say in it what it is for."""
        self.folder.inside(NOTES).make_folder()
        self.folder.inside(NOTES, "run.json").write(msgspec.json.encode(run))

    def run(self) -> RunNotes | None:
        """What an earlier run has said of itself, None if there was none."""
        place = self.folder.inside(NOTES, "run.json")
        if not place.exists():
            return None
        try:
            return msgspec.json.decode(place.read(), type=RunNotes)
        except msgspec.MsgspecError:
            raise SetupError(f"{place.name} cannot be read. Use --force to start again.") from None

    def write(self, unit: Unit, lines: list[bytes], skipped: int) -> PartNotes:
        """Keep the results of a unit: first the part, then its notes."""
        kind = None if self._shape.text else kind_of_ids(lines)
        if self._tables:
            file = io.BytesIO()
            write_table(lines, file, self._shape, kind)
            data = file.getvalue()
        else:
            data = b"".join(lines)
        notes = PartNotes(unit.identity(), len(lines), skipped, len(data), kind.__name__ if kind else None)
        self._notes(unit.number).remove()
        self.path(unit.number).write(data)
        self._notes(unit.number).write(msgspec.json.encode(notes))
        return notes

    def done(self, unit: Unit) -> PartNotes | None:
        """The notes of a unit whose part is there and whole, else None."""
        place = self._notes(unit.number)
        if not place.exists():
            return None
        try:
            notes = msgspec.json.decode(place.read(), type=PartNotes)
        except msgspec.MsgspecError:
            return None
        whole = self.path(unit.number).info()
        return notes if notes.unit == unit.identity() and whole.size == notes.size else None

    def lines(self, number: int) -> Iterator[bytes]:
        """The result lines of a unit, a few bytes at a time."""
        with self.path(number).open() as file:
            yield from io.BufferedReader(file)

    def ids(self, number: int) -> Iterator[str | int | None]:
        """The ids in the results of a unit."""
        if not self._tables:
            yield from map(id_of, self.lines(number))
            return
        pq = need("pyarrow.parquet", "parquet", "reading Parquet files")
        with self.path(number).open() as file:
            for batch in pq.ParquetFile(file).iter_batches(columns=["id"]):
                yield from batch.column("id").to_pylist()

    def finish(self, run: RunNotes) -> None:
        """All parts are there: drop those of an earlier plan, and say so."""
        self._drop(run.parts)
        self.begin(run)

    def kept(self) -> bool:
        """Whether there is anything to keep: a part, or the word that there are no ballots at all."""
        run = self.run()
        parts = (place.path.rpartition("/")[2].startswith("part-") for place in self.folder.files())
        return (run is not None and run.complete) or any(parts)

    def clear(self, *, folder: bool = False) -> None:
        """Take away all that a run of ours has written here, and nothing else; the empty folder if asked."""
        self._drop(0)
        self.folder.inside(NOTES, "run.json").remove()
        if folder and self.folder.inside(NOTES).exists():
            self.folder.system.delete_dir(self.folder.inside(NOTES).path)
        if folder and self.folder.exists() and not self.folder.files():
            self.folder.system.delete_dir(self.folder.path)

    def _drop(self, first: int) -> None:
        kept = {self.path(number).path for number in range(first)}
        kept |= {self._notes(number).path for number in range(first)}
        for folder in (self.folder.inside(NOTES), self.folder):
            for file in folder.files():
                name = file.path[len(folder.path) + 1 :]
                if name.startswith("part-") and "/" not in name and file.path not in kept:
                    file.remove()


def told(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Which options differ."""
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return "; ".join(f"{name} was {before.get(name)!r}, now {now.get(name)!r}" for name in changed)
