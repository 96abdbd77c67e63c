"""The site builds offline without a warning, holds what it promises, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import rangevote
from rangevote.cli import COMMANDS
from tests.browser.conftest import screenshot, violations
from tests.docs.blocks import DOCS, ROOT

#: Public names that are no function or class, and so have no entry of their own.
VALUES = {"SIMILARITIES", "__version__", "custom_generate"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it, where nothing beyond this machine can be reached by HTTP."""
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
    place = tmp_path_factory.mktemp("site")
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return place


class Loaded(HTMLParser):
    """What a page loads by itself when it is opened; links that a reader may follow are not that."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "link" and given.get("rel") not in ("next", "prev"):
            self.addresses.append(given.get("href") or "")
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed") and given.get("src"):
            self.addresses.append(str(given["src"]))


def test_no_page_or_style_sheet_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = Loaded()
        text = page.read_text(encoding="utf-8")
        loaded.feed(text)
        assert len(loaded.addresses) >= 4
        assert [to for to in loaded.addresses if re.match(r"(?!data:)[a-z]+:|//", to)] == []
        assert "default-src 'self'" in text  # and what the theme's own script might load is not let through
    for sheet in site.rglob("*.css"):
        assert re.findall(r"url\(\s*['\"]?(?:https?:)?//|@import", sheet.read_text(encoding="utf-8")) == []


def words_of(page: Path) -> str:
    """A page as a reader sees it, white space aside."""
    text = re.sub(r"<(script|style).*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.parametrize(
    ("page", "record", "heading"),
    [
        ("performance.html", "benchmarks/RESULTS.md", "All times"),
        ("benchmarks/RESULTS.html", "benchmarks/RESULTS.md", "Do they elect the same?"),
    ],
)
def test_numbers_are_those_of_the_record(site, page, record, heading):
    text = (ROOT / record).read_text(encoding="utf-8")
    part = re.split(r"\n### |\n<a id", text.split(f"### {heading}\n")[1])[0]
    rows = [line for line in part.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 5
    shown = words_of(site / page)
    for row in rows:
        for cell in row.strip("| ").split(" | "):
            assert " ".join(re.sub(r"[*\\]", "", cell).split()) in shown, row


def test_every_public_name_has_an_entry_in_the_reference(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    found = set(re.findall(r'id="rangevote\.[\w.]*?(\w+)"', text))
    assert set(rangevote.__all__) - VALUES <= found
    for name in VALUES - {"__version__"}:
        assert name in text


def test_every_command_is_on_its_page(site):
    text = words_of(site / "reference" / "commands.html")
    for name in COMMANDS:
        assert f"Usage: rangevote {name}" in text


def test_every_extra_of_the_package_is_on_the_page_of_the_install():
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = metadata.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    names = re.findall(r"^([a-z]+) = \[", extras, re.MULTILINE)
    text = (DOCS / "install.md").read_text(encoding="utf-8")
    for name in set(names) - {"dev", "docs", "test", "all"}:
        assert f'"rangevote[{name}]"' in text, name


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site on a server of this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *values: object) -> None:
            """Nothing: a test prints what it finds."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


VIEWS = {"dark": (1280, "dark"), "phone": (320, "light")}


@pytest.mark.parametrize("view", VIEWS)
def test_pages_look_as_they_should_in_a_browser(address, new_page, view):
    """No page goes abroad or complains (`watch` looks), none is wider than its window."""
    width, scheme = VIEWS[view]
    page = new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    for name in ("reference/election", "performance", "index"):
        page.goto(f"{address}/{name}.html")
        page.wait_for_selector("article h1")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        screenshot(page, f"docs-{view}-{name.replace('/', '-')}")
    assert page.locator("svg.rv-election").bounding_box()["height"] > 250
    dark = page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    assert dark == (scheme == "dark")
    assert violations(page) == []
