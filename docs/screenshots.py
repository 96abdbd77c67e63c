"""The pictures in the docs, taken anew: `make docs SCREENSHOTS=1` writes docs/images/, which is committed.

They show the paper's figure 1 and a small study of made-up captions, as a new user would see them. They are
kept small, with as few colours as such pages have, so that a clone stays light.
"""

from __future__ import annotations

import io
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from rangevote.study.app import runner_token
from rangevote.study.create import StudyOptions, make_study
from rangevote.study.plan import Pair
from rangevote.study.store import SentAnswer, Store, create_file, take_snapshot

IMAGES = Path(__file__).parent / "images"
DATA = Path(__file__).parents[1] / "examples" / "data"
DESK, PHONE = {"width": 1100, "height": 760}, {"width": 390, "height": 760}
#: Limits in bytes, of a picture and of all; a test holds them.
LARGEST, ALL = 150_000, 1_000_000
RANGEVOTE = [sys.executable, "-m", "rangevote"]
BASELINE = ["a man", "two dogs", "a group of people", "a child plays", "a woman in a red dress"]
CHALLENGER = [
    "a man sitting on a bench in the park",
    "two dogs run through the snow",
    "a group of people at a table",
    "a child plays with a ball on the grass",
    "a woman in a red dress sings on a stage",
]

SOURCE = [
    "Ein Mann sitzt auf einer Bank im Park.",
    "Zwei Hunde rennen durch den Schnee.",
    "Eine Gruppe von Menschen an einem Tisch.",
    "Ein Kind spielt mit einem Ball auf der Wiese.",
    "Eine Frau in einem roten Kleid singt auf einer Bühne.",
]


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[str]:
    """The address that a command tells on standard error, for as long as it is needed."""
    process = subprocess.Popen(
        [*RANGEVOTE, *arguments], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+\S*", line):
                yield found[0]
                return
        sys.exit(f"rangevote {' '.join(arguments)} told no address")
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def shot(page: Page, name: str, *, whole: bool = False) -> None:
    """A picture of what is in sight, or of the whole page, in as many colours as fit its limit."""
    taken = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    path = IMAGES / f"{name}.png"
    for colours in (256, 128, 64, 32):
        taken.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size <= LARGEST:
            return
    sys.exit(f"{path} is too large with 32 colours; take a smaller part of the page")


def election(browser: Any, folder: Path) -> None:
    """Figure 1 of the paper, a file of ballots, and a panel."""
    looks = {
        "show": {"viewport": {"width": 1100, "height": 730}, "color_scheme": "light"},
        "show-phone": {"viewport": PHONE, "color_scheme": "dark"},
    }
    with served(folder, "show", "--no-browser") as address:
        for name, options in looks.items():
            page = browser.new_page(**options)
            _wait_for_election(page, address)
            shot(page, name)
            if name == "show":
                page.get_by_role("heading", name="How firm").scroll_into_view_if_needed()
                page.wait_for_load_state("networkidle")
                shot(page, "show-whole", whole=True)
            page.close()
    panel = [str(DATA / "panel" / "capitals.jsonl"), "-s", "exact", "--shares", "agreement"]
    with served(folder, "show", "--no-browser", *panel) as address:
        page = browser.new_page(viewport={"width": 1100, "height": 740}, color_scheme="light")
        _wait_for_election(page, f"{address}/#ballot=3")
        page.wait_for_selector("html[data-complete]")
        page.evaluate("document.querySelector('#why').scrollIntoView()")
        page.evaluate("scrollBy(0, -175)")
        shot(page, "show-panel")
        page.close()
    with served(folder, "show", "--no-browser", str(DATA / "nbest.jsonl")) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 800}, color_scheme="dark")
        _wait_for_election(page, address)
        page.get_by_text("voting changed the choice").wait_for()
        shot(page, "show-file")
        page.close()


def _wait_for_election(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("heading", name="Who supports whom").wait_for()
    page.wait_for_load_state("networkidle")


def study(browser: Any, folder: Path) -> None:
    """A pair of outputs, as an annotator sees it."""
    for name, texts in (("beam", BASELINE), ("voted", CHALLENGER), ("source", SOURCE)):
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    new = ["study", "new", "beam=beam.txt", "voted=voted.txt", "--source", "source.txt", "--mark-differences"]
    new += ["--annotators", "2", "-o", "study.db", "-n", "5", "-q", "--seed", "1"]
    subprocess.run([*RANGEVOTE, *new], cwd=folder, check=True, capture_output=True)
    with served(folder, "study", "serve", "study.db", "--port", "0") as address:
        page = browser.new_page(viewport={"width": 1100, "height": 460}, color_scheme="light")
        page.goto(address)
        begin = page.get_by_role("button", name="Begin without practice")
        begin.wait_for()
        shot(page, "study-start")
        begin.click()
        for key in ("5", "Enter", "2"):
            page.keyboard.press(key)
        page.get_by_text("Item 2 of 5").wait_for()
        page.get_by_text("Saved", exact=True).wait_for()
        shot(page, "study")
        page.close()
        page = browser.new_page(viewport=PHONE, color_scheme="dark", has_touch=True, is_mobile=True)
        page.goto(address)
        page.get_by_text("Which one is better?").wait_for()
        shot(page, "study-phone")
        page.close()
        token = runner_token(take_snapshot(folder / "study.db").study.annotators)
        page = browser.new_page(viewport={"width": 1100, "height": 320}, color_scheme="light")
        page.goto(f"{address.partition('#')[0]}progress#{token}")
        page.get_by_text("answers are there").wait_for()
        shot(page, "study-progress")
        page.close()


def report(browser: Any, folder: Path) -> None:
    """What three made-up annotators found."""
    texts = zip(BASELINE, CHALLENGER, strict=True)
    pairs = [
        Pair(f"{number}-{n}", f"{first} ({n})", f"{second} ({n})")
        for number, (first, second) in enumerate(texts, 1)
        for n in range(1, 13)
    ]
    made = make_study(("beam", "voted"), pairs, StudyOptions(annotators=3, checks=4, repeats=10, seed=1))
    path = folder / "report.db"
    create_file(path, made, {})
    chance = random.Random(1)
    better = {pair.first: chance.choice([-2, -1, 0, 0, 1, 1, 2]) for pair in pairs}
    store = Store(path)
    for number, dealt in enumerate(made.assignments):
        pair = made.pairs[dealt.pair]
        opinion = better.get(pair.first, 0) + chance.choice([-1, 0, 0, 0, 1])
        value = max(-2, min(2, opinion)) if pair.expected is None else 2 * pair.expected
        shown, spent = -value if dealt.swapped else value, chance.randint(3000, 9000)
        key, when = f"made-up-answer-{number}", "2026-01-31T12:00:00Z"
        answer = SentAnswer(dealt.handle, key, when, shown, spent)
        store.record(dealt.annotator, answer)
    store.close()
    written = ["study", "report", "report.db", "--to", "html", "-o", "report.html"]
    subprocess.run([*RANGEVOTE, *written], cwd=folder, check=True, capture_output=True)
    page = browser.new_page(viewport=DESK, color_scheme="light")
    page.goto((folder / "report.html").as_uri())
    page.get_by_role("heading", name="Items").scroll_into_view_if_needed()
    shot(page, "study-report-items")
    page.set_viewport_size({"width": 1100, "height": 1000})
    page.evaluate("scrollTo(0, 0)")
    shot(page, "study-report")
    page.close()


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no browser; apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        election(browser, Path(folder))
        study(browser, Path(folder))
        report(browser, Path(folder))
        browser.close()
    sizes = {path.name: path.stat().st_size for path in sorted(IMAGES.glob("*.png"))}
    print("\n".join(f"{size:9,} {name}" for name, size in sizes.items()))
    if sum(sizes.values()) > ALL:
        sys.exit(f"together {sum(sizes.values()):,} bytes, more than {ALL:,}")


if __name__ == "__main__":
    main()
