"""Potato as a contestant: its pairwise scale as in its example, with its review mode, and five radio buttons.

Its settings are found in the documentation of its repository (examples/classification/pairwise-scale,
examples/advanced/hotkey-review) and in `config_key_docs.py` of the package.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pages_install import POTATO
from pages_judging import Contestant, Desk, new_page, pairs

LABELS = (
    "A is much better",
    "A is slightly better",
    "No difference",
    "B is slightly better",
    "B is much better",
)
SLIDER = ".pairwise-scale-slider"
QUESTION = "Which output is better?"
#: On a page that was just loaded the focus is nowhere; a walk that is longer than this has missed the slider.
MOST_TABS = 40
SCALE = {
    "annotation_type": "pairwise",
    "name": "preference",
    "description": QUESTION,
    "mode": "scale",
    "items_key": "text",
    "labels": ["A", "B"],
    "scale": {
        "min": -2,
        "max": 2,
        "step": 1,
        "default": 0,
        "labels": {"min": LABELS[0], "max": LABELS[-1], "center": LABELS[2]},
    },
    "label_requirement": {"required": True},
}
RADIO = {
    "annotation_type": "radio",
    "name": "preference",
    "description": QUESTION,
    "labels": list(LABELS),
    "sequential_key_binding": True,
    "label_requirement": {"required": True},
}
#: Potato's own pause of 350 ms is kept for the slider: without one, the first step of a tie is taken as the
#: answer. A radio button needs none.
REVIEW = {"enabled": True, "auto_advance": True, "advance_on": "complete"}
SETTINGS: dict[str, dict[str, Any]] = {
    "Potato, pairwise scale": {"annotation_schemes": [SCALE]},
    "Potato, pairwise scale, review mode": {"annotation_schemes": [SCALE], "review_mode": REVIEW},
    "Potato, five radio buttons, review mode without pause": {
        "annotation_schemes": [RADIO],
        "review_mode": REVIEW | {"delay_ms": 0},
    },
}


class PotatoDesk(Desk):
    """Potato loads the page anew for every item, and fires an event when the item can be judged."""

    READY = """document.addEventListener("potato:instance-ready", (event) => {
        document.documentElement.dataset.item = event.detail.instanceId; });"""
    ITEM = """() => document.documentElement?.dataset.item ?? "" """

    def at(self, value: int) -> tuple[float, float]:
        """Where the slider stands for a value: its thumb, about 16 pixels wide, stays inside."""
        box = self.page.locator(SLIDER).bounding_box()
        return box["x"] + 8 + (box["width"] - 16) * (value + 2) / 4, box["y"] + box["height"] / 2

    def press_next(self) -> None:
        box = self.page.locator("#next-btn").bounding_box()
        self.hand.click((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))

    def walk_to_slider(self, key: str) -> None:
        """Press Tab, or Shift+Tab, until the slider has the focus."""
        for _ in range(MOST_TABS):
            self.hand.key(key)
            if self.page.evaluate(f"document.activeElement.matches({SLIDER!r})"):
                return
        raise RuntimeError(f"{MOST_TABS} times {key} do not reach the slider")


def set_up(folder: Path, name: str, items: int) -> Path:
    """A folder with Potato's settings and items, one more than is judged."""
    folder.mkdir()
    listed = [{"id": f"item{i}", "text": texts} for i, texts in enumerate(pairs(items + 1), start=1)]
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
        **SETTINGS[name],
    }
    (folder / "config.yaml").write_text(json.dumps(settings, indent=1), encoding="utf-8")  # JSON is YAML
    return folder


def command(port: int) -> list[str | Path]:
    """Potato's server in the folder that it is started in.

    Templates that it makes go there too: in its package, where it puts them, servers overwrite each other's.
    """
    potato = POTATO / "bin" / "potato"
    options = ["start", "config.yaml", "-p", str(port), "--host", "127.0.0.1"]
    return ["env", "POTATO_GENERATED_TEMPLATES_DIR=templates", potato, *options]


def contestant(name: str, folder: Path, address: str) -> Contestant:
    """Potato as it was set up, behind a server that runs."""

    def opened(browser: Any, annotator: str) -> PotatoDesk:
        page = new_page(browser, PotatoDesk.READY)
        page.goto(address)
        page.fill("#login-email", annotator)
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-item]")
        return PotatoDesk(page)

    scale = "scale" in name
    ways, by_keys = _scale_ways("review" in name) if scale else ({"digit": digit}, {})
    return Contestant(name, opened, lambda annotator: recorded(folder, annotator), ways, by_keys)


def recorded(folder: Path, annotator: str) -> dict[str, int]:
    """What Potato has stored of an annotator."""
    path = folder / "stored" / annotator / "user_state.json"
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))["instance_id_to_label_to_value"]
    return {item: _value(pairs_) for item, pairs_ in stored.items() if len(pairs_) == 1}


def _value(stored: list[Any]) -> int:
    [[label, value]] = stored
    return LABELS.index(label["name"]) - 2 if label["name"] in LABELS else int(value)


def digit(desk: Desk, value: int) -> None:
    """`1` to `5`."""
    desk.hand.key(str(value + 3))


def _scale_ways(review: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What can be done with the slider; in review mode the page goes on by itself."""
    end = "" if review else ", Next"

    def done(*steps: Callable[[PotatoDesk, int], None]) -> Callable[[PotatoDesk, int], None]:
        def way(desk: PotatoDesk, value: int) -> None:
            for step in steps:
                step(desk, value)
            if not review:
                desk.press_next()

        return way

    ways = {
        "digit": digit,
        "Next alone": done(),
        f"click on the answer{end}": done(click),
        f"drag to the other side and to the answer{end}": done(drag),
        f"click beside the answer, click on it{end}": done(click_beside, click),
    }
    if review:
        del ways["Next alone"]
        ways["drag to the other side, rest there for half a second, and to the answer"] = done(drag_slowly)
    last = [] if review else ["Tab", "Enter"]
    by_keys = {f"{key} to the slider": _walked(key, last) for key in ("Tab", "Shift+Tab")}
    return ways, by_keys


def click(desk: PotatoDesk, value: int) -> None:
    desk.hand.click(desk.at(value))


def click_beside(desk: PotatoDesk, value: int) -> None:
    desk.hand.click(desk.at(value - 1))


def drag(desk: PotatoDesk, value: int, rest: float = 0.0) -> None:
    desk.hand.drag([desk.at(0), desk.at(-1), desk.at(value)], rest)


def drag_slowly(desk: PotatoDesk, value: int) -> None:
    drag(desk, value, rest=0.5)


def _walked(key: str, last: list[str]) -> Callable[[PotatoDesk, int], None]:
    """To the slider, one step to the side, as many back as the answer wants, and on to the next item."""

    def way(desk: PotatoDesk, value: int) -> None:
        desk.walk_to_slider(key)
        moves = ["ArrowLeft" if value < 0 else "ArrowRight"] * abs(value) or ["ArrowRight", "ArrowLeft"]
        for name in [*moves, *last]:
            desk.hand.key(name)

    return way
