"""Curves against k or the number of voters, as in the paper's figures 2 and 3.

Baselines are dashed, voting is solid, the references are a horizontal black line. matplotlib is loaded on use
and no global state of it is touched.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rangevote.election.rules import WITHOUT_VOTERS
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


def plot_curves(
    panels: Sequence[Panel], path: str | Path, *, x_label: str = "beam size k", logarithmic: bool = True
) -> None:
    """Draw panels side by side, with one legend, and write them to `path` (.svg, .png or .pdf).

    The axis of x is logarithmic, with a tick at every x that occurs, unless it is not to be. The same data
    give the same bytes.
    """
    path = Path(path)
    check_picture(path)
    _check(panels)
    with need("matplotlib", "evaluate", "drawing").rc_context(_STYLE):
        figure = _figure(panels, x_label, logarithmic)
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


def _figure(panels: Sequence[Panel], x_label: str, logarithmic: bool) -> Any:
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
        if logarithmic:
            _ticks(axes, sorted({x for curve in panel.curves for x in curve.x}))
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


def _ticks(axes: Any, positions: list[float]) -> None:
    """A logarithmic axis with a tick at each x."""
    if not positions:
        return
    axes.set_xscale("log")
    axes.set_xticks(positions, [f"{x:g}" for x in positions])
    axes.set_xticks([], minor=True)


def _legend(figure: Any, beside: int) -> None:
    """One legend below all panels, each name in it once."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        entries.update(zip(names, handles, strict=True))
    layout = {"loc": "outside lower center", "ncols": min(beside, len(entries)), "frameon": False}
    figure.legend(entries.values(), entries.keys(), **layout)


def _write(figure: Any, path: Path) -> None:
    kind = path.suffix.lower().removeprefix(".")
    # the date would make two files of the same data differ
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=150, metadata=metadata)
    with write_atomically(path) as file:
        file.write(picture.getvalue())


#: What the horizontal axis counts -> its field in a signature, and its label.
AXES = {"k": ("cand", "beam size k"), "voters": ("vot", "number of voters")}


@dataclass(frozen=True)
class CurvePoint:
    """Where a system stands: the method's name, its x, and whether it is a baseline."""

    method: str
    x: float
    baseline: bool = False


def point_of(signatures: Iterable[str], axis: str = "k") -> CurvePoint | None:
    """The point that the signatures of a system's elections name, None where they name none.

    Elections of one system may have had fewer candidates than k; the most of them is k.

    >>> point_of(["rv:0.1|sim:overlap_2|on:words|w:probability|T:1|cand:10|vot:10|tie:score,logprob,first"])
    CurvePoint(method='overlap_2', x=10.0, baseline=False)
    """
    methods: set[tuple[str, bool]] = set()
    sizes: list[float] = []
    for signature in signatures:
        parts = dict(part.partition(":")[::2] for part in signature.split("|"))
        size = parts.get(AXES[axis][0], "")
        if not size.isdecimal() or "sim" not in parts:
            return None
        sizes.append(float(size))
        methods.add(_method(parts))
    if len(methods) != 1:
        return None
    name, baseline = methods.pop()
    return CurvePoint(name, max(sizes), baseline)


def _method(parts: Mapping[str, str]) -> tuple[str, bool]:
    rule = parts.get("rule", "range")
    if rule in WITHOUT_VOTERS:  # the paper's baselines
        return rule, True
    temperature = parts.get("T", "1")
    name = parts["sim"] if temperature == "1" else f"{parts['sim']}, T = {temperature}"
    return (name if rule == "range" else f"{name}, {rule}"), False


def panels_of(comparison: Comparison, points: Mapping[str, CurvePoint]) -> list[Panel]:
    """A panel for each metric of a comparison, with a curve for each method."""
    baselines = {point.method for point in points.values() if point.baseline}
    panels = []
    for name, metric in comparison.metrics.items():
        values: dict[str, list[tuple[float, float]]] = {}
        for system in comparison.systems:
            point = points[system.name]
            values.setdefault(point.method, []).append((point.x, system.scores[name].value))
        curves = []
        for method, listed in values.items():
            x, y = zip(*sorted(listed), strict=True)
            curves.append(Curve(method, list(x), list(y), method in baselines))
        panels.append(Panel(metric.label, curves, comparison.references.get(name)))
    return panels
