"""What a panel costs: 10 members with 10 candidates each against one list of 100, and shares by agreement.

Needs ../shared/data/nbest for the lists; the answers are drawn. Both sides of a ratio take turns in one run;
the median counts.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from common import REAL, Row, chapter, command_line, compared, run, say, spread, versions
from small import lists

import rangevote as rv
from rangevote.election.agreement import AgreementTable

MEMBERS, EACH = 10, 10
#: The most that a panel may cost, and that `vote` with shares by agreement may cost against equal shares.
MOST, MOST_OF_VOTE = 1.3, 3.0
ANSWERING = 20


def spent(elect: Callable[[Any], Any], ballots: list[Any]) -> float:
    """CPU seconds."""
    began = time.process_time()
    for ballot in ballots:
        elect(ballot)
    return time.process_time() - began


def in_memory(rounds: int) -> dict[str, list[float]]:
    """Panels against lists of the same texts, the ratios of every round."""
    known = [pair for pair in lists(MEMBERS * EACH) if len(pair[0]) == MEMBERS * EACH]
    parts = {f"m{i}": slice(EACH * i, EACH * (i + 1)) for i in range(MEMBERS)}
    by_member = [tuple({m: column[part] for m, part in parts.items()} for column in pair) for pair in known]
    rows = [[rv.Hypothesis(t, logprob=p) for t, p in zip(*pair, strict=True)] for pair in known]
    of_members = [
        [msgspec.structs.replace(row, member=f"m{i // EACH}") for i, row in enumerate(some)] for some in rows
    ]
    ratios: dict[str, list[float]] = {"elect": [], "elect_many": []}
    rv.elect(["a"])
    for _ in range(rounds):
        one = spent(lambda pair: rv.elect(*pair).index, known)
        ratios["elect"].append(spent(lambda pair: rv.elect(*pair).index, by_member) / one)
        plain, panel = (
            spent(lambda some: [r.index for r in rv.elect_many(map(rv.Ballot, some))], [listed])
            for listed in (rows, of_members)
        )
        ratios["elect_many"].append(panel / plain)
    return ratios


def merged(rounds: int) -> list[float]:
    """CPU seconds of merging 16 objects of 8 fields, a few of which differ."""
    draw, times = random.Random(3), []
    for _ in range(rounds):
        objects = [{f"f{i}": draw.choice((1, 1, 1, "x", [2, 3])) for i in range(8)} for _ in range(16)]
        texts = [msgspec.json.encode(one).decode() for one in objects]
        times.append(spent(lambda some: rv.elect(some, rule="merge").merged, [texts] * 10) / 10)
    return times


def write_answers(path: Path, ballots: int) -> Path:
    """Members that are right in 30 to 95 of 100 ballots, and else give one of 29 other answers."""
    draw = random.Random(1)
    chances = [0.3 + 0.65 * m / (ANSWERING - 1) for m in range(ANSWERING)]
    with path.open("wb") as file:
        for i in range(ballots):
            said = [7 if draw.random() < p else draw.randrange(100, 129) for p in chances]
            rows = [{"text": f"So it is {answer}.", "member": f"m{m}"} for m, answer in enumerate(said)]
            file.write(msgspec.json.encode({"id": f"b{i}", "candidates": rows}) + b"\n")
    return path


def shares_alone(ballots: int) -> float:
    """CPU seconds of shares from answers that are known already."""
    draw, table = random.Random(2), AgreementTable()
    said = [
        [0 if draw.random() < 0.3 + 0.03 * m else draw.randrange(30) for m in range(ANSWERING)]
        for _ in range(ballots)
    ]
    began = time.process_time()
    for answers in said:
        table.add({f"m{m}": {answer: 1.0} for m, answer in enumerate(answers)})
    table.shares()
    return time.process_time() - began


def measure(quick: bool) -> dict[str, Any]:
    if not REAL.exists():
        raise SystemExit(f"needs the lists in {REAL.parent.name}/{REAL.name} beside the repository")
    ballots = 1_000 if quick else 4_000  # most of the time goes into finding numbers in texts
    say("in memory")
    data: dict[str, Any] = {"memory": in_memory(3 if quick else 9), "ballots": ballots}
    with tempfile.TemporaryDirectory() as folder:
        say("agreement")
        path, out = write_answers(Path(folder) / "answers.jsonl", ballots), Path(folder) / "out.jsonl"
        vote = [*command_line(), "vote", path, "-o", out, "--force", "-q", "-s", "exact:last_number"]
        pairs = [(run([*vote, "--shares", "agreement"]).cpu, run(vote).cpu) for _ in range(3)]
        data["files"] = [agreement / equal for agreement, equal in pairs]
    data["merge"] = merged(3 if quick else 9)
    data["table"] = shares_alone(10_000 if quick else 100_000)
    data["versions"] = versions("rangevote", "numpy")
    return data


def page(data: dict[str, Any]) -> str:
    rows = [
        compared(f"{name}: {MEMBERS} members with {EACH} candidates against one list", ratios, MOST)
        for name, ratios in data["memory"].items()
    ]
    what = f"vote --shares agreement against equal shares, {data['ballots']:,} ballots of {ANSWERING} members"
    rows.append(compared(what, data["files"], MOST_OF_VOTE))
    rows.append(Row(f"shares of 100,000 ballots of {ANSWERING} members", "", f"{data['table']:.1f} s"))
    milliseconds = [1e3 * one for one in data["merge"]]
    rows.append(Row("rule merge: 16 objects of 8 fields", "", spread(milliseconds, ".2f", " ms")))
    about = """CPU time, one process. The lists are real beams of 100 (Multi30k), cut into members. The
        answers are drawn; both runs of `vote` go from file to file, and that with shares by agreement reads
        the file twice."""
    return chapter("What does a panel cost?", about, data, {"": rows})
