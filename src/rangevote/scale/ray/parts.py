"""The results of units: a part for each, with notes beside it, so that a run can go on where one stopped.

FOLDER/part-00000.jsonl      the results of the first unit, whole or not there
FOLDER/_rangevote/run.json   the options that decide the content, and whether all parts are there
FOLDER/_rangevote/part-00000.json   which unit the part is of, under which options, and its digest

A part is kept only if it is what its notes say, was made under the options of this run and of what the input
holds now. So whatever was stopped, lost or damaged, every ballot is in the results once.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rangevote.errors import SetupError, need
from rangevote.formats.results import id_of, kind_of_ids, write_table
from rangevote.scale.lines import Shape
from rangevote.scale.ray.places import Place, guarded
from rangevote.scale.ray.units import Unit

NOTES = "_rangevote"


class PartNotes(msgspec.Struct, frozen=True):
    """What is known of a part.

    `unit` and `stamp` say what it is of, `read` is the digest of the lines that were read, `options` the
    fingerprint of the options. `taken`: some of its ballots are errors since other units have their ids.
    """

    unit: dict[str, Any]
    stamp: str
    read: str | None
    options: str
    taken: bool
    ballots: int
    skipped: int
    size: int
    sha256: str
    ids: str | None


class RunNotes(msgspec.Struct, frozen=True):
    """What is known of a run; `token` tells it from every other run on the same folder.

    `replaces`: it was told to replace what was there before.
    """

    fingerprint: str
    options: dict[str, str]
    token: str = ""
    replaces: bool = False
    complete: bool = False
    parts: int = 0
    ballots: int = 0
    skipped: int = 0


class Parts:
    """The folder of a run; can be sent to other machines."""

    def __init__(self, folder: Place, shape: Shape, *, tables: bool) -> None:
        self.folder, self._shape, self._tables = folder, shape, tables
        self._run = RunNotes("", {})

    def path(self, number: int) -> Place:
        """Where the results of a unit are."""
        return self.folder.inside(f"part-{number:05}.{'parquet' if self._tables else 'jsonl'}")

    def _notes(self, number: int) -> Place:
        return self.folder.inside(NOTES, f"part-{number:05}.json")

    def begin(self, run: RunNotes) -> None:
        """Make the folder, and say in it what it is for. Who wrote in it before does so no longer."""
        self._run = run
        self.folder.inside(NOTES).make_folder()
        place = self.folder.inside(NOTES, "run.json")
        guarded(place.name, lambda: place.write(msgspec.json.encode(run)))

    def run(self) -> RunNotes | None:
        """What an earlier run has said of itself, None if there was none."""
        place = self.folder.inside(NOTES, "run.json")
        if not place.exists():
            return None
        try:
            return msgspec.json.decode(place.read(), type=RunNotes)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise SetupError(f"{place.name} cannot be read. Use --force to start again.") from None

    def write(
        self, unit: Unit, lines: list[bytes], skipped: int, read: str | None = None, *, taken: bool = False
    ) -> PartNotes:
        """Keep the results of a unit: first the part, then its notes."""
        kind = None if self._shape.text else kind_of_ids(lines)
        if self._tables:
            file = io.BytesIO()
            write_table(lines, file, self._shape, kind)
            data = file.getvalue()
        else:
            data = b"".join(lines)
        notes = PartNotes(
            unit.identity(),
            unit.stamp,
            read,
            self._run.fingerprint,
            taken,
            len(lines),
            skipped,
            len(data),
            hashlib.sha256(data).hexdigest(),
            kind.__name__ if kind else None,
        )
        self._check_ours()
        self.path(unit.number).write(data)
        self._notes(unit.number).write(msgspec.json.encode(notes))
        return notes

    def _check_ours(self) -> None:
        """Refuse to write into a folder that a later run has taken: a task may outlive the run it is of."""
        now = self.run()
        if now is None or now.token != self._run.token:
            raise SetupError(f"another run writes to {self.folder.name} now.")

    def noted(self) -> set[int]:
        """The numbers of the parts that have notes."""
        names = (file.path.rpartition("/")[2] for file in self.folder.inside(NOTES).files())
        stems = (name[5:-5] for name in names if name.startswith("part-") and name.endswith(".json"))
        return {int(stem) for stem in stems if stem.isdecimal()}

    def done(self, unit: Unit) -> PartNotes | None:
        """The notes of a unit whose part is there, whole, and what this run would make; else None."""
        place = self._notes(unit.number)
        try:
            notes = msgspec.json.decode(place.read(), type=PartNotes) if place.exists() else None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if notes is None or notes.taken or notes.options != self._run.fingerprint:
            return None
        if notes.unit != unit.identity() or not self._whole(unit.number, notes):
            return None
        same = notes.stamp == unit.stamp or (notes.read is not None and notes.read == unit.digest())
        return notes if same else None

    def _whole(self, number: int, notes: PartNotes) -> bool:
        if self.path(number).info().size != notes.size:
            return False
        found = hashlib.sha256()
        for block in self.blocks(number):
            found.update(block)
        return found.hexdigest() == notes.sha256

    def blocks(self, number: int) -> Iterator[bytes]:
        """The bytes of a part, some at a time."""
        with self.path(number).open() as file:
            while block := file.read(2**20):
                yield block

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
        self.drop(run.parts)
        self.begin(run)

    def kept(self) -> bool:
        """Whether there is anything to keep: a part, or the word that there are no ballots at all."""
        run = self.run()
        parts = (place.path.rpartition("/")[2].startswith("part-") for place in self.folder.files())
        return (run is not None and run.complete) or any(parts)

    def clear(self) -> None:
        """Take away all that runs of ours have written here, and nothing else; their word at the last."""
        self.drop(0)
        self.folder.inside(NOTES, "run.json").remove()
        self.folder.inside(NOTES).remove_folder()
        if not self.folder.files():
            self.folder.remove_folder()

    def drop(self, first: int) -> None:
        """Take away the parts from number `first` on, and what was half written."""
        kept = {self.path(number).path for number in range(first)}
        kept |= {self._notes(number).path for number in range(first)}
        for folder in (self.folder.inside(NOTES), self.folder):
            for file in folder.files():
                name = file.path[len(folder.path) + 1 :]
                if name.startswith(("part-", "run.json.tmp-")) and "/" not in name and file.path not in kept:
                    file.remove()


def told(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Which options differ."""
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return "; ".join(f"{name} was {before.get(name)!r}, now {now.get(name)!r}" for name in changed)
