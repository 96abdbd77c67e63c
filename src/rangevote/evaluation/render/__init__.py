"""Tables to text, Markdown, LaTeX and JSON. A format is a function and one line in `RENDERERS`."""

from __future__ import annotations

import json
from collections.abc import Callable

from rangevote.errors import choose
from rangevote.evaluation.render.latex import to_latex
from rangevote.evaluation.render.markdown import to_markdown
from rangevote.evaluation.render.text import to_text
from rangevote.evaluation.table import Table


def to_json(table: Table) -> str:
    """The data of the table: its numbers are not rounded."""
    columns = [{"group": column.group, "name": column.name} for column in table.columns]
    rows = [
        {
            "name": row.name,
            "group": row.group,
            "values": [cell.value for cell in row.cells],
            "marks": [cell.marks for cell in row.cells],
        }
        for row in table.rows
    ]
    data = {"title": table.title, "columns": columns, "rows": rows, "notes": list(table.notes)}
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


RENDERERS: dict[str, Callable[[Table], str]] = {
    "text": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
    "json": to_json,
}


def render(table: Table, format: str = "text") -> str:
    """The table in a format of `RENDERERS`, ending in a line end."""
    return choose("table format", format, RENDERERS)(table)
