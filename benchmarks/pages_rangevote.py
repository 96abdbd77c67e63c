"""rangevote's own page as a contestant: `study serve`, with Enter, and with digits that save at once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from pages_install import rangevote
from pages_judging import Contestant, Desk, new_page, pairs, positions

#: More than the rounds and the tries of all ways need.
ANNOTATORS = 40


class StudyDesk(Desk):
    """The item counts as acknowledged when the page says "Saved" and shows the next."""

    ITEM = """() => ["", "Saved"].includes(document.getElementById("saved").textContent)
        && !document.getElementById("work").hidden ? document.getElementById("place").textContent : "" """


def new_study(folder: Path, items: int) -> Path:
    """A study with one item more than is judged, so that there is always a next one to be shown."""
    source, path = folder / "pairs.jsonl", folder / "study.db"
    with source.open("w", encoding="utf-8") as file:
        for number, (first, second) in enumerate(pairs(items + 1), start=1):
            line = {"id": str(number), "outputs": {"first": first, "second": second}}
            file.write(json.dumps(line) + "\n")
    command = [*rangevote(), "study", "new", source, "--annotators", str(ANNOTATORS), "-o", path, "-q"]
    subprocess.run(command, check=True, capture_output=True)
    return path


def contestants(path: Path, links: list[str]) -> list[Contestant]:
    """With Enter, and at once. Every name that is asked for takes the next annotator of the study."""
    taken: dict[str, int] = {}

    def made(name: str, at_once: bool) -> Contestant:
        def opened(browser: Any, annotator: str) -> StudyDesk:
            number = taken.setdefault(f"{name}/{annotator}", len(taken))
            page = new_page(browser)
            page.goto(links[number])
            page.wait_for_selector("#work:not([hidden])")
            if at_once:
                page.check("#at-once")
            return StudyDesk(page)

        def recorded(annotator: str) -> dict[str, int]:
            return positions(path, taken[f"{name}/{annotator}"])

        ways = {"digit": digit, "digit, Enter": digit_and_enter}
        ways = {"digit": digit} if at_once else ways
        return Contestant(name, opened, recorded, ways)

    return [
        made("rangevote, digit and Enter", at_once=False),
        made("rangevote, digit saves at once", at_once=True),
    ]


def digit(desk: Desk, value: int) -> None:
    """`1` to `5`."""
    desk.hand.key(str(value + 3))


def digit_and_enter(desk: Desk, value: int) -> None:
    """`1` to `5`, then Enter."""
    digit(desk, value)
    desk.hand.key("Enter")
