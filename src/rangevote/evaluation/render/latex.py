"""Tables in LaTeX: a `tabular` that needs no package."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rangevote.evaluation.table import Table, with_rules

_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def to_latex(table: Table) -> str:
    """The best values bold, a line where the rows' group changes; title and notes become comments."""
    best = table.best()

    def cell(i: int, j: int) -> str:
        text, marks = escaped(table.written(i, j)), table.rows[i].cells[j].marks
        return (f"\\textbf{{{text}}}" if (i, j) in best else text) + (f"$^{{{marks}}}$" if marks else "")

    groups = [(name, len(list(found))) for name, found in groupby(table.columns, lambda c: c.group)]
    layout = " | ".join(" ".join("r" * size) for _, size in groups)
    lines = [f"\\begin{{tabular}}{{l {layout}}}"]
    if any(name for name, _ in groups):
        shared = (f"\\multicolumn{{{size}}}{{c}}{{{escaped(name)}}}" for name, size in groups)
        lines.append(_line(["", *shared]))
    lines += [_line([escaped(text) for text in (table.corner, *(c.name for c in table.columns))]), r"\hline"]
    body = [
        _line([escaped(row.name), *(cell(i, j) for j in range(len(row.cells)))])
        for i, row in enumerate(table.rows)
    ]
    lines += [*with_rules(table, body, r"\hline"), r"\end{tabular}"]
    title, notes = _comments([table.title] if table.title else []), _comments(table.notes)
    return "\n".join([*title, *lines, *notes]) + "\n"


def _comments(texts: Sequence[str]) -> list[str]:
    return [f"% {' '.join(text.split())}" for text in texts]


def _line(cells: list[str]) -> str:
    # a bracket or star after the line end of the row before would be taken for its option
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def escaped(text: str) -> str:
    """Text that LaTeX sets as it stands.

    >>> print(escaped("overlap_2 & 50 %"))
    overlap\\_2 \\& 50 \\%
    """
    return "".join(_SIGNS.get(character, character) for character in " ".join(text.split()))
