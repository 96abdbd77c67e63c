"""Fuzz everything that reads (targets.py), each target in a process of its own, for so many minutes.

.venv/bin/python fuzz/run.py                            # or: make fuzz; 10 minutes for each target
.venv/bin/python fuzz/run.py --minutes 1 --target moses # one target

Each row of RESULTS.md is written when its target ends. A target that was fuzzed for as long at the same code
without a finding is left out, so a run that was interrupted goes on, also on another machine. Ends with 1 if
anything was found; what, and the input that shows it, is then in build/fuzz/TARGET.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if not __package__:  # a script: the repository is searched, not this folder
    sys.path[0] = str(ROOT)

from fuzz.targets import MEMORY, SECONDS, TARGETS  # noqa: E402

MEMORY_DISK = Path("/dev/shm")
FINDINGS = ROOT / "build" / "fuzz"
RECORD = HERE / "RESULTS.md"
#: What decides what a target does.
CODE = ("src/rangevote/**/*.py", "kernels/*", "fuzz/*.py")
#: Seconds for starting a process, beyond the time for fuzzing: a few, but minutes on a machine that is busy
#: with other things. Inputs that hang end sooner, by libFuzzer's own clock.
PATIENCE = 1800
HEAD = f"""# Fuzzing

Written by `make fuzz`; do not edit. Each target ([targets.py](targets.py)) takes bytes and may raise only
what its interface allows; anything else, a breach of what must hold, an input of more than {SECONDS} seconds,
or more than {MEMORY:,} MB of memory is a finding. The corpus of samples and of every case that was found is
replayed by the tests. "Edges" and "features" are libFuzzer's counts of what was reached (0: atheris is not
installed, inputs are changed at random), "code" is a digest of the package and of the targets.
"""
COLUMNS = ("target", "date", "code", "minutes", "inputs", "a second", "edges", "features", "MB", "findings")
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


@dataclass(frozen=True)
class Row:
    """What the record says of a target; `findings` is their number."""

    date: str
    code: str
    minutes: float
    runs: int
    speed: int
    coverage: int
    features: int
    peak: int
    findings: int

    def done(self, code: str, minutes: float) -> bool:
        """Whether this code was fuzzed for as long and nothing was found."""
        return self.code == code and self.minutes >= minutes and not self.findings

    @classmethod
    def of(cls, outcome: Outcome, code: str, minutes: float) -> Row:
        o, today = outcome, datetime.date.today().isoformat()
        return cls(today, code, minutes, o.runs, o.speed, o.coverage, o.features, o.peak, len(o.findings))


def read_record(text: str) -> dict[str, Row]:
    """The rows of a record by their targets."""
    rows = {}
    for line in text.splitlines():
        name, *cells = (cell.strip().replace(",", "") for cell in line.strip("|").split("|"))
        if name in TARGETS and len(cells) == len(COLUMNS) - 1:
            date, code, minutes, *numbers = cells
            rows[name] = Row(date, code, float(minutes), *map(int, numbers))
    return rows


def record(rows: Mapping[str, Row]) -> str:
    """The page with these rows, in the order of the targets."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"| --- | --- | --- |{' ---: |' * (len(COLUMNS) - 3)}"]
    listed = [(name, rows[name]) for name in TARGETS if name in rows]
    for name, row in listed:
        date, code, minutes, *numbers = vars(row).values()
        cells = (name, date, code, f"{minutes:g}", *(f"{number:,}" for number in numbers))
        lines.append(f"| {' | '.join(cells)} |")
    rows_alone = [row for _, row in listed]
    minutes, runs = sum(row.minutes for row in rows_alone), sum(row.runs for row in rows_alone)
    peak, found = max((row.peak for row in rows_alone), default=0), sum(row.findings for row in rows_alone)
    lines.append(f"| **all** | | | {minutes:g} | {runs:,} | | | | {peak:,} | **{found}** |")
    return "\n".join([HEAD, *lines]) + "\n"


def digest() -> str:
    """Of all that decides what a target does."""
    paths = sorted(path for pattern in CODE for path in ROOT.glob(pattern) if path.is_file())
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:8]


def fuzz(name: str, seconds: float, seed: int) -> Outcome:
    """One target in a process of its own."""
    folder = FINDINGS / name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, str(HERE / "one.py"), name, "--findings", str(folder)]
    command += ["--seconds", f"{max(seconds, 1):.0f}", "--seed", str(seed)]
    return read_outcome(folder, _run(command, folder / "log.txt", seconds + PATIENCE))


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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10, help="for each target [10]")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; again for others")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs [1]")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time [1]")
    options = parser.parse_args()
    code, rows = digest(), read_record(RECORD.read_text(encoding="utf-8"))
    names = [name for name in options.target or TARGETS if not TARGETS[name].missing]
    left = [name for name in names if name not in rows or not rows[name].done(code, options.minutes)]
    print(f"{len(names) - len(left)} of {len(names)} targets are done at {code}", file=sys.stderr, flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(fuzz, name, 60 * options.minutes, options.seed): name for name in left}
        for future in as_completed(futures):
            name, outcome = futures[future], future.result()
            rows[name] = Row.of(outcome, code, options.minutes)
            RECORD.write_text(record(rows), encoding="utf-8")
            print(f"{name}: {outcome.runs:,} inputs", *outcome.findings, sep="\n  ", flush=True)
    return 1 if any(rows[name].findings for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
