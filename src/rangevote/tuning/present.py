"""A tuning as tables: the surface, and the choice beside what it is measured against."""

from __future__ import annotations

from rangevote.evaluation import METRICS
from rangevote.evaluation.present import stars
from rangevote.evaluation.table import Cell, Column, Row, Table
from rangevote.similarity.base import short
from rangevote.tuning.tune import Tried, Tuning

CHOSEN, ALIKE = "<", "~"


def surface_table(tuning: Tuning) -> Table:
    """A row for each measure and word unit, a column for each temperature."""
    temperatures = sorted({one.setting.temperature for one in tuning.tried})
    rows: dict[tuple[str, str], dict[float, Tried]] = {}
    for one in tuning.tried:
        key = (one.setting.tokenize, one.setting.similarity)
        rows.setdefault(key, {})[one.setting.temperature] = one
    several = len({words for words, _ in rows}) > 1
    return Table(
        [Column(f"T = {short(temperature)}") for temperature in temperatures],
        [
            Row(
                f"{measure}, {words}" if several else measure,
                [_cell(tuning, found.get(temperature)) for temperature in temperatures],
                group=f"{words} {measure.partition('@')[0]}",
            )
            for (words, measure), found in rows.items()
        ],
        "measure",
        f"{METRICS[tuning.metric].label} of {len(tuning.tried)} settings on {tuning.ballots:,} ballots",
        [
            f"{CHOSEN} chosen, {ALIKE} as good as far as these ballots tell ({len(tuning.alike) - 1} "
            f"settings); in brackets 95 % intervals of a paired bootstrap, {tuning.resamples:,} resamples.",
            f"signature: {tuning.signature}",
        ],
    )


def _cell(tuning: Tuning, one: Tried | None) -> Cell:
    if one is None:
        return Cell()
    mark = CHOSEN if one is tuning.chosen else ALIKE if one.within_noise else " "
    return Cell(f"{one.score:.2f} [{one.interval.low:.1f}, {one.interval.high:.1f}]{mark}")


def choice_table(tuning: Tuning) -> Table:
    """The choice, and how far it is above the default and the rules in which nobody votes."""
    columns = [Column(METRICS[tuning.metric].label), *map(Column, ("95 % interval", "gain", "of gain"))]
    columns.append(Column("p", decimals=4))
    rows = [Row(f"chosen: {tuning.chosen.setting.name}", [*_scored(tuning.chosen), *[Cell()] * 3])]
    names = [f"default: {tuning.default.setting.name}", *(one.setting.name for one in tuning.baselines)]
    for name, one in zip(names, (tuning.default, *tuning.baselines), strict=True):
        behind = one.behind
        between = f"[{behind.interval.low:+.2f}, {behind.interval.high:+.2f}]"
        gain = [Cell(f"{behind.value:+.2f}", stars(behind.p)), Cell(between), Cell(behind.p)]
        rows.append(Row(name, [*_scored(one), *gain], group="against"))
    notes = [
        "gain: of the choice over this row, on the ballots it was made on; * p < 0.05, ** 0.01, *** 0.001."
    ]
    if tuning.unseen is not None:
        notes.append(
            f"On ballots left out of the choice it gains {tuning.unseen.gain:+.2f} over the default, on "
            f"average over the resamples; it is a gain in {100 * tuning.unseen.share:.0f} % of them."
        )
    return Table(columns, rows, "election", notes=notes)


def _scored(one: Tried) -> list[Cell]:
    return [Cell(one.score), Cell(f"[{one.interval.low:.2f}, {one.interval.high:.2f}]")]
