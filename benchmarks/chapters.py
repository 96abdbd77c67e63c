"""RESULTS.md: one chapter for each benchmark, each written by its own run, the others left as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
CHAPTERS = {
    "elections": "make bench",
    "search": "make bench-search",
    "evaluation": "make bench-evaluation",
    "pages": "make bench-pages",
    "service": "make bench-service",
    "scale": "make bench-scale",
}
HEAD = """# What was measured

Each chapter is written by the command beside it; do not edit. What is measured and how to read it:
[README.md](README.md). Chapters come from runs of their own: ratios compare within a chapter only.
"""


def write_chapter(name: str, page: str, path: Path = RESULTS) -> None:
    """Put a page, from its `# title` on, in the place of the chapter `name`."""
    kept = {**read_chapters(path), name: _deeper(page)}
    known = [chapter for chapter in CHAPTERS if chapter in kept]
    contents = "".join(
        f"* [{_title(kept[chapter])}](#{chapter}): `{CHAPTERS[chapter]}`\n" for chapter in known
    )
    parts = [HEAD, contents]
    parts += [f'<a id="{chapter}"></a>\n\n{kept[chapter].strip()}\n' for chapter in known]
    path.write_text("\n".join(parts), encoding="utf-8")


def publish(name: str, raw: Path, markdown: Callable[[Any], str], *, quick: bool) -> None:
    """Make a chapter of what a run left in `raw`; the page of a quick run is only printed."""
    if not raw.exists():
        raise SystemExit("nothing has been measured yet: run it without --render")
    page = markdown(json.loads(raw.read_text(encoding="utf-8")))
    if quick:
        print(page)
        return
    write_chapter(name, page)
    print("wrote the chapter of RESULTS.md")


def read_chapters(path: Path = RESULTS) -> dict[str, str]:
    """The chapters that are there: name -> Markdown with its title at the second level."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(r'^<a id="([a-z]+)"></a>\n', text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _deeper(page: str) -> str:
    return re.sub(r"^#(?=#* )", "##", page, flags=re.MULTILINE)


def _title(chapter: str) -> str:
    return chapter.strip().partition("\n")[0].lstrip("# ")
