"""`rangevote vote` on many ballots, from file to file: memory and CPU."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import scale_ballots
from common import SCRATCH, Row, chapter, command_line, cpu_seconds, environment, say, versions

from rangevote.formats import read, writer

#: Memory within which any number of ballots must be voted on.
LIMIT = 500 * 2**20
ABOUT = f"""Generated ballots (`scale_ballots.py`: {scale_ballots.K} hypotheses of about 20 words,
`overlap_2`), from file to file. Memory is the largest sum over all processes of a run at a time; CPU is
theirs together, start-up included. The results of the smaller file are the same in every row, to the last
bit of the scores. Ballots a second are of wall time."""
#: What must be the same in every run on a file.
COMPARED = ("id", "winner", "index", "score", "margin", "signature")


class Run(NamedTuple):
    """One run: what it was, and what it took."""

    name: str
    ballots: int
    size: int
    memory: int
    cpu: float
    wall: float
    digest: str


def vote(name: str, path: Path, ballots: int, *options: object, fresh: bool = True) -> Run:
    """Measure one run."""
    say(name)
    out = SCRATCH / "scale-out.jsonl"
    if fresh:
        remove(*SCRATCH.glob(f"{out.name}*"))
    command = [*command_line(), "vote", path, "-o", out, "-q", *map(str, options)]
    began, before, memory, spent = time.perf_counter(), _children_cpu(), 0, dict[int, float]()
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        family = _family(process.pid)
        memory = max(memory, sum(map(_memory, family)))
        for pid in family:
            with suppress(OSError):  # it has ended
                spent[pid] = cpu_seconds(pid)
        time.sleep(0.5)
    assert process.returncode == 0, f"{name}: exit code {process.returncode}"
    wall = time.perf_counter() - began
    # processes that nobody waits for, as Ray's, count as they were last seen
    cpu = max(_children_cpu() - before, sum(spent.values()))
    count, digest = compared(out)
    assert count == ballots, (count, ballots)
    say(f"  {memory / 2**20:.0f} MB, {cpu:.1f} s CPU, {wall:.1f} s")
    return Run(name, ballots, path.stat().st_size, memory, cpu, wall, digest)


def compared(out: Path) -> tuple[int, str]:
    """How many results there are, and a digest of them that does not depend on their order: Ray writes a
    folder of Parquet files in no particular one."""
    count = total = 0
    for result in rows_of(out) if out.is_dir() else lines_of(out):
        facts = repr([result[name] for name in COMPARED])
        total += int.from_bytes(hashlib.blake2b(facts.encode(), digest_size=16).digest(), "big")
        count += 1
    return count, f"{total % 2**128:032x}"


def lines_of(out: Path) -> Iterator[dict[str, Any]]:
    with out.open("rb") as lines:
        yield from map(msgspec.json.decode, lines)


def rows_of(out: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import parquet

    for path in sorted(out.glob("*.parquet")):
        yield from parquet.read_table(path, columns=list(COMPARED)).to_pylist()


def remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def resumed(path: Path, ballots: int) -> Run:
    """What resuming takes after a run was killed when it had half of the results of the run before."""
    out = SCRATCH / "scale-out.jsonl"
    half, partial_out = out.stat().st_size // 2, out.with_name(f"{out.name}.partial")
    out.unlink()
    process = subprocess.Popen([*command_line(), "vote", path, "-o", out, "-q"], env=environment())
    while process.poll() is None and not (partial_out.exists() and partial_out.stat().st_size >= half):
        time.sleep(0.001)
    process.kill()
    process.wait()
    return vote("resumed after a kill half way", path, ballots, "--resume", fresh=False)


def measure(quick: bool, size: float = 10.0) -> dict[str, Any]:
    """A file of `size` gigabytes of ballots, and one of 0.3; in a quick run both have 0.02.

    Rows are kept as they are measured: a run that was interrupted goes on after the last one.
    """
    large = int((0.02 if quick else size) * 10**9)
    small, cores = min(large, 3 * 10**8), os.cpu_count() or 1
    path, parquet, kept = SCRATCH / "scale.jsonl", SCRATCH / "scale.parquet", SCRATCH / f"scale-{large}.json"
    done = [Run(*values) for values in json.loads(kept.read_text())] if kept.exists() else []

    def runs() -> Iterator[Callable[[], Run]]:
        """What is measured, in order; the file of a run is written when it is asked for."""
        if not done:
            # the large file in the way that takes most memory: several processes, and ids that are kept
            ballots = scale_ballots.write(path, large, numbered=False)
            yield partial(vote, f"{cores} workers, ids that are no numbers", path, ballots, "--workers", 0)
        ballots = scale_ballots.write(path, small, numbered=True)
        with read(path) as entries, parquet.open("wb") as file:
            file.writelines(writer("parquet")(entry.get() for entry in entries))
        further: list[Callable[[], Run]] = [
            partial(vote, "one process", path, ballots),
            partial(vote, f"{cores} workers", path, ballots, "--workers", 0),
            partial(vote, "Parquet, one process", parquet, ballots),
            partial(vote, f"Parquet, {cores} workers", parquet, ballots, "--workers", 0),
            partial(resumed, path, ballots),
        ]
        if find_spec("ray"):
            further.append(partial(vote, "Ray on this machine", path, ballots, "--engine", "ray"))
        yield from further[max(len(done) - 1, 0) :]

    for run in runs():
        done.append(run())
        kept.write_text(json.dumps(done))
    assert len({run.digest for run in done[1:]}) == 1, "other results"
    remove(path, parquet, kept, *SCRATCH.glob("scale-out.jsonl*"))
    return {"rows": done, "versions": versions("rangevote")}


def page(data: dict[str, Any]) -> str:
    rows = []
    for run in (Run(*values) for values in data["rows"]):
        rate = f"{run.ballots / run.wall:,.0f} a second"
        cost = f"{run.cpu * 10**6 / run.ballots:.1f} s of CPU per million, {rate}"
        what = f"{run.name}: {run.ballots:,} ballots, {run.size / 10**9:.2f} GB"
        measured = f"{run.memory / 2**20:.0f} MB, {cost}"
        if "Ray" in run.name:  # which needs more than that to start
            rows.append(Row(what, "", measured))
        else:
            rows.append(Row(what, "<= 500 MB", measured, run.memory <= LIMIT))
    return chapter("What do many ballots cost?", ABOUT, data, {"": rows})


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _family(pid: int) -> list[int]:
    """A process and those it started, directly or not."""
    family = [pid]
    for one in family:
        with suppress(OSError):
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            family += [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return family


def _memory(pid: int) -> int:
    """Bytes; pages that processes share are counted once."""
    with suppress(OSError):
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        return 1024 * int(found[1]) if found else 0
    return 0
