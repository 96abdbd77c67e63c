"""The pictures in the docs, taken anew: `make screenshots` writes docs/images/, which is not committed.

They show the paper's figure 1 and a small study of made-up captions, as a new user would see them.
"""

from __future__ import annotations

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

from playwright.sync_api import Page, sync_playwright

from rangevote.study.create import StudyOptions, make_study
from rangevote.study.store import SentAnswer, Store
from rangevote.study.study_file import create_file
from rangevote.study.study_plan import Pair

IMAGES = Path(__file__).parent / "images"
DESK, PHONE = {"width": 1100, "height": 760}, {"width": 390, "height": 760}
RANGEVOTE = [sys.executable, "-m", "rangevote"]
BASELINE = ["a man", "two dogs", "a group of people", "a child plays", "a woman in a red dress"]
CHALLENGER = [
    "a man sitting on a bench in the park",
    "two dogs run through the snow",
    "a group of people at a table",
    "a child plays with a ball on the grass",
    "a woman in a red dress sings on a stage",
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
    """A picture of what is in sight, or of the whole page."""
    page.screenshot(path=IMAGES / f"{name}.png", full_page=whole)


def election(browser: Any, folder: Path) -> None:
    """Figure 1 of the paper."""
    with served(folder, "show", "--no-browser") as address:
        for name, options in {
            "show": {"viewport": DESK, "color_scheme": "light"},
            "show-dark": {"viewport": DESK, "color_scheme": "dark"},
            "show-phone": {"viewport": PHONE, "color_scheme": "light"},
        }.items():
            page = browser.new_page(**options)
            page.goto(address)
            page.get_by_role("heading", name="Who supports whom").wait_for()
            page.wait_for_load_state("networkidle")
            shot(page, name)
            if name == "show":
                page.get_by_role("heading", name="Who supports whom").scroll_into_view_if_needed()
                page.wait_for_load_state("networkidle")
                shot(page, "show-whole", whole=True)
            page.close()


def study(browser: Any, folder: Path) -> None:
    """A pair of outputs, as an annotator sees it."""
    for name, texts in (("beam", BASELINE), ("voted", CHALLENGER)):
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    new = ["study", "new", "beam=beam.txt", "voted=voted.txt", "-o", "study.db", "-n", "5", "-q"]
    subprocess.run([*RANGEVOTE, *new], cwd=folder, check=True, capture_output=True)
    with served(folder, "study", "serve", "study.db", "--port", "0") as address:
        page = browser.new_page(viewport=DESK, color_scheme="light")
        page.goto(address)
        page.get_by_text("Which one is better?").wait_for()
        page.keyboard.press("2")
        shot(page, "study")
        page.close()


def report(browser: Any, folder: Path) -> None:
    """What three made-up annotators found."""
    pairs = [Pair(str(n), f"a man, number {n}", f"a man sitting on a bench, number {n}") for n in range(60)]
    made = make_study(("beam", "voted"), pairs, StudyOptions(annotators=3, checks=4, repeats=10))
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
        answer = SentAnswer(dealt.handle, shown, f"made-up-answer-{number}", "2026-01-31T12:00:00Z", spent)
        store.record(dealt.annotator, answer)
    store.close()
    written = ["study", "report", "report.db", "--to", "html", "-o", "report.html"]
    subprocess.run([*RANGEVOTE, *written], cwd=folder, check=True, capture_output=True)
    page = browser.new_page(viewport=DESK, color_scheme="light")
    page.goto((folder / "report.html").as_uri())
    shot(page, "study-report", whole=True)
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
    print(f"wrote {', '.join(sorted(path.name for path in IMAGES.glob('*.png')))}")


if __name__ == "__main__":
    main()
