"""What the site's own code does to pages: parts of files, links, doctests."""

from __future__ import annotations

import runpy
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
pytest.importorskip("griffe", reason="the extra 'docs' is not installed")

from mkdocs.exceptions import PluginError

from tests.docs.blocks import DOCS

HOOKS = runpy.run_path(str(DOCS / "site" / "hooks.py"))
DOCTESTS = runpy.run_path(str(DOCS / "site" / "doctests.py"))

TEXT = """# Title

## One

first

### Below

deep

## Two

### Below

other

<a id="three"></a>

## Three
"""


def filled(markdown: str, uri: str = "guides/voters.md") -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=uri))
    return HOOKS["on_page_markdown"](markdown, page, None, None)


@pytest.mark.parametrize(
    ("heading", "part"),
    [("One", "first\n\n### Below\n\ndeep"), ("One / Below", "deep"), ("Two / Below", "other")],
)
def test_a_part_of_a_file_is_what_stands_under_its_heading(heading, part):
    assert HOOKS["_part"](TEXT, heading, "here") == part


def test_pages_made_of_other_files_show_them_in_the_repository_too():
    made = dict(HOOKS["pages"]())
    assert {path.name for path in made} >= {"commands.md", "python.md", "election.md", "performance.md"}
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not up to date: make docs"


def test_what_is_written_in_a_page_is_taken_anew_for_the_site():
    lines = (DOCS / "performance.md").read_text(encoding="utf-8").splitlines()
    name = next(line for line in lines if line.startswith("<!-- include"))
    once = filled(name, "performance.md")
    assert "| " in once
    again = filled(f"{name}\n\nan old table\n\n<!-- end -->\n\nafter", "performance.md")
    assert again == f"{once}\n\nafter"


def test_a_heading_or_file_that_is_gone_stops_the_build():
    with pytest.raises(PluginError, match=r"here has no heading 'Four'"):
        HOOKS["_part"](TEXT, "One / Four", "here")
    with pytest.raises(PluginError, match=r"there is no file 'benchmarks/NONE.md' to include"):
        filled("<!-- include benchmarks/NONE.md: One -->")


def test_links_lead_to_what_they_lead_to_in_the_repository():
    assert filled("[a](../../benchmarks/RESULTS.md#search)") == "[a](../benchmarks/RESULTS.md#search)"
    assert filled("[a](../which.md), [b](weights.md)") == "[a](../which.md), [b](weights.md)"
    assert filled("[a](../benchmarks/RESULTS.md)", "paper.md") == "[a](benchmarks/RESULTS.md)"
    assert filled("[a](docs/guides/show.md)", "CHANGELOG.md") == "[a](guides/show.md)"


def test_doctests_are_put_into_fences_and_nothing_else_is():
    before = "What.\n\n>>> f(\n...     1)\n2\n\nMore > less."
    after = "What.\n\n\n```pycon\n>>> f(\n...     1)\n2\n```\n\nMore > less."
    assert DOCTESTS["fenced"](before) == after
    assert DOCTESTS["fenced"]("No >>> here.") == "No >>> here."
