"""Plots of a report as SVG, drawn here: bars of the five answers, and shares with their intervals.

Colours come from classes that the page's style sheet sets, so that they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rangevote.study.interval import Interval

_WIDTH, _NAME, _ROW, _BAR, _FOOT = 720, 190, 34, 18, 42
_PLOT = _WIDTH - _NAME - 20


class Bar(NamedTuple):
    """How often each of the five answers was given."""

    name: str
    counts: Sequence[int]


class Share(NamedTuple):
    """A share of wins with its interval; None without data."""

    name: str
    share: float | None
    interval: Interval | None
    label: str


def bars(rows: Sequence[Bar], answers: Sequence[str], caption: str) -> str:
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


def shares(rows: Sequence[Share], ends: tuple[str, str], caption: str) -> str:
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
