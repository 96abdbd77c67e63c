"""Curves against k or the number of voters, as in the paper's figures 2 and 3; and matrices of members.

Baselines are dashed, voting is solid, the references are a horizontal black line. matplotlib is loaded on use
and no global state of it is touched.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rangevote.errors import UsageError, need
from rangevote.evaluation.evaluate import Comparison
from rangevote.text import write_atomically

#: Kinds of picture, by the ending of the file's name.
KINDS = ("svg", "png", "pdf")
#: The first six are of Okabe and Ito, which the colour-blind can tell apart; black is the references'.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#7f3c8d", "#8c6d31", "#882255", "#44aa99", "#999933", "#666666"),
)
MARKERS = "osD^vPX<>"  # of another number than the colours, so that few curves look alike
_WIDTH, _HEIGHT, _ACROSS = 4.2, 3.2, 3  # inches a panel, and panels a row
_LEGEND_LINE = 0.2  # inches
#: Characters of a name beside a matrix.
LONGEST_NAME = 32


@dataclass(frozen=True)
class Curve:
    """One method: a value `y` at each `x`; a baseline is drawn dashed.

    `intervals`, of the same length, are shown as a band.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    baseline: bool = False
    intervals: Sequence[tuple[float, float]] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves over one pair of axes; `reference` is the height of the horizontal line.

    `x_label` is that of the axis of x, if it is another one than that of the picture. The axis is
    `logarithmic`, with a tick at every x that occurs, or not.
    """

    label: str
    curves: Sequence[Curve]
    reference: float | None = None
    x_label: str | None = None
    logarithmic: bool = True


def check_picture(path: str | Path) -> str:
    """The kind of a picture; what cannot become one is refused before anything long is computed."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise UsageError(f"cannot draw {path}: its name must end in .{', .'.join(KINDS)}.")
    need("matplotlib", "evaluate", "drawing")
    return kind


def plot_curves(panels: Sequence[Panel], path: str | Path, *, x_label: str = "beam size k") -> None:
    """Draw panels side by side, with one legend, and write them to `path` (.svg, .png or .pdf).

    The same data give the same bytes.
    """
    kind = check_picture(path)
    with write_atomically(path) as file:
        file.write(_picture(lambda: _figure(panels, x_label), kind))


def _picture(draw: Callable[[], Any], kind: str) -> bytes:
    """A figure as a file of this kind; the same data give the same bytes."""
    # the date would make two files of the same data differ
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    picture = io.BytesIO()
    with need("matplotlib", "evaluate", "drawing").rc_context(_STYLE):
        draw().savefig(picture, format=kind, dpi=150, metadata=metadata)
    return picture.getvalue()


@dataclass(frozen=True)
class Dots:
    """A share for each row of a matrix, with an interval; None where it is not known."""

    name: str
    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None]


def matrix_picture(
    names: Sequence[str],
    matrix: Sequence[Sequence[float | None]],
    kind: str,
    *,
    title: str,
    percent: bool,
    dots: Sequence[Dots],
) -> bytes:
    """A square matrix of shares or similarities with a number in each cell and the names of its rows, and
    `dots` with their intervals beside it. Columns are the rows' numbers, from 1."""
    size, largest, decimals = len(names), (100.0 if percent else 1.0), (0 if percent else 2)
    cell = 0.36 if size > 8 else 0.5  # inches

    def draw() -> Any:
        module = need("matplotlib.figure", "evaluate", "drawing")
        wide = 2.4 + cell * size
        figure = module.Figure(figsize=(wide + 3.2 * bool(dots), 1.4 + cell * size), layout="constrained")
        ratios = [cell * size, 2.6][: 1 + bool(dots)]
        axes, *beside = figure.subplots(
            1, len(ratios), squeeze=False, sharey=True, gridspec_kw={"width_ratios": ratios}
        )[0]
        values = largest * np.array(matrix, dtype=np.float64)  # NaN where nothing is known
        low = min(0.0, np.nanmin(values, initial=0.0))
        axes.imshow(values, cmap="cividis", vmin=low, vmax=largest, aspect="auto")
        axes.grid(visible=False)
        figure.suptitle("\n".join(textwrap.wrap(title, int(13 * wide))), fontsize=9, x=0.01, ha="left")
        axes.set_xticks(range(size), [str(i + 1) for i in range(size)])
        axes.set_yticks(range(size), [f"{i + 1} {_shortened(name)}" for i, name in enumerate(names)])
        for (i, j), value in np.ndenumerate(values):
            if not math.isnan(value):
                colour = "black" if value - low > (largest - low) / 2 else "white"
                axes.text(j, i, f"{value:.{decimals}f}", color=colour, fontsize=7, ha="center", va="center")
        for axis in beside:
            _draw_dots(axis, dots)
        return figure

    return _picture(draw, kind)


def _draw_dots(axes: Any, dots: Sequence[Dots]) -> None:
    for place, one in enumerate(dots):
        x = 100 * np.array(one.values, dtype=np.float64)  # NaN, which is not drawn, where nothing is known
        ends = [interval or (value, value) for value, interval in zip(one.values, one.intervals, strict=True)]
        low, high = 100 * np.array(ends, dtype=np.float64).T
        y = np.arange(len(x)) + 0.3 * (place - (len(dots) - 1) / 2)
        style = {"fmt": MARKERS[place], "color": COLOURS[place], "markersize": 4, "label": one.name}
        axes.errorbar(x, y, xerr=np.maximum([x - low, high - x], 0.0), elinewidth=1, **style)
    axes.set_xlabel("% of ballots, with 95 % intervals")
    axes.tick_params(axis="y", left=False, labelleft=False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8)


def _shortened(name: str) -> str:
    # a dollar would begin mathematics
    return (name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…").replace("$", r"\$")


_STYLE = {
    "svg.hashsalt": "rangevote",  # otherwise every file has ids of its own
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


def _figure(panels: Sequence[Panel], x_label: str) -> Any:
    """All panels, and below them one legend with each name once."""
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // across)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    beside = 2 * min(across, 2)  # names in a line of the legend
    lines = -(-(len(names) + 1) // beside)
    size = (_WIDTH * across, _HEIGHT * down + _LEGEND_LINE * lines)
    module = need("matplotlib.figure", "evaluate", "drawing")
    figure = module.Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    looks = {name: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}
    entries: dict[str, Any] = {}
    for axes, panel in zip(grid, panels, strict=False):
        _draw(axes, panel, looks)
        axes.set(xlabel=panel.x_label or x_label, ylabel=panel.label)
        positions = sorted({x for curve in panel.curves for x in curve.x})
        if panel.logarithmic and positions:  # with a tick at each x
            axes.set_xscale("log")
            axes.set_xticks(positions, [f"{x:g}" for x in positions])
            axes.set_xticks([], minor=True)
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    for axes in grid[len(panels) :]:
        axes.remove()
    layout = {"loc": "outside lower center", "ncols": min(beside, len(entries)), "frameon": False}
    figure.legend(entries.values(), entries.keys(), **layout)
    return figure


def _draw(axes: Any, panel: Panel, looks: dict[str, tuple[str, str]]) -> None:
    if panel.reference is not None:
        axes.axhline(panel.reference, color="black", linewidth=1.4, label="references")
    for curve in panel.curves:
        colour, marker = looks[curve.name]
        style = {"color": colour, "marker": marker, "linestyle": "--" if curve.baseline else "-"}
        axes.plot(curve.x, curve.y, markersize=4, linewidth=1.4, label=curve.name, **style)
        if curve.intervals:
            axes.fill_between(
                curve.x, *zip(*curve.intervals, strict=True), color=colour, alpha=0.15, linewidth=0
            )


#: What the horizontal axis counts -> its label.
AXES = {"k": "beam size k", "voters": "number of voters"}


def panels_of(
    comparison: Comparison, points: Mapping[str, tuple[str, float]], baselines: Collection[str] = ()
) -> list[Panel]:
    """A panel for each metric of a comparison, with a curve for each method; `points` has the method of each
    system and its x, where it has one."""
    panels = []
    for name, metric in comparison.metrics.items():
        values: dict[str, list[tuple[float, float]]] = {}
        for system in comparison.systems:
            if system.name in points:  # a member of a panel has no K
                method, x = points[system.name]
                values.setdefault(method, []).append((x, system.scores[name].value))
        curves = []
        for method, pairs in values.items():
            places, heights = zip(*sorted(pairs), strict=True)
            curves.append(Curve(method, places, heights, method in baselines))
        panels.append(Panel(metric.label, curves, comparison.references.get(name)))
    return panels
