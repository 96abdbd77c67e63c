"""Tables as data: columns, rows, and which values are the best. How they look is `render`'s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rangevote.errors import UsageError
from rangevote.evaluation.metric import Best


@dataclass(frozen=True)
class Cell:
    """A number, a text, or nothing; `marks` are the stars behind it."""

    value: float | str | None = None
    marks: str = ""


@dataclass(frozen=True)
class Column:
    """A heading, and how its numbers are written. Neighbours of one `group` stand under its name.

    `best` tells which number is set in bold; "closest" is the one nearest to `target`.
    """

    name: str
    group: str = ""
    decimals: int = 2
    best: Best = ""
    target: float | None = None


@dataclass(frozen=True)
class Row:
    """A name and its cells. A line is drawn where the `group` changes; `competes` for the best values."""

    name: str
    cells: Sequence[Cell]
    group: str = ""
    competes: bool = True


@dataclass(frozen=True)
class Table:
    """Columns and rows; `corner` stands above the names, `title` and `notes` around the table."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    corner: str = ""
    title: str = ""
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise UsageError(
                    f"the row {row.name!r} has {len(row.cells)} cells for {len(self.columns)} columns."
                )

    def written(self, row: int, column: int) -> str:
        """A cell's value as text, without its marks."""
        value = self.rows[row].cells[column].value
        if value is None:
            return ""
        return value if isinstance(value, str) else f"{value:.{self.columns[column].decimals}f}"

    def best(self) -> set[tuple[int, int]]:
        """The (row, column) of the best values, several where they are written alike; none if all are."""
        return {(row, i) for i, column in enumerate(self.columns) for row in self._best(column, i)}

    def _best(self, column: Column, index: int) -> list[int]:
        values = {
            number: round(row.cells[index].value, column.decimals)  # type: ignore[arg-type]
            for number, row in enumerate(self.rows)
            if row.competes and isinstance(row.cells[index].value, (int, float))
        }
        if len(set(values.values())) < 2 or not column.best:
            return []
        if column.best == "closest":
            if column.target is None:
                return []
            values = {number: -abs(value - column.target) for number, value in values.items()}
        elif column.best == "lowest":
            values = {number: -value for number, value in values.items()}
        return [number for number, value in values.items() if value == max(values.values())]


def with_rules(table: Table, lines: Sequence[str], rule: str) -> list[str]:
    """The lines of the rows, with a rule wherever their group changes."""
    ruled: list[str] = []
    for i, line in enumerate(lines):
        ruled += [rule, line] if i and table.rows[i].group != table.rows[i - 1].group else [line]
    return ruled
