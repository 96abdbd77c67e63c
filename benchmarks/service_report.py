"""What was measured of the service -> the chapter `service` of RESULTS.md."""

from __future__ import annotations

from typing import Any, NamedTuple

QUICK = "**A quick run"
#: Megabytes by which memory may differ between two looks at a process that keeps nothing.
NOISE = 2.0


class Target(NamedTuple):
    """What must be reached, and whether it was."""

    what: str
    asked: str
    measured: str
    reached: bool


def markdown(data: dict[str, Any]) -> str:
    """The page."""
    size, told = data["size"], data["machine"]
    lines = [
        "# What does the election service add, and what does it bear?",
        "",
        "Written by `make bench-service`; do not edit. Everything runs on one machine over loopback, each "
        "server in a process of its own; the model's server has its answers ready "
        "(100 words each, 16 a request).",
        "",
        f"{data['date']}, {told['cpu']}, {told['cores']} cores; load average {told['load'][0]:.1f} and "
        f"{told['load'][1]:.1f} before and after; "
        + ", ".join(f"{name} {number}" for name, number in data["versions"].items())
        + f". The run took {data['seconds'] / 60:.0f} minutes.",
        "",
    ]
    if data.get("quick"):
        lines += [f"{QUICK}, to see that all of it works: its numbers mean little.**", ""]
    lines += ["| what | must reach | measured | reached |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {one.what} | {one.asked} | {one.measured} | {'yes' if one.reached else '**no**'} |"
        for one in targets(data)
    ]
    lines += ["", *beside(data), "", *borne(data, size)]
    return "\n".join(lines) + "\n"


def targets(data: dict[str, Any]) -> list[Target]:
    """Those of the project, none moved."""
    added, memory = data["latency"]["rangevote"], data["memory"]
    growth = memory["end"] - memory["warm"]
    found = [
        Target(
            f"added latency, p50, n = {added['samples']}, 100-word answers",
            "< 5 ms",
            ms(added["p50"]),
            added["p50"] < 0.005,
        ),
        Target(
            f"memory after {data['size']['memory']:,} requests, against a tenth of them",
            f"no growth (within {NOISE:.0f} MB)",
            f"{memory['warm']:.1f} -> {memory['end']:.1f} MB",
            growth <= NOISE,
        ),
    ]
    over = data["overload"]
    only = set(over["statuses"]) <= {"200", "503"} and "503" in over["statuses"]
    found.append(
        Target("4 x capacity: answers", "200 or 503 alone", shares(over["statuses"]), only),
    )
    named = {
        "overload": "4 x capacity",
        "burst": f"{data['size']['burst']:,} requests at once",
        "long": "64 x 20,000-token samples",
    }
    for part, name in named.items():
        p99 = data[part]["healthz"]["p99"]
        found.append(Target(f"{name}: /healthz p99", "< 50 ms", ms(p99), p99 < 0.05))
    return found


def beside(data: dict[str, Any]) -> list[str]:
    """optillm in the same run."""
    lines = [
        "## Beside optillm",
        "",
        "Added latency is the time of a request without that of the same call made directly just before, by "
        "one client. Requests a second are with 16 clients that never rest. optillm's `bon` makes one call "
        "for all samples and then one for the grade of each; its `self_consistency` draws five samples "
        "one after the other. These further calls cost nothing here, where the model answers at once; "
        "of a real model each takes seconds.",
        "",
        "| | samples | added p50 | added p99 | requests a second | processor a request | memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in data["latency"].items():
        rate = data["throughput"][name]
        if error := found.get("error") or rate.get("error"):
            lines.append(f"| {name} | {error} | | | | | |")
            continue
        cells = [
            name,
            str(found["samples"]),
            ms(found["p50"]),
            ms(found["p99"]),
            f"{rate['rate']:.0f}",
            ms(rate["cpu"]),
            f"{rate['memory']:.0f} MB",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    direct = data["latency"]["rangevote"]["direct"]
    return [*lines, "", f"The call made directly takes {ms(direct)} (p50)."]


def borne(data: dict[str, Any], size: dict[str, Any]) -> list[str]:
    """Load beyond what can be answered."""
    over, burst, long = data["overload"], data["burst"], data["long"]
    return [
        "## Too much",
        "",
        f"* **4 x capacity.** The model takes {data['model seconds']} s a call, so 16 elections in flight "
        f"answer {over['capacity']:.0f} requests a second; {4 * over['capacity']:.0f} a second came for "
        f"{size['seconds']:.0f} s. Answered: {over['rate']:.1f} a second; {shares(over['statuses'])}. "
        f"{health(over)}, at most {over['memory']:.0f} MB.",
        f"* **{size['burst']:,} at once.** {shares(burst['statuses'])}; {health(burst)}; at most "
        f"{burst['memory']:.0f} MB ({burst['before']:.0f} MB before).",
        f"* **64 samples of 20,000 words** a request, from two clients: {long['answers']} answers, p50 "
        f"{long['p50']:.2f} s; {health(long)}; at most {long['memory']:.0f} MB.",
        f"* **Memory** over {size['memory']:,} requests ({data['memory']['rate']:.0f} a second): "
        + ", ".join(f"{megabytes:.1f}" for _, megabytes in data["memory"]["seen"][:: max(1, 40 // 8)])
        + " MB.",
    ]


def health(part: dict[str, Any]) -> str:
    """How the process felt."""
    found = part["healthz"]
    return (
        f"/healthz p50 {ms(found['p50'])}, p99 {ms(found['p99'])}, longest {ms(found['max'])} "
        f"({found['asked']} times)"
    )


def shares(statuses: dict[str, int]) -> str:
    """Statuses and how often they came; 0 is a connection without an answer, -1 what could not be sent."""
    names = {"0": "no answer", "-1": "not sent"}
    return ", ".join(f"{count:,} x {names.get(status, status)}" for status, count in statuses.items())


def ms(seconds: float) -> str:
    """In milliseconds."""
    return f"{seconds * 1000:.2f} ms"
