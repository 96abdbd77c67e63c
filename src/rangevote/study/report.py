"""A report of a study: tables, in every format of `rangevote.evaluation`, and one HTML file with plots.

The page has no script and loads nothing, also from file://. Its plots are SVG; colours come from classes that
the style sheet sets, so that they follow light and dark.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Mapping, Sequence
from html import escape

from rangevote.evaluation.tables import Cell, Column, Table, TableRow, render, stars
from rangevote.study.analysis import Findings, Person, Split
from rangevote.study.study_plan import COMBINE

#: Sizes in the plots: the width, the names on the left, a row, a bar, the axis below.
_WIDTH, _NAME, _ROW, _BAR, _FOOT = 720, 190, 34, 18, 42
_PLOT = _WIDTH - _NAME - 20
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def tables(findings: Findings) -> list[Table]:
    """All tables of a report, the result first."""
    listed = [result_table(findings), answer_table(findings), people_table(findings), sides_table(findings)]
    if findings.plan.repeats:
        listed.append(repeats_table(findings))
    if findings.plan.checks:
        listed.append(checks_table(findings))
    return listed


def as_text(findings: Findings, format: str = "text") -> str:
    """The report in a format of `rangevote.evaluation.tables`."""
    return "\n\n".join(render(table, format).rstrip("\n") for table in tables(findings)) + "\n"


def result_table(findings: Findings) -> Table:
    """Better and worse, with the exact sign test."""
    baseline, challenger = findings.plan.systems
    rows = [
        _split_row("all answers but ties", findings.answers.all),
        _split_row("much better only", findings.answers.much),
    ]
    title = f"{findings.plan.title} Is {challenger} better than {baseline}?"
    columns = _columns("better", "worse", "p", "share of wins", "95 % interval")
    return Table(columns, rows, challenger, title, _notes(findings))


def answer_table(findings: Findings) -> Table:
    total = findings.answers.total
    rows = [
        _row(name, count, f"{100 * count / total:.1f} %" if total else "")
        for name, count in zip(_answers(findings), findings.answers.counts, strict=True)
    ]
    if findings.plan.automatic:
        unseen = [Cell(str(findings.plan.automatic)), Cell("")]
        rows.append(TableRow("identical, not shown", unseen, "identical"))
    return Table(_columns("items", "share"), rows, "answer", "Answers")


def people_table(findings: Findings) -> Table:
    """One row an annotator: each is a study of their own."""
    columns = _columns(
        *("judged", *_answers(findings), "better : worse", "p", "share of wins", "changed", "seconds")
    )
    notes = ["seconds: median time an item was in sight; changed: answers replaced or undone"]
    missing = sum(person.without_image for person in findings.people)
    if missing:
        notes.append(f"answers given while the image could not be shown: {missing:,}")
    rows = [_person_row(person) for person in findings.people]
    return Table(columns, rows, "annotator", "Annotators", notes)


def _person_row(person: Person) -> TableRow:
    split = person.answers.all
    return _row(
        _name(person),
        f"{person.judged} of {person.assigned}{' (finished)' if person.finished else ''}",
        *person.answers.counts,
        f"{split.better} : {split.worse}",
        Cell(_p(split), stars(split.p)),
        _share(split.share),
        person.changed,
        "" if person.seconds is None else f"{person.seconds:.1f}",
    )


def sides_table(findings: Findings) -> Table:
    """Whether somebody prefers one side."""
    columns = _columns("left better", "right better", "p", "share of left", "95 % interval")
    rows = [_split_row(person.name, person.sides) for person in findings.people]
    return Table(columns, rows, "annotator", "Left and right", [f"sides were set by: {findings.plan.sides}"])


def repeats_table(findings: Findings) -> Table:
    """How far each annotator agrees with themselves."""
    rows = []
    for person in findings.people:
        itself = person.itself
        alpha = "undefined" if itself.alpha is None else f"{itself.alpha:.3f}"
        rows.append(
            _row(_name(person), itself.items, _share(itself.same), _share(itself.same_direction), alpha)
        )
    columns = _columns("items", "same answer", "same direction", "alpha")
    notes = ["the first judgement counts; alpha: Krippendorff's, ordinal, of both"]
    return Table(columns, rows, "annotator", "Judged twice", notes)


def checks_table(findings: Findings) -> Table:
    rows = [_row(_name(one), one.passed, one.checked - one.passed) for one in findings.people]
    return Table(_columns("passed", "failed"), rows, "annotator", "Attention checks")


def _columns(*names: str) -> list[Column]:
    return [Column(name) for name in names]


def _row(name: str, *cells: Cell | str | int) -> TableRow:
    return TableRow(name, [cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in cells])


def _split_row(name: str, split: Split) -> TableRow:
    p = Cell(_p(split), stars(split.p))
    return _row(name, split.better, split.worse, p, _share(split.share), _interval(split))


def _p(split: Split) -> str:
    if split.better + split.worse == 0:
        return "1 (no data)"
    return f"{split.p:.4f}" if split.p >= 0.0001 else "<0.0001"


def _share(share: float | None) -> str:
    return "no data" if share is None else f"{100 * share:.1f} %"


def _interval(split: Split) -> str:
    interval = split.interval
    return "" if interval is None else f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _name(person: Person) -> str:
    return person.name + (" (excluded)" if person.excluded else "")


def _answers(findings: Findings) -> list[str]:
    """The five answers, as they are about the systems."""
    baseline, challenger = findings.plan.systems
    better = [f"{challenger} slightly better", f"{challenger} much better"]
    return [f"{baseline} much better", f"{baseline} slightly better", "no difference", *better]


def _notes(findings: Findings) -> list[str]:
    """What must be known to read the result: whether the study is complete first of all."""
    plan, items = findings.plan, findings.answers.total
    complete = f"complete: all {plan.stop:,} planned judgements are there"
    incomplete = (
        f"NOT COMPLETE: {findings.judgements:,} of {plan.stop:,} planned judgements are there; p-values "
        f"hold only for the complete study, since stopping when they look good voids them"
    )
    single = f"unit of analysis: the item, judged by one person each; {items:,} items are judged"
    combined = (
        f"unit of analysis: the item, as {COMBINE[plan.combine]}; {items:,} items are judged, "
        f"{findings.judged_by_all:,} of them by all {plan.per_item} planned people who are not excluded; "
        f"judgements are never pooled"
    )
    unseen = f", of which {plan.automatic:,} have identical outputs and were not shown"
    return [
        complete if findings.complete else incomplete,
        single if plan.per_item == 1 else combined,
        f"ties, left out: {findings.ties:,}{unseen if plan.automatic else ''}",
        "p: exact two-tailed sign test; interval: Clopper-Pearson; * p < 0.05, ** p < 0.01, *** p < 0.001",
        _agreement_note(findings),
        _exclusion_note(findings),
    ]


def _agreement_note(findings: Findings) -> str:
    agreement = findings.agreement
    if not agreement.items:
        return "agreement: no item was judged by two people, so alpha is undefined"
    value = "undefined (all answers are the same)" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    return (
        f"agreement on {agreement.items:,} items: Krippendorff's alpha (ordinal) {value}, same answer "
        f"{_share(agreement.same)}, same direction {_share(agreement.same_direction)}"
    )


def _exclusion_note(findings: Findings) -> str:
    if findings.plan.pass_share is None:
        return "excluded: nobody, as the plan says"
    rule = f"fewer than {100 * findings.plan.pass_share:.0f} % of the attention checks passed"
    names = [person.name for person in findings.people if person.excluded]
    return f"excluded ({rule}): {', '.join(names) or 'nobody'}"


def as_html(findings: Findings) -> str:
    folders = [importlib.resources.files(name) / "static" for name in ("rangevote.web", "rangevote.study")]
    files = zip(folders, ("base.css", "report.css"), strict=True)
    style = "".join((folder / name).read_text(encoding="utf-8") for folder, name in files)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    result, *others = tables(findings)
    body = [
        f"<h1>{escape(result.title)}</h1>",
        *([] if findings.complete else ['<p class="banner">This study is not complete.</p>']),
        _html_table(result, heading=False),
        *_plots(findings),
        *(_html_table(table) for table in others),
        f'<p class="faint">Made with {escape(findings.plan.software)}. Digest of the study: '
        f"<code>{escape(findings.digest)}</code></p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(result.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _html_table(table: Table, *, heading: bool = True) -> str:
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


def _plots(findings: Findings) -> list[str]:
    answers, people = _answers(findings), findings.people
    baseline, challenger = findings.plan.systems
    counts = {"all items": findings.answers.counts}
    wins = {"all answers": findings.answers.all, "much better only": findings.answers.much}
    if len(people) > 1:
        counts |= {person.name: person.answers.counts for person in people}
        wins |= {person.name: person.answers.all for person in people}
    sides = {person.name: person.sides for person in people}
    return [
        _figure(_bars(counts, answers, "How often each answer was given"), "Answers", _legend(answers)),
        _figure(
            _shares(wins, (baseline, challenger), f"Share of wins of {challenger}, with intervals"),
            f"Share of wins of {challenger}, ties left out, with exact 95 % intervals",
        ),
        _figure(
            _shares(sides, ("right", "left"), "Share of answers for the left side"),
            "Share of answers for the left side, ties left out, with exact 95 % intervals",
        ),
    ]


def _figure(plot: str, caption: str, legend: str = "") -> str:
    box = f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(caption)}">{plot}</div>'
    return f"<figure><figcaption>{escape(caption)}</figcaption>{box}{legend}</figure>"


def _legend(answers: Sequence[str]) -> str:
    square = '<rect class="a{}" width="12" height="12"/>'
    swatch = f'<svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">{square}</svg>'
    items = [f"<li>{swatch.format(kind)} {escape(name)}</li>" for kind, name in enumerate(answers)]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _bars(rows: Mapping[str, Sequence[int]], answers: Sequence[str], caption: str) -> str:
    """Stacked bars of the five answers, one a row, the baseline's wins on the left."""
    parts = []
    for number, (name, counts) in enumerate(rows.items()):
        total, x, y = sum(counts), float(_NAME), number * _ROW + 8
        parts.append(_text(_NAME - 10, y + 14, name, "end"))
        if not total:
            parts.append(_text(_NAME, y + 14, "no data", "start", "faint"))
        for kind, count in enumerate(counts):
            if count:
                width = _PLOT * count / total
                title = escape(f"{name}, {answers[kind]}: {count} of {total}")
                parts.append(f"<g><title>{title}</title>{_bar(x, y, width, count, kind)}</g>")
                x += width
    return _svg(parts, len(rows) * _ROW + 8, caption)


def _bar(x: float, y: float, width: float, count: int, kind: int) -> str:
    """A bar with its count inside, where there is room."""
    bar = f'<rect class="a{kind}" x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}"/>'
    if width < 9 * len(str(count)) + 4:
        return bar
    middle = f'x="{x + width / 2:.2f}" y="{y + 13.5}" text-anchor="middle"'
    return f'{bar}<text class="on{kind}" {middle}>{count}</text>'


def _shares(rows: Mapping[str, Split], ends: tuple[str, str], caption: str) -> str:
    """Shares as points with whiskers on an axis from 0 to 100 %; the line at 50 % is no difference."""
    foot = len(rows) * _ROW + 4
    parts = [_line(_at(tick), 0, _at(tick), foot, "half" if tick == 0.5 else "grid") for tick in _TICKS]
    parts += [_text(_at(tick), foot + 14, f"{100 * tick:.0f} %", "middle", "faint") for tick in _TICKS]
    parts.append(_text(_at(0), foot + 28, f"always {ends[0]}", "start", "faint"))
    parts.append(_text(_at(1), foot + 28, f"always {ends[1]}", "end", "faint"))
    for number, (name, split) in enumerate(rows.items()):
        y = number * _ROW + _ROW / 2
        parts.append(_text(_NAME - 10, y + 5, name, "end"))
        if split.share is None or split.interval is None:
            parts.append(_text(_at(0.5) + 6, y + 5, "no data", "start", "faint"))
            continue
        values = f"{split.better} : {split.worse}, {_share(split.share)} {_interval(split)}, p {_p(split)}"
        point = f'<circle class="point" cx="{_at(split.share):.2f}" cy="{y}" r="5"/>'
        whisker = _line(_at(split.interval.low), y, _at(split.interval.high), y, "whisker")
        parts.append(f"<g><title>{escape(f'{name}: {values}')}</title>{whisker}{point}</g>")
    return _svg(parts, len(rows) * _ROW + _FOOT, caption)


def _at(share: float) -> float:
    return _NAME + 10 + (_PLOT - 20) * share


def _line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.2f}" y1="{y}" x2="{to_x:.2f}" y2="{to_y}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "ink") -> str:
    short = text if len(text) <= 26 else text[:25] + "…"
    return f'<text class="{kind}" x="{x:.2f}" y="{y}" text-anchor="{anchor}">{escape(short)}</text>'


def _svg(parts: Sequence[str], height: float, caption: str) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(caption)}">{inner}</svg>'
