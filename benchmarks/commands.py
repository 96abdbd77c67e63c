"""The command as a whole: file to file, and start-up."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import generate
import plain
from harness import HERE, Run, command_line, run, say
from speed import TIE

BALLOTS, SIZE = 3_000, 100
FIRST_ELECTION = (
    "import rangevote as rv; "
    "rv.elect(['a man sits on a bench', 'a man on a bench', 'a dog'], [-1.0, -1.5, -2.0]).index"
)


def file_to_file(folder: Path, rounds: int = 7) -> dict[str, Any]:
    """`rangevote vote` against msgspec alone on the same file; start-up is that of one ballot."""
    say(f"  making {BALLOTS} ballots of {SIZE}")
    made = generate.ballots(SIZE, BALLOTS, seed=2)
    files = {"all": folder / "all.jsonl", "one": folder / "one.jsonl"}
    files["all"].write_text("".join(generate.lines(made)), encoding="utf-8")
    files["one"].write_text(next(generate.lines(made[:1])), encoding="utf-8")
    out = folder / "out.jsonl"
    vote = [*command_line(), "vote", "--similarity", "overlap_2", "--threads", "1", "-o"]
    rewrite: list[str | Path] = [sys.executable, HERE / "roundtrip.py"]
    commands: dict[str, Sequence[str | Path]] = {}
    for which, path in files.items():
        commands[f"vote {which}"] = [*vote, out, path]
        commands[f"msgspec {which}"] = [*rewrite, path, folder / "again.jsonl"]
        commands[f"msgspec typed {which}"] = [*rewrite, path, folder / "again.jsonl", "--typed"]
    times = _in_turn(commands, rounds, cleared=out)
    run(commands["vote all"])
    return {
        "times": times,
        "bytes": files["all"].stat().st_size,
        **_agree(out, made),
        "ballots": BALLOTS,
        "k": SIZE,
        "rounds": rounds,
    }


def _agree(out: Path, made: list[generate.Ballot]) -> dict[str, int]:
    """How many of the winners written are those of the plain-Python version, or tie with them."""
    same = ties = 0
    for line, ballot in zip(out.open(encoding="utf-8"), made, strict=True):
        index, (winner, scores) = json.loads(line)["index"], plain.overlap_2(*ballot)
        same += index == winner
        ties += index != winner and abs(scores[index] - scores[winner]) < TIE
    return {"same": same, "ties": ties}


def start_up(rounds: int = 21) -> dict[str, Any]:
    """How long Python, `rangevote --help` and a first election take from start to exit."""
    commands: dict[str, Sequence[str | Path]] = {
        "python": [sys.executable, "-c", "pass"],
        "help": [*command_line(), "--help"],
        "election": [sys.executable, "-c", FIRST_ELECTION],
    }
    return {"times": _in_turn(commands, rounds), "rounds": rounds}


def _in_turn(
    commands: dict[str, Sequence[str | Path]], rounds: int, cleared: Path | None = None
) -> dict[str, dict[str, list[float]]]:
    """Run the commands in turn, `rounds` times after one to warm up; what each run took."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            if cleared is not None:
                cleared.unlink(missing_ok=True)
            measured = run(command)
            if turn:
                runs[name].append(measured)
    return {
        name: {"cpu": [r.cpu for r in done], "wall": [r.wall for r in done]} for name, done in runs.items()
    }
