"""Doctests of docstrings as code blocks: in plain Markdown `>>>` would be a quotation."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Put fences around the doctests of every docstring."""

    def on_object(self, *, obj: griffe.Object, **given: Any) -> None:
        """Called by griffe for each object that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The docstring with fences around each run of lines from `>>>` to the next empty line."""
    lines: list[str] = []
    inside = False
    for line in [*docstring.splitlines(), ""]:
        if not inside and line.lstrip().startswith(">>> "):
            inside = True
            lines += ["", "```pycon"]
        elif inside and not line.strip():
            inside = False
            lines.append("```")
        lines.append(line)
    return "\n".join(lines).strip()
