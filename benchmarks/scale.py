"""The local engine at size and Ray beside it: memory, CPU and bytes; a chapter of RESULTS.md.

.venv/bin/python benchmarks/scale.py                     # or: make bench-scale; 10 GB, about an hour
.venv/bin/python benchmarks/scale.py --size 20MB --ray-size 2MB --no-page     # to see that it works
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import scale_ballots
from chapters import write_chapter
from harness import SCRATCH, command_line, environment, say
from run import machine

import rangevote as rv
from rangevote.format import read
from rangevote.format.parquet_write import write_parquet

#: Memory within which 10 GB of ballots must be voted on.
LIMIT = 500 * 2**20
_TICK = os.sysconf("SC_CLK_TCK")
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "": 1}


class Used(NamedTuple):
    """What a command and all its descendants took: bytes at once, CPU and wall seconds."""

    memory: int
    cpu: float
    wall: float


class Row(NamedTuple):
    """A line of the table."""

    what: str
    ballots: int
    size: int
    output: int
    used: Used


def measured(command: Sequence[str | Path]) -> Used:
    """Run a command; its memory is the largest sum of proportional set sizes (shared pages counted once)."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment())
    memory, seconds = 0, dict[int, float]()
    while process.poll() is None:
        family = descendants(process.pid)
        memory = max(memory, sum(map(_memory, family)))
        for pid in family:
            seconds[pid] = max(seconds.get(pid, 0.0), _cpu(pid))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return Used(memory, sum(seconds.values()), time.perf_counter() - begun)


def descendants(pid: int) -> list[int]:
    """A process and those it started, directly or not."""
    found = [pid]
    for one in found:
        try:
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def _memory(pid: int) -> int:
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def vote(what: str, data: Path, ballots: int, *options: object) -> Row:
    """Measure one run of `rangevote vote`."""
    say(what)
    out = SCRATCH / "scale-out.jsonl"
    shutil.rmtree(f"{out}.parts", ignore_errors=True)
    command = [*command_line(), "vote", data, "-o", out, "--force", "-q", *map(str, options)]
    used = measured(command)
    row = Row(what, ballots, data.stat().st_size, out.stat().st_size, used)
    with out.open("rb") as results:
        assert sum(1 for _ in results) == ballots
    say(f"  {used.memory / 2**20:.0f} MB, {used.cpu:.1f} s CPU, {used.wall:.1f} s")
    return row


def rows(size: int, ray_size: int) -> list[Row]:
    """All measurements."""
    SCRATCH.mkdir(exist_ok=True)
    data = SCRATCH / "scale.jsonl"
    cores = os.cpu_count() or 1
    ballots = scale_ballots.write(data, size, numbered=True)
    found = [
        vote("JSON lines, one process", data, ballots),
        vote(f"JSON lines, {cores} workers", data, ballots, "--workers", 0),
    ]
    ballots = scale_ballots.write(data, size, numbered=False)
    found.append(vote(f"JSON lines, {cores} workers, ids that are no numbers", data, ballots, "--workers", 0))
    ballots = scale_ballots.write(data, ray_size, numbered=True)
    table = SCRATCH / "scale.parquet"
    with read(data) as entries:
        write_parquet(table, (entry.get() for entry in entries))
    found += [
        vote("Parquet, one process", table, ballots),
        vote(f"the same as JSON lines, {cores} workers", data, ballots, "--workers", 0),
        vote("the same, Ray on this machine", data, ballots, "--engine", "ray"),
    ]
    data.unlink()
    table.unlink()
    return found


def page(listed: list[Row], load: float) -> str:
    """The Markdown."""
    told = machine()
    lines = [
        "# What do many ballots cost?",
        "",
        "Written by `make bench-scale`; do not edit. Generated ballots (`scale_ballots.py`: "
        f"{scale_ballots.K} hypotheses of about 20 words, `overlap_2`), from file to file. Memory is the "
        "largest sum over all "
        "processes of a run; CPU is theirs together, start-up included.",
        "",
        f"{datetime.date.today().isoformat()}, {told['cpu']}, {told['cores']} cores; load average {load:.1f} "
        f"and {os.getloadavg()[0]:.1f} before and after; rangevote {rv.__version__}.",
        "",
        "| run | ballots | input | memory | within 500 MB | CPU s per million | wall s per million "
        "| GB read per million | GB written per million |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in listed:
        million = 10**6 / row.ballots
        within = "yes" if row.used.memory <= LIMIT else "**no**"
        lines.append(
            f"| {row.what} | {row.ballots:,} | {row.size / 10**9:.2f} GB | {row.used.memory / 2**20:.0f} MB "
            f"| {within if 'Ray' not in row.what else '-'} | {row.used.cpu * million:.1f} "
            f"| {row.used.wall * million:.1f} | {row.size * million / 10**9:.2f} "
            f"| {row.output * million / 10**9:.2f} |"
        )
    return "\n".join(lines) + "\n"


def parsed(text: str) -> int:
    """A number of bytes, as 10GB."""
    found = re.fullmatch(r"([0-9.]+)(KB|MB|GB|)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 10GB")
    return int(float(found[1]) * _UNITS[found[2]])


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=parsed, default=10**10, help="bytes of ballots for the local engine")
    parser.add_argument("--ray-size", type=parsed, default=10**9, help="bytes for Parquet and Ray")
    parser.add_argument("--no-page", action="store_true", help="print the page instead of writing it")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    text = page(rows(arguments.size, arguments.ray_size), load)
    if arguments.no_page:
        print(text)
    else:
        write_chapter("scale", text)
        say("wrote the chapter of RESULTS.md")


if __name__ == "__main__":
    main()
