"""`rangevote vote --engine ray`: one file as the local engine writes it, or a folder of parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.notes import Notes
from rangevote.cli.output import fingerprint, lock
from rangevote.cli.progress import Bar
from rangevote.cli.scaling import Scaling
from rangevote.errors import DataError, RangevoteError, SetupError, UsageError

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.format import ReadOptions
    from rangevote.scale.lines import Shape
    from rangevote.scale.ray.parts import PartNotes, Parts, RunNotes
    from rangevote.scale.ray.places import Place
    from rangevote.scale.ray.units import Unit


@dataclass
class Progress:
    """Bytes of the input, for the bar."""

    position: int = 0
    size: int | None = None


@dataclass(frozen=True)
class RayRun:
    """One run on Ray: what happens at a bad ballot, and what is told."""

    notes: Notes
    skip: bool
    require_nonempty: bool
    quiet: bool

    def elect(
        self,
        ballots: str,
        output: str | None,
        settings: Settings,
        shape: Shape,
        reading: ReadOptions,
        scaling: Scaling,
        options: Mapping[str, object],
        *,
        resume: bool,
        force: bool,
    ) -> int:
        """Vote on everything and write it; returns the exit code."""
        from rangevote.scale.job import Job, check_sendable
        from rangevote.scale.ray.session import check_installed, session

        check_installed()
        job = Job(settings, shape, reading)
        check_sendable(job)
        target = Target.of(ballots, output, shape, scaling)
        with ExitStack() as stack:
            run = stack.enter_context(target.begun(options, resume=resume, force=force))
            ray = stack.enter_context(session(scaling.ray_address))
            return self._elect(ray, ballots, job, target, run)

    def _elect(self, ray: Any, ballots: str, job: Any, target: Target, run: RunNotes) -> int:
        from rangevote.scale.ray.places import inputs_of
        from rangevote.scale.ray.run import Task, counted, repeated_ids
        from rangevote.scale.ray.units import plan

        units = plan(inputs_of(ballots), job.reading, lambda ranges: counted(ray, ranges))
        done = {unit.number: notes for unit in units if (notes := target.parts.done(unit)) is not None}
        progress = Progress(sum(units[n].weight for n in done), sum(unit.weight for unit in units))
        bar = Bar(progress, "voting", quiet=self.quiet, unit="units")
        try:
            todo = [unit for unit in units if unit.number not in done]
            done |= self._parts(ray, todo, Task(job, target.parts, skip=self.skip), bar, progress)
            if job.reading.unique_ids:
                taken = repeated_ids(target.parts, len(units))
                again = [unit for unit in units if unit.number in taken]
                task = Task(job, target.parts, skip=self.skip, taken=taken)
                done |= self._parts(ray, again, task, bar, progress)
        except KeyboardInterrupt:
            bar.close()
            click.echo(f"rangevote: interrupted. {target.hint()}", err=True)
            return 130
        except RangevoteError as error:
            bar.close()
            raise type(error)(f"{error}\n{target.hint()}") from error
        finally:
            bar.close()
        return self._finish(target, run, [done[unit.number] for unit in units])

    def _parts(
        self, ray: Any, units: list[Unit], task: Any, bar: Bar, progress: Progress
    ) -> dict[int, PartNotes]:
        """Do these units; the first of those that failed, in the order of the input, is what is told."""
        from rangevote.scale.ray.run import reports

        done: dict[int, PartNotes] = {}
        failed: dict[int, RangevoteError] = {}
        weights = {unit.number: unit.weight for unit in units}  # of those that are still to be done
        for report in reports(ray, units, task):
            for message in report.warnings:
                self.notes.warn(message)
            if report.notes is not None:
                done[report.number] = report.notes
            elif report.error is not None:
                failed[report.number] = report.error
            progress.position += weights.pop(report.number)
            bar.advance()
            if failed and (not weights or min(failed) < min(weights)):
                break  # nothing before it can fail any more
        if failed:
            raise failed[min(failed)]
        return done

    def _finish(self, target: Target, run: RunNotes, parts: list[PartNotes]) -> int:
        import msgspec

        ballots, skipped = sum(part.ballots for part in parts), sum(part.skipped for part in parts)
        if not ballots:
            if self.require_nonempty:
                raise DataError("there are no ballots in the input.")
            self.notes.tell("there are no ballots in the input.")
        changes = {"complete": True, "parts": len(parts), "ballots": ballots, "skipped": skipped}
        target.finish(msgspec.structs.replace(run, **changes), parts)
        if skipped:
            click.echo(f"rangevote: {skipped} of {ballots} ballots were skipped.", err=True)
        return 4 if skipped else 0


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
        from rangevote.scale.ray.parts import RunNotes

        wanted = {name: str(value) for name, value in options.items()}
        run = RunNotes(fingerprint(wanted), wanted)
        before = self.parts.run()
        self._refuse(before, run, resume=resume, force=force)
        with ExitStack() as stack:
            self.parts.folder.inside("_rangevote").make_folder()
            if self.output.local:
                held = stack.enter_context(open(f"{self.parts.folder.path}/_rangevote/lock", "ab"))
                lock(held, self.output.path)  # type: ignore[arg-type]
            if before is None or force:
                self.parts.clear()
            self.parts.begin(run)
            try:
                yield run
            finally:
                if not self.parts.kept():
                    self.parts.clear(folder=True)

    def _refuse(self, before: RunNotes | None, run: RunNotes, *, resume: bool, force: bool) -> None:
        from rangevote.scale.ray.parts import told

        name, folder = self.output.name, self.parts.folder
        if force:
            return
        if self.file and self.output.exists():
            raise SetupError(f"{name} exists already and it is left as it is. Use --force to replace it.")
        if before is None:
            if folder.exists() and folder.files():
                raise SetupError(f"{folder.name} has files that are not ours; write to a new folder.")
            return
        if before.complete:
            hint = "it is complete; nothing to resume" if resume else "it is left as it is"
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
        if self.file:
            self._write_file(run)
        else:
            self.parts.finish(run)

    def _write_file(self, run: RunNotes) -> None:
        """One file of all parts, which are not needed any more then."""
        from rangevote.scale.table import kind_of_ids, write_table

        def lines() -> Iterator[bytes]:
            return (line for number in range(run.parts) for line in self.parts.lines(number))

        draft = self.output._replace(path=f"{self.output.path}.tmp") if self.output.local else self.output
        with draft.system.open_output_stream(draft.path) as file:
            if self.table:
                write_table(lines(), file, self.shape, kind_of_ids(lines()))
            else:
                for line in lines():
                    file.write(line)
        if draft is not self.output:
            with open(draft.path, "rb") as written:
                os.fsync(written.fileno())
            os.replace(draft.path, self.output.path)
        self.parts.folder.system.delete_dir(self.parts.folder.path)
