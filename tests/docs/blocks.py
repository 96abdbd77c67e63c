"""The pages of the documentation and their code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_MADE = re.compile(
    r"^<!-- (?:include|code|help|names)\b[^\n]*-->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)
_FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block: its language, its title (the name of a file, or empty) and what it holds."""

    language: str
    title: str
    text: str


class Command(NamedTuple):
    """A line behind `$`, and the lines below it, which are what it prints (none: anything)."""

    line: str
    prints: list[str]


def name_of(page: Path) -> str:
    """A page as the tests call it."""
    return page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[Block]:
    """The code blocks of a page, of these languages or all, in order; not those of other files in it."""
    own = _MADE.sub("", page.read_text(encoding="utf-8"))
    found = [Block(*match) for match in _FENCE.findall(own)]
    return [block for block in found if not languages or block.language in languages]


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block of the language console, with what they print."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, *prints = part.replace("\\\n", "").splitlines()
        yield Command(line, prints)


def lines_of(page: Path) -> list[str]:
    """Every command that a page shows, to be run by the tests or only to be read."""
    shown = [command.line for block in blocks(page, "console") for command in commands(block)]
    for block in blocks(page, "sh"):
        shown += block.text.replace("\\\n", "").splitlines()
    return [line.split("  #")[0].strip() for line in shown if line.strip()]
