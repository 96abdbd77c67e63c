"""A report of a study: tables, in every format of `rangevote.evaluation`, and one HTML file with plots.

The page has no script and loads nothing, also from file://. Its plots are SVG; colours come from classes that
the style sheet sets, so that they follow light and dark.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rangevote.evaluation.tables import Cell, Column, Table, TableRow, render, stars
from rangevote.study.analysis import Agreement, Findings, Person, ShareInterval, Split
from rangevote.study.study_plan import COMBINE

#: Sizes in the plots: the width, the names on the left, a row, a bar, the axis below.
_WIDTH, _NAME, _ROW, _BAR, _FOOT = 720, 190, 34, 18, 42
_PLOT = _WIDTH - _NAME - 20


def tables(found: Findings) -> list[Table]:
    """All tables of a report, the result first."""
    listed = [result_table(found), answer_table(found), people_table(found), sides_table(found)]
    listed += [twice_table(found)] if found.plan.repeats else []
    return listed if found.plan.checks == 0 else [*listed, checks_table(found)]


def as_text(found: Findings, format: str = "text") -> str:
    """The report in a format of `rangevote.evaluation.tables`."""
    return "\n\n".join(render(table, format).rstrip("\n") for table in tables(found)) + "\n"


def result_table(found: Findings) -> Table:
    """Better and worse, with the exact sign test."""
    _, challenger = found.plan.systems
    names = ["better", "worse", "p", "share of wins", "95 % interval"]
    rows = [
        _split_row("all answers but ties", found.answers.all),
        _split_row("much better only", found.answers.much),
    ]
    notes = [
        *_status(found),
        _unit(found),
        _ties(found),
        *_method(),
        _agreement_note(found),
        *_excluded(found),
    ]
    title = f"{found.plan.title} Is {challenger} better than {found.plan.systems[0]}?"
    return Table([Column(name) for name in names], rows, challenger, title, notes)


def _split_row(name: str, split: Split) -> TableRow:
    cells = [Cell(str(split.better)), Cell(str(split.worse)), Cell(p_text(split), stars(split.p))]
    return TableRow(name, [*cells, Cell(share_text(split.share)), Cell(interval_text(split.interval))])


def p_text(split: Split) -> str:
    """A p-value, or that there are no data for one."""
    if split.better + split.worse == 0:
        return "1 (no data)"
    return f"{split.p:.4f}" if split.p >= 0.0001 else "<0.0001"


def share_text(share: float | None) -> str:
    """A share in percent."""
    return "no data" if share is None else f"{100 * share:.1f} %"


def interval_text(interval: ShareInterval | None) -> str:
    """An interval in percent."""
    return "" if interval is None else f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _status(found: Findings) -> list[str]:
    """Whether the study is complete: the first thing to know."""
    if found.complete:
        return [f"complete: all {found.plan.stop:,} planned judgements are there"]
    return [
        f"NOT COMPLETE: {found.judgements:,} of {found.plan.stop:,} planned judgements are there; p-values "
        f"hold only for the complete study, since stopping when they look good voids them"
    ]


def _unit(found: Findings) -> str:
    """What is counted."""
    plan, items = found.plan, found.answers.total
    if plan.per_item == 1:
        return f"unit of analysis: the item, judged by one person each; {items:,} items are judged"
    return (
        f"unit of analysis: the item, as {COMBINE[plan.combine]}; {items:,} items are judged, "
        f"{found.judged_by_all:,} of them by all {plan.per_item} planned people who are not excluded; "
        f"judgements are never pooled"
    )


def _ties(found: Findings) -> str:
    told = f"ties, left out: {found.ties:,}"
    if found.plan.automatic:
        told += f", of which {found.plan.automatic:,} have identical outputs and were not shown"
    return told


def _method() -> list[str]:
    return [
        "p: exact two-tailed sign test; interval: Clopper-Pearson; * p < 0.05, ** p < 0.01, *** p < 0.001",
    ]


def _agreement_note(found: Findings) -> str:
    """Krippendorff's alpha in words."""
    agreement = found.agreement
    if not agreement.items:
        return "agreement: no item was judged by two people, so alpha is undefined"
    value = "undefined (all answers are the same)" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    return (
        f"agreement on {agreement.items:,} items: Krippendorff's alpha (ordinal) {value}, same answer "
        f"{share_text(agreement.same)}, same direction {share_text(agreement.same_direction)}"
    )


def _excluded(found: Findings) -> list[str]:
    """Who was left out, by the rule of the plan."""
    if found.plan.pass_share is None:
        return ["excluded: nobody, as the plan says"]
    rule = f"fewer than {100 * found.plan.pass_share:.0f} % of the attention checks passed"
    names = [person.name for person in found.people if person.excluded]
    return [f"excluded ({rule}): {', '.join(names) or 'nobody'}"]


def wording(found: Findings) -> list[str]:
    """The five answers, as they are about the systems."""
    baseline, challenger = found.plan.systems
    return [
        f"{baseline} much better",
        f"{baseline} slightly better",
        "no difference",
        f"{challenger} slightly better",
        f"{challenger} much better",
    ]


def answer_table(found: Findings) -> Table:
    """How many items got which answer."""
    rows = [
        TableRow(name, [Cell(str(count)), Cell(_percent(count, found.answers.total))])
        for name, count in zip(wording(found), found.answers.counts, strict=True)
    ]
    if found.plan.automatic:
        rows.append(
            TableRow("identical, not shown", [Cell(str(found.plan.automatic)), Cell("")], "identical")
        )
    return Table([Column("items"), Column("share")], rows, "answer", "Answers")


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %" if total else ""


def people_table(found: Findings) -> Table:
    """One row an annotator: each is a study of their own."""
    names = ["judged", *wording(found), "better : worse", "p", "share of wins", "changed", "seconds"]
    rows = [TableRow(_name(person), _person_cells(person)) for person in found.people]
    notes = ["seconds: median time an item was in sight; changed: answers replaced or undone"]
    missing = sum(person.without_image for person in found.people)
    notes += [f"answers given while the picture could not be shown: {missing:,}"] if missing else []
    return Table([Column(name) for name in names], rows, "annotator", "Annotators", notes)


def _name(person: Person) -> str:
    return person.name + (" (excluded)" if person.excluded else "")


def _person_cells(person: Person) -> list[Cell]:
    split = person.answers.all
    return [
        Cell(f"{person.judged} of {person.assigned}{' (finished)' if person.finished else ''}"),
        *(Cell(str(count)) for count in person.answers.counts),
        Cell(f"{split.better} : {split.worse}"),
        Cell(p_text(split), stars(split.p)),
        Cell(share_text(split.share)),
        Cell(str(person.changed)),
        Cell("" if person.seconds is None else f"{person.seconds:.1f}"),
    ]


def sides_table(found: Findings) -> Table:
    """Whether somebody leans to one side."""
    columns = [
        Column(name) for name in ("left better", "right better", "p", "share of left", "95 % interval")
    ]
    rows = [_split_row(person.name, person.sides) for person in found.people]
    return Table(columns, rows, "annotator", "Left and right", [f"sides were set by: {found.plan.sides}"])


def twice_table(found: Findings) -> Table:
    """How far each annotator agrees with themselves."""
    columns = [Column(name) for name in ("items", "same answer", "same direction", "alpha")]
    rows = [TableRow(_name(person), _agreement_cells(person.itself)) for person in found.people]
    notes = ["the first judgement counts; alpha: Krippendorff's, ordinal, of both"]
    return Table(columns, rows, "annotator", "Judged twice", notes)


def _agreement_cells(agreement: Agreement) -> list[Cell]:
    alpha = "undefined" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    shares = [Cell(share_text(share)) for share in (agreement.same, agreement.same_direction)]
    return [Cell(str(agreement.items)), *shares, Cell(alpha)]


def checks_table(found: Findings) -> Table:
    """Attention checks."""
    rows = [TableRow(_name(p), [Cell(str(p.passed)), Cell(str(p.checked - p.passed))]) for p in found.people]
    return Table([Column("passed"), Column("failed")], rows, "annotator", "Attention checks")


def as_html(found: Findings) -> str:
    """The whole file."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    result, *others = tables(found)
    state = "" if found.complete else '<p class="banner">This study is not complete.</p>'
    body = [
        f"<h1>{escape(result.title)}</h1>",
        state,
        _table(result, heading=False),
        *_plots(found),
        *(_table(table) for table in others),
        f'<p class="faint">Made with {escape(found.plan.software)}. Digest of the study: '
        f"<code>{escape(found.digest)}</code></p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(result.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _style() -> str:
    """The shared style sheet and the report's own."""
    shared = importlib.resources.files("rangevote.web") / "static" / "base.css"
    own = importlib.resources.files("rangevote.study") / "static" / "report.css"
    return shared.read_text(encoding="utf-8") + own.read_text(encoding="utf-8")


def _plots(found: Findings) -> list[str]:
    answers = wording(found)
    baseline, challenger = found.plan.systems
    rows = [AnswerBar("all items", found.answers.counts)]
    points = [
        _share("all answers", found.answers.all),
        _share("much better only", found.answers.much),
    ]
    if len(found.people) > 1:
        rows += [AnswerBar(person.name, person.answers.counts) for person in found.people]
        points += [_share(person.name, person.answers.all) for person in found.people]
    sides = [_share(person.name, Split(person.sides.worse, person.sides.better)) for person in found.people]
    return [
        _figure(bars(rows, answers, "How often each answer was given"), "Answers", _legend(answers)),
        _figure(
            shares(points, (baseline, challenger), f"Share of wins of {challenger}, with intervals"),
            f"Share of wins of {challenger}, ties left out, with exact 95 % intervals",
        ),
        _figure(
            shares(sides, ("left", "right"), "Share of answers for the right side"),
            "Share of answers for the right side, ties left out, with exact 95 % intervals",
        ),
    ]


def _share(name: str, split: Split) -> ShareBar:
    told = f"{split.better} : {split.worse}, {share_text(split.share)} {interval_text(split.interval)}"
    return ShareBar(name, split.share, split.interval, f"{name}: {told}, p {p_text(split)}")


def _legend(answers: Sequence[str]) -> str:
    square = '<rect class="a{}" width="12" height="12"/>'
    swatch = f'<svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">{square}</svg>'
    items = [f"<li>{swatch.format(kind)} {escape(name)}</li>" for kind, name in enumerate(answers)]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _figure(picture: str, caption: str, legend: str = "") -> str:
    box = f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(caption)}">{picture}</div>'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{box}{legend}</figure>"


def _table(table: Table, *, heading: bool = True) -> str:
    head = "".join(f'<th scope="col">{escape(column.name)}</th>' for column in table.columns)
    rows = []
    for i, row in enumerate(table.rows):
        cells = "".join(
            f"<td>{escape(table.written(i, j) + cell.marks)}</td>" for j, cell in enumerate(row.cells)
        )
        rows.append(f'<tr><th scope="row">{escape(row.name)}</th>{cells}</tr>')
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    title = f"<h2>{escape(table.title)}</h2>" if heading and table.title else ""
    label = escape(table.title)
    return (
        f'{title}<div class="scroll" role="group" tabindex="0" aria-label="{label}"><table><thead><tr>'
        f'<th scope="col">{escape(table.corner)}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>" + (f'<ul class="notes">{notes}</ul>' if notes else "")
    )


class AnswerBar(NamedTuple):
    """How often each of the five answers was given."""

    name: str
    counts: Sequence[int]


class ShareBar(NamedTuple):
    """A share of wins with its interval; None without data."""

    name: str
    share: float | None
    interval: ShareInterval | None
    label: str


def bars(rows: Sequence[AnswerBar], answers: Sequence[str], caption: str) -> str:
    """Stacked bars, one a row, from the baseline's wins on the left to the challenger's on the right."""
    parts = []
    for number, row in enumerate(rows):
        total, x, y = sum(row.counts), float(_NAME), number * _ROW + 8
        parts.append(_text(_NAME - 10, y + 14, row.name, "end"))
        if not total:
            parts.append(_text(_NAME, y + 14, "no data", "start", "faint"))
        for kind, count in enumerate(row.counts):
            width = _PLOT * count / total if total else 0
            told = f"{row.name}, {answers[kind]}: {count} of {total}"
            shape = f'<rect class="a{kind}" x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}"/>'
            if count:
                parts.append(
                    f"<g><title>{escape(told)}</title>{shape}{_inside(x, y, width, count, kind)}</g>"
                )
            x += width
    height = len(rows) * _ROW + 8
    return _svg(parts, height, caption)


def _inside(x: float, y: float, width: float, count: int, kind: int) -> str:
    """The count in the bar, where there is room."""
    if width < 9 * len(str(count)) + 4:
        return ""
    return (
        f'<text class="on{kind}" x="{x + width / 2:.2f}" y="{y + 13.5}" text-anchor="middle">{count}</text>'
    )


def shares(rows: Sequence[ShareBar], ends: tuple[str, str], caption: str) -> str:
    """Shares as points with whiskers on an axis from 0 to 100 %; the line at 50 % is no difference."""
    height = len(rows) * _ROW + _FOOT
    foot = len(rows) * _ROW + 4
    parts = [
        _line(_at(tick), 0, _at(tick), foot, "half" if tick == 0.5 else "grid")
        for tick in (0, 0.25, 0.5, 0.75, 1)
    ]
    parts += [
        _text(_at(tick), foot + 14, f"{100 * tick:.0f} %", "middle", "faint")
        for tick in (0, 0.25, 0.5, 0.75, 1)
    ]
    parts.append(_text(_at(0), foot + 28, f"always {ends[0]}", "start", "faint"))
    parts.append(_text(_at(1), foot + 28, f"always {ends[1]}", "end", "faint"))
    for number, row in enumerate(rows):
        y = number * _ROW + _ROW / 2
        parts.append(_text(_NAME - 10, y + 5, row.name, "end"))
        if row.share is None or row.interval is None:
            parts.append(_text(_at(0.5) + 6, y + 5, "no data", "start", "faint"))
            continue
        point = f'<circle class="point" cx="{_at(row.share):.2f}" cy="{y}" r="5"/>'
        whisker = _line(_at(row.interval.low), y, _at(row.interval.high), y, "whisker")
        parts.append(f"<g><title>{escape(row.label)}</title>{whisker}{point}</g>")
    return _svg(parts, height, caption)


def _at(share: float) -> float:
    return _NAME + 10 + (_PLOT - 20) * share


def _line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.2f}" y1="{y}" x2="{to_x:.2f}" y2="{to_y}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "ink") -> str:
    return f'<text class="{kind}" x="{x:.2f}" y="{y}" text-anchor="{anchor}">{escape(_short(text))}</text>'


def _short(text: str, most: int = 26) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _svg(parts: Sequence[str], height: float, caption: str) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(caption)}">{inner}</svg>'
