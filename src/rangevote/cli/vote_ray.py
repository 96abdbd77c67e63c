"""`rangevote vote --engine ray`: what is done, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from rangevote.cli.notes import Notes
from rangevote.cli.progress import Bar
from rangevote.cli.scaling import Scaling
from rangevote.cli.vote_ray_target import Target
from rangevote.errors import DataError, RangevoteError

if TYPE_CHECKING:
    from rangevote.election.settings import Settings
    from rangevote.formats import ReadOptions
    from rangevote.scale.lines import Shape
    from rangevote.scale.ray.parts import PartNotes, RunNotes
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
        from rangevote.scale.ray.run import Task, counted, kept, repeated_ids
        from rangevote.scale.ray.units import plan, unit_bytes

        units = plan(inputs_of(ballots), job.reading, lambda ranges: counted(ray, ranges), unit_bytes())
        done = kept(ray, target.parts, units)
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
