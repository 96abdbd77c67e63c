"""Measure everything and write RESULTS.md, results.svg and results.png (about ten minutes).

.venv/bin/python benchmarks/run.py              # or: make bench
.venv/bin/python benchmarks/run.py --render     # the page and the plot again, from the last run
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import report
from common import HERE, PEERS, ROOT, SCRATCH, Worker, machine, say, write_chapter
from contestants import CONTESTANTS, SIZES

PEER_PACKAGES = ("sacrebleu", "nltk", "fastchrf", "mbrs", "torch")
RAW = SCRATCH / "results.json"


def measure_all() -> dict[str, Any]:
    """All measurements, as one dictionary."""
    began, load = time.time(), os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as name,
        Worker(Path(sys.executable)) as main_worker,
        Worker(PEERS) as peers,
    ):
        folder, workers = Path(name), {"main": main_worker, "peers": peers}
        data: dict[str, Any] = {"versions": versions(workers)}
        say("start-up")
        data["start-up"] = _or_error(measure.start_up)
        say("file to file")
        data["files"] = _or_error(lambda: measure.file_to_file(folder))
        say("elections")
        data["speed"], data["looks"] = measure.measure_all(workers, folder)
        data["growth"] = measure.growth(workers, folder)
        say("real n-best lists" if measure.REAL.exists() else f"skipped: no {measure.REAL.name} lists")
        data["real"] = measure.real_lists(workers, folder)
        say("memory")
        data["memory"] = measure.memory(workers, folder)
    data["agreement"] = _agreements(data["speed"])
    for file in data["real"].values():
        file["agreement"] = _real_agreements(file["answers"])
    data["date"] = datetime.date.today().isoformat()
    data["machine"] = machine() | {"load": [load, os.getloadavg()[0]]}
    data["seconds"] = time.time() - began
    return data


def _or_error(measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was measured; where the command fails, the reason instead."""
    try:
        return measured()
    except RuntimeError as error:
        say(f"  failed: {error}")
        return {"error": str(error).strip().splitlines()[-1]}


def _agreements(measured: measure.Measured) -> dict[str, Any]:
    """Every peer against the measure of ours that it shares."""
    agreed = {}
    for name, contestant in CONTESTANTS.items():
        if contestant.like and not contestant.ours:
            mine, theirs = measured[contestant.like], measured[name]
            pairs = [
                pair
                for k in map(str, SIZES)
                for pair in zip(mine.get(k, []), theirs.get(k, []), strict=False)
            ]
            agreed[name] = measure.agreement(pairs)
    return agreed


def _real_agreements(answers: dict[str, Any]) -> dict[str, Any]:
    return {
        name: measure.agreement([(answers[CONTESTANTS[name].like][0], answered[0])])
        for name, answered in answers.items()
        if not CONTESTANTS[name].ours
    }


def versions(workers: dict[str, Worker]) -> dict[str, str]:
    """What is compared; a peer that is absent says so."""
    listed = {"Python": platform.python_version()}
    wanted = [("main", name) for name in ("rangevote", "numpy", "msgspec")]
    wanted += [("peers", name) for name in PEER_PACKAGES]
    for where, name in wanted:
        answer = workers[where].ask(version=name)
        listed[name] = answer.get("version", "absent")
    return listed


def without_scores(data: Any) -> Any:
    """The data without the scores of every election, which fill megabytes."""
    if isinstance(data, dict):
        dropped = isinstance(data.get("scores"), list)
        return {k: without_scores(v) for k, v in data.items() if not (dropped and k == "scores")}
    return [without_scores(value) for value in data] if isinstance(data, list) else data


def render(data: dict[str, Any]) -> None:
    """Write the page and, where matplotlib is installed, the plot."""
    write_chapter("elections", report.markdown(data))
    plotted = subprocess.run([PEERS if PEERS.exists() else sys.executable, HERE / "plot.py", RAW])
    say("wrote RESULTS.md" + (", results.svg, results.png" if plotted.returncode == 0 else " only"))


def main() -> None:
    """Set the peers up, measure, write."""
    parser = argparse.ArgumentParser(description="Measure rangevote against its peers.")
    parser.add_argument("--render", action="store_true", help="only write the last run's page again")
    parser.add_argument("--no-setup", action="store_true", help="take .venv-peers as it is")
    options = parser.parse_args()
    SCRATCH.mkdir(exist_ok=True)
    if not options.render:
        if not options.no_setup:
            subprocess.run([HERE / "setup_peers.sh"], cwd=ROOT, check=False)
        RAW.write_text(json.dumps(without_scores(measure_all()), indent=1), encoding="utf-8")
    render(json.loads(RAW.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
