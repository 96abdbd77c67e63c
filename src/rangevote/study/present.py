"""Findings as tables."""

from __future__ import annotations

from rangevote.evaluation.tables import Cell, Column, Table, render, stars
from rangevote.evaluation.tables import TableRow as Row
from rangevote.study.analysis import Agreement, Findings, Person, Split
from rangevote.study.interval import Interval
from rangevote.study.plan import COMBINE


def tables(found: Findings) -> list[Table]:
    """All tables of a report, the result first."""
    listed = [result_table(found), answer_table(found), people_table(found), sides_table(found)]
    listed += [twice_table(found)] if found.plan.repeats else []
    return listed if found.plan.checks == 0 else [*listed, checks_table(found)]


def written(found: Findings, format: str = "text") -> str:
    """The report in a format of `rangevote.evaluation.tables`."""
    return "\n\n".join(render(table, format).rstrip("\n") for table in tables(found)) + "\n"


def result_table(found: Findings) -> Table:
    """Better and worse, with the exact sign test."""
    _, challenger = found.plan.systems
    names = ["better", "worse", "p", "share of wins", "95 % interval"]
    rows = [
        _split_row("all answers but ties", found.answers.all),
        _split_row("much better only", found.answers.much),
    ]
    notes = [*status(found), unit(found), _ties(found), *_method(), agreement_told(found), *excluded(found)]
    title = f"{found.plan.title} Is {challenger} better than {found.plan.systems[0]}?"
    return Table([Column(name) for name in names], rows, challenger, title, notes)


def _split_row(name: str, split: Split) -> Row:
    cells = [Cell(str(split.better)), Cell(str(split.worse)), Cell(p_told(split), stars(split.p))]
    return Row(name, [*cells, Cell(share_told(split.share)), Cell(between(split.interval))])


def p_told(split: Split) -> str:
    """A p-value, or that there are no data for one."""
    if split.better + split.worse == 0:
        return "1 (no data)"
    return f"{split.p:.4f}" if split.p >= 0.0001 else "<0.0001"


def share_told(share: float | None) -> str:
    """A share in percent."""
    return "no data" if share is None else f"{100 * share:.1f} %"


def between(interval: Interval | None) -> str:
    """An interval in percent."""
    return "" if interval is None else f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def status(found: Findings) -> list[str]:
    """Whether the study is complete: the first thing to know."""
    if found.complete:
        return [f"complete: all {found.plan.stop:,} planned judgements are there"]
    return [
        f"NOT COMPLETE: {found.judgements:,} of {found.plan.stop:,} planned judgements are there; p-values "
        f"hold only for the complete study, since stopping when they look good voids them"
    ]


def unit(found: Findings) -> str:
    """What is counted."""
    plan, items = found.plan, found.answers.total
    if plan.per_item == 1:
        return f"unit of analysis: the item, judged by one person each; {items:,} items are judged"
    return (
        f"unit of analysis: the item, as {COMBINE[plan.combine]}; {items:,} items are judged, "
        f"{found.judged_by_all:,} of them by all {plan.per_item} planned people who are not excluded; "
        f"judgements are never pooled"
    )


def _ties(found: Findings) -> str:
    told = f"ties, left out: {found.ties:,}"
    if found.plan.automatic:
        told += f", of which {found.plan.automatic:,} have identical outputs and were not shown"
    return told


def _method() -> list[str]:
    return [
        "p: exact two-tailed sign test; interval: Clopper-Pearson; * p < 0.05, ** p < 0.01, *** p < 0.001",
    ]


def agreement_told(found: Findings) -> str:
    """Krippendorff's alpha in words."""
    agreement = found.agreement
    if not agreement.items:
        return "agreement: no item was judged by two people, so alpha is undefined"
    value = "undefined (all answers are the same)" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    return (
        f"agreement on {agreement.items:,} items: Krippendorff's alpha (ordinal) {value}, same answer "
        f"{share_told(agreement.same)}, same direction {share_told(agreement.same_direction)}"
    )


def excluded(found: Findings) -> list[str]:
    """Who was left out, by the rule of the plan."""
    if found.plan.pass_share is None:
        return ["excluded: nobody, as the plan says"]
    rule = f"fewer than {100 * found.plan.pass_share:.0f} % of the attention checks passed"
    names = [person.name for person in found.people if person.excluded]
    return [f"excluded ({rule}): {', '.join(names) or 'nobody'}"]


def wording(found: Findings) -> list[str]:
    """The five answers, as they are about the systems."""
    baseline, challenger = found.plan.systems
    return [
        f"{baseline} much better",
        f"{baseline} slightly better",
        "no difference",
        f"{challenger} slightly better",
        f"{challenger} much better",
    ]


def answer_table(found: Findings) -> Table:
    """How many items got which answer."""
    rows = [
        Row(name, [Cell(str(count)), Cell(_percent(count, found.answers.total))])
        for name, count in zip(wording(found), found.answers.counts, strict=True)
    ]
    if found.plan.automatic:
        rows.append(Row("identical, not shown", [Cell(str(found.plan.automatic)), Cell("")], "identical"))
    return Table([Column("items"), Column("share")], rows, "answer", "Answers")


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %" if total else ""


def people_table(found: Findings) -> Table:
    """One row an annotator: each is a study of their own."""
    names = ["judged", *wording(found), "better : worse", "p", "share of wins", "changed", "seconds"]
    rows = [Row(_name(person), _person_cells(person)) for person in found.people]
    notes = ["seconds: median time an item was in sight; changed: answers replaced or undone"]
    missing = sum(person.without_image for person in found.people)
    notes += [f"answers given while the picture could not be shown: {missing:,}"] if missing else []
    return Table([Column(name) for name in names], rows, "annotator", "Annotators", notes)


def _name(person: Person) -> str:
    return person.name + (" (excluded)" if person.excluded else "")


def _person_cells(person: Person) -> list[Cell]:
    split = person.answers.all
    return [
        Cell(f"{person.judged} of {person.assigned}{' (finished)' if person.finished else ''}"),
        *(Cell(str(count)) for count in person.answers.counts),
        Cell(f"{split.better} : {split.worse}"),
        Cell(p_told(split), stars(split.p)),
        Cell(share_told(split.share)),
        Cell(str(person.changed)),
        Cell("" if person.seconds is None else f"{person.seconds:.1f}"),
    ]


def sides_table(found: Findings) -> Table:
    """Whether somebody leans to one side."""
    columns = [
        Column(name) for name in ("left better", "right better", "p", "share of left", "95 % interval")
    ]
    rows = [_split_row(person.name, person.sides) for person in found.people]
    return Table(columns, rows, "annotator", "Left and right", [f"sides were set by: {found.plan.sides}"])


def twice_table(found: Findings) -> Table:
    """How far each annotator agrees with themselves."""
    columns = [Column(name) for name in ("items", "same answer", "same direction", "alpha")]
    rows = [Row(_name(person), _agreement_cells(person.itself)) for person in found.people]
    notes = ["the first judgement counts; alpha: Krippendorff's, ordinal, of both"]
    return Table(columns, rows, "annotator", "Judged twice", notes)


def _agreement_cells(agreement: Agreement) -> list[Cell]:
    alpha = "undefined" if agreement.alpha is None else f"{agreement.alpha:.3f}"
    shares = [Cell(share_told(share)) for share in (agreement.same, agreement.same_direction)]
    return [Cell(str(agreement.items)), *shares, Cell(alpha)]


def checks_table(found: Findings) -> Table:
    """Attention checks."""
    rows = [Row(_name(p), [Cell(str(p.passed)), Cell(str(p.checked - p.passed))]) for p in found.people]
    return Table([Column("passed"), Column("failed")], rows, "annotator", "Attention checks")
