"""Comparisons as tables, and as data for JSON."""

from __future__ import annotations

from typing import Any

from rangevote.evaluation.bootstrap import CONFIDENCE, Interval
from rangevote.evaluation.comparison import Against, Comparison, Score, System
from rangevote.evaluation.selection import Selection
from rangevote.evaluation.table import Cell, Column, Row, Table

#: Below which p-value a difference gets how many stars.
STARS = {0.001: "***", 0.01: "**", 0.05: "*"}
_MEANING = "* p < 0.05, ** p < 0.01, *** p < 0.001"
_P_VALUES = {"two_tailed": "two-tailed", "koehn": "one-tailed", "centred": "centred, as in sacrebleu"}


def stars(p: float) -> str:
    """One star below 0.05, two below 0.01, three below 0.001.

    >>> stars(0.0165)
    '*'
    """
    return next((marks for limit, marks in STARS.items() if p < limit), "")


def evaluation_table(found: Comparison) -> Table:
    """One system: a row for each metric, the references beside it."""
    system = found.first
    percent = f"{100 * CONFIDENCE:.0f} % interval"
    columns = [Column("outputs")]
    columns += [Column(percent)] if found.resamples else []
    columns += [Column("references")] if found.references else []
    rows = []
    for name, metric in found.metrics.items():
        score, decimals = system.scores[name], metric.decimals
        cells = [f"{score.value:.{decimals}f}"]
        cells += [_between(score.interval, decimals)] if found.resamples else []
        if found.references:
            cells.append(f"{found.references[name]:.{decimals}f}" if name in found.references else "")
        rows.append(Row(metric.label, [Cell(text) for text in cells]))
    return Table(columns, rows, notes=[_told(found), *_signatures(found)])


def score_table(found: Comparison) -> Table:
    """A row for each system, a column for each metric; stars tell what differs from the first system."""
    columns = [
        Column(metric.label, "", metric.decimals, metric.best, found.references.get(name))
        for name, metric in found.metrics.items()
    ]
    rows = [_score_row(found, system) for system in found.systems]
    if found.references:
        cells = [Cell(found.references.get(name)) for name in found.metrics]
        rows.append(Row("references", cells, "references", competes=False))
    notes = [_told(found)]
    if found.resamples and len(found.systems) > 1:
        notes.append(f"{_MEANING} against {found.first.name}: {_test(found)}")
    return Table(columns, rows, "system", notes=[*notes, *_signatures(found)])


def _score_row(found: Comparison, system: System) -> Row:
    cells = []
    for name in found.metrics:
        against = system.against.get(name)
        cells.append(Cell(system.scores[name].value, stars(against.difference.p) if against else ""))
    return Row(system.name, cells)


def difference_table(found: Comparison) -> Table:
    """A row for each system and metric: interval of the score, difference from the first, both tests."""
    names = ["score", "95 % interval", "difference", "95 % interval", "p", "above : below", "sign test p"]
    rows = [
        _difference_row(found, system, name)
        for system in found.systems
        for name in found.metrics
        if system.scores[name].interval is not None
    ]
    notes = [
        f"difference, p: from {found.first.name}, {_test(found)}",
        "above : below: sentences that score higher and lower, with the exact two-tailed sign test; "
        "equal ones are left out",
    ]
    return Table([Column(name) for name in names], rows, "system, metric", notes=notes)


def _difference_row(found: Comparison, system: System, name: str) -> Row:
    metric, score, against = found.metrics[name], system.scores[name], system.against.get(name)
    digits = metric.decimals
    texts = [f"{score.value:.{digits}f}", _between(score.interval, digits), *[""] * 5]
    marks = ""
    if against is not None:
        apart = against.difference
        texts[2:5] = [f"{apart.value:+.{digits}f}", _between(apart.interval, digits), _p(apart.p)]
        texts[5:] = [f"{against.above} : {against.below}", _p(against.sign_p)]
        marks = stars(apart.p)
    cells = [Cell(text, marks if i == 4 else "") for i, text in enumerate(texts)]
    return Row(f"{system.name}, {metric.label}", cells, system.name)


def selection_table(found: dict[str, Selection], larger: str) -> Table:
    """What became of each system's outputs in the beam from which `larger` was chosen."""
    columns = [Column("absent from the beam (%)", decimals=1), Column("chosen again (%)", decimals=1)]
    rows = [Row(name, [Cell(s.absent_share), Cell(s.again_share)]) for name, s in found.items()]
    return Table(columns, rows, "system", notes=[f"the beam is that of {larger}, which chose again or not"])


def as_data(found: Comparison) -> dict[str, Any]:
    """Everything that was found, as plain data; numbers are not rounded."""
    fewest, most = found.references_per_item
    return {
        "items": found.items,
        "references_per_item": fewest if fewest == most else [fewest, most],
        "references": found.references,
        "bootstrap": {"resamples": found.resamples, "seed": found.seed, "p_value": found.p_value},
        "signatures": found.signatures,
        "systems": [
            {
                "name": system.name,
                "scores": {name: _score_data(score) for name, score in system.scores.items()},
                "against_first": {name: _against_data(a) for name, a in system.against.items()},
            }
            for system in found.systems
        ],
    }


def selection_data(found: dict[str, Selection], larger: str) -> dict[str, Any]:
    """The same of selections."""
    systems = [
        {"name": name, "items": s.items, "absent": s.absent_share, "chosen_again": s.again_share}
        for name, s in found.items()
    ]
    return {"larger": larger, "systems": systems}


def _score_data(score: Score) -> dict[str, Any]:
    return {"value": score.value, "interval": list(score.interval) if score.interval else None}


def _against_data(against: Against) -> dict[str, Any]:
    apart = against.difference
    return {
        "difference": apart.value,
        "interval": list(apart.interval),
        "p": apart.p,
        "above": against.above,
        "below": against.below,
        "sign_test_p": against.sign_p,
    }


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _between(interval: Interval | None, digits: int) -> str:
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]" if interval is not None else ""


def _told(found: Comparison) -> str:
    fewest, most = found.references_per_item
    number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    noun = "reference" if most == 1 else "references"
    return f"{found.items:,} items, {number} {noun} each" if most else f"{found.items:,} items, no references"


def _test(found: Comparison) -> str:
    kind = _P_VALUES.get(found.p_value, found.p_value)
    return f"paired bootstrap ({kind}), {found.resamples:,} resamples, seed {found.seed}"


def _signatures(found: Comparison) -> list[str]:
    """One line for each signature, with the metrics that share it."""
    lines: dict[str, list[str]] = {}
    for name, signature in found.signatures.items():
        lines.setdefault(signature, []).append(found.metrics[name].label)
    return [f"{', '.join(labels)}: {signature}" for signature, labels in lines.items()]
