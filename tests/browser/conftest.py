"""A real browser: Playwright from PyPI with the Chromium of the system.

Every page made here fails its test at the end if it asked for anything beyond this machine, or if its console
shows an error that the test does not expect.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOW = "no browser: apt-get install chromium, and pip install playwright axe-playwright-python"
#: What Chromium reports of a request that fails or is refused.
FAILED = "Failed to load resource"
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 320, "height": 640}
LOOKS = {
    "light-desk": {"viewport": DESK, "color_scheme": "light"},
    "dark-phone": {"viewport": PHONE, "color_scheme": "dark"},
    "light-zoom-400": {"viewport": {"width": 320, "height": 256}, "device_scale_factor": 4},  # 1280 x 1024
}
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, for each module and not for all: its event loop must not stay behind in the process,
    where `asyncio.run` of other tests would stumble over it."""
    if os.environ.get("RANGEVOTE_NEEDS_BROWSER"):  # in CI a browser that is missing is a failure
        assert CHROMIUM is not None, HOW
    elif CHROMIUM is None:
        pytest.skip(HOW)
    api = pytest.importorskip("playwright.sync_api", reason=HOW)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watch:
    """What the pages of a test asked for, and what went wrong in them."""

    def __init__(self) -> None:
        self.abroad: list[str] = []
        self.errors: list[str] = []
        #: Part of the errors that the test provokes; they may come at any time, even after its last line.
        self.provoked: str | None = None

    def page(self, page: Any) -> Any:
        page.on("request", self._asked)
        page.on(
            "console", lambda message: self.errors.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def _asked(self, request: Any) -> None:
        place = urlsplit(request.url)
        if place.scheme not in ("data", "blob", "file") and place.hostname not in ("127.0.0.1", "localhost"):
            self.abroad.append(request.url)


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fails the test if a page asked another machine for anything, or reported an unprovoked error."""
    found = Watch()
    yield found
    assert found.abroad == []
    assert [e for e in found.errors if found.provoked is None or found.provoked not in e] == []


@pytest.fixture
def new_page(chromium: Any, watch: Watch) -> Iterator[Any]:
    """`new_page(**context options)` -> a page of its own context, watched."""
    contexts = []

    def make(**options: Any) -> Any:
        context = chromium.new_context(**options)
        context.set_default_timeout(90_000)  # a machine may be busy
        contexts.append(context)
        return watch.page(context.new_page())

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page: Any) -> Any:
    """A page on a desk."""
    return new_page(viewport=DESK)


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def screenshot(page: Any, name: str) -> None:
    """Kept for people to look at, under build/screenshots/; not committed."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def no_overflow(page: Any) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def violations(page: Any) -> list[str]:
    """What axe-core calls serious or critical on the page as it stands."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=HOW)
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']}" for one in found if one["impact"] in ("serious", "critical")]
