"""A scripted annotator who judges pairs, on rangevote's page and on Potato's: actions and time."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import generate
from common import ROOT, command_line, say

POTATO = ROOT / ".venv-potato" / "bin" / "potato"
#: More than the rounds need.
ANNOTATORS = 20
LABELS = (
    *("A is much better", "A is slightly better", "No difference"),
    *("B is slightly better", "B is much better"),
)
PREFERENCE = {
    "name": "preference",
    "description": "Which output is better?",
    "label_requirement": {"required": True},
}
SCALE = PREFERENCE | {
    "annotation_type": "pairwise",
    "mode": "scale",
    "items_key": "text",
    "labels": ["A", "B"],
    "scale": {
        **{"min": -2, "max": 2, "step": 1, "default": 0},
        "labels": {"min": LABELS[0], "max": LABELS[-1], "center": LABELS[2]},
    },
}
RADIO = PREFERENCE | {"annotation_type": "radio", "labels": list(LABELS), "sequential_key_binding": True}
REVIEW = {"enabled": True, "auto_advance": True, "advance_on": "complete"}
#: Potato's settings are those of its examples (pairwise-scale, hotkey-review). Its pause of 350 ms is kept
#: for the slider, where the first step of a tie would be taken as the answer; a radio button needs none.
POTATOES: dict[str, dict[str, Any]] = {
    "Potato, pairwise scale": {"annotation_schemes": [SCALE]},
    "Potato, pairwise scale, review mode": {"annotation_schemes": [SCALE], "review_mode": REVIEW},
    "Potato, five radio buttons, review mode without pause": {
        "annotation_schemes": [RADIO],
        "review_mode": REVIEW | {"delay_ms": 0},
    },
}
#: JavaScript: the item that waits to be judged, or "" while none does.
STUDY_ITEM = """() => ["", "Saved"].includes(document.getElementById("saved").textContent)
    && !document.getElementById("work").hidden ? document.getElementById("position").textContent : "" """
POTATO_ITEM = """() => document.documentElement?.dataset.item ?? "" """
POTATO_READY = """document.addEventListener("potato:instance-ready", (event) => {
    document.documentElement.dataset.item = event.detail.instanceId; });"""


@dataclass
class Contestant:
    """A page set up in one way.

    `open(browser, round)` gives a new annotator's page at its first item; `answer(page, value)` gives an
    answer from -2 to 2 and returns its number of actions; `stored(round)` is what the server has, by item.
    """

    name: str
    item: str
    open: Callable[[Any, int], Any]
    answer: Callable[[Any, int], int]
    stored: Callable[[int], dict[str, int]]


def judge(contestant: Contestant, browser: Any, round_: int, number: int) -> dict[str, Any]:
    """Judge `number` items, a fifth of them ties; every answer is acknowledged before the next is given."""
    values = list(itertools.islice(itertools.cycle(range(-2, 3)), number))
    random.Random(7).shuffle(values)
    changed = f"before => {{ const now = ({contestant.item})(); return now !== '' && now !== before; }}"
    page = contestant.open(browser, round_)
    given: dict[str, int] = {}
    seconds, actions = [], []
    try:
        item = page.evaluate(f"({contestant.item})()")
        for value in values:
            began = time.perf_counter()
            actions.append(contestant.answer(page, value))
            page.wait_for_function(changed, arg=item, timeout=30_000)
            seconds.append(time.perf_counter() - began)
            given[item], item = value, page.evaluate(f"({contestant.item})()")
    finally:
        page.context.close()
    end = time.monotonic() + 3  # a server may write an answer a moment after it has acknowledged it
    while len(stored := contestant.stored(round_)) < number and time.monotonic() < end:
        time.sleep(0.1)
    right = sum(stored.get(item) == value for item, value in given.items())
    return {"seconds": seconds, "actions": actions, "values": values, "right": right}


def rounds(contestants: list[Contestant], browser: Any, number: int, times: int) -> dict[str, Any]:
    """All take turns: `times` rounds of `number` items."""
    results: dict[str, Any] = {contestant.name: {"rounds": []} for contestant in contestants}
    for round_ in range(times):
        for contestant in contestants:
            say(f"  round {round_ + 1}: {contestant.name}")
            results[contestant.name]["rounds"].append(judge(contestant, browser, round_, number))
    return results


def pairs(number: int) -> list[list[str]]:
    """Made-up outputs of two systems, one item more than is judged, so that there is always a next one."""
    return [generate.ballot(2, 5_000 + i).texts for i in range(number + 1)]


def new_page(browser: Any, script: str = "") -> Any:
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    page.add_init_script(script)
    return page


def new_study(folder: Path, items: int) -> Path:
    source, path = folder / "pairs.jsonl", folder / "study.db"
    lines = [
        json.dumps({"id": str(number), "outputs": {"first": first, "second": second}})
        for number, (first, second) in enumerate(pairs(items))
    ]
    source.write_text("\n".join(lines), encoding="utf-8")
    command = [*command_line(), "study", "new", source, "--annotators", str(ANNOTATORS), "-o", path, "-q"]
    subprocess.run(command, check=True, capture_output=True)
    return path


def study_contestant(path: Path, links: list[str], at_once: bool) -> Contestant:
    """`rangevote study serve`, with digits that save at once, or with Enter after them."""

    def number(round_: int) -> int:
        return 2 * round_ + at_once

    def opened(browser: Any, round_: int) -> Any:
        page = new_page(browser)
        page.goto(links[number(round_)])
        page.get_by_role("button", name="Begin without practice").click()
        page.wait_for_selector("#work:not([hidden])")
        if at_once:
            page.keyboard.press("?")
            page.check("#at-once")
        return page

    def answer(page: Any, value: int) -> int:
        page.keyboard.press(str(value + 3))
        if not at_once:
            page.keyboard.press("Enter")
        return 1 if at_once else 2

    def stored(round_: int) -> dict[str, int]:
        from rangevote.study.store import take_snapshot

        snapshot, who = take_snapshot(path), number(round_)
        mine = {one.pair: one.position for one in snapshot.study.assignments if one.annotator == who}
        current = [row for row in snapshot.current() if row.annotator == who]
        return {f"Item {mine[row.pair] + 1} of {len(mine)}": row.shown or 0 for row in current}

    name = "rangevote, digit saves at once" if at_once else "rangevote, digit and Enter"
    return Contestant(name, STUDY_ITEM, opened, answer, stored)


def set_up_potato(folder: Path, name: str, items: int) -> Path:
    """A folder with Potato's settings and items."""
    folder.mkdir()
    listed = [{"id": f"item{i}", "text": texts} for i, texts in enumerate(pairs(items), start=1)]
    (folder / "items.json").write_text(json.dumps(listed), encoding="utf-8")
    settings = {
        "annotation_task_name": "Pairs",
        "task_dir": ".",
        "output_annotation_dir": "stored",
        "output_annotation_format": "jsonl",
        "data_files": ["items.json"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "list_as_text": {"text_list_prefix_type": "alphabet"},
        "require_password": False,
        "user_config": {"allow_all_users": True, "users": []},
        "jumping_to_id_disabled": True,
        **POTATOES[name],
    }
    (folder / "config.yaml").write_text(json.dumps(settings, indent=1), encoding="utf-8")  # JSON is YAML
    return folder


def potato_command(port: int) -> list[str | Path]:
    """Potato's server in the folder that it is started in, where the templates that it makes go too."""
    options = ["start", "config.yaml", "-p", str(port), "--host", "127.0.0.1"]
    return ["env", "POTATO_GENERATED_TEMPLATES_DIR=templates", POTATO, *options]


def potato_contestant(name: str, folder: Path, address: str) -> Contestant:
    """Potato as it was set up, behind a server that runs."""

    def opened(browser: Any, round_: int) -> Any:
        page = new_page(browser, POTATO_READY)
        page.goto(address)
        page.fill("#login-email", f"round{round_}")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-item]")
        return page

    def stored(round_: int) -> dict[str, int]:
        path = folder / "stored" / f"round{round_}" / "user_state.json"
        if not path.exists():
            return {}
        labels = json.loads(path.read_text(encoding="utf-8"))["instance_id_to_label_to_value"]
        return {item: _value(*given) for item, given in labels.items() if len(given) == 1}

    def slide(page: Any, value: int) -> int:
        """For a tie the slider has to leave the centre and come back: a click on it changes nothing."""
        box = page.locator(".pairwise-scale-slider").bounding_box()

        def at(value: int) -> tuple[float, float]:
            return box["x"] + 8 + (box["width"] - 16) * (value + 2) / 4, box["y"] + box["height"] / 2

        if value:
            page.mouse.click(*at(value))
        else:
            page.mouse.move(*at(0))
            page.mouse.down()
            page.mouse.move(*at(-1))
            page.mouse.move(*at(0))
            page.mouse.up()
        if "review" in name:
            return 1
        page.click("#next-btn")
        return 2

    def press(page: Any, value: int) -> int:
        page.keyboard.press(str(value + 3))
        return 1

    return Contestant(name, POTATO_ITEM, opened, slide if "scale" in name else press, stored)


def _value(stored: list[Any]) -> int:
    label, value = stored
    return LABELS.index(label["name"]) - 2 if label["name"] in LABELS else int(value)
