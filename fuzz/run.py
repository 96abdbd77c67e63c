"""Fuzz everything that reads (targets.py), each target in a process of its own, for so many minutes in all.

.venv/bin/python fuzz/run.py                            # or: make fuzz; 30 minutes, writes RESULTS.md
.venv/bin/python fuzz/run.py --minutes 1 --target moses # one target; prints the table only

Ends with 1 if anything was found; what, and the input that shows it, is then in build/fuzz/TARGET.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if not __package__:  # a script: the repository is searched, not this folder
    sys.path[0] = str(ROOT)

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
_STATUS = re.compile(r"^#(\d+)\t.*?(?:cov: (\d+) ft: (\d+) .*?)?rss: (\d+)Mb", re.MULTILINE)
_STATISTIC = re.compile(r"^stat::(\w+): +(\d+)", re.MULTILINE)
_KINDS = {"timeout": "takes too long", "oom": "takes too much memory", "crash": "ends the process"}


@dataclass(frozen=True)
class Outcome:
    """How many inputs, how many a second, how many edges and features were reached, and what was found."""

    runs: int = 0
    speed: int = 0
    coverage: int = 0
    features: int = 0
    peak: int = 0
    findings: tuple[str, ...] = ()


def read_outcome(folder: Path, code: int) -> Outcome:
    """What became of a process: from its log and the files that it wrote."""
    log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    status = [match.groups() for match in _STATUS.finditer(log)]
    runs, coverage, features, memory = (int(one or 0) for one in (status[-1] if status else (0, 0, 0, 0)))
    statistics = {name: int(value) for name, value in _STATISTIC.findall(log)}
    peak = max(statistics.get("peak_rss_mb", 0), memory)
    findings = [_first_line(path) for path in sorted(folder.glob("error-*.txt"))]
    for kind, meaning in _KINDS.items():
        findings += [f"{meaning}: {path.name}" for path in sorted(folder.glob(f"{kind}-*"))]
    if code and not findings:
        findings.append(f"the process ended with {code}: log.txt")
    if peak > MEMORY:
        findings.append(f"{peak} MB of memory")
    runs = max(statistics.get("number_of_executed_units", 0), runs)
    speed = statistics.get("average_exec_per_sec", 0)
    return Outcome(runs, speed, coverage, features, peak, tuple(findings))


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0] + f": {path.stem}"


def fuzz(name: str, seconds: float, seed: int) -> Outcome:
    """One target in a process of its own."""
    folder = FINDINGS / name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, str(HERE / "one.py"), name, "--findings", str(folder)]
    command += ["--seconds", f"{max(seconds, 1):.0f}", "--seed", str(seed)]
    outcome = read_outcome(folder, _run(command, folder / "log.txt", seconds + PATIENCE))
    print(f"{name}: {outcome.runs:,} inputs, {len(outcome.findings)} findings", file=sys.stderr, flush=True)
    return outcome


def _run(command: list[str], log: Path, seconds: float) -> int:
    """Run a process to its end; its temporary files are in memory where the system has a disk for that."""
    memory = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as scratch, log.open("wb") as file:
        env = {**os.environ, "TMPDIR": scratch}
        try:
            return subprocess.run(
                command, stdout=file, stderr=file, cwd=log.parent, env=env, timeout=seconds
            ).returncode
        except subprocess.TimeoutExpired:
            return -1


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Markdown."""
    lines = [
        "| target | inputs | a second | edges | features | MB | findings |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, o in outcomes.items():
        numbers = (o.runs, o.speed, o.coverage, o.features, o.peak, len(o.findings))
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} |")
    runs, peak = sum(o.runs for o in outcomes.values()), max((o.peak for o in outcomes.values()), default=0)
    number = sum(len(o.findings) for o in outcomes.values())
    lines.append(f"| **all** | {runs:,} | | | | {peak:,} | **{number}** |")
    listed = [f"* {name}: {finding}" for name, o in outcomes.items() for finding in o.findings]
    return "\n".join([*lines, *(["", *listed] if listed else [])]) + "\n"


def page(outcomes: Mapping[str, Outcome], seed: int, minutes: float, jobs: int) -> str:
    """The page of a whole run."""
    import rangevote as rv

    engine = "random changes (atheris is not installed: no coverage)"
    if importlib.util.find_spec("atheris") is not None:
        from importlib.metadata import version

        engine = f"atheris {version('atheris')} (led by coverage)"
    today = datetime.date.today().isoformat()
    how = f"by {engine}, {minutes:.0f} minutes, {jobs} process{'es' * (jobs > 1)} at a time, seed {seed}"
    head = HEAD.format(seconds=SECONDS, memory=f"{MEMORY:,}")
    return f"{head}\n{today}, rangevote {rv.__version__}, {how}.\n\n{table(outcomes)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30, help="for all targets together [30]")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; again for others")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs [1]")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time [1]")
    options = parser.parse_args()
    names = [name for name in options.target or TARGETS if not TARGETS[name].missing]
    each = 60 * options.minutes * options.jobs / sum(TARGETS[name].share for name in names)
    began = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda name: fuzz(name, each * TARGETS[name].share, options.seed), names)
        outcomes = dict(zip(names, results, strict=True))
    if options.target is None:
        minutes = (time.monotonic() - began) / 60
        (HERE / "RESULTS.md").write_text(
            page(outcomes, options.seed, minutes, options.jobs), encoding="utf-8"
        )
    sys.stdout.write(table(outcomes))
    return 1 if any(outcome.findings for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
