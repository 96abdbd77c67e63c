"""The command line: run an experiment, list its steps, or write the page from recorded results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.collect import collect
from experiments.page import write_page
from experiments.places import HERE, Places
from experiments.plan import KINDS, Plan
from experiments.schedule import Say, run, say, wanted
from experiments.settings import EXPERIMENTS, Settings, read_settings
from rangevote.errors import RangevoteError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, do, and say what went wrong in one line; the exit code is that of `rangevote`."""
    options = parser().parse_args(arguments)
    try:
        return _main(options, Places.usual(options.data))
    except RangevoteError as error:
        say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return 130


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(
        prog="experiments/run.py", description="The paper's experiments, from data to tables and figures."
    )
    found.add_argument("experiment", nargs="?", choices=EXPERIMENTS, help="which one to run")
    found.add_argument("--scale", default="local", help="the settings in <experiment>-<scale>.toml [local]")
    found.add_argument(
        "--seeds", type=int, nargs="+", metavar="N", help="those of the settings, unless given"
    )
    found.add_argument("--systems", nargs="+", metavar="NAME", help="only these systems of the settings")
    found.add_argument("--stage", choices=KINDS, help="go no further than this kind of step")
    found.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="steps at a time [all cores]")
    found.add_argument("--data", metavar="FOLDER", help="data sets [$RANGEVOTE_DATA, ../shared/data]")
    found.add_argument("--list", action="store_true", help="show the steps and what is done, run nothing")
    found.add_argument(
        "--render", action="store_true", help="only write RESULTS.md and figures from results/"
    )
    return found


def _main(options: argparse.Namespace, places: Places) -> int:
    if options.render:
        write_page(places.results, HERE)
        return 0
    if options.experiment is None:
        raise UsageError(f"say which experiment: {' or '.join(EXPERIMENTS)} (or --render).")
    if options.jobs < 1:
        raise UsageError(f"--jobs must be 1 or more, got {options.jobs}.")
    settings = settings_of(options.experiment, options.scale)
    seeds = tuple(options.seeds or settings.seeds)
    if options.list:
        show(Plan(settings, places, seeds, options.systems or ()))
        return 0
    systems = tuple(options.systems or ())
    run_experiment(settings, places, seeds, systems=systems, jobs=options.jobs, last=options.stage)
    return 0


def settings_of(experiment: str, scale: str, folder: Path = HERE) -> Settings:
    """The settings of an experiment at a scale."""
    path = folder / f"{experiment}-{scale}.toml"
    if not path.is_file():
        known = sorted(p.stem.partition("-")[2] for p in folder.glob(f"{experiment}-*.toml"))
        raise UsageError(f"no scale {scale!r} of {experiment}; there are: {', '.join(known)}.")
    return read_settings(path)


def run_experiment(
    settings: Settings,
    places: Places,
    seeds: Sequence[int],
    *,
    systems: Sequence[str] = (),
    jobs: int = 1,
    last: str | None = None,
    tell: Say = say,
    page: Path = HERE,
) -> Path | None:
    """Run all steps, up to the kind `last`; then write the results and the page. Returns the results' file.

    Other seeds and systems of the settings that have been run before are part of the results.
    """
    plan = Plan(settings, places, seeds, systems)
    if last is not None and last != KINDS[-1]:
        kinds = KINDS[: KINDS.index(last) + 1]
        run(
            [s for s in wanted(plan.stages) if s.kind in kinds],
            jobs=jobs,
            threads=settings.threads,
            tell=tell,
        )
        return None
    run([*plan.evaluated.values(), *plan.voters.values()], jobs=jobs, threads=settings.threads, tell=tell)
    every = sorted({*seeds, *settings.seeds})
    whole = Plan(settings, places, every).done()
    if not whole.trials:
        tell(f"nothing to write yet: the main system, {settings.main}, has not been run")
        return None
    run(whole.stages, jobs=jobs, threads=settings.threads, tell=tell)
    path = collect(whole)
    write_page(places.results, page)
    tell(f"wrote {path.name} (seeds {', '.join(map(str, whole.seeds))}) and RESULTS.md")
    return path


def show(plan: Plan) -> None:
    """A line for each step: seconds it took, or a dash."""
    stages = wanted(plan.stages)
    for stage in stages:
        told = "-" if stage.seconds is None else f"{stage.seconds:.1f} s"
        sys.stdout.write(f"{told:>10}  {stage.name}\n")
    done = sum(stage.done for stage in stages)
    sys.stdout.write(f"{done} of {len(stages)} steps are done\n")
