"""Where `rangevote vote --engine ray` writes: one file like the local engine's, or a folder of parts."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rangevote import __version__
from rangevote.cli.output import fingerprint, lock
from rangevote.cli.scaling import Scaling
from rangevote.errors import DataError, SetupError, UsageError

if TYPE_CHECKING:
    from rangevote.scale.lines import Shape
    from rangevote.scale.ray.parts import PartNotes, Parts, RunNotes
    from rangevote.scale.ray.places import Place


@dataclass(frozen=True)
class Target:
    """Where results go: a folder of parts, or one file that is made of them at the end."""

    output: Place
    parts: Parts
    file: bool
    table: bool
    shape: Shape

    @classmethod
    def of(cls, ballots: str, output: str | None, shape: Shape, scaling: Scaling) -> Target:
        """What `-o` means."""
        from rangevote.scale.ray.parts import Parts
        from rangevote.scale.ray.places import place_of

        if ballots == "-" or output is None or output == "-":
            raise UsageError(
                "--engine ray reads files and writes to a file or a folder: give BALLOTS and -o."
            )
        if shape.text:
            raise UsageError("--text belongs to --engine local; the texts are in the results: jq -r .winner")
        table = scaling.table(output.rstrip("/"))
        place = place_of(output)
        file = not (output.endswith("/") or place.is_folder())
        if file and place_of(ballots)[:2] == place[:2]:
            raise UsageError(f"input and output are the same file {output}; write to another one.")
        folder = place._replace(path=f"{place.path}.parts", name=f"{output}.parts") if file else place
        return cls(place, Parts(folder, shape, tables=table and not file), file, table, shape)

    @contextmanager
    def begun(self, options: Mapping[str, object], *, resume: bool, force: bool) -> Iterator[RunNotes]:
        """Take the folder for this run, or say why it cannot be taken."""
        from msgspec import structs

        from rangevote.scale.ray.parts import NOTES, RunNotes

        wanted = {name: str(value) for name, value in options.items()} | {"rangevote": __version__}
        run = RunNotes(fingerprint(wanted), wanted, secrets.token_hex(8), replaces=force)
        if not force:
            self._refuse(self.parts.run(), run, resume=resume)
        with ExitStack() as stack:
            self.parts.folder.inside(NOTES).make_folder()
            if self.output.local:
                held = stack.enter_context(open(f"{self.parts.folder.path}/{NOTES}/lock", "ab"))
                lock(held, self.output.path)  # type: ignore[arg-type]
            before = None if force else self.parts.run()
            if not force:
                self._refuse(before, run, resume=resume)  # again: another run may have ended since
            if before is not None and before.replaces:
                run = structs.replace(run, replaces=True)
            self.parts.begin(run)
            if before is None:
                self.parts.drop(0)
            try:
                yield run
            finally:
                if not self.parts.kept():
                    self.parts.clear()

    def _refuse(self, before: RunNotes | None, run: RunNotes, *, resume: bool) -> None:
        """Say what stands in the way of a run that was not told to start again."""
        from rangevote.scale.ray.parts import told

        name, folder = self.output.name, self.parts.folder
        hint = "it is complete; nothing to resume" if resume else "it is left as it is"
        replaces = resume and before is not None and before.replaces
        if self.file and self.output.exists() and not replaces:
            if resume and (not folder.files() if before is None else before.complete):
                self.parts.clear()  # it was stopped after the file got its name
            raise SetupError(f"{name} exists already and {hint}. Use --force to replace it.")
        if before is None:
            if folder.exists() and folder.files():
                raise SetupError(f"{folder.name} has files that are not ours; write to a new folder.")
            return
        if before.complete and not self.file:
            raise SetupError(f"{folder.name} exists already and {hint}. Use --force to replace it.")
        if not resume:
            raise SetupError(
                f"{folder.name} is there from an unfinished run. Use --resume to go on with it, or --force "
                f"to start again."
            )
        if before.fingerprint != run.fingerprint:
            changed = told(before.options, run.options)
            raise SetupError(
                f"cannot resume {folder.name}: the fingerprint differs ({changed}). Use the same options, or "
                f"--force to start again."
            )

    def hint(self) -> str:
        """How to go on after an early end."""
        return f"Results so far are kept in {self.parts.folder.name}; go on with --resume."

    def finish(self, run: RunNotes, parts: list[PartNotes]) -> None:
        """All parts are there."""
        kinds = {part.ids for part in parts} - {None}
        if self.table and not self.file and len(kinds) > 1:
            raise DataError(
                "ids are texts in some files and numbers in others; a column holds one kind: use --to jsonl."
            )
        self.parts.finish(run)
        if self.file:
            self._write_file(run, int if kinds == {"int"} else str if kinds else None)
            self.parts.clear()

    def _write_file(self, run: RunNotes, ids: type | None) -> None:
        """One file of all parts, which are not needed any more then."""
        from rangevote.formats.results import write_table

        numbers = range(run.parts)
        with self.output.create(self.parts.folder.inside("part-all")) as file:  # goes with the parts
            if self.table:
                lines = (line for number in numbers for line in self.parts.lines(number))
                write_table(lines, file, self.shape, ids)
            else:
                for number in numbers:
                    for block in self.parts.blocks(number):
                        file.write(block)
