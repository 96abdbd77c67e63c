"""The report of a study as one HTML file: verdict, plots, tables, and the items with both texts.

It has no script and loads nothing, also from file://. Its plots are SVG; colours come from classes that the
style sheet sets, so that they follow light and dark. Outputs are text, whatever they hold.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from html import escape

from rangevote.evaluation.tables import Table
from rangevote.study.analysis import Findings, JudgedItem, Split
from rangevote.study.report import (
    agreement_words,
    answer_names,
    interval_text,
    p_text,
    share_text,
    tables,
    verdict,
)

#: What changes how a text is seen without being seen itself, as in web/static/unseen.js: spelled out.
_UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_EMPTY = '<i class="faint">(empty)</i>'
#: Words up to which differences of texts are looked for.
_COMPARABLE = 500

#: Sizes in the plots: the width, the names on the left, a row, a bar, the axis below.
_WIDTH, _NAME, _ROW, _BAR, _FOOT = 520, 136, 34, 18, 42
_PLOT = _WIDTH - _NAME - 20
_TICKS = (0, 0.25, 0.5, 0.75, 1)


def as_html(findings: Findings) -> str:
    folders = [importlib.resources.files(name) / "static" for name in ("rangevote.web", "rangevote.study")]
    files = zip(folders, ("base.css", "report.css"), strict=True)
    style = "".join((folder / name).read_text(encoding="utf-8") for folder, name in files)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    result, *others = tables(findings)
    kind = "verdict" if findings.complete else "verdict banner"
    body = [
        f"<h1>{escape(result.title)}</h1>",
        f'<p class="{kind}">{escape(verdict(findings))}</p>',
        _wins_plot(findings),
        f"<p>{escape(agreement_words(findings))}</p>",
        _html_table(result, heading=False),
        _answers_plot(findings),
        *(_html_table(table) for table in others),
        _sides_plot(findings),
        *_items(findings),
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


def _items(findings: Findings) -> list[str]:
    """Every judged item with both texts, the most disputed first."""
    if not findings.items:
        return []
    disputed = sum(item.disagreement > 0 for item in findings.items)
    about = "Words that only one of the two outputs has are marked."
    if disputed:
        about = f"{disputed:,} of {len(findings.items):,} are judged differently and come first. {about}"
    return [f"<h2>Items</h2><p>{about}</p>", *(_item(item, findings) for item in findings.items)]


def _item(item: JudgedItem, findings: Findings) -> str:
    names = answer_names(findings)
    said = "".join(
        f"<li>{escape(one.annotator)}: "
        + ("cannot judge" if one.value is None else escape(names[one.value + 2]))
        + (f' <q dir="auto">{_text(one.comment)}</q>' if one.comment else "")
        + "</li>"
        for one in item.opinions
    )
    apart = f', <span class="faint">{item.disagreement:.2g} apart</span>' if item.disagreement else ""
    source = f'<p class="source" dir="auto">{_text(item.pair.source)}</p>' if item.pair.source else ""
    outputs = "".join(
        f'<div><h4>{escape(name)}</h4><p class="output" dir="auto">{text}</p></div>'
        for name, text in zip(findings.plan.systems, _marked(item.pair.first, item.pair.second), strict=True)
    )
    return (
        f'<article class="item"><h3>Item {_text(item.pair.key)}{apart}</h3>{source}'
        f'<div class="outputs">{outputs}</div><ul class="said">{said}</ul></article>'
    )


def _marked(one: str, other: str) -> tuple[str, str]:
    """Two outputs as HTML; words that are not in both, in the same order, are marked."""
    first, second = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in (one, other))
    if max(len(first), len(second)) > 2 * _COMPARABLE:
        return _text(one) or _EMPTY, _text(other) or _EMPTY
    marked: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        for side, words in zip(marked, (first[a:b], second[c:d]), strict=True):
            text = "".join(words)
            own = text.strip() if kind != "equal" else ""
            before, _, after = text.partition(own) if own else ("", "", text)
            side += [_text(before), f"<mark>{_text(own)}</mark>" if own else "", _text(after)]
    return "".join(marked[0]) or _EMPTY, "".join(marked[1]) or _EMPTY


def _text(text: str) -> str:
    """A text of a model's or a person's as HTML."""
    return _UNSEEN.sub(lambda found: f'<bdi class="unseen">U+{ord(found[0]):04X}</bdi>', escape(text))


def _wins_plot(findings: Findings) -> str:
    baseline, challenger = findings.plan.systems
    wins = {"all answers": findings.answers.all, "much better only": findings.answers.much}
    if len(findings.people) > 1:
        wins |= {person.name: person.answers.all for person in findings.people}
    return _figure(
        _shares(wins, (baseline, challenger), f"Share of wins of {challenger}, with intervals"),
        f"Share of wins of {challenger}, ties left out, with exact 95 % intervals",
    )


def _answers_plot(findings: Findings) -> str:
    answers, counts = answer_names(findings), {"all items": findings.answers.counts}
    if len(findings.people) > 1:
        counts |= {person.name: person.answers.counts for person in findings.people}
    return _figure(_bars(counts, answers, "How often each answer was given"), "Answers", _legend(answers))


def _sides_plot(findings: Findings) -> str:
    sides = {person.name: person.sides for person in findings.people}
    return _figure(
        _shares(sides, ("right", "left"), "Share of answers for the left side"),
        "Share of answers for the left side, ties left out, with exact 95 % intervals",
    )


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
        parts.append(_label(_NAME - 10, y + 14, name, "end"))
        if not total:
            parts.append(_label(_NAME, y + 14, "no data", "start", "faint"))
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
    parts += [_label(_at(tick), foot + 14, f"{100 * tick:.0f} %", "middle", "faint") for tick in _TICKS]
    parts.append(_label(_at(0), foot + 28, f"always {ends[0]}", "start", "faint"))
    parts.append(_label(_at(1), foot + 28, f"always {ends[1]}", "end", "faint"))
    for number, (name, split) in enumerate(rows.items()):
        y = number * _ROW + _ROW / 2
        parts.append(_label(_NAME - 10, y + 5, name, "end"))
        if split.share is None or split.interval is None:
            parts.append(_label(_at(0.5) + 6, y + 5, "no data", "start", "faint"))
            continue
        shares = f"{share_text(split.share)} {interval_text(split)}"
        values = f"{split.better} : {split.worse}, {shares}, p {p_text(split)}"
        point = f'<circle class="point" cx="{_at(split.share):.2f}" cy="{y}" r="5"/>'
        whisker = _line(_at(split.interval.low), y, _at(split.interval.high), y, "whisker")
        parts.append(f"<g><title>{escape(f'{name}: {values}')}</title>{whisker}{point}</g>")
    return _svg(parts, len(rows) * _ROW + _FOOT, caption)


def _at(share: float) -> float:
    return _NAME + 10 + (_PLOT - 20) * share


def _line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.2f}" y1="{y}" x2="{to_x:.2f}" y2="{to_y}"/>'


def _label(x: float, y: float, text: str, anchor: str, kind: str = "ink") -> str:
    short = text if len(text) <= 18 else text[:17] + "…"
    return f'<text class="{kind}" x="{x:.2f}" y="{y}" text-anchor="{anchor}">{escape(short)}</text>'


def _svg(parts: Sequence[str], height: float, caption: str) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(caption)}">{inner}</svg>'
