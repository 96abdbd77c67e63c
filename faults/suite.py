"""Every fault as often as asked for, and the counts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

from faults.runs import WAYS, Bench, Way
from faults.trials import TRIALS


class Count(NamedTuple):
    """Of one fault: how often it was tried and happened, and what was lost."""

    tried: int
    happened: int
    lost: list[str]


def suite(bench: Bench, times: Mapping[str, int], ways: tuple[Way, ...] = WAYS) -> dict[str, Count]:
    """Every fault as often as asked for, the ways to vote in turn."""
    return {name: repeated(bench, name, number, ways) for name, number in times.items()}


def repeated(bench: Bench, name: str, number: int, ways: tuple[Way, ...]) -> Count:
    """One fault, until it has happened `number` times, or does not come about."""
    tried = happened = 0
    lost: list[str] = []
    while happened < number and tried < 3 * number + 5:
        way = ways[tried % len(ways)]
        found = TRIALS[name](bench, way)
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
    lines += [f"| {name} | {c.tried} | {c.happened} | {len(c.lost)} |" for name, c in counts.items()]
    total = Count(
        *(sum(c[i] for c in counts.values()) for i in (0, 1)), [p for c in counts.values() for p in c.lost]
    )
    lines.append(f"| **all** | {total.tried} | {total.happened} | **{len(total.lost)}** |")
    return (
        "\n".join([*lines, *(["", *(f"* {problem}" for problem in total.lost)] if total.lost else [])]) + "\n"
    )
