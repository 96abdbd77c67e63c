"""Elections against their peers, on the same lists in turn: in memory, and start-up."""

from __future__ import annotations

import gzip
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import generate
import report
from common import (
    COUNTED_MEMORY,
    EXACT_MEMORY,
    HERE,
    PEERS,
    REAL,
    SCRATCH,
    Worker,
    command_line,
    run,
    say,
    write_lists,
)
from contestants import CONTESTANTS, LISTS, QUICK, ROUNDS, SIZES

Measured = dict[str, dict[str, list[dict[str, Any]]]]  # contestant -> k -> rounds
PEER_PACKAGES = ("sacrebleu", "nltk", "fastchrf", "mbrs", "torch")
REAL_LISTS = {10: 100, 100: 20}
REAL_ROUNDS = 5  # of the peers, the first only
#: Scores this near are a tie: which of the two a sum of floating-point numbers prefers is chance.
TIE = 1e-12
REAL_CONTESTANTS = (
    "overlap_2",
    "plain overlap_2",
    "precision_2",
    "plain precision_2",
    "bleu_4",
    "sacrebleu BLEU",
    "mbrs aggregate",
    "mbrs pruning",
    "chrf",
    "fastchrf",
    "chrf, counted",
    "fastchrf aggregate",
)


def measure(quick: bool) -> dict[str, Any]:
    """All measurements, which take about ten minutes; quick ones have one round and peers no large lists."""
    with (
        tempfile.TemporaryDirectory() as name,
        Worker(Path(sys.executable)) as main_worker,
        Worker(PEERS) as peers,
    ):
        folder, workers = Path(name), {"main": main_worker, "peers": peers}
        data: dict[str, Any] = {"versions": compared(workers)}
        say("start-up")
        data["start-up"] = start_up(1 if quick else 21)
        say("elections")
        data["speed"] = in_memory(workers, folder, quick)
        data["growth"] = growth(workers, folder, 1 if quick else 9)
        say("real n-best lists" if REAL.exists() else f"skipped: no {REAL.name} lists")
        data["real"] = real_lists(workers, folder, 1 if quick else REAL_ROUNDS)
        say("memory")
        data["memory"] = memory(workers, folder)
    data["agreement"] = _agreements(data["speed"])
    for file in data["real"].values():
        file["agreement"] = _real_agreements(file["answers"])
    result: dict[str, Any] = without_scores(data)
    return result


def page(data: dict[str, Any]) -> str:
    """The chapter; results.svg and results.png are drawn beside it."""
    if not data["quick"]:
        raw = SCRATCH / "elections.json"
        subprocess.run([PEERS if PEERS.exists() else sys.executable, HERE / "plot.py", raw])
    return report.markdown(data)


def _agreements(measured: Measured) -> dict[str, Any]:
    """Every peer against the measure of ours that it shares."""
    agreed = {}
    for name, contestant in CONTESTANTS.items():
        if contestant.like and not contestant.ours:
            mine, theirs = measured[contestant.like], measured[name]
            pairs = [
                pair
                for k in map(str, SIZES)
                for pair in zip(mine.get(k, []), theirs.get(k, []), strict=False)
            ]
            agreed[name] = agreement(pairs)
    return agreed


def _real_agreements(answers: dict[str, Any]) -> dict[str, Any]:
    return {
        name: agreement([(answers[CONTESTANTS[name].like][0], answered[0])])
        for name, answered in answers.items()
        if not CONTESTANTS[name].ours
    }


def compared(workers: dict[str, Worker]) -> dict[str, str]:
    """What is compared; a peer that is absent says so."""
    listed = {"Python": platform.python_version()}
    wanted = [("main", name) for name in ("rangevote", "numpy", "msgspec")]
    wanted += [("peers", name) for name in PEER_PACKAGES]
    for where, name in wanted:
        answer = workers[where].ask(version=name)
        listed[name] = answer.get("version", "absent")
    return listed


def without_scores(data: Any) -> Any:
    """The data without the scores of every election, which fill megabytes."""
    if isinstance(data, dict):
        dropped = isinstance(data.get("scores"), list)
        return {k: without_scores(v) for k, v in data.items() if not (dropped and k == "scores")}
    return [without_scores(value) for value in data] if isinstance(data, list) else data


def in_memory(workers: dict[str, Worker], folder: Path, quick: bool) -> Measured:
    """Every contestant at every k of its plan."""
    measured: Measured = {name: {} for name in CONTESTANTS}
    for k in SIZES:
        rounds = 1 if quick else ROUNDS[k]
        made = generate.ballots(k, LISTS[k] * rounds)
        for turn in range(rounds):
            lists = made[turn * LISTS[k] : (turn + 1) * LISTS[k]]
            path = write_lists(folder / f"lists-{k}-{turn}.jsonl", lists)
            for name, contestant in CONTESTANTS.items():
                slow = contestant.environment == "peers" and k > 100
                if turn < contestant.rounds.get(k, 0) and not (quick and slow):
                    answer = _ask(workers, name, path, contestant.rows.get(k), k)
                    measured[name].setdefault(str(k), []).append(answer)
    return measured


def _ask(workers: dict[str, Worker], name: str, path: Path, rows: int | None, k: int) -> dict[str, Any]:
    """One contestant on one file of lists; times are CPU seconds per list, the median of passes."""
    contestant = CONTESTANTS[name]
    began = time.perf_counter()
    answer = workers[contestant.environment].ask(
        contestant=name, ballots=str(path), rows=rows, passes=60, seconds=QUICK
    )
    took = time.perf_counter() - began
    say(f"  k={k} {contestant.label}: {took:.1f} s {answer.get('error', '')}")
    if "error" not in answer:
        scale = k / rows if rows else 1.0
        answer["fastest"] = min(answer["cpu"]) * scale
        answer |= {clock: statistics.median(answer[clock]) * scale for clock in ("cpu", "wall")}
        answer["extrapolated"] = bool(rows)
    return answer


def growth(workers: dict[str, Worker], folder: Path, turns: int) -> list[dict[str, float]]:
    """CPU seconds of overlap_2 at k = 1,000 and 10,000, one right after the other, by turns.

    Of each turn the fastest pass: a list of 10,000 fills the caches that other work on the machine
    takes away, so load would be measured as growth. `folder` holds the lists of `in_memory`.
    """
    times = []
    for turn in range(turns):
        path = {k: folder / f"lists-{k}-{turn % ROUNDS[k]}.jsonl" for k in (1_000, 10_000)}
        answers = {k: _ask(workers, "overlap_2", path[k], None, k) for k in path}
        if all("error" not in answer for answer in answers.values()):
            times.append({str(k): answer["fastest"] for k, answer in answers.items()})
    return times


def real_lists(workers: dict[str, Worker], folder: Path, rounds: int) -> dict[str, Any]:
    """A few ballots of the real n-best lists, by file; empty where they are absent."""
    results: dict[str, Any] = {}
    for k, count in REAL_LISTS.items():
        for path in sorted(REAL.glob(f"*.k{k}.jsonl.gz")):
            lists = _read(path, count)
            written = write_lists(folder / f"{path.name}.lists", lists)
            answers: dict[str, list[dict[str, Any]]] = {name: [] for name in REAL_CONTESTANTS}
            for turn in range(rounds):
                for name in REAL_CONTESTANTS:
                    if turn == 0 or CONTESTANTS[name].environment == "main":
                        answers[name].append(_ask(workers, name, written, None, k))
            results[path.name.removesuffix(".jsonl.gz")] = {"k": k, "answers": answers}
    return results


def _read(path: Path, count: int) -> list[tuple[list[str], list[float]]]:
    """The file's first ballots."""
    ballots = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for _ in range(count):
            hypotheses = json.loads(file.readline())["hypotheses"]
            ballots.append(([h["text"] for h in hypotheses], [h["logprob"] for h in hypotheses]))
    return ballots


def memory(workers: dict[str, Worker], folder: Path) -> dict[str, dict[str, Any]]:
    """Peak memory, each in a fresh process; `folder` holds the lists of `in_memory`."""
    peaks = {}
    for name, k in (("overlap_2", 1_000), ("overlap_2", 10_000), ("bleu_4", 1_000)):
        python = workers[CONTESTANTS[name].environment].python
        request: dict[str, Any] = {"contestant": name, "ballots": str(folder / f"lists-{k}-0.jsonl")}
        with Worker(python, EXACT_MEMORY) as fresh:
            answer = fresh.ask(**request, resident=True)
        with Worker(python, COUNTED_MEMORY) as fresh:
            counted = fresh.ask(**request, memray=str(SCRATCH / "memray"))
        peaks[f"{name}, k = {k:,}"] = answer | {"counted": counted.get("counted")}
    return peaks


def agreement(measured: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """How often two contestants elected the same, and how far their scores lie apart."""
    same = lists = scored = ties = 0
    apart = 0.0
    for mine, theirs in measured:
        if "error" in mine or "error" in theirs:
            continue
        for i, scores in enumerate(theirs["scores"]):
            if not theirs.get("extrapolated"):
                lists += 1
                ours, other = mine["winners"][i], theirs["winners"][i]
                same += ours == other
                ties += ours != other and abs(mine["scores"][i][ours] - mine["scores"][i][other]) < TIE
            if len(scores) == 1:  # the winner's alone
                pairs = [(mine["scores"][i][theirs["winners"][i]], scores[0])]
            else:
                pairs = list(zip(mine["scores"][i], scores, strict=False))
            scored += len(pairs)
            apart = max([apart, *(abs(a - b) for a, b in pairs)])
    return {"same": same, "ties": ties, "lists": lists, "scores": scored, "apart": apart}


FIRST_ELECTION = (
    "import rangevote as rv; "
    "rv.elect(['a man sits on a bench', 'a man on a bench', 'a dog'], [-1.0, -1.5, -2.0]).index"
)


def start_up(rounds: int) -> dict[str, list[float]]:
    """CPU seconds of Python, `rangevote --help` and a first election, each from start to exit, by round."""
    commands: dict[str, Sequence[str | Path]] = {
        "python": [sys.executable, "-c", "pass"],
        "help": [*command_line(), "--help"],
        "election": [sys.executable, "-c", FIRST_ELECTION],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):  # the first one warms up
        for name, command in commands.items():
            cpu = run(command).cpu
            if turn:
                times[name].append(cpu)
    return times
