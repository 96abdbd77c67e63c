"""Fuzz everything that reads (targets.py), each target in a process of its own, for so many minutes in all.

.venv/bin/python fuzz/run.py                           # or: make fuzz; 30 minutes, writes RESULTS.md
.venv/bin/python fuzz/run.py --minutes 1 --target moses # one target; prints the table only

Ends with 1 if anything was found; what, and the input that shows it, is then in build/fuzz/TARGET.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[0] = str(ROOT)  # the repository, not this folder

from fuzz.outcome import Outcome, outcome_of, table  # noqa: E402
from fuzz.targets import MEMORY, SECONDS, TARGETS  # noqa: E402

MEMORY_DISK = Path("/dev/shm")
FINDINGS = ROOT / "build" / "fuzz"
#: Seconds for starting a process, beyond the time for fuzzing: a few, but minutes on a machine that is busy
#: with other things. Inputs that hang end sooner, by libFuzzer's own clock.
PATIENCE = 1800
HEAD = """# Fuzzing

Written by `make fuzz`; do not edit. Each target ([targets.py](targets.py)) takes bytes and may raise only
what its interface allows; anything else, a breach of what must hold, an input of more than {seconds} seconds,
or more than {memory} MB of memory is a finding. The corpus of samples and of every case that was found is
replayed by the tests. "Edges" and "features" are libFuzzer's counts of what was reached.
"""


def fuzzed(name: str, seconds: float, seed: int) -> Outcome:
    """One target; a process that ends at an input (a hang, memory) is started again for what time is left."""
    folder = FINDINGS / name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    total, end = Outcome(), time.monotonic() + seconds
    for number in range(5):
        left = end - time.monotonic()
        if left < 1:
            break
        command = [sys.executable, str(HERE / "one.py"), name, "--findings", str(folder)]
        command += ["--seconds", f"{left:.0f}", "--seed", str(seed + number)]
        code = _ended(command, folder / f"log{number}.txt", left + PATIENCE)
        total = total.after(outcome_of(folder, number, code))
        if not code:
            break
    print(f"{name}: {total.runs:,} inputs, {len(total.found)} findings", file=sys.stderr, flush=True)
    return total


def _ended(command: list[str], words: Path, seconds: float) -> int:
    """Run a process to its end; files of its own are kept in memory where the system has a place for that."""
    memory = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as room, words.open("wb") as log:
        env = {**os.environ, "TMPDIR": room}
        try:
            return subprocess.run(
                command, stdout=log, stderr=log, cwd=words.parent, env=env, timeout=seconds
            ).returncode
        except subprocess.TimeoutExpired:
            return -1


def page(outcomes: dict[str, Outcome], seed: int, minutes: float, jobs: int) -> str:
    """The page of a whole run."""
    import rangevote as rv

    today = datetime.date.today().isoformat()
    way = f"by {engine()}, {minutes:.0f} minutes, {jobs} process{'es' * (jobs > 1)} at a time, seed {seed}"
    head = HEAD.format(seconds=SECONDS, memory=f"{MEMORY:,}")
    return f"{head}\n{today}, rangevote {rv.__version__}, {way}.\n\n{table(outcomes)}"


def engine() -> str:
    """What makes the inputs."""
    if importlib.util.find_spec("atheris") is None:
        return "chance alone (atheris is not installed: no coverage)"
    from importlib.metadata import version

    return f"atheris {version('atheris')} (led by coverage)"


def main() -> int:
    """Run, tell, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30, help="for all targets together [30]")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; again for others")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs [1]")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time [1]")
    options = parser.parse_args()
    names = [name for name in options.target or TARGETS if not TARGETS[name].missing]
    shares = sum(TARGETS[name].share for name in names)
    each = 60 * options.minutes * options.jobs / shares
    began = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda name: fuzzed(name, each * TARGETS[name].share, options.seed), names)
        outcomes = dict(zip(names, found, strict=True))
    if options.target is None:
        told = page(outcomes, options.seed, (time.monotonic() - began) / 60, options.jobs)
        (HERE / "RESULTS.md").write_text(told, encoding="utf-8")
    sys.stdout.write(table(outcomes))
    return 1 if any(outcome.found for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
