"""Tables in GitHub's Markdown: the best values bold, signs with a meaning escaped."""

from __future__ import annotations

import re

from rangevote.evaluation.table import Table

_SIGNS = re.compile(r"([\\`*_{}\[\]<>#|~])")


def to_markdown(table: Table) -> str:
    """A table, its title above and its notes below; groups of columns are told in each heading."""
    best = table.best()

    def cell(i: int, j: int) -> str:
        text = escaped(table.written(i, j))
        return (f"**{text}**" if (i, j) in best else text) + escaped(table.rows[i].cells[j].marks)

    heads = [f"{column.group} {column.name}".strip() for column in table.columns]
    lines = [[escaped(text) for text in (table.corner, *heads)], ["---", *("---:" for _ in heads)]]
    for i, row in enumerate(table.rows):
        lines.append([escaped(row.name), *(cell(i, j) for j in range(len(heads)))])
    top = [f"**{escaped(table.title)}**", ""] if table.title else []
    bottom = [line for note in table.notes for line in ("", escaped(note))]
    return "\n".join([*top, *(f"| {' | '.join(line)} |" for line in lines), *bottom]) + "\n"


def escaped(text: str) -> str:
    """Text that Markdown shows as it stands, on one line.

    >>> print(escaped("overlap_2 | *"))
    overlap\\_2 \\| \\*
    """
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))
