"""Recorded numbers as figures: against k (figure 2 of the paper, and BLEU), and against voters (figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.findings import Findings, mean, spread
from experiments.methods import BASELINES, in_order, label_of
from rangevote.evaluation.metrics import METRICS
from rangevote.evaluation.plot import Curve, Panel, plot_curves

KINDS = ("svg", "png")
#: What is drawn of each experiment besides the deciding metric.
PANELS = ("length", "distinct_bigrams")
#: Few enough curves to tell apart; the tables have them all.
DRAWN = (
    *("beam", "beam_not_empty", "length_normalised", "diverse_decoding", "diverse_beam", "no_copy"),
    *("overlap_1", "overlap_2", "precision_2", "states", "smoothed_bleu_4", "blend", "tuned"),
)


def draw(found: Findings, folder: Path) -> list[str]:
    """Write the figures of an experiment, as SVG and PNG; returns their names without ending."""
    name = f"{found.experiment}-{found.data['scale']}"
    pictures = {f"{name}-beam-size": (against_k(found), "beam size k")}
    voters = against_voters(found)
    if voters:
        pictures[f"{name}-voters"] = (voters, "number of voters")
    folder.mkdir(parents=True, exist_ok=True)
    for picture, (panels, x_label) in pictures.items():
        for kind in KINDS:
            plot_curves(panels, folder / f"{picture}.{kind}", x_label=x_label)
    return list(pictures)


def against_k(found: Findings) -> list[Panel]:
    """A panel for each metric, a curve for each method."""
    known = found.settings["report"]["metrics"]
    metrics = [found.metric, *(m for m in PANELS if m in known)]
    methods = [
        m for m in in_order(found.methods(found.main), "baselines", "voting", "mbr", "beyond") if m in DRAWN
    ]
    return [
        Panel(
            METRICS[metric].label,
            [_curve(found, metric, method) for method in methods],
            found.references(metric),
        )
        for metric in metrics
    ]


def _curve(found: Findings, metric: str, method: str) -> Curve:
    ks = [k for k in found.ks(found.main) if found.values(metric, (method, k))]
    values = [found.values(metric, (method, k)) for k in ks]
    return _drawn(label_of(method, found.experiment), ks, values, baseline=method in BASELINES)


def _drawn(name: str, x: Sequence[int], values: Sequence[Sequence[float]], *, baseline: bool) -> Curve:
    apart = [spread(several) for several in values]
    band = None if None in apart else [one for one in apart if one is not None]
    return Curve(name, x, [mean(several) or 0.0 for several in values], baseline, band)


def against_voters(found: Findings) -> list[Panel]:
    """A panel for each measure, a curve for each kind of voters; nothing where no seed has it."""
    known = [n["voters"] for s in found.seeds(found.main) if "voters" in (n := found.of(found.main, s))]
    if not known:
        return []
    curves = known[0]["curves"]
    panels = []
    for measure in next(iter(curves.values())):
        lines = []
        for kind in curves:
            numbers = sorted(map(int, curves[kind][measure]))
            values = [[one["curves"][kind][measure][str(n)][found.metric] for one in known] for n in numbers]
            lines.append(_drawn(f"voters by {kind}", numbers, values, baseline=False))
        panels.append(Panel(f"{METRICS[found.metric].label}, {measure}", lines))
    return panels
