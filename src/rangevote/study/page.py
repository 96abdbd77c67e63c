"""A report as one HTML file: tables and plots, no script, nothing loaded, also from file://."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence
from html import escape

from rangevote.evaluation.tables import Table
from rangevote.study.analysis import Findings, Split
from rangevote.study.picture import Bar, Share, bars, shares
from rangevote.study.present import between, p_told, share_told, tables, wording


def page(found: Findings) -> str:
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
        *_pictures(found),
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


def _pictures(found: Findings) -> list[str]:
    answers = wording(found)
    baseline, challenger = found.plan.systems
    rows = [Bar("all items", found.answers.counts)]
    points = [
        _share("all answers", found.answers.all),
        _share("much better only", found.answers.much),
    ]
    if len(found.people) > 1:
        rows += [Bar(person.name, person.answers.counts) for person in found.people]
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


def _share(name: str, split: Split) -> Share:
    told = f"{split.better} : {split.worse}, {share_told(split.share)} {between(split.interval)}"
    return Share(name, split.share, split.interval, f"{name}: {told}, p {p_told(split)}")


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
