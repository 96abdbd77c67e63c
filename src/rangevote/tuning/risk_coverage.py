"""How often to answer: the risk of the answers that are given, for every threshold below which none is.

A ballot's confidence is its winner's score (of answers their share of the vote). Under a threshold t the
ballots with at least t are answered: their part of all is the coverage, and the risk is what their winners
lack of a full score, 1 - score / 100; of answers, the share that is wrong.

A threshold that was chosen on some ballots looks better there than elsewhere. So it is chosen anew in every
resample, on the ballots that were drawn, and measured on those that were not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rangevote.errors import UsageError, shown
from rangevote.evaluation.metrics import Metric
from rangevote.evaluation.significance import draws
from rangevote.evaluation.tables import Cell, Column, Table, TableRow
from rangevote.hypothesis import Array
from rangevote.similarity.base import short

#: Coverages at which a table has a row.
STEPS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


class RiskPoint(NamedTuple):
    """A threshold, the share of ballots that reach it, and the risk of their winners."""

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True)
class RiskCurve:
    """The points of all thresholds that occur, from the strictest on.

    `option` is "min_share" or "min_score". `chosen` answers most of those with a risk of at most `max_risk`;
    None where there is none, or none was asked for. `unseen` is what such a choice has on ballots that it was
    not made on, on average over resamples. `area` is the mean risk over all coverages: lower is better, and a
    confidence that says nothing has the risk of answering all.
    """

    option: str
    points: tuple[RiskPoint, ...]
    area: float
    max_risk: float | None = None
    chosen: RiskPoint | None = None
    unseen: RiskPoint | None = None

    def as_data(self) -> dict[str, Any]:
        return {
            "option": self.option,
            "points": [point._asdict() for point in self.points],
            "area": self.area,
            "max_risk": self.max_risk,
            "chosen": None if self.chosen is None else self.chosen._asdict(),
            "unseen": None if self.unseen is None else self.unseen._asdict(),
        }


def check_risk(max_risk: object) -> None:
    """Refuse what cannot be a risk."""
    number = isinstance(max_risk, (int, float)) and not isinstance(max_risk, bool)
    if max_risk is not None and (not number or not 0 <= max_risk <= 1):  # type: ignore[operator]
        raise UsageError(f"max_risk must be a share of wrong answers from 0 to 1, got {shown(max_risk)}.")


def risk_curve(
    confidences: Sequence[float],
    rows: Array,
    metric: Metric,
    option: str = "min_share",
    max_risk: float | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> RiskCurve:
    """The curve of ballots with these confidences, whose winners have these statistics: rows (ballots, s)."""
    check_risk(max_risk)
    confident = np.asarray(confidences, dtype=np.float64)
    points = _points(confident, rows, metric, np.ones(len(rows)))
    area = float(np.mean(_risks_by_ballot(points, len(rows))))
    if max_risk is None:
        return RiskCurve(option, points, area)
    chosen = _choose(points, max_risk)
    unseen = _unseen(confident, rows, metric, max_risk, resamples, seed)
    return RiskCurve(option, points, area, max_risk, chosen, unseen)


def _points(confident: Array, rows: Array, metric: Metric, counts: Array) -> tuple[RiskPoint, ...]:
    """The points of ballots that occur so many times each."""
    order = np.argsort(-confident, kind="stable")
    order = order[counts[order] > 0]
    if not len(order):
        return ()
    ordered = confident[order]
    sums = np.cumsum(counts[order, None] * rows[order], axis=0)  # (ballots, s)
    covered = np.cumsum(counts[order])
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of each threshold
    risks = 1 - metric.score(sums[last]) / 100
    return tuple(
        RiskPoint(float(ordered[i]), float(covered[i] / covered[-1]), max(0.0, float(risk)))
        for i, risk in zip(last.tolist(), risks.tolist(), strict=True)
    )


def _risks_by_ballot(points: Sequence[RiskPoint], ballots: int) -> list[float]:
    """The risk at each number of answered ballots; between two thresholds that of the next one."""
    risks: list[float] = []
    for point in points:
        risks += [point.risk] * (round(point.coverage * ballots) - len(risks))
    return risks


def _choose(points: Sequence[RiskPoint], max_risk: float) -> RiskPoint | None:
    good = [point for point in points if point.risk <= max_risk + 1e-12]
    return max(good, key=lambda point: point.coverage, default=None)


def _unseen(
    confident: Array, rows: Array, metric: Metric, max_risk: float, resamples: int, seed: int
) -> RiskPoint | None:
    """Mean threshold, coverage and risk on the ballots left out, of choices on the ballots drawn."""
    found = []
    for block in draws(len(rows), min(resamples, 200), seed):
        for counts in block:
            chosen = _choose(_points(confident, rows, metric, counts), max_risk)
            left = counts == 0
            if chosen is None or not left.any():
                continue
            answered = left & (confident >= chosen.threshold)
            risk = 1 - float(metric.score(rows[answered].sum(axis=0))) / 100 if answered.any() else np.nan
            found.append((chosen.threshold, answered.sum() / left.sum(), risk))
    if not found:
        return None
    columns = np.array(found)
    risks = columns[np.isfinite(columns[:, 2]), 2]
    if not len(risks):
        return None
    return RiskPoint(float(columns[:, 0].mean()), float(columns[:, 1].mean()), float(risks.mean()))


def risk_table(curve: RiskCurve) -> Table:
    """The curve at each tenth of coverage, and the choice."""
    rows = []
    for step in STEPS:
        point = next((one for one in curve.points if one.coverage >= step - 1e-12), None)
        if point is not None:
            rows.append(TableRow(f"{step:.0%}", list(map(Cell, point))))
    notes = [f"mean risk over all coverages {curve.area:.4f}; answering all has {curve.points[-1].risk:.4f}."]
    if curve.max_risk is not None:
        notes.append(_choice_note(curve, curve.max_risk))
    columns = [Column(curve.option, decimals=4), Column("coverage", decimals=4), Column("risk", decimals=4)]
    return Table(columns, rows, "answered", "risk and coverage", notes)


def _choice_note(curve: RiskCurve, max_risk: float) -> str:
    if curve.chosen is None:
        return f"no threshold has a risk of at most {short(max_risk)} on these ballots: none is chosen."
    threshold, coverage, risk = curve.chosen
    note = (
        f"chosen for a risk of at most {short(max_risk)}: {curve.option} = {threshold:.4g}, which answers "
        f"{coverage:.1%} with a risk of {risk:.4f}."
    )
    if curve.unseen is not None:
        note += (
            f" On ballots it was not chosen on it answers {curve.unseen.coverage:.1%} with a risk of "
            f"{curve.unseen.risk:.4f}, on average over resamples."
        )
    return note


def plot_risk(curve: RiskCurve, path: str | Path) -> None:
    """Draw risk against coverage into `path` (.svg, .png or .pdf)."""
    from rangevote.evaluation.plot import Curve, Panel, plot_curves

    name = f"by {curve.option}"
    x, y = [p.coverage for p in curve.points], [p.risk for p in curve.points]
    curves = [Curve(name, x, y), Curve("answering all", [x[0], x[-1]], [y[-1], y[-1]], baseline=True)]
    if curve.chosen is not None:
        chosen = f"chosen: {curve.chosen.threshold:.4g}"
        curves.append(Curve(chosen, [curve.chosen.coverage], [curve.chosen.risk]))
    plot_curves([Panel("risk", curves)], path, x_label="coverage", logarithmic=False)
