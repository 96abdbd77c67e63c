"""Curves against k or the number of voters, as in the paper's figures 2 and 3.

Baselines are dashed, voting is solid, the references are a horizontal black line. Plain data in, a file out;
matplotlib is loaded on use and no global state of it is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rangevote.errors import SetupError, UsageError, need

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


@dataclass(frozen=True)
class Curve:
    """One method: a value `y` at each `x`; a baseline is drawn dashed.

    `spread`, of the same length, is shown as a band of that much above and below (over seeds, say).
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    baseline: bool = False
    spread: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves over one pair of axes; `reference` is the height of the horizontal line."""

    label: str
    curves: Sequence[Curve]
    reference: float | None = None


def check_picture(path: Path) -> None:
    """Refuse what cannot become a picture, before anything long is computed."""
    if path.suffix.lower().removeprefix(".") not in KINDS:
        raise UsageError(f"cannot draw {path}: its name must end in .{', .'.join(KINDS)}.")
    need("matplotlib", "evaluate", "drawing")


def plot_curves(panels: Sequence[Panel], path: str | Path, *, x_label: str = "beam size k") -> None:
    """Draw panels side by side, with one legend, and write them to `path` (.svg, .png or .pdf).

    The axis of x is logarithmic, with a tick at every x that occurs. The same data give the same bytes.
    """
    path = Path(path)
    check_picture(path)
    _check(panels)
    with need("matplotlib", "evaluate", "drawing").rc_context(_STYLE):
        figure = _figure(panels, x_label)
        _write(figure, path)


_STYLE = {
    "svg.hashsalt": "rangevote",  # else every file has ids of its own
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


def _check(panels: Sequence[Panel]) -> None:
    if not panels or not any(panel.curves for panel in panels):
        raise UsageError("there is nothing to draw: give at least one curve.")
    for panel in panels:
        for curve in panel.curves:
            if not len(curve.x) == len(curve.y) > 0 or (curve.spread and len(curve.spread) != len(curve.x)):
                raise UsageError(f"the curve {curve.name!r} must have a y for every x, and at least one.")
            if min(curve.x) <= 0:
                raise UsageError(f"the curve {curve.name!r} has an x of {min(curve.x)}; it must be above 0.")


def _figure(panels: Sequence[Panel], x_label: str) -> Any:
    figure_module = need("matplotlib.figure", "evaluate", "drawing")
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // across)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    beside = 2 * min(across, 2)  # names in a line of the legend
    lines = -(-(len(names) + 1) // beside)
    size = (_WIDTH * across, _HEIGHT * down + _LEGEND_LINE * lines)
    figure = figure_module.Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False).flat)
    looks = {name: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}
    for axes, panel in zip(grid, panels, strict=False):
        _draw(axes, panel, looks, x_label)
    for axes in grid[len(panels) :]:
        axes.remove()
    _legend(figure, beside)
    return figure


def _draw(axes: Any, panel: Panel, looks: dict[str, tuple[str, str]], x_label: str) -> None:
    if panel.reference is not None:
        axes.axhline(panel.reference, color="black", linewidth=1.4, label="references")
    for curve in panel.curves:
        colour, marker = looks[curve.name]
        axes.plot(
            curve.x,
            curve.y,
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.4,
            linestyle="--" if curve.baseline else "-",
            label=curve.name,
        )
        if curve.spread:
            low = [y - s for y, s in zip(curve.y, curve.spread, strict=True)]
            high = [y + s for y, s in zip(curve.y, curve.spread, strict=True)]
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel=x_label, ylabel=panel.label)
    _ticks(axes, sorted({x for curve in panel.curves for x in curve.x}))


def _ticks(axes: Any, places: list[float]) -> None:
    """A logarithmic axis with a tick at each x."""
    if not places:
        return
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xticks([], minor=True)


def _legend(figure: Any, beside: int) -> None:
    """One legend below all panels; a name is told once."""
    told: dict[str, Any] = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        told.update(zip(names, handles, strict=True))
    place = {"loc": "outside lower center", "ncols": min(beside, len(told)), "frameon": False}
    figure.legend(told.values(), told.keys(), **place)


def _write(figure: Any, path: Path) -> None:
    """The picture appears under its name when it is complete."""
    kind = path.suffix.lower().removeprefix(".")
    partial = path.with_name(f"{path.name}.partial")
    # the date would make two files of the same data differ
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    try:
        figure.savefig(partial, format=kind, dpi=150, metadata=metadata)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SetupError(f"cannot write {path}: {(error.strerror or str(error)).lower()}.") from error
