"""Draw docs/assets/election.svg: figure 1 of the paper as an election.

    .venv/bin/python docs/site/picture.py

Every number is that of `rangevote.elect`. Colours are those of the site where the drawing stands in one of
its pages, and fixed ones elsewhere.
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

import rangevote as rv
from rangevote.cli.demo import FIGURE_1

FILE = Path(__file__).parents[1] / "assets" / "election.svg"
WIDTH, LEFT, ROW, TOP = 490, 12, 43, 56
BAR = 330  # the length of the longest bar
STYLE = """
.rv-ground { fill: var(--md-default-bg-color, #fff); }
.rv-text { fill: var(--rv-ink, #1a1d23); font: 13px system-ui, sans-serif; }
.rv-small { fill: var(--rv-faint, #545c69); font: 11px system-ui, sans-serif; }
.rv-strong { font-weight: 700; }
.rv-likely { fill: var(--rv-likely, #8a93a3); }
.rv-score { fill: var(--rv-score, #7aa2f7); }
.rv-winner { fill: var(--rv-accent, #1d4ed8); }
""".strip()


def drawing() -> str:
    """The whole file."""
    result = rv.elect(list(FIGURE_1), [math.log(p) for p in FIGURE_1.values()], similarity="overlap_2")
    likely = max(range(len(FIGURE_1)), key=list(FIGURE_1.values()).__getitem__)
    rows = [_row(result, place, index, likely) for place, index in enumerate(result.ranking)]
    below = TOP + ROW * len(rows)
    parts = [*_head(), *rows, *_ngrams(result, below)]
    height = below + 50
    title = "Ten captions of one picture vote for each other"
    told = f"Elected: {result.winner}. Most likely: {list(FIGURE_1)[likely]}."
    return (
        f'<svg class="rv-election" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-labelledby="rv-title rv-told">\n'
        f'<title id="rv-title">{title}</title>\n<desc id="rv-told">{escape(told)}</desc>\n'
        f"<style>\n{STYLE}\n</style>\n"
        f'<rect class="rv-ground" width="{WIDTH}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _head() -> list[str]:
    return [
        _text(LEFT, 20, "Ten captions that beam search found for one photograph", strong=True),
        f'<rect class="rv-likely" x="{LEFT}" y="34" width="18" height="7"/>',
        _text(LEFT + 24, 42, "share of the probability", small=True),
        f'<rect class="rv-score" x="{LEFT + 160}" y="34" width="18" height="7"/>',
        _text(LEFT + 184, 42, "score: support by all ten (overlap_2)", small=True),
    ]


def _row(result: rv.Result, place: int, index: int, likely: int) -> str:
    """A caption with its two bars and numbers."""
    y = TOP + place * ROW
    mark = {result.index: "  ← elected", likely: "  ← most likely"}.get(index, "")
    won = index == result.index
    share, score = float(result.weights[index]), float(result.scores[index])
    scale = BAR / max(result.scores.tolist())
    kind = "rv-winner" if won else "rv-score"
    parts = [
        _text(LEFT, y + 12, str(result.candidates.content(index)), strong=won, more=mark),
        f'<rect class="rv-likely" x="{LEFT}" y="{y + 18}" width="{share * scale:.1f}" height="7"/>',
        _text(LEFT + 5 + share * scale, y + 25, f"{share:.3f}", small=True),
        f'<rect class="{kind}" x="{LEFT}" y="{y + 29}" width="{score * scale:.1f}" height="7"/>',
        _text(LEFT + 5 + score * scale, y + 37, f"{score:.3f}", small=True),
    ]
    return "\n".join(parts)


def _ngrams(result: rv.Result, y: int) -> list[str]:
    """Where the winner's score comes from."""
    told = [f"{part.ngram} {part.score:.3f}" for part in (result.explain().ngrams or ())[:5]]
    return [
        _text(LEFT, y + 18, "Where the winner's score comes from (its five best bigrams)", strong=True),
        _text(LEFT, y + 38, "   ".join(told), small=True),
    ]


def _text(x: float, y: float, text: str, *, small: bool = False, strong: bool = False, more: str = "") -> str:
    kind = ("rv-small" if small else "rv-text") + (" rv-strong" if strong else "")
    beside = f'<tspan class="rv-small">{escape(more)}</tspan>' if more else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" xml:space="preserve">{escape(text)}{beside}</text>'


if __name__ == "__main__":
    FILE.write_text(drawing(), encoding="utf-8")
