"""Steps that do next to nothing, at the top of a module so that other processes find them."""

from __future__ import annotations

from pathlib import Path


def write(output: Path, *, text: str, before: Path | None = None) -> None:
    """A text, behind that of another step."""
    head = "" if before is None else before.read_text()
    output.write_text(head + text)


def fail(output: Path, *, text: str, before: Path | None = None) -> None:
    """Half the work, then an interruption."""
    output.write_text(text[:1])
    raise KeyboardInterrupt


def in_parts(output: Path, *, size: int, draft: Path) -> None:
    """As many files as asked for, joined; says which it found."""
    found = sorted(path.name for path in draft.iterdir())
    for number in range(size):
        (draft / str(number)).write_text(str(number))
    output.write_text(f"{found} {size}")
