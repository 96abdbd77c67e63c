"""A scripted annotator who judges pairs: what each page takes, in actions and in time."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from common import say

#: A page that has not gone on after so many seconds has not accepted an answer.
REFUSED = 3.0
TIE, OTHER = 0, 1


class Hand:
    """Keys and mouse of a page. A key, with or without Shift, a click and a drag are one action each."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.actions = 0

    def key(self, name: str) -> None:
        self.actions += 1
        self.page.keyboard.press(name)

    def click(self, where: tuple[float, float]) -> None:
        self.actions += 1
        self.page.mouse.click(*where)

    def drag(self, places: Sequence[tuple[float, float]], rest: float = 0.0) -> None:
        """Press at the first place, go over the others, with a rest before the last, and let go."""
        self.actions += 1
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:-1]:
            self.page.mouse.move(*place)
        time.sleep(rest)
        self.page.mouse.move(*places[-1])
        self.page.mouse.up()


class Desk:
    """One annotator's page. `ITEM` is JavaScript: the item that waits to be judged, or "" while none does."""

    ITEM: ClassVar[str] = ""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.hand = Hand(page)

    def item(self) -> str:
        found: str = self.page.evaluate(f"({self.ITEM})()")
        return found

    def next(self, before: str, seconds: float) -> bool:
        """Wait until another item waits to be judged; the one before is then acknowledged."""
        from playwright.sync_api import TimeoutError as Late

        changed = f"before => {{ const now = ({self.ITEM})(); return now !== '' && now !== before; }}"
        try:
            self.page.wait_for_function(changed, arg=before, timeout=seconds * 1000)
        except Late:
            return False
        return True


Way = Callable[[Any, int], None]


@dataclass
class Contestant:
    """A page set up in one way.

    `open(browser, annotator)` gives a desk at its first item, `recorded(annotator)` what the server has
    stored, by item. `ways` are tried, and the one with the fewest actions is taken; `by_keys` are the ways by
    keyboard alone, where `ways` are others.
    """

    name: str
    open: Callable[[Any, str], Desk]
    recorded: Callable[[str], dict[str, int]]
    ways: Mapping[str, Way]
    by_keys: Mapping[str, Way] = field(default_factory=dict)


def answers(number: int) -> list[int]:
    """The answers that are given, -2 to 2: a fifth are ties; the same for all."""
    given = list(itertools.islice(itertools.cycle(range(-2, 3)), number))
    random.Random(7).shuffle(given)
    return given


def attempt(contestant: Contestant, browser: Any, name: str, way: Way, value: int) -> dict[str, Any]:
    """Judge the first item of a new annotator in one way: was it taken, and stored as meant?"""
    annotator = f"try{next(_numbers)}"
    desk = contestant.open(browser, annotator)
    try:
        item = desk.item()
        way(desk, value)
        taken = desk.next(item, REFUSED)
    finally:
        desk.page.context.close()
    stored = _stored(contestant, annotator, item) if taken else None
    return {"way": name, "actions": desk.hand.actions, "went on": taken, "stored": stored}


_numbers = itertools.count(1)


def _stored(contestant: Contestant, annotator: str, item: str) -> int | None:
    """What the server has of an item; it may write it a moment after its answer."""
    end = time.monotonic() + REFUSED
    while item not in (found := contestant.recorded(annotator)) and time.monotonic() < end:
        time.sleep(0.1)
    return found.get(item)


def find_out(contestant: Contestant, browser: Any) -> dict[str, Any]:
    """Try all ways of giving a tie and another answer, and the ways by keyboard alone."""
    found: dict[str, Any] = {}
    for kind, value in (("tie", TIE), ("other", OTHER)):
        for prefix, ways in (("", contestant.ways), ("keys ", contestant.by_keys)):
            tried = [attempt(contestant, browser, name, way, value) for name, way in ways.items()]
            good = [one for one in tried if one["went on"] and one["stored"] == value]
            best = min(good, key=lambda one: one["actions"], default=None)
            found[prefix + kind] = {"tried": tried, "best": best}
        if not contestant.by_keys:
            found[f"keys {kind}"] = {"tried": [], "best": found[kind]["best"]}
    return found


def judge(
    contestant: Contestant, browser: Any, annotator: str, ways: dict[int, str], number: int
) -> dict[str, Any]:
    """Judge `number` items; every answer is acknowledged before the next is given."""
    desk = contestant.open(browser, annotator)
    given: dict[str, int] = {}
    seconds, actions = [], []
    try:
        item = desk.item()
        for value in answers(number):
            counted, began = desk.hand.actions, time.perf_counter()
            contestant.ways[ways[value == TIE]](desk, value)
            if not desk.next(item, 30):
                raise RuntimeError(f"{item}: the page did not go on")
            seconds.append(time.perf_counter() - began)
            actions.append(desk.hand.actions - counted)
            given[item], item = value, desk.item()
    finally:
        desk.page.context.close()
    _stored(contestant, annotator, list(given)[-1])
    stored = contestant.recorded(annotator)
    right = sum(stored.get(item) == value for item, value in given.items())
    return {"seconds": seconds, "actions": actions, "values": list(given.values()), "right": right}


def rounds(contestants: Iterable[Contestant], browser: Any, number: int, times: int) -> dict[str, Any]:
    """Find the ways out, then let all take turns: `times` rounds of `number` items."""
    from playwright.sync_api import Error

    found: dict[str, Any] = {}
    able: list[tuple[Contestant, dict[int, str]]] = []
    for contestant in contestants:
        say(f"  ways: {contestant.name}")
        data = found[contestant.name] = {"rounds": []}
        try:
            data["ways"] = ways = find_out(contestant, browser)
        except (Error, RuntimeError, OSError) as error:
            data["error"] = str(error).splitlines()[0]
            continue
        if ways["tie"]["best"] and ways["other"]["best"]:
            able.append((contestant, {True: ways["tie"]["best"]["way"], False: ways["other"]["best"]["way"]}))
        else:
            data["error"] = "no way that was tried gives every answer"
    for round_ in range(1, times + 1):
        for contestant, chosen in able:
            say(f"  round {round_}: {contestant.name}")
            data = found[contestant.name]
            try:
                data["rounds"].append(judge(contestant, browser, f"round{round_}", chosen, number))
            except (Error, RuntimeError, OSError) as error:
                data["error"] = str(error).splitlines()[0]
    return found


def pairs(number: int) -> list[list[str]]:
    """Made-up outputs of two systems, two for each item and never the same."""
    import generate

    return [generate.ballot(2, 5_000 + i).texts for i in range(number)]


def new_page(browser: Any, *scripts: str) -> Any:
    """A page of a context that has stored nothing."""
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    for script in scripts:
        page.add_init_script(script)
    return page


def positions(path: Path, annotator: int) -> dict[str, int]:
    """What a study has stored of an annotator, as it was shown, by the words above the item."""
    from rangevote.study.study_file import take_snapshot

    snapshot = take_snapshot(path)
    places = {(one.annotator, one.pair): one.position for one in snapshot.study.assignments}
    total = sum(one.annotator == annotator for one in snapshot.study.assignments)
    return {
        f"Item {places[row.annotator, row.pair] + 1} of {total}": row.shown
        for row in snapshot.current()
        if row.annotator == annotator and row.shown is not None
    }
