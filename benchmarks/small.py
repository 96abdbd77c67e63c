"""Small elections, many of them, and whole files: CPU time against plain Python and against msgspec alone.

Needs ../shared/data/nbest. Both sides of a ratio take turns in one run; the median of the rounds counts. A quiet machine is needed for
what is said of wall time and of two threads.
"""

from __future__ import annotations

import gc
import gzip
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from common import REAL, command_line, machine_line, run, say, versions
from contestants import overlap_2

import rangevote as rv

LIST = "test_2016_flickr.en-de"
#: what is measured -> the ratio it must reach, and whether that is the least or the most
TARGETS = {
    "elect, default": (4.0, "least"),
    "elect, overlap_2": (4.0, "least"),
    "elect_many of lists": (6.0, "least"),
    "elect_many of ballots": (6.0, "least"),
    "elect_many, 2 threads against one, wall": (1.7, "least"),
}
MOST_OF_MSGSPEC, TWO_WORKERS, TWO_WORKERS_CPU = 5.0, 1.7, 1.1


class Candidate(msgspec.Struct):
    """What msgspec decodes a hypothesis into."""

    text: str
    logprob: float


class Line(msgspec.Struct):
    """What msgspec decodes a line into."""

    id: str
    candidates: list[Candidate]


def lists(k: int) -> list[tuple[list[str], list[float]]]:
    """The real lists, parsed anew, so that nothing kept in a string carries over."""
    with gzip.open(REAL / f"{LIST}.k{k}.jsonl.gz", "rb") as file:
        rows = [msgspec.json.decode(line)["hypotheses"] for line in file]
    return [([h["text"] for h in row], [h["logprob"] for h in row]) for row in rows]


def each(elect: Callable[[list[str], list[float]], Any]) -> float:
    """CPU seconds of one election."""
    ballots = lists(10)
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for texts, logprobs in ballots:
        elect(texts, logprobs)
    spent = time.process_time() - began
    gc.unfreeze()
    return spent / len(ballots)


def many(ballots: list[Any], threads: int) -> tuple[float, float]:
    """CPU and wall seconds of one election of `elect_many`."""
    gc.collect()
    gc.freeze()
    cpu, wall = time.process_time(), time.perf_counter()
    for result in rv.elect_many(ballots, threads=threads):
        result.index  # noqa: B018
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    gc.unfreeze()
    return cpu / len(ballots), wall / len(ballots)


def in_memory(rounds: int) -> dict[str, list[float]]:
    """Ratios of every round."""
    ratios: dict[str, list[float]] = {name: [] for name in TARGETS}
    rv.elect(["a"])  # what is imported at the first election is not counted
    for _ in range(rounds):
        plain = each(overlap_2)
        ratios["elect, default"].append(plain / each(lambda *ballot: rv.elect(*ballot).index))
        ratios["elect, overlap_2"].append(
            plain / each(lambda *ballot: rv.elect(*ballot, similarity="overlap_2").index)
        )
        texts = [listed for listed, _ in lists(10)]
        ratios["elect_many of lists"].append(plain / many(texts, 1)[0])
        ballots = [
            rv.Ballot([rv.Hypothesis(t, logprob=p) for t, p in zip(*b, strict=True)]) for b in lists(10)
        ]
        ratios["elect_many of ballots"].append(plain / many(ballots, 1)[0])
        often = 10 * texts  # threads take a while to start
        ratios["elect_many, 2 threads against one, wall"].append(many(often, 1)[1] / many(often, 2)[1])
    return ratios


def write_ballots(path: Path, k: int, number: int) -> Path:
    """A file of `number` ballots, the real ones again and again under other ids."""
    known = lists(k)
    with path.open("wb") as file:
        for i in range(number):
            candidates = [Candidate(*pair) for pair in zip(*known[i % len(known)], strict=True)]
            file.write(msgspec.json.encode(Line(f"b{i}", candidates)) + b"\n")
    return path


def decoded(path: Path) -> float:
    """CPU seconds of msgspec, which decodes every line into structs and does nothing else."""
    lines, decode = path.read_bytes().splitlines(), msgspec.json.Decoder(Line).decode
    began = time.process_time()
    for line in lines:
        decode(line)
    return time.process_time() - began


def files(folder: Path, rounds: int, scale: int) -> dict[str, dict[str, list[float]]]:
    """`rangevote vote` from file to file, less its start, by the number of candidates; and of Parquet."""
    results = {}
    one, one_row = write_ballots(folder / "one.jsonl", 10, 1), folder / "one.parquet"
    run([*command_line(), "convert", one, "-o", one_row])
    for k, number in ((10, 50_000 // scale), (100, 5_000 // scale)):
        path = write_ballots(folder / f"k{k}.jsonl", k, number)
        table = folder / f"k{k}.parquet"
        run([*command_line(), "convert", path, "-o", table])
        names = (
            "msgspec",
            "default",
            "overlap_2",
            "2 workers",
            "Parquet",
            "1 worker, wall",
            "2 workers, wall",
        )
        times: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            out = folder / "out.jsonl"

            def vote(source: Path, *options: str, out: Path = out) -> tuple[float, float]:
                out.unlink(missing_ok=True)
                return run([*command_line(), "vote", source, "-o", out, "-q", *options])

            start = vote(one)
            times["msgspec"].append(decoded(path))
            plain = vote(path)
            two = vote(path, "--workers", "2")
            times["default"].append(plain[0] - start[0])
            times["overlap_2"].append(vote(path, "--similarity", "overlap_2")[0] - start[0])
            times["2 workers"].append(two[0] - start[0])
            times["Parquet"].append(vote(table)[0] - vote(one_row)[0])
            times["1 worker, wall"].append(plain[1] - start[1])
            times["2 workers, wall"].append(two[1] - start[1])
        results[str(k)] = times
    return results


def measure(quick: bool) -> dict[str, Any]:
    rounds, scale = (3, 10) if quick else (15, 1)
    if not REAL.exists():
        raise SystemExit(f"needs the lists in {REAL.parent.name}/{REAL.name} beside the repository")
    say("in memory")
    data: dict[str, Any] = {"memory": in_memory(rounds), "rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        say("files")
        data["files"] = files(Path(folder), rounds, scale)
    data["versions"] = versions("rangevote", "msgspec", "numpy")
    return data


def page(data: dict[str, Any]) -> str:
    """The chapter."""
    rows = []
    for name, ratios in data["memory"].items():
        target, _ = TARGETS[name]
        rows.append(_row(f"{name}, k = 10", ratios, target, least=True))
    for k, times in data["files"].items():
        for name in ("default", "overlap_2"):
            ratios = [a / b for a, b in zip(times[name], times["msgspec"], strict=True)]
            rows.append(_row(f"vote, {name}, k = {k}: CPU against msgspec decoding", ratios, MOST_OF_MSGSPEC))
        pairs = list(zip(times["2 workers"], times["default"], strict=True))
        rows.append(
            _row(f"vote --workers 2, k = {k}: CPU against one", [a / b for a, b in pairs], TWO_WORKERS_CPU)
        )
        walls = zip(times["1 worker, wall"], times["2 workers, wall"], strict=True)
        rows.append(
            _row(f"vote --workers 2, k = {k}: wall", [a / b for a, b in walls], TWO_WORKERS, least=True)
        )
        pairs = list(zip(times["Parquet"], times["default"], strict=True))
        rows.append(_row(f"vote of Parquet, k = {k}: CPU against JSON lines", [a / b for a, b in pairs], 1.0))
    table = "\n".join(["| what | must reach | measured | reached |", "| --- | --- | --- | --- |", *rows])
    # ruff: noqa: E501  (lines of the page)
    return f"""# How fast are small elections and whole files?

Written by `make bench NAME=small`; do not edit. Real lists (Multi30k, beams of 10 and of 100). In memory: how many times
as fast as a plain-Python linear overlap_2 on the same lists. Files: the time of `rangevote vote` from file to file less that
for one ballot, against msgspec that decodes the same lines into structs. Medians of {data["rounds"]} rounds, lowest and highest
in brackets. Wall times, and two threads on a machine with other work, say little: see the load.

Where a row falls short: what two threads gain differs from run to run on this machine (`elect_many`, which needs the interpreter for a third
of each election: medians of 1.44 to 1.87 x in seven runs; `vote`: 1.57 to 1.90 x). Of a run on Parquet more than half is the start of pyarrow, measured anew in every round and taken off, hence the range;
and of a hypothesis' eleven fields nine say nothing here but are decoded, a tenth of the time. Their statistics would tell, but to
ask pyarrow for those of a damaged file ends the process.

{machine_line(data)}

{table}
"""


def _row(name: str, ratios: list[float], target: float, *, least: bool = False) -> str:
    middle = statistics.median(ratios)
    reached = middle >= target if least else middle <= target
    return (
        f"| {name} | {'>=' if least else '<='} {target:g} x | {middle:.2f} x ({min(ratios):.2f} to {max(ratios):.2f}) | "
        f"{'yes' if reached else '**no**'} |"
    )
