"""Measures contestants on request: one process per environment, one JSON request per line of stdin.

The same file runs in `.venv` and in `.venv-peers`. A request names a contestant, a file of ballots
and how often to go over them; the answer, a line of JSON, gives CPU seconds (of the process and its
children), wall seconds, winners and scores, or peak memory. Before each pass the ballots are parsed
anew, so that nothing kept inside string objects (hash, UTF-8) carries over, and the garbage
collector is set to leave them alone; it stays on, as it is for users.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from contestants import CONTESTANTS

Elect = Callable[[list[str], list[float]], tuple[int, Any]]
#: Held before anything is measured: loads what is loaded on use.
TINY = (["a b c d e", "a b c d f"], [-1.0, -2.0])


class Spent(NamedTuple):
    """Seconds per election."""

    cpu: float
    wall: float


def load(name: str, rows: int | None) -> Elect:
    """The function behind a contestant's name."""
    contestant = CONTESTANTS[name]
    return partial(contestant.function, **contestant.settings, **({"rows": rows} if rows else {}))


def measure(elect: Elect, path: Path, passes: int, seconds: float) -> dict[str, Any]:
    """Hold every election of the file up to `passes` times, or until `seconds` of CPU are used.

    A pass over what is quick goes over copies of the file until it takes 20 ms, so that the
    processor's caches hold what they hold for a user with many ballots.
    """
    elect(*TINY)
    spent, answers = _one_pass(elect, path, 1)
    winners = [int(winner) for winner, _ in answers]
    scores = [[float(s) for s in scores] for _, scores in answers]
    copies = max(1, min(100, int(0.02 / (spent.cpu * len(answers)))))
    done, used = [spent], spent.cpu * len(answers)
    if copies > 1:
        done, used = [], 0.0
    while len(done) < passes and (not done or used < seconds):
        spent, _ = _one_pass(elect, path, copies)
        done.append(spent)
        used += spent.cpu * copies * len(answers)
    cpu, wall = [s.cpu for s in done], [s.wall for s in done]
    return {"cpu": cpu, "wall": wall, "winners": winners, "scores": scores}


def _one_pass(elect: Elect, path: Path, copies: int) -> tuple[Spent, list[tuple[int, Any]]]:
    """Run the elections once; the time of one of them, and their results."""
    ballots = [json.loads(line) for _ in range(copies) for line in path.open(encoding="utf-8")]
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), cpu_seconds()
    answers = [elect(texts, logprobs) for texts, logprobs in ballots]
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    gc.unfreeze()
    return Spent(cpu / len(ballots), wall / len(ballots)), answers


def cpu_seconds() -> float:
    """CPU time of this process, all its threads, and the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def resident(elect: Elect, path: Path) -> dict[str, Any]:
    """Peak resident memory of one election, in bytes: the process, and above what it had before.

    Needs Linux.
    """
    elect(*TINY)
    texts, logprobs = json.loads(path.open(encoding="utf-8").readline())
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    elect(texts, logprobs)
    peak = _status("VmHWM")
    size = sum(map(sys.getsizeof, [texts, logprobs, *texts, *logprobs]))
    return {"peak": peak, "grown": peak - before, "input": size}


def counted(elect: Elect, path: Path, memray: str) -> dict[str, Any]:
    """The most bytes that one election has allocated at a time; `memray` is where it is installed.

    Resident memory comes in pages and partly from what was freed before, so it says little about
    an election that needs less than a megabyte; this counts every allocation.
    """
    sys.path.append(memray)
    tracer = importlib.import_module("memray")
    elect(*TINY)
    texts, logprobs = json.loads(path.open(encoding="utf-8").readline())
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        with tracer.Tracker(record):
            elect(texts, logprobs)
        return {"counted": tracer.FileReader(record).metadata.peak_memory}


def _status(field: str) -> int:
    match = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) * 1024 if match else 0


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks; a missing library is an answer, not a crash."""
    try:
        if "version" in request:
            return {"version": version(request["version"])}
        elect = load(request["contestant"], request.get("rows"))
        path = Path(request["ballots"])
        if "memray" in request:
            return counted(elect, path, request["memray"])
        if request.get("resident"):
            return resident(elect, path)
        return measure(elect, path, request["passes"], request["seconds"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def version(package: str) -> str:
    """The version of a package in this environment."""
    if package == "rangevote":
        import rangevote as rv
        from rangevote import kernel

        return f"{rv.__version__} ({'compiled' if kernel.COMPILED else 'plain'} kernels)"
    return metadata.version(package)


def main() -> None:
    """Answer requests until stdin closes. What libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
