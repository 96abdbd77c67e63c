"""Risk and coverage: how often given answers are wrong, for each threshold below which no answer is given.

A ballot's confidence is its winner's score (of answers their share of the vote), and its loss is what its
winner lacks of a full score, 1 - score / 100; of answers, 1 for a wrong one. Under a threshold t the
ballots with at least t are answered: their part of all is the coverage, and their mean loss is the risk.

A threshold with a risk of at most `max_risk` on the ballots it was chosen on has a higher risk on new ones
more often than not. So thresholds are tested. The answered ballots under a fixed threshold are a sample of
all that would be answered: with n of them and a true risk above r, the sum of their losses is at most k
with a probability of at most P(Bin(n, r) <= k), the p-value. Thresholds are tested from a strict one
downwards until a test fails (fixed-sequence testing; Angelopoulos et al. 2021, "Learn then Test"), from
four starting points, each of which may err with a probability of 0.05 / 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rangevote.errors import UsageError, need, shown
from rangevote.evaluation.plot import Curve, Panel
from rangevote.evaluation.tables import Column, Table, TableRow
from rangevote.hypothesis import Array, is_number
from rangevote.similarity.base import number_text

#: The probability with which the bound may fail.
LEVEL = 0.05
#: The coverages at which sequences of tests start.
STARTS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)
#: Coverages at which a table has a row.
STEPS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


class RiskPoint(NamedTuple):
    """A threshold, the share of ballots that reach it, and the risk of their winners."""

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True)
class RiskCurve:
    """The points of all thresholds that occur, from the strictest on, on `ballots` ballots.

    `option` is "min_share" or "min_score". `area` is the mean risk over all coverages: lower is better, and a
    confidence that says nothing has the risk of answering all. `chosen` is the lowest threshold that keeps
    `max_risk` on new ballots with 95 % confidence; None if there is none, or none was asked for.
    """

    option: str
    points: tuple[RiskPoint, ...]
    area: float
    ballots: int
    max_risk: float | None = None
    chosen: RiskPoint | None = None

    def note(self) -> str:
        """The choice in words."""
        if self.max_risk is None:
            return ""
        if self.chosen is None:
            return (
                f"{self.ballots:,} ballots cannot show for any {self.option} that the risk on new ballots is "
                f"at most {number_text(self.max_risk)}; use more ballots, or allow a higher risk."
            )
        threshold, coverage, risk = self.chosen
        return (
            f"{self.option} = {threshold:.4g} answers {coverage:.1%} of {self.ballots:,} ballots with a risk "
            f"of {risk:.4f}; on new ballots it is at most {number_text(self.max_risk)}, with 95 % confidence."
        )


def check_risk(max_risk: object) -> None:
    """Refuse a value that is not a risk."""
    if max_risk is not None and not (is_number(max_risk) and 0 <= max_risk <= 1):
        raise UsageError(f"max_risk must be a share of wrong answers from 0 to 1, got {shown(max_risk)}.")


def risk_curve(
    confidences: Sequence[float] | Array,
    losses: Sequence[float] | Array,
    option: str = "min_share",
    max_risk: float | None = None,
) -> RiskCurve:
    """The curve of ballots with these confidences, whose winners have these losses, from 0 to 1.

    With `max_risk` a threshold is chosen: with a probability of at least 95 % over the ballots here, its risk
    on new ballots is at most `max_risk`. That assumes that new ballots come from where these come from, that
    the setting was not chosen on these ballots, and that a surer winner is not wrong more often.
    """
    lost, number = np.clip(np.asarray(losses, dtype=np.float64), 0, 1), len(losses)
    order = np.argsort(-np.asarray(confidences, dtype=np.float64), kind="stable")
    ordered, sums = np.asarray(confidences)[order], np.cumsum(lost[order])
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of each threshold
    answered = last + 1
    points = tuple(
        RiskPoint(float(ordered[i]), (i + 1) / number, float(sums[i] / (i + 1))) for i in last.tolist()
    )
    area = float(np.repeat(sums[last] / answered, np.diff(answered, prepend=0)).mean())
    chosen = -1
    if max_risk is not None:
        binary = bool(np.isin(lost, (0, 1)).all())
        passed = risk_p_values(sums[last], answered, max_risk, binary) <= LEVEL / len(STARTS)
        failed = np.append(np.flatnonzero(~passed), len(passed))
        for first in np.searchsorted(answered, [math.ceil(start * number) for start in STARTS]):
            if passed[first]:  # and so do all before the next one that failed
                chosen = max(chosen, int(failed[failed > first][0]) - 1)
    return RiskCurve(option, points, area, number, max_risk, points[chosen] if chosen >= 0 else None)


def risk_p_values(sums: Array, sizes: Array, max_risk: float, binary: bool) -> Array:
    """P(losses of `sizes` ballots sum to at most `sums`), if their mean is above `max_risk`: at most this.

    Exact for losses of 0 and 1; for losses between, the bound of Hoeffding and Bentkus.
    """
    if max_risk == 1:
        return np.zeros(len(sums))
    binomial = need("scipy.stats", "evaluate", "max_risk").binom.cdf
    if binary:
        exact: Array = binomial(np.round(sums), sizes, max_risk)
        return exact
    if max_risk == 0:
        return np.ones(len(sums))
    mean = np.minimum(sums / sizes, max_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(mean > 0, mean * np.log(mean / max_risk), 0.0)
    divergence = above + (1 - mean) * np.log((1 - mean) / (1 - max_risk))
    bentkus = math.e * binomial(np.ceil(sums - 1e-9), sizes, max_risk)
    bound: Array = np.minimum(np.exp(-sizes * divergence), bentkus)
    return bound


def risk_table(curve: RiskCurve) -> Table:
    """The curve at each tenth of coverage, and the choice."""
    rows = []
    for step in STEPS:
        point = next((point for point in curve.points if point.coverage >= step - 1e-12), None)
        if point is not None:
            rows.append(TableRow(f"{step:.0%}", point))
    notes = [f"mean risk over all coverages {curve.area:.4f}; answering all has {curve.points[-1].risk:.4f}."]
    notes += [curve.note()] if curve.max_risk is not None else []
    columns = [Column(name, decimals=4) for name in (curve.option, "coverage", "risk")]
    title = f"risk and coverage on {curve.ballots:,} ballots"
    return Table(columns, rows, "answered", title, notes)


def risk_panel(curve: RiskCurve) -> Panel:
    """Risk against coverage, to be drawn."""
    x, y = [p.coverage for p in curve.points], [p.risk for p in curve.points]
    curves = [
        Curve(f"by {curve.option}", x, y),
        Curve("answering all", [x[0], x[-1]], [y[-1], y[-1]], baseline=True),
    ]
    if curve.chosen is not None:
        threshold, coverage, risk = curve.chosen
        curves.append(Curve(f"chosen: {threshold:.4g}", [coverage], [risk]))
    return Panel("risk", curves, x_label="coverage", logarithmic=False)
