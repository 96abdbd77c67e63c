"""Links between pages lead to files and headings that exist, and every page is in the navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS, PAGES, ROOT, name_of

WRITTEN = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "llms.txt"))]
LINK = re.compile(r"\]\((?![a-z]+:|<)([^)\s#]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub form them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_links_lead_to_files_and_headings_that_exist(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in LINK.findall(text):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} <= listed


def test_no_page_but_the_reference_is_longer_than_1500_words():
    long = {name_of(page): len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in PAGES}
    assert {name for name, words in long.items() if words > 1500} <= {
        "reference/commands.md",
        "reference/python.md",
        "reference/service.md",
        "reference/similarities.md",
    }
