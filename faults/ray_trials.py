"""What is done to runs on Ray; as in trials.py, the output has to be that of one process, byte for byte.

Most of such a run is the start of Ray, so one cluster serves all runs that need none of their own. The file
is cut into about twenty units, and the measure is one that takes its time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

from faults.cluster import Cluster, family
from faults.runs import PATIENCE, Bench, Way, command, kill, working
from faults.trials import Outcome, Trial, finished, go_on

MEASURE = ("-s", "chrf")
UNITS = {"RANGEVOTE_UNIT_BYTES": "300000"}
#: Seconds that a run works, about, once it does; and within which the processes of one that was killed end.
WORK, GONE = 3.0, 60.0


def ray_ways(cluster: Cluster) -> tuple[Way, ...]:
    """On the cluster: one file of lines, and one as Parquet."""
    on_it = (*MEASURE, "--engine", "ray", "--ray-address", cluster.address)
    environment = {**UNITS, **cluster.environment}
    return tuple(
        Way(f"Ray, {output}", on_it, output, environment, Way(f"as Ray, {output}", MEASURE, output))
        for output in ("out.jsonl", "out.parquet")
    )


def ray_worker_killed(bench: Bench, way: Way) -> Outcome:
    """kill -9 of one to three workers of Ray, each in the middle of one of our tasks."""
    out, killed = bench.fresh(way), set[int]()
    process = bench.start(way, out)
    for _ in range(bench.random.randint(1, 3)):
        _wait(process, lambda: bool(_workers(bench, killed)))
        time.sleep(bench.random.uniform(0.0, WORK / 3))
        if workers := _workers(bench, killed):
            chosen = bench.random.choice(workers)
            os.kill(chosen, signal.SIGKILL)
            killed.add(chosen)
    process.communicate(timeout=PATIENCE)
    if not killed:
        return None
    wrong = [] if process.returncode in (0, 5) else [f"exit code {process.returncode} instead of 0 or 5"]
    return wrong + finished(bench, way, out)


def ray_driver_killed(bench: Bench, way: Way) -> Outcome:
    """kill -9 of the run with a Ray of its own, or of one on the cluster, up to twice, then the other way."""
    alone = Way("Ray of its own", (*MEASURE, "--engine", "ray"), way.output, UNITS)
    out, happened, left = bench.fresh(way), False, set[int]()
    for own in bench.random.sample([True, True, False], bench.random.randint(1, 2)):
        process = bench.start(alone if own else way, out, *go_on(out))
        if bench.random.random() < 0.3:  # while it starts, most likely
            time.sleep(bench.random.uniform(0.0, 1.1 * bench.seconds.get(way.name, 10.0)))
        else:
            _wait(process, lambda: any(out.parent.glob("*.parts/part-*")))
            time.sleep(bench.random.uniform(0.0, WORK))
        left |= set(family(process.pid))
        happened |= kill(process)
        if out.exists():
            break
    if not happened:
        return None
    return finished(bench, way, out) + _still_there(left)


RAY_TRIALS: dict[str, Trial] = {
    "Ray worker killed": ray_worker_killed,
    "Ray driver killed": ray_driver_killed,
}


def _workers(bench: Bench, killed: set[int]) -> list[int]:
    assert isinstance(bench.cluster, Cluster)
    return [pid for pid in working(bench.cluster.pid) if pid not in killed]


def _wait(process: subprocess.Popen[bytes], happened: Callable[[], bool]) -> None:
    """Until something has happened, or the run has ended."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not happened() and time.monotonic() < deadline:
        time.sleep(0.01)


def _still_there(processes: set[int]) -> list[str]:
    """A run that is killed takes the workers of its Ray with it; what is there of them after a while is told.

    Two agents of Ray, which do no work of ours, need a minute to notice and are not waited for.
    """
    deadline = time.monotonic() + GONE
    while (left := [pid for pid in processes if _works(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [f"workers of Ray were left behind: {left}"] if left else []


def _works(pid: int) -> bool:
    name = command(pid).rstrip(b"\0")
    return name.startswith(b"ray::") and not name.endswith(b"Agent")
