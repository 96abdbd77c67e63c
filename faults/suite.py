"""Every fault as often as asked for, and the counts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from faults.ray_trials import RAY_TRIALS, ray_ways
from faults.runs import WAYS, Bench, Way
from faults.trials import TRIALS


class Count(NamedTuple):
    """Of one fault: how often it was tried and happened, and what was lost; or why it was left out."""

    tried: int
    happened: int
    lost: list[str]
    left_out: str = ""


def suite(bench: Bench, times: Mapping[str, int], ways: tuple[Way, ...] = WAYS) -> dict[str, Count]:
    """Every fault as often as asked for, the ways to vote in turn."""
    counts: dict[str, Count] = {}
    for name, number in times.items():
        if name not in RAY_TRIALS:
            counts[name] = repeated(bench, name, number, ways)
        elif isinstance(bench.cluster, str):
            counts[name] = Count(0, 0, [], bench.cluster)
        else:
            counts[name] = repeated(bench, name, number, ray_ways(bench.cluster))
    return counts


def repeated(bench: Bench, name: str, number: int, ways: tuple[Way, ...]) -> Count:
    """One fault, until it has happened `number` times, or does not come about."""
    tried = happened = 0
    lost: list[str] = []
    while happened < number and tried < 3 * number + 5:
        way = ways[tried % len(ways)]
        found = (TRIALS | RAY_TRIALS)[name](bench, way)
        tried += 1
        if found is not None:
            happened += 1
            lost += [f"{name}, {way.name}: {problem}" for problem in found]
        if tried % 10 == 0:
            print(f"{name}: {happened} of {number}, lost {len(lost)}", file=sys.stderr, flush=True)
    return Count(tried, happened, lost)


def table(counts: Mapping[str, Count]) -> str:
    """Markdown."""
    lines = ["| fault | tried | happened | lost |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {name} | - | - | left out: {c.left_out} |"
        if c.left_out
        else f"| {name} | {c.tried} | {c.happened} | {len(c.lost)} |"
        for name, c in counts.items()
    ]
    tried, happened = sum(c.tried for c in counts.values()), sum(c.happened for c in counts.values())
    lost = [problem for c in counts.values() for problem in c.lost]
    lines.append(f"| **all** | {tried} | {happened} | **{len(lost)}** |")
    return "\n".join([*lines, *(["", *(f"* {problem}" for problem in lost)] if lost else [])]) + "\n"
