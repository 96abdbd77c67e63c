"""The plot of CPU time against k: results.svg and results.png, from the raw results of a run.

    python benchmarks/plot.py .benchmarks/elections.json

Runs in the environment that has matplotlib. Ours are solid lines, peers dashed, hollow points scaled
up from part of the work; every line is named at its end.
"""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from contestants import CONTESTANTS, SIZES
from report import typical

HERE = Path(__file__).resolve().parent
PANELS = {
    "overlap_2, precision_2": (
        ["overlap_2", "precision_2", "plain overlap_2", "plain precision_2", "sacrebleu BLEU"]
    ),
    "BLEU": [
        "bleu_4",
        "smoothed_bleu_4",
        "sacrebleu BLEU",
        "sacrebleu BLEU+1",
        "NLTK BLEU",
        "NLTK BLEU+1",
        "mbrs",
        "mbrs same",
        "mbrs same+1",
    ],
    "chrF": ["chrf", "fastchrf", "sacrebleu chrF"],
}
COLOURS = {
    "overlap_2": "#0b6e4f",
    "precision_2": "#7fe0b8",
    "bleu_4": "#0b4f8a",
    "smoothed_bleu_4": "#8ecbff",
    "chrf": "#6a3d9a",
    "plain": "#b35900",
    "sacrebleu": "#b2182b",
    "NLTK": "#7f6000",
    "mbrs": "#555555",
    "fastchrf": "#b35900",
}
#: Drawn thin, on top of a measure that takes almost the same time.
THIN = {"precision_2": 1.2, "smoothed_bleu_4": 1.2}
#: Names need more contrast than lines.
INK = {"precision_2": "#2a8a68", "smoothed_bleu_4": "#2f7fc0"}
LOWEST, HIGHEST = 1e-3, 1e6  # milliseconds
APART = 0.28  # decades between two labels


def main(raw: Path) -> None:
    """Draw the panels side by side on one scale."""
    data = json.loads(raw.read_text(encoding="utf-8"))
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "rangevote", "font.family": "DejaVu Sans"})
    figure, axes = plt.subplots(1, len(PANELS), figsize=(13, 5.6), sharey=True)
    for axis, (title, names) in zip(axes, PANELS.items(), strict=True):
        _panel(axis, title, names, data)
    axes[0].set_ylabel("CPU time per election")
    figure.suptitle(
        "Time of one election against the number of hypotheses k, one thread "
        "(solid: rangevote; dashed: others; hollow: scaled up)",
        x=0.01,
        ha="left",
        fontsize=10.5,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.98), w_pad=1.0)
    figure.savefig(HERE / "results.svg", metadata={"Date": None})
    figure.savefig(HERE / "results.png", dpi=110)


def _panel(axis: Any, title: str, names: list[str], data: dict[str, Any]) -> None:
    ends = []
    for name in names:
        points = [(k, typical(data, name, k), _scaled(data, name, k)) for k in SIZES]
        drawn = [(k, seconds * 1e3, scaled) for k, seconds, scaled in points if seconds]
        if drawn:
            _line(axis, name, drawn)
            ends.append((drawn[-1][1], drawn[-1][0], name))
    _labels(axis, ends)
    axis.set(xscale="log", yscale="log", xlim=(8, 5e5), ylim=(LOWEST, HIGHEST), title=title)
    axis.set_xticks(SIZES, [f"{k:,}" for k in SIZES])
    axis.set_yticks(
        [10.0**p for p in range(-3, 7)],
        ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1,000 s"],
    )
    axis.minorticks_off()
    axis.set_xlabel("hypotheses k", loc="left")
    axis.hlines([10.0**p for p in range(-3, 7)], 8, 1.3e4, color="#e4e4e4", linewidth=0.6, zorder=1)
    axis.spines[["top", "right", "bottom"]].set_visible(False)


def _scaled(data: dict[str, Any], name: str, k: int) -> bool:
    return any(answer.get("extrapolated") for answer in data["speed"][name].get(str(k), []))


def _line(axis: Any, name: str, drawn: list[tuple[int, float, bool]]) -> None:
    ours, colour = CONTESTANTS[name].ours, _colour(name)
    width = THIN.get(name, 3.2) if ours else 1.2
    style = {"linewidth": width, "linestyle": "-" if ours else "--", "color": colour}
    axis.plot([k for k, _, _ in drawn], [ms for _, ms, _ in drawn], zorder=4 if name in THIN else 2, **style)
    for k, ms, scaled in drawn if name not in THIN else []:
        face = "white" if scaled else colour
        axis.plot(k, ms, "o", markersize=5.0, markerfacecolor=face, color=colour, zorder=3)


def _colour(name: str) -> str:
    return COLOURS.get(name) or COLOURS[name.split()[0]]


def _labels(axis: Any, ends: list[tuple[float, int, str]]) -> None:
    """Name the lines at the right, moved apart where they would touch, tied by a thin line."""
    for (ms, k, name), height in zip(ends, _apart([e[0] for e in ends]), strict=True):
        ours, colour = CONTESTANTS[name].ours, INK.get(name) or _colour(name)
        x = k * 1.9
        axis.plot([k * 1.25, x * 0.95], [ms, 10**height], color=colour, linewidth=0.5, alpha=0.6)
        label = CONTESTANTS[name].label
        weight = "bold" if ours else "normal"
        text = axis.text(x, 10**height, label, color=colour, va="center", fontsize=8, fontweight=weight)
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6})


def _apart(values: list[float]) -> list[float]:
    """Heights (log10) near the values, in their order, at least APART from each other."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    heights = [math.log10(v) for v in values]
    for _ in range(200):  # push neighbours apart, a little at a time
        for low, high in pairwise(order):
            gap = heights[high] - heights[low]
            if gap < APART:
                heights[low] -= (APART - gap) / 2
                heights[high] += (APART - gap) / 2
    return heights


if __name__ == "__main__":
    main(Path(sys.argv[1]))
