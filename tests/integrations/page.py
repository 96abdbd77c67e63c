"""The code blocks of docs/guides/tools.md, which the tests here run."""

from __future__ import annotations

from tests.docs.blocks import DOCS, blocks


def block(language: str, holding: str) -> str:
    """The one block of this language that holds a text."""
    [found] = [b.text for b in blocks(DOCS / "guides" / "tools.md", language) if holding in b.text]
    return found
