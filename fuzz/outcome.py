"""What became of a target: read from libFuzzer's own words and from the files that it wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.targets import MEMORY

_STATUS = re.compile(r"^#(\d+)\t.*?(?:cov: (\d+) ft: (\d+) .*?)?rss: (\d+)Mb", re.MULTILINE)
_RUNS = re.compile(r"^stat::number_of_executed_units: +(\d+)", re.MULTILINE)
_SPEED = re.compile(r"^stat::average_exec_per_sec: +(\d+)", re.MULTILINE)
_PEAK = re.compile(r"^stat::peak_rss_mb: +(\d+)", re.MULTILINE)
_KINDS = {"timeout": "takes too long", "oom": "takes too much memory", "crash": "ends the process"}


@dataclass(frozen=True)
class Outcome:
    """How many inputs, how many a second, how many edges and features were seen, and what was found."""

    runs: int = 0
    speed: int = 0
    coverage: int = 0
    features: int = 0
    peak: int = 0
    found: tuple[str, ...] = field(default=())
    known: tuple[str, ...] = field(default=())

    def after(self, more: Outcome) -> Outcome:
        """Both processes of one target; the files that the first one wrote are seen by the second again."""
        return Outcome(
            self.runs + more.runs,
            max(self.speed, more.speed),
            max(self.coverage, more.coverage),
            max(self.features, more.features),
            max(self.peak, more.peak),
            tuple(dict.fromkeys(self.found + more.found)),
            tuple(dict.fromkeys(self.known + more.known)),
        )


def outcome_of(folder: Path, number: int, code: int) -> Outcome:
    """Of the process whose words are in `log{number}.txt`."""
    said = (folder / f"log{number}.txt").read_text(encoding="utf-8", errors="replace")
    last = [match.groups() for match in _STATUS.finditer(said)]
    runs, coverage, features, rss = (int(one or 0) for one in (last[-1] if last else (0, 0, 0, 0)))
    peak = max(_first(_PEAK, said), rss)
    found = [_told(path) for path in sorted(folder.glob("error-*.txt"))]
    for kind, told in _KINDS.items():
        found += [f"{told}: {path.name}" for path in sorted(folder.glob(f"{kind}-*"))]
    if code and not found:
        found.append(f"the process ended with {code}: log{number}.txt")
    if peak > MEMORY:
        found.append(f"{peak} MB of memory")
    known = [_told(path) for path in sorted(folder.glob("open-*.txt"))]
    runs = max(_first(_RUNS, said), runs)
    return Outcome(runs, _first(_SPEED, said), coverage, features, peak, tuple(found), tuple(known))


def _first(pattern: re.Pattern[str], said: str) -> int:
    found = pattern.search(said)
    return int(found[1]) if found else 0


def _told(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0] + f": {path.stem}"


def table(outcomes: Mapping[str, Outcome]) -> str:
    """Markdown."""
    lines = [
        "| target | inputs | a second | edges | features | MB | findings |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {name} | {o.runs:,} | {o.speed:,} | {o.coverage:,} | {o.features:,} | {o.peak:,} "
        f"| {len(o.found)} |"
        for name, o in outcomes.items()
    ]
    runs, peak = sum(o.runs for o in outcomes.values()), max((o.peak for o in outcomes.values()), default=0)
    number = sum(len(o.found) for o in outcomes.values())
    lines.append(f"| **all** | {runs:,} | | | | {peak:,} | **{number}** |")
    listed = [f"* {name}: {found}" for name, o in outcomes.items() for found in o.found]
    listed += [f"* {name}, known and open: {known}" for name, o in outcomes.items() for known in o.known]
    return "\n".join([*lines, *(["", *listed] if listed else [])]) + "\n"
