"""The command line: run an experiment, list its steps, record its results, or write the page from them.

Everything that the steps found becomes one JSON file for each experiment and scale, from which tables and
figures are made. What differs between two runs of the same settings (durations, versions, the machine) is
under "run", apart from the numbers.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.measuring import read_numbers
from experiments.page import write_page
from experiments.plan import KINDS, Plan
from experiments.settings import EXPERIMENTS, HERE, Folders, Settings, read_settings
from experiments.steps import Say, Stage, run, say, wanted, write_json
from experiments.voting import profile_facts
from rangevote.errors import RangevoteError, UsageError

#: Experiments in a module of their own, without settings and steps: minutes, not hours.
SMALLER = ("judgement", "meaning", "llm", "units", "panels", "samples", "copies", "likelihood")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, do, and say what went wrong in one line; the exit code is that of `rangevote`."""
    options = parser().parse_args(arguments)
    try:
        return _main(options, Folders.usual(options.data))
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
    found.add_argument("experiment", nargs="?", choices=(*EXPERIMENTS, *SMALLER), help="which one to run")
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
        "--render", action="store_true", help="only write RESULTS.md, TABLES.md and figures from results/"
    )
    return found


def _main(options: argparse.Namespace, folders: Folders) -> int:
    if options.render:
        write_page(folders.results, HERE)
        return 0
    if options.experiment is None:
        raise UsageError(f"say which experiment: {', '.join((*EXPERIMENTS, *SMALLER))} (or --render).")
    if options.experiment in SMALLER:
        importlib.import_module(f"experiments.{options.experiment}").main()
        return 0
    if options.jobs < 1:
        raise UsageError(f"--jobs must be 1 or more, got {options.jobs}.")
    settings = settings_of(options.experiment, options.scale)
    seeds = tuple(options.seeds or settings.seeds)
    if options.list:
        show(Plan(settings, folders, seeds, options.systems or ()))
        return 0
    systems = tuple(options.systems or ())
    run_experiment(settings, folders, seeds, systems=systems, jobs=options.jobs, last=options.stage)
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
    folders: Folders,
    seeds: Sequence[int],
    *,
    systems: Sequence[str] = (),
    jobs: int = 1,
    last: str | None = None,
    tell: Say = say,
    page: Path = HERE,
) -> Path | None:
    """Run all steps, up to the kind `last`; then write the results and the page. Returns the results' file.

    Other seeds that have been run here, and systems that are recorded, are part of the results.
    """
    plan = Plan(settings, folders, seeds, systems)
    if last is not None and last != KINDS[-1]:
        kinds = KINDS[: KINDS.index(last) + 1]
        run(
            [s for s in wanted(plan.stages) if s.kind in kinds],
            jobs=jobs,
            threads=settings.threads,
            tell=tell,
        )
        return None
    stages = [*plan.evaluated.values(), *plan.voters.values(), *plan.sampled.values()]
    run(stages, jobs=jobs, threads=settings.threads, tell=tell)
    every = sorted({*seeds, *settings.seeds})
    whole = Plan(settings, folders, every).done()
    whole = whole if whole.trials else plan  # the main system may have been run elsewhere
    run(whole.stages, jobs=jobs, threads=settings.threads, tell=tell)
    path = collect(whole)
    if path is None:
        tell(f"nothing to write yet: the main system, {settings.main}, has not been run")
        return None
    write_page(folders.results, page)
    tell(f"wrote {path.name} (seeds {', '.join(map(str, whole.seeds))}) and RESULTS.md")
    return path


def show(plan: Plan) -> None:
    """A line for each step: seconds it took, or a dash."""
    stages = wanted(plan.stages)
    for stage in stages:
        seconds = "-" if stage.seconds is None else f"{stage.seconds:.1f} s"
        sys.stdout.write(f"{seconds:>10}  {stage.name}\n")
    done = sum(stage.done for stage in stages)
    sys.stdout.write(f"{done} of {len(stages)} steps are done\n")


PACKAGES = ("rangevote", "torch", "ctranslate2", "numpy", "tokenizers", "sacrebleu", "matplotlib")


def collect(plan: Plan) -> Path | None:
    """Write the results of a plan whose steps are all done; None if nobody has run the main system.

    Systems that were run elsewhere stay as they are recorded; durations and seeds are the main system's, the
    settings are today's.
    """
    path, main_system = plan.folders.results / f"{plan.settings.name}.json", plan.settings.main
    found = results(plan)
    recorded = read_numbers(path) if path.is_file() else found
    systems = recorded["systems"] | found["systems"]
    if main_system not in systems:
        return None
    kept = {name: systems[name] for name in plan.settings.systems if name in systems}
    path.parent.mkdir(parents=True, exist_ok=True)
    run_of_main = found if main_system in found["systems"] else recorded
    write_json(path, {**run_of_main, "settings": found["settings"], "systems": kept})
    return path


def results(plan: Plan) -> dict[str, Any]:
    """Numbers by system and seed; settings; and the run."""
    systems: dict[str, Any] = {}
    for (seed, name), stage in plan.evaluated.items():
        numbers = read_numbers(stage.output)
        for part, stages in (("voters", plan.voters), ("sampled", plan.sampled)):
            if (seed, name) in stages:
                numbers[part] = read_numbers(stages[seed, name].output)
        found = systems.setdefault(name, {"label": plan.settings.systems[name].label, "seeds": {}})
        found["seeds"][str(seed)] = numbers
    for trial in plan.trials:
        profiles = {str(k): profile_facts(stage.output) for k, stage in trial.profiles.items()}
        if profiles:
            systems[trial.name]["seeds"][str(trial.seed)]["tuned"] = profiles
    for name, stage in plan.compared.items():
        systems[name]["comparisons"] = read_numbers(stage.output)
    return {
        "experiment": plan.settings.experiment,
        "scale": plan.settings.scale,
        "seeds": list(plan.seeds),
        "settings": plan.settings.as_data(),
        "systems": systems,
        "run": {"seconds": durations(plan), "versions": versions(), "machine": machine()},
    }


def durations(plan: Plan) -> dict[str, dict[str, float]]:
    """Seconds that the steps took, by seed ("all": what serves every seed) and kind."""
    found: dict[str, dict[str, float]] = {}
    for stage in wanted(plan.stages):
        kinds = found.setdefault(str(stage.seed or "all"), {})
        kinds[stage.kind] = round(kinds.get(stage.kind, 0.0) + _seconds(stage), 1)
    return found


def _seconds(stage: Stage) -> float:
    """Of an interrupted training the folder knows the whole time, the step only the last stretch."""
    last = stage.seconds or 0.0
    from experiments.checkpoint import is_checkpoint, read_card

    if stage.kind != "train" or not is_checkpoint(stage.output):
        return last
    return max(last, float(read_card(stage.output)["training"]["seconds"]))


def versions() -> dict[str, str]:
    """Of Python and of what computes the numbers."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def machine() -> dict[str, Any]:
    """What durations depend on."""
    return {"processor": platform.machine(), "cores": os.cpu_count()}
