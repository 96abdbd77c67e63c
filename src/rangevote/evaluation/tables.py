"""Tables as data; as text, Markdown, LaTeX and HTML; and comparisons as tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

import msgspec

from rangevote.errors import choose
from rangevote.evaluation.evaluate import Comparison, Score, Selection
from rangevote.evaluation.metrics import Best
from rangevote.evaluation.significance import CONFIDENCE, Interval

Value = float | str | None


@dataclass(frozen=True)
class Cell:
    """A value with `marks` behind it, such as stars."""

    value: Value
    marks: str = ""


@dataclass(frozen=True)
class Column:
    """A heading, and how its numbers are written; shares in `percent`.

    `best` tells which number is set in bold; "closest" is the one nearest to `target`.
    """

    name: str
    decimals: int = 2
    best: Best = ""
    target: float | None = None
    percent: bool = False

    def text(self, value: Value) -> str:
        """A value as it is written."""
        if value is None or isinstance(value, str):
            return value or ""
        return f"{100 * value if self.percent else value:.{self.decimals}f}"


@dataclass(frozen=True)
class TableRow:
    """A name and its cells, with or without marks. A line is drawn where the `group` changes; `competes` for
    the best values."""

    name: str
    cells: Sequence[Value | Cell]
    group: str = ""
    competes: bool = True

    @property
    def values(self) -> list[Value]:
        """The cells without their marks."""
        return [cell.value if isinstance(cell, Cell) else cell for cell in self.cells]

    @property
    def marks(self) -> list[str]:
        """The marks of the cells."""
        return [cell.marks if isinstance(cell, Cell) else "" for cell in self.cells]


@dataclass(frozen=True)
class Table:
    """Columns and rows; `corner` stands above the names, `title` and `notes` around the table."""

    columns: Sequence[Column]
    rows: Sequence[TableRow]
    corner: str = ""
    title: str = ""
    notes: Sequence[str] = ()

    @property
    def headings(self) -> list[str]:
        return [self.corner, *(column.name for column in self.columns)]

    def ends_group(self, row: int) -> bool:
        """Whether a line is drawn below the row."""
        return row + 1 < len(self.rows) and self.rows[row].group != self.rows[row + 1].group

    def best(self) -> set[tuple[int, int]]:
        """The (row, column) of the best values, several where they are written alike; none if all are."""
        best = set()
        for j, column in enumerate(self.columns):
            numbers = {
                i: float(column.text(value))
                for i, row in enumerate(self.rows)
                if row.competes and isinstance(value := row.values[j], (int, float))
            }
            if len(set(numbers.values())) < 2 or not column.best:
                continue
            if column.best == "closest":
                if column.target is None:
                    continue
                numbers = {i: -abs(number - column.target) for i, number in numbers.items()}
            elif column.best == "lowest":
                numbers = {i: -number for i, number in numbers.items()}
            best |= {(i, j) for i, number in numbers.items() if number == max(numbers.values())}
        return best

    def texts(self, escape: Callable[[str], str], bold: str, marks: Callable[[str], str]) -> list[list[str]]:
        """Every row as texts; `bold` is a format for the best values, `marks` writes what follows values."""
        best, rows = self.best(), []
        for i, row in enumerate(self.rows):
            texts = [escape(row.name)]
            for j, column in enumerate(self.columns):
                text = escape(column.text(row.values[j]))
                text = bold.format(text) if (i, j) in best else text
                texts.append(text + (marks(row.marks[j]) if row.marks[j] else ""))
            rows.append(texts)
        return rows


#: Stands before the best values of a column, since plain text has no bold.
BEST = ">"


def to_text(table: Table) -> str:
    """Title, table, notes; the last note explains the mark of the best values."""
    from rich.align import Align
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    plain = "    \n"
    box = Box(f"{plain}{plain} ---\n{plain} ---\n ---\n{plain}{plain}", ascii=True)
    drawn = RichTable(box=box, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for j, heading in enumerate(table.headings):
        drawn.add_column(Text(heading), justify="right" if j else "left", no_wrap=True)
    widths = [max((len(row.marks[j]) for row in table.rows), default=0) for j in range(len(table.columns))]
    for i, (name, *texts) in enumerate(table.texts(str, BEST + "{}", str)):
        cells = [
            # justified to the left, a text keeps the spaces at its end: marks hang over, numbers are aligned
            Align.right(Text(text + " " * (width - len(marks)), justify="left"))
            for text, marks, width in zip(texts, table.rows[i].marks, widths, strict=True)
        ]
        drawn.add_row(Text(name), *cells, end_section=table.ends_group(i))
    output = StringIO()
    Console(file=output, width=100_000, color_system=None).print(drawn)
    notes = [*table.notes, *([f"{BEST} best of its column"] if table.best() else [])]
    top = [table.title, ""] if table.title else []
    lines = [*top, *output.getvalue().splitlines(), *(["", *notes] if notes else [])]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it stands, on one line.

    >>> print(escape_markdown("overlap_2 | *"))
    overlap\\_2 \\| \\*
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", " ".join(text.split()))


def to_markdown(table: Table) -> str:
    """GitHub's Markdown, the best values bold; the title above and the notes below."""
    headings = [escape_markdown(text) for text in table.headings]
    rows = table.texts(escape_markdown, "**{}**", escape_markdown)
    lines = [headings, ["---", *("---:" for _ in table.columns)], *rows]
    top = [f"**{escape_markdown(table.title)}**", ""] if table.title else []
    bottom = [line for note in table.notes for line in ("", escape_markdown(note))]
    return "\n".join([*top, *(f"| {' | '.join(line)} |" for line in lines), *bottom]) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it stands.

    >>> print(escape_latex("overlap_2 & 50 %"))
    overlap\\_2 \\& 50 \\%
    """
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def to_latex(table: Table) -> str:
    """A `tabular` that needs no package, the best values bold; title and notes become comments."""

    def line(cells: list[str]) -> str:
        # a bracket or star after the line end of the row before would be taken for its option
        guard = "{}" if cells[0].startswith(("[", "*")) else ""
        return guard + " & ".join(cells) + r" \\"

    lines = [line([escape_latex(text) for text in table.headings]), r"\hline"]
    for i, row in enumerate(table.texts(escape_latex, r"\textbf{{{}}}", "$^{{{}}}$".format)):
        lines += [line(row), *([r"\hline"] if table.ends_group(i) else [])]
    title, *notes = [f"% {' '.join(text.split())}" for text in (table.title, *table.notes)]
    begin = rf"\begin{{tabular}}{{l {' '.join('r' * len(table.columns))}}}"
    return "\n".join([*([title] if table.title else []), begin, *lines, r"\end{tabular}", *notes]) + "\n"


def to_html(table: Table) -> str:
    """A heading, a `table` and its notes, for a page; the best values bold."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.headings)
    rows = [
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
        for name, *texts in table.texts(escape, "<b>{}</b>", escape)
    ]
    notes = [f"<p>{escape(note)}</p>" for note in table.notes]
    body = f"<table><thead><tr>{head}</tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table>"
    label = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
    return "\n".join([f"<h2>{escape(table.title)}</h2>", f"{label}{body}</div>", *notes]) + "\n"


RENDERERS: dict[str, Callable[[Table], str]] = {
    "text": to_text,
    "markdown": to_markdown,
    "latex": to_latex,
}


def render(table: Table, format: str = "text") -> str:
    """The table in a format of `RENDERERS`, ending in a line end."""
    return choose("table format", format, RENDERERS)(table)


#: Below which p-value a difference gets how many stars.
STARS = {0.001: "***", 0.01: "**", 0.05: "*"}
STARS_NOTE = "* p < 0.05, ** p < 0.01, *** p < 0.001"
_P_VALUES = {"two_tailed": "two-tailed", "koehn": "one-tailed", "centred": "centred, as in sacrebleu"}


def stars(p: float) -> str:
    """One star below 0.05, two below 0.01, three below 0.001.

    >>> stars(0.0165)
    '*'
    """
    return next((marks for limit, marks in STARS.items() if p < limit), "")


def evaluation_table(comparison: Comparison) -> Table:
    """One system: a row for each metric, the references beside it."""
    system, references = comparison.first, comparison.references
    columns = ["outputs", *([f"{100 * CONFIDENCE:.0f} % interval"] if comparison.resamples else [])]
    rows = []
    for name, metric in comparison.metrics.items():
        score, decimals = system.scores[name], metric.decimals
        cells = [f"{score.value:.{decimals}f}"]
        cells += [between(score.interval, decimals)] if comparison.resamples else []
        if references:
            cells.append(f"{references[name]:.{decimals}f}" if name in references else "")
        rows.append(TableRow(metric.label, cells))
    columns += ["references"] if references else []
    return Table(list(map(Column, columns)), rows, notes=[_items(comparison), *_signatures(comparison)])


def score_table(comparison: Comparison) -> Table:
    """A row for each system, a column for each metric; stars mark what differs from the first system."""
    columns = [
        Column(metric.label, metric.decimals, metric.best, comparison.references.get(name))
        for name, metric in comparison.metrics.items()
    ]
    rows = []
    for system in comparison.systems:
        marks = {name: stars(against.p) for name, against in system.against_first.items()}
        cells = [Cell(score.value, marks.get(name, "")) for name, score in system.scores.items()]
        rows.append(TableRow(system.name, cells))
    if comparison.references:
        values = [comparison.references.get(name) for name in comparison.metrics]
        rows.append(TableRow("references", values, "references", competes=False))
    notes = [_items(comparison)]
    if comparison.resamples and len(comparison.systems) > 1:
        notes.append(f"{STARS_NOTE} against {comparison.first.name}: {_test(comparison)}")
    return Table(columns, rows, "system", notes=[*notes, *_signatures(comparison)])


def difference_table(comparison: Comparison) -> Table:
    """A row for each system and metric: interval of the score, difference from the first, both tests."""
    names = ["score", "95 % interval", "difference", "95 % interval", "p", "above : below", "sign test p"]
    rows = []
    for system in comparison.systems:
        for name, score in system.scores.items():
            if score.interval is None:
                continue
            metric, against = comparison.metrics[name], system.against_first.get(name)
            digits = metric.decimals
            cells: list[str | Cell] = [*with_interval(score, digits), *[""] * 5]
            if against is not None:
                cells[2:] = [
                    f"{against.difference:+.{digits}f}",
                    between(against.interval, digits),
                    Cell(_p(against.p), stars(against.p)),
                    f"{against.above} : {against.below}",
                    _p(against.sign_test_p),
                ]
            rows.append(TableRow(f"{system.name}, {metric.label}", cells, system.name))
    notes = [
        f"difference, p: from {comparison.first.name}, {_test(comparison)}",
        "above : below: sentences that score higher and lower, with the exact two-tailed sign test; "
        "equal ones are left out",
    ]
    return Table(list(map(Column, names)), rows, "system, metric", notes=notes)


def selection_table(selections: dict[str, Selection], larger: str) -> Table:
    """What became of each system's outputs in the beam from which `larger` was chosen."""
    columns = [Column("absent from the beam (%)", decimals=1), Column("chosen again (%)", decimals=1)]
    rows = [TableRow(name, [s.absent, s.chosen_again]) for name, s in selections.items()]
    return Table(columns, rows, "system", notes=[f"the beam is the one that {larger} was chosen from"])


def comparison_data(comparison: Comparison, selections: dict[str, Selection] | None = None) -> dict[str, Any]:
    """The whole comparison as plain data; numbers are not rounded."""
    fewest, most = comparison.references_per_item
    data = {
        "items": comparison.items,
        "references_per_item": fewest if fewest == most else [fewest, most],
        "references": comparison.references,
        "bootstrap": {name: getattr(comparison, name) for name in ("resamples", "seed", "p_value")},
        "signatures": comparison.signatures,
        "systems": msgspec.to_builtins(comparison.systems),
    }
    if selections:
        systems = [{"name": name, **msgspec.to_builtins(one)} for name, one in selections.items()]
        data["selection"] = {"larger": comparison.systems[-1].name, "systems": systems}
    return data


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def between(interval: Interval | None, digits: int) -> str:
    """An interval as tables show it."""
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]" if interval is not None else ""


def with_interval(score: Score, digits: int) -> list[str]:
    """Two cells: a value and its interval."""
    return [f"{score.value:.{digits}f}", between(score.interval, digits)]


def range_text(fewest: int, most: int) -> str:
    """How many there are: "5", or "3 to 5"."""
    return f"{fewest}" if fewest == most else f"{fewest} to {most}"


def _items(comparison: Comparison) -> str:
    fewest, most = comparison.references_per_item
    if not most:
        return f"{comparison.items:,} items, no references"
    plural = "" if most == 1 else "s"
    return f"{comparison.items:,} items, {range_text(fewest, most)} reference{plural} each"


def _test(comparison: Comparison) -> str:
    kind = _P_VALUES.get(comparison.p_value, comparison.p_value)
    return f"paired bootstrap ({kind}), {comparison.resamples:,} resamples, seed {comparison.seed}"


def _signatures(comparison: Comparison) -> list[str]:
    """One line for each signature, with the metrics that share it."""
    lines: dict[str, list[str]] = {}
    for name, signature in comparison.signatures.items():
        lines.setdefault(signature, []).append(comparison.metrics[name].label)
    return [f"{', '.join(labels)}: {signature}" for signature, labels in lines.items()]
