"""The local engine at size and Ray beside it: memory, CPU and bytes; a chapter of RESULTS.md.

.venv/bin/python benchmarks/scale.py                     # or: make bench-scale; 10 GB, about half an hour
.venv/bin/python benchmarks/scale.py --size 20MB --ray-size 20MB --no-page     # to see that it works
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import scale_ballots
from common import SCRATCH, command_line, environment, machine, say, write_chapter
from scale_measure import Used, measured

import rangevote as rv
from rangevote.formats import read
from rangevote.formats.parquet import write_parquet

UNIT = 64 * 2**20

#: Memory within which 10 GB of ballots must be voted on.
LIMIT = 500 * 2**20
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "": 1}
HEAD = (
    f"Written by `make bench-scale`; do not edit. Generated ballots (`scale_ballots.py`: {scale_ballots.K} "
    "hypotheses of about 20 words, `overlap_2`), from file to file. Memory is the largest sum over all "
    "processes of a run at a time; CPU is theirs together, start-up included; bytes are those of all calls "
    "of `read` and `write`, also through pipes from process to process. The results of a file are the same "
    "bytes in every row. Ballots/s are of wall time, with whatever else the machine had to do: see the load."
)


class Input(NamedTuple):
    """Ballots to vote on."""

    path: Path
    ballots: int


class Row(NamedTuple):
    """A line of the table."""

    what: str
    ballots: int
    size: int
    used: Used


class Bench:
    """Runs of `rangevote vote`, each with a limit; those on the same ballots must give the same results."""

    def __init__(self, limit: float) -> None:
        self.rows: list[Row] = []
        self._limit, self._out = limit, SCRATCH / "scale-out.jsonl"
        self._results: dict[int, str] = {}  # by the number of ballots

    def vote(self, what: str, data: Input, *options: object) -> None:
        """Measure one run."""
        self.measure(
            what, data, [*command_line(), "vote", data.path, "-o", self._out, "-q", *map(str, options)]
        )

    def shards(self, what: str, data: Input, number: int) -> None:
        """Measure so many shards at once, and their merging."""
        rangevote = [str(word) for word in command_line()]
        outs = [f"{self._out}.{i}" for i in range(1, number + 1)]
        runs = [
            shlex.join([*rangevote, "vote", str(data.path), "-o", out, "-q", "--shard", f"{i}/{number}"])
            for i, out in enumerate(outs, 1)
        ]
        begun = " ".join(f"{run} & p{i}=$!;" for i, run in enumerate(runs))
        ended = " && ".join(f"wait $p{i}" for i in range(number))
        merged = shlex.join([*rangevote, "merge", *outs, "-o", str(self._out), "-q"])
        self.measure(what, data, ["sh", "-c", f"{begun} {ended} && {merged}"])
        for out in outs:
            Path(out).unlink(missing_ok=True)
            Path(f"{out}.shard.json").unlink(missing_ok=True)

    def measure(self, what: str, data: Input, command: list[str | Path]) -> None:
        """Measure a command that votes on all ballots, and look at its results."""
        say(what)
        shutil.rmtree(f"{self._out}.parts", ignore_errors=True)
        self._out.unlink(missing_ok=True)
        used = measured(command, environment(), self._limit)
        if not used.failed:
            self._check(data)
        self.rows.append(Row(what, data.ballots, data.path.stat().st_size, used))
        told = f"{used.memory / 2**20:.0f} MB, {used.counted.cpu:.1f} s CPU, {used.wall:.1f} s"
        say(f"  {used.failed or told}")

    def _check(self, data: Input) -> None:
        digest, lines = hashlib.sha256(), 0
        with self._out.open("rb") as results:
            while block := results.read(2**22):
                digest.update(block)
                lines += block.count(b"\n")
        assert lines == data.ballots, (lines, data.ballots)
        assert self._results.setdefault(lines, digest.hexdigest()) == digest.hexdigest(), "other results"


def run(size: int, ray_size: int, limit: float) -> list[Row]:
    """All measurements."""
    SCRATCH.mkdir(exist_ok=True)
    bench, cores = Bench(limit), os.cpu_count() or 1
    path, table = SCRATCH / "scale.jsonl", SCRATCH / "scale.parquet"
    # The large file in the way that takes most memory: several processes, and ids that have to be kept.
    named = Input(path, scale_ballots.write(path, size, numbered=False))
    large = Bench(limit)  # other ids, other results
    large.vote(f"large file, {cores} workers, ids that are no numbers", named, "--workers", 0)
    bench.rows += large.rows
    data = Input(path, scale_ballots.write(path, ray_size, numbered=True))
    with read(path) as entries:
        write_parquet(table, (entry.get() for entry in entries))
    rows = Input(table, data.ballots)
    bench.vote("smaller file, one process", data)
    bench.vote(f"smaller file, {cores} workers", data, "--workers", 0)
    bench.shards(f"smaller file, {cores} shards at once, then merge", data, cores)
    bench.vote("the same as Parquet, one process", rows)
    bench.vote(f"the same as Parquet, {cores} workers", rows, "--workers", 0)
    if importlib.util.find_spec("ray") is not None:
        _on_ray(bench, data, rows)
    path.unlink()
    table.unlink()
    return bench.rows


def _on_ray(bench: Bench, data: Input, rows: Input) -> None:
    """One ballot first, twice: a dozen processes make Ray's byte code then; the second time is its start."""
    one = SCRATCH / "scale-one.jsonl"
    for _ in range(2):
        scale_ballots.write(one, 1, numbered=True)
        bench.vote("Ray on this machine, one ballot: its start", Input(one, 1), "--engine", "ray")
    del bench.rows[-2]
    bench.vote("smaller file, Ray on this machine", data, "--engine", "ray")
    bench.vote("the same as Parquet, Ray on this machine", rows, "--engine", "ray")
    one.unlink()


def page(listed: list[Row], load: float) -> str:
    """The Markdown."""
    told = machine()
    lines = [
        "# What do many ballots cost?",
        "",
        HEAD,
        "",
        f"{datetime.date.today().isoformat()}, {told['cpu']}, {told['cores']} cores; load average {load:.1f} "
        f"and {os.getloadavg()[0]:.1f} before and after; rangevote {rv.__version__}.",
        "",
        "| run | ballots | input | memory | within 500 MB | ballots/s | CPU s per million "
        "| GB read per million | GB written per million |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *map(_line, listed),
    ]
    if not any("Ray" in row.what for row in listed):
        lines += ["", "Ray was left out: it is not installed (`pip install 'rangevote[ray]'`)."]
    return "\n".join([*lines, *_planned(listed)]) + "\n"


#: What is reckoned with: millions of ballots, machines and cores of each.
MILLIONS, MACHINES, CORES = 1000, 100, 16


def _planned(listed: list[Row]) -> list[str]:
    """A large run by arithmetic from a row that was measured: on Ray if there is one."""
    kinds = ("smaller file, one process", "smaller file, Ray")
    known = [r for kind in kinds for r in listed if r.what.startswith(kind) and not r.used.failed]
    if not known:
        return []
    row = known[-1]
    start = sum(r.used.counted.cpu for r in listed if r.ballots == 1) if "Ray" in row.what else 0.0
    million, cores = 10**6 / row.ballots, MACHINES * CORES
    cpu = (row.used.counted.cpu - start) * million
    size = row.size * million / 10**9
    seconds = cpu * MILLIONS / cores
    units = size * MILLIONS * 10**9 / UNIT
    return [
        "",
        f"## {MILLIONS * 10**6:,} ballots on {MACHINES} machines",
        "",
        f"Not measured: arithmetic from '{row.what}', without its start, for {CORES} cores a machine.",
        "",
        f"* CPU: {cpu:.0f} s per million x {MILLIONS:,} = {cpu * MILLIONS / 3600:.1f} hours; "
        f"on {cores:,} cores {seconds:.0f} s, if reading keeps up.",
        f"* Input: {size:.2f} GB per million x {MILLIONS:,} = {size * MILLIONS / 1000:.1f} TB, in "
        f"{units:,.0f} units of {UNIT // 2**20} MB; {units / cores:.1f} units for each core.",
        f"* Storage: to keep all cores busy it must give {size * MILLIONS / seconds:.1f} GB a second, "
        f"{size * MILLIONS / seconds / MACHINES * 8:.1f} Gbit for each machine; twice that while large files "
        f"of lines are counted. With less, storage sets the pace.",
        f"* A machine that dies costs at most {CORES} units under way: {UNIT / 10**9 / size * cpu:.0f} s of "
        f"its cores.",
    ]


def _line(row: Row) -> str:
    used, million = row.used, 10**6 / row.ballots
    head = f"| {row.what} | {row.ballots:,} | {row.size / 10**9:.2f} GB |"
    if used.failed:
        return f"{head} **{used.failed}** | - | - | - | - | - |"
    within = "-" if "Ray" in row.what else "yes" if used.memory <= LIMIT else "**no**"
    cost = [f"{used.counted.cpu * million:.1f}", *(f"{n * million / 10**9:.2f}" for n in used.counted[1:])]
    if row.ballots == 1:  # a start is not multiplied
        cost = [f"{used.counted.cpu:.1f} s in all, {used.wall:.1f} s long", "-", "-"]
    rate = "-" if row.ballots == 1 else f"{row.ballots / used.wall:,.0f}"
    return f"{head} {used.memory / 2**20:.0f} MB | {within} | {rate} | {' | '.join(cost)} |"


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
    parser.add_argument("--ray-size", type=parsed, default=10**9, help="bytes for shards, Parquet and Ray")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that a row may take [3600]")
    parser.add_argument("--no-page", action="store_true", help="print the page instead of writing it")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    text = page(run(arguments.size, arguments.ray_size, arguments.limit), load)
    if arguments.no_page:
        print(text)
    else:
        write_chapter("scale", text)
        say("wrote the chapter of RESULTS.md")


if __name__ == "__main__":
    main()
