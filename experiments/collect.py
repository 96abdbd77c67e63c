"""Everything that the steps found, as one JSON file for each experiment and scale.

The file is all that tables and figures are made from. What differs between two runs of the same settings
(durations, versions, the machine) stands under "run", apart from the numbers.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from experiments.measuring import read_numbers
from experiments.plan import Plan
from experiments.schedule import wanted
from experiments.stage import Stage, write_json
from experiments.tuning import told

PACKAGES = ("rangevote", "torch", "numpy", "tokenizers", "sacrebleu", "matplotlib")


def collect(plan: Plan) -> Path:
    """Write the results of a plan whose steps are all done."""
    path = plan.places.results / f"{plan.settings.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, results(plan))
    return path


def results(plan: Plan) -> dict[str, Any]:
    """Numbers by system and seed; settings; and the run."""
    systems: dict[str, Any] = {}
    for (seed, name), stage in plan.evaluated.items():
        numbers = read_numbers(stage.output)
        voters = plan.voters.get((seed, name))
        if voters is not None:
            numbers["voters"] = read_numbers(voters.output)
        found = systems.setdefault(name, {"label": plan.settings.systems[name].label, "seeds": {}})
        found["seeds"][str(seed)] = numbers
    for trial in plan.trials:
        profiles = {str(k): told(stage.output) for k, stage in trial.profiles.items()}
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
    if stage.kind != "train":
        return last
    from experiments.checkpoint import read_card

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
