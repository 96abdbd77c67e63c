"""Tables in plain text: columns of even width, numbers in line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rangevote.evaluation.table import Column, Table, with_rules

#: Stands before the best values of a column, since plain text has no bold.
BEST = ">"


def to_text(table: Table) -> str:
    """Title, headings, rows, notes; what the signs mean is said at the end."""
    head = [table.corner, *(column.name for column in table.columns)]
    best = table.best()
    columns = [_column(table, j, best) for j in range(len(table.columns))]
    grid = [head, *([row.name, *(column[i] for column in columns)] for i, row in enumerate(table.rows))]
    widths = _widened([max(len(line[j]) for line in grid) for j in range(len(head))], table.columns)
    shown = [_line(line, widths) for line in grid]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    groups = [_group_line(table.columns, widths)] if any(column.group for column in table.columns) else []
    top = [table.title, ""] if table.title else []
    notes = [*table.notes, *([f"{BEST} best of its column"] if best else [])]
    body = [shown[0], rule, *with_rules(table, shown[1:], rule)]
    lines = [*top, *groups, *body, *(["", *notes] if notes else [])]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _column(table: Table, j: int, best: set[tuple[int, int]]) -> list[str]:
    """The cells of a column; marks hang over its right edge, so that the numbers stand in line."""
    hang = max((len(row.cells[j].marks) for row in table.rows), default=0)
    cells = []
    for i, row in enumerate(table.rows):
        text = (BEST if (i, j) in best else "") + table.written(i, j)
        cells.append(text + row.cells[j].marks.ljust(hang))
    return cells


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    cells = [text.rjust(width) for text, width in zip(texts[1:], widths[1:], strict=True)]
    return "  ".join([texts[0].ljust(widths[0]), *cells])


def _spans(columns: Sequence[Column]) -> list[tuple[str, list[int]]]:
    """Groups of neighbouring columns: their name, and the places of their columns in a line."""
    numbered = groupby(enumerate(columns, 1), lambda pair: pair[1].group)
    return [(name, [number for number, _ in found]) for name, found in numbered]


def _span(places: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[place] for place in places) + 2 * (len(places) - 1)


def _widened(widths: list[int], columns: Sequence[Column]) -> list[int]:
    """Widths under which the name of each group fits above its columns."""
    for name, places in _spans(columns):
        missing = len(name) - _span(places, widths)
        if missing > 0:
            widths = [width + missing * (place == places[0]) for place, width in enumerate(widths)]
    return widths


def _group_line(columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = [name.center(_span(places, widths)) for name, places in _spans(columns)]
    return "  ".join([" " * widths[0], *parts])
