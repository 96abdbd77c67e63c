"""What was measured of the pages -> the chapter `pages` of RESULTS.md."""

from __future__ import annotations

from statistics import median
from typing import Any

from common import MARKS, machine_line, table

Data = dict[str, Any]

HEAD = """# What do the pages take?

Written by `python benchmarks/pages.py`; do not edit. `rangevote show` and `rangevote study serve` (the `web`
extra) in Chromium, and beside the latter Potato {potato}, in an environment of its own (`setup_potato.sh`).
{quick}
{machine}
"""
QUICK = """
**A quick run ({items} items, {rounds} round): it shows that all of it works. Its numbers are of no worth.**
"""
METHOD = """## How it was measured

* Everything runs on one machine, one thing after the other. Wall time. While one page is judged on, the
  servers of the others are up and idle.
* Install: a new virtual environment of the Python named above. Megabytes are what `du` says of
  `site-packages`, with byte code, less what the empty environment has (pip, setuptools).
* Start-up: from starting the process to the end of the first good answer to `GET /`, asked for every 5 ms;
  one start before them is not counted. rangevote is the one just installed.
* Pages: from the start of the navigation to the end of the frame that shows the candidates, or the last part
  of the page. Each time a new server that has counted nothing, and a new browser context.
* Judging: the annotator is a script, so this is what the pages themselves take; people read first. Texts of
  about 20 words from `generate.py`, the same for all; the same answers, a fifth of them ties, in the same
  order. An answer counts when the server has acknowledged it: rangevote says "Saved" and shows the next item;
  Potato loads the next item and tells its page that it can be judged (`potato:instance-ready`). In every
  round all take their turn, each as a new annotator. Afterwards what the servers have stored is compared with
  what was meant.
* Actions are counted as they are done: a key (with Shift or not), a click and a drag are one each. The mouse
  is where it has to be at once. Of all ways in the last table, the one with the fewest actions that is stored
  as meant is used.
* Potato's review mode waits 350 ms before it goes on, as it comes; a slider needs that, since the first step
  of a tie would be taken as the answer. It is set to 0 for the radio buttons.
"""


def markdown(data: Data) -> str:
    """The whole page."""
    quick = QUICK.format(items=data["items"], rounds=data["rounds"]) if data["quick"] else ""
    parts = [
        HEAD.format(potato=data["versions"]["Potato"], quick=quick, machine=machine_line(data)),
        _targets(data),
        _install(data["install"]),
        _start_up(data["servers"]),
        _pages(data["servers"]),
        _judging(data),
        _tried(data["judging"]),
        METHOD,
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _targets(data: Data) -> str:
    pages = data["servers"].get("show, 1,000 candidates", {}).get("pages", [])
    ready = median(one["ready"] for one in pages) / 1000 if pages else None
    at_once = data["judging"].get("rangevote, digit saves at once", {})
    ties = sorted(set(_actions(at_once, tie=True)))
    rows = [
        (
            "page of 1,000 candidates: the candidates are shown",
            "<= 2 s",
            "not measured" if ready is None else f"{ready:.2f} s",
            MARKS[None if ready is None else ready <= 2.0],
        ),
        (
            "keystrokes for a tie, saved and the next item shown",
            "1",
            " to ".join(map(str, ties[:1] + ties[-1:] if len(ties) > 1 else ties)) or "not measured",
            MARKS[ties == [1] if ties else None],
        ),
    ]
    return "## Targets\n\n" + table(("what", "must reach", "measured", "reached"), rows)


def _install(install: Data) -> str:
    empty = install.get("empty")
    rows = []
    names = {"core": "rangevote", "web": "rangevote[web]", "potato": "Potato"}
    for key, name in names.items():
        if empty is None or key not in install:
            rows.append((name, "not measured", install.get("error", "not installed")))
            continue
        packages = set(install[key]["versions"]) - set(empty["versions"])
        kilobytes = install[key]["kilobytes"] - empty["kilobytes"]
        rows.append((name, f"{len(packages)}", f"{kilobytes / 1024:.1f} MB"))
    told = ""
    if empty is not None and "web" in install and "core" in install:
        added = sorted(set(install["web"]["versions"]) - set(install["core"]["versions"]))
        grown = (install["web"]["kilobytes"] - install["core"]["kilobytes"]) / 1024
        told = f"\nThe `web` extra adds {grown:.1f} MB in {len(added)} packages: {', '.join(added)}.\n"
        if "potato" in install:
            whole = install["potato"]["kilobytes"] - empty["kilobytes"]
            ours = install["web"]["kilobytes"] - empty["kilobytes"]
            told += (
                f"Potato takes {whole / ours:.1f} times what rangevote[web] takes, and "
                f"{whole / 1024 / grown:.0f} times what the extra adds. In both, "
                f"{install['web']['numpy'] / 1024:.0f} MB are numpy.\n"
            )
    return "## Install\n\n" + table(("", "packages", "on the disk"), rows) + told


def _start_up(servers: Data) -> str:
    rows = [
        (name, _seconds(found["seconds"]) if found["seconds"] else found.get("error", "not measured"))
        for name, found in servers.items()
    ]
    return "## Start-up\n\n" + table(("server", "to the first answer: median (lowest to highest)"), rows)


def _pages(servers: Data) -> str:
    rows = []
    for name, found in servers.items():
        if not name.startswith("show"):
            continue
        if not found["pages"]:
            rows.append((name, "-", found.get("error", "not measured"), "-"))
            continue
        ready, complete = ([one[part] / 1000 for one in found["pages"]] for part in ("ready", "complete"))
        rows.append((name, f"{found['pages'][0]['rows']:,.0f}", _seconds(ready), _seconds(complete)))
    head = ("page", "rows", "candidates shown", "everything complete")
    return "## The election page\n\n" + table(head, rows)


def _seconds(values: list[float]) -> str:
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{median(values):.2f} s{spread}"


def _actions(found: Data, tie: bool) -> list[int]:
    """The actions of all ties, or of all other answers, over the rounds."""
    return [
        actions
        for one in found.get("rounds", [])
        for actions, value in zip(one["actions"], one["values"], strict=True)
        if (value == 0) == tie
    ]


def _per_minute(found: Data) -> list[float]:
    return [60 * len(one["seconds"]) / sum(one["seconds"]) for one in found.get("rounds", [])]


def _judging(data: Data) -> str:
    judging, rows = data["judging"], []
    ours = [_per_minute(found) for name, found in judging.items() if name.startswith("rangevote")]
    for name, found in judging.items():
        speeds = _per_minute(found)
        if not speeds:
            rows.append((name, "not measured: " + found.get("error", "?"), *["-"] * 6))
            continue
        times = [
            _ratio(mine, speeds) if name.startswith("Potato") and mine else "-"
            for mine in (*ours, [], [])[:2]
        ]
        right = sum(one["right"] for one in found["rounds"])
        given = sum(len(one["values"]) for one in found["rounds"])
        keys = found["ways"]["keys tie"]["best"]
        rows.append(
            (
                name,
                f"{median(speeds):.0f}"
                + (f" ({min(speeds):.0f} to {max(speeds):.0f})" if len(speeds) > 1 else ""),
                *times,
                _mean(_actions(found, tie=True)),
                _mean(_actions(found, tie=False)),
                str(keys["actions"]) if keys else "none found",
                f"{right} of {given}",
            )
        )
    head = (
        *("page", "judgements a minute", "digit and Enter is quicker by", "digit at once is quicker by"),
        *(
            "actions for a tie",
            "for another answer",
            "keystrokes for a tie, keyboard alone",
            "stored as meant",
        ),
    )
    told = (
        f"{data['items']} items, rounds: {data['rounds']}; the median, lowest and highest in brackets; "
        "ratios within a round.\n\n"
    )
    return "## Judging\n\n" + told + table(head, rows)


def _ratio(mine: list[float], theirs: list[float]) -> str:
    ratios = [one / other for one, other in zip(mine, theirs, strict=False)]
    spread = f" ({min(ratios):.1f} to {max(ratios):.1f})" if len(ratios) > 1 else ""
    return f"{median(ratios):.1f} x{spread}"


def _mean(values: list[int]) -> str:
    return f"{sum(values) / len(values):.3g}" if values else "-"


def _tried(judging: Data) -> str:
    rows = []
    for name, found in judging.items():
        for kind, words in (("tie", "tie"), ("other", "B slightly better")):
            for prefix in ("", "keys "):
                for one in found.get("ways", {}).get(prefix + kind, {}).get("tried", []):
                    rows.append((name, words, one["way"], str(one["actions"]), _outcome(one, kind)))
    head = ("page", "answer", "way", "actions", "what came of it")
    return "## What was tried\n\nEach on a new annotator's first item.\n\n" + table(head, rows)


def _outcome(one: Data, kind: str) -> str:
    if not one["went on"]:
        return "does not go on"
    if one["stored"] == (0 if kind == "tie" else 1):
        return "stored"
    return "goes on, stored nothing" if one["stored"] is None else f"**stored as {one['stored']:+d}**"
