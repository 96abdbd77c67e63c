"""Small elections, many of them, and whole files: CPU time against plain Python and against msgspec alone.

Needs ../shared/data/nbest. Both sides of a ratio take turns in one run; the median of the
rounds counts. Wall times and two threads need a quiet machine.
"""

from __future__ import annotations

import gc
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from common import REAL, Row, chapter, command_line, compared, run, say, versions
from contestants import overlap_2

import rangevote as rv

LIST = "test_2016_flickr.en-de"
#: what is measured -> the ratio it must at least reach
TARGETS = {
    "elect, default": 5.0,
    "elect, overlap_2": 5.0,
    "elect_many of lists": 6.0,
    "elect_many of ballots": 6.0,
    "elect_many, 2 threads against one, wall": 1.6,
}
#: file, what it is compared with, the limit, whether that is the least, and why it may not be reached
FILES = (
    ("default", "msgspec", "vote, default, k = {k}: CPU against msgspec decoding", 5.0, False, "FILE"),
    ("overlap_2", "msgspec", "vote, overlap_2, k = {k}: CPU against msgspec decoding", 5.0, False, "FILE"),
    ("2 workers", "default", "vote --workers 2, k = {k}: CPU against one", 1.1, False, "WORKERS"),
    ("1 worker, wall", "2 workers, wall", "vote --workers 2, k = {k}: wall", 1.6, True, "WORKERS"),
    ("Parquet", "default", "vote of Parquet, k = {k}: CPU against JSON lines", 1.0, False, "PARQUET"),
)
WHY = {
    "": "",
    "PYTHON": "half of the time is the kernel's, half Python that checks and holds the lists",
    "FILE": "the kernel alone takes 3 times as long as decoding; the rest is Python, for each ballot",
    "THREADS": "what two threads gain differs from run to run on this machine",
    "WORKERS": "lines and results go through pipes, and one process reads and writes for both",
    "PARQUET": "rows are made of the columns of Parquet, and checked as those of lines are",
}


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
    for k, number in ((10, 200_000 // scale), (100, 20_000 // scale)):
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

            start, start_of_two = vote(one), vote(one, "--workers", "2")
            times["msgspec"].append(decoded(path))
            plain = vote(path)
            two = vote(path, "--workers", "2")
            times["default"].append(plain[0] - start[0])
            times["overlap_2"].append(vote(path, "--similarity", "overlap_2")[0] - start[0])
            times["2 workers"].append(two[0] - start_of_two[0])
            times["Parquet"].append(vote(table)[0] - vote(one_row)[0])
            times["1 worker, wall"].append(plain[1] - start[1])
            times["2 workers, wall"].append(two[1] - start_of_two[1])
        results[str(k)] = times
    return results


def measure(quick: bool) -> dict[str, Any]:
    rounds, scale = (3, 40) if quick else (7, 1)
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
    rows: list[Row] = []
    for name, ratios in data["memory"].items():
        why = WHY["THREADS" if "threads" in name else "PYTHON"]
        rows.append(compared(f"{name}, k = 10", ratios, TARGETS[name], least=True, why=why))
    for k, times in data["files"].items():
        for one, other, what, limit, least, why in FILES:
            ratios = [a / b for a, b in zip(times[one], times[other], strict=True)]
            rows.append(compared(what.format(k=k), ratios, limit, least=least, why=WHY[why]))
    about = f"""Real lists (Multi30k, beams of 10 and of 100). In memory: how many times as fast as a
        plain-Python linear overlap_2 on the same lists. Files of 200,000 ballots of 10 and 20,000 of 100: the
        time of `rangevote vote` from file to file less that for one ballot by the same number of processes,
        against msgspec that decodes the same lines into structs. Medians of {data["rounds"]} rounds."""
    return chapter("How fast are small elections and whole files?", about, data, {"": rows})
