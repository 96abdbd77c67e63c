"""A report of a study: a verdict in words, then tables, in every format of `rangevote.evaluation`."""

from __future__ import annotations

from rangevote.evaluation.tables import (
    Cell,
    Column,
    Table,
    TableRow,
    escape_latex,
    escape_markdown,
    render,
    stars,
)
from rangevote.study.analysis import Findings, Person, Split
from rangevote.study.plan import COMBINE

#: What is less likely than this is hardly chance.
SIGNIFICANT = 0.05
#: From which alpha on agreement is called so (Krippendorff 2004, "Content Analysis": conclusions need 0.8,
#: tentative ones 0.667).
AGREEMENT = {
    0.8: "good",
    0.667: "fair, enough for tentative conclusions",
    0.2: "weak",
    -1.0: "hardly better than chance",
}
#: Items in the table of the most disputed, and characters of their texts in it.
_DISPUTED, _CLIP = 10, 40


def verdict(findings: Findings) -> str:
    """The result in a sentence or two: who is preferred, how often, and whether that could be chance."""
    split, ties = findings.answers.all, findings.ties
    baseline, challenger = findings.plan.systems
    decided = split.better + split.worse
    if not decided:
        result = "no item is decided"
    elif split.better == split.worse:
        result = f"neither is preferred: each wins {split.better:,} of {decided:,} decided items"
    else:
        winner = challenger if split.better > split.worse else baseline
        items = "item" if decided == 1 else "items"
        result = f"{winner} is preferred in {max(split.better, split.worse):,} of {decided:,} decided {items}"
    if not findings.complete:
        done = f"{findings.judgements:,} of {findings.plan.stop:,} judgements are there"
        return f"Not complete: {done}. So far {result}; p-values mean nothing before the end."
    if decided:
        firm, loose = "that is hardly chance", f"with {decided:,} that could be chance"
        p = f"= {split.p:.2g}" if split.p >= 0.0001 else "< 0.0001"
        result += f"; {firm if split.p < SIGNIFICANT else loose}, p {p}"
    tied = f" {ties:,} {'item is a tie' if ties == 1 else 'items are ties'}." if ties else ""
    return f"Result: {result}.{tied}"


def agreement_words(findings: Findings) -> str:
    """How far the annotators agree, in words and numbers."""
    agreement = findings.agreement
    if not agreement.items:
        return "Agreement: no item was judged by two people, so alpha is undefined."
    if agreement.alpha is None:
        value, words = "undefined (all answers are the same)", "complete"
    else:
        value = f"{agreement.alpha:.3f}"
        words = next(words for least, words in AGREEMENT.items() if agreement.alpha >= least)
    return (
        f"Agreement is {words}: Krippendorff's alpha (ordinal) {value} on {agreement.items:,} items, where 1 "
        f"is perfect and 0 is chance; of two people on an item {share_text(agreement.same)} gave the same "
        f"answer, {share_text(agreement.same_direction)} the same direction."
    )


def tables(findings: Findings) -> list[Table]:
    """All tables of a report, the result first."""
    listed = [result_table(findings), answer_table(findings), people_table(findings), sides_table(findings)]
    if findings.plan.repeats:
        listed.append(repeats_table(findings))
    if findings.plan.checks:
        listed.append(checks_table(findings))
    return listed


def as_text(findings: Findings, format: str = "text") -> str:
    """The report in a format of `rangevote.evaluation.tables`."""
    listed = [*tables(findings), *disputed_tables(findings)]
    escape = {"markdown": escape_markdown, "latex": escape_latex}.get(format, str)
    words = [escape(verdict(findings)), escape(agreement_words(findings))]
    return "\n\n".join([*words, *(render(table, format).rstrip("\n") for table in listed)]) + "\n"


def result_table(findings: Findings) -> Table:
    """Better and worse, with the exact sign test."""
    baseline, challenger = findings.plan.systems
    rows = [
        _split_row("all answers but ties", findings.answers.all),
        _split_row("much better only", findings.answers.much),
    ]
    title = f"{findings.plan.title} Is {challenger} better than {baseline}?"
    columns = _columns("better", "worse", "p", "share of wins", "95 % interval")
    return Table(columns, rows, challenger, title, _notes(findings))


def answer_table(findings: Findings) -> Table:
    total = findings.answers.total
    rows = [
        _row(name, count, f"{100 * count / total:.1f} %" if total else "")
        for name, count in zip(answer_names(findings), findings.answers.counts, strict=True)
    ]
    if findings.plan.automatic:
        unseen = [Cell(str(findings.plan.automatic)), Cell("")]
        rows.append(TableRow("identical, not shown", unseen, "identical"))
    return Table(_columns("items", "share"), rows, "answer", "Answers")


def people_table(findings: Findings) -> Table:
    """One row an annotator: each is a study of their own."""
    columns = _columns(
        *("judged", *answer_names(findings), "cannot judge", "better : worse", "p", "share of wins"),
        *("changed", "seconds"),
    )
    notes = ["seconds: median time an item was in sight; changed: answers replaced or undone"]
    missing = sum(person.without_image for person in findings.people)
    if missing:
        notes.append(f"answers given while the image could not be shown: {missing:,}")
    rows = [_person_row(person) for person in findings.people]
    return Table(columns, rows, "annotator", "Annotators", notes)


def _person_row(person: Person) -> TableRow:
    split = person.answers.all
    return _row(
        _name(person),
        f"{person.judged} of {person.assigned}{' (finished)' if person.finished else ''}",
        *person.answers.counts,
        person.cannot,
        f"{split.better} : {split.worse}",
        Cell(p_text(split), stars(split.p)),
        share_text(split.share),
        person.changed,
        "" if person.seconds is None else f"{person.seconds:.1f}",
    )


def sides_table(findings: Findings) -> Table:
    """Whether somebody prefers one side."""
    columns = _columns("left better", "right better", "p", "share of left", "95 % interval")
    rows = [_split_row(person.name, person.sides) for person in findings.people]
    return Table(columns, rows, "annotator", "Left and right", [f"sides were set by: {findings.plan.sides}"])


def repeats_table(findings: Findings) -> Table:
    """How far each annotator agrees with themselves."""
    rows = []
    for person in findings.people:
        itself = person.itself
        alpha = "undefined" if itself.alpha is None else f"{itself.alpha:.3f}"
        rows.append(
            _row(
                _name(person), itself.items, share_text(itself.same), share_text(itself.same_direction), alpha
            )
        )
    columns = _columns("items", "same answer", "same direction", "alpha")
    notes = ["the first judgement counts; alpha: Krippendorff's, ordinal, of both"]
    return Table(columns, rows, "annotator", "Judged twice", notes)


def checks_table(findings: Findings) -> Table:
    rows = [_row(_name(one), one.passed, one.checked - one.passed) for one in findings.people]
    return Table(_columns("passed", "failed"), rows, "annotator", "Attention checks")


def disputed_tables(findings: Findings) -> list[Table]:
    """The items that people disagree about most, with their texts cut short; none where nobody disagrees."""
    disputed = [item for item in findings.items if item.disagreement > 0]
    if not disputed:
        return []
    rows = [
        _row(
            item.pair.key,
            f"{item.disagreement:.2f}",
            " ".join("?" if one.value is None else f"{one.value:+d}" for one in item.opinions),
            _clipped(item.pair.first),
            _clipped(item.pair.second),
        )
        for item in disputed[:_DISPUTED]
    ]
    note = (
        f"{len(disputed):,} items are judged differently; answers: from -2, {findings.plan.systems[0]} much "
        f"better, to +2; disagreement: how far two people are apart, on average; all items with whole texts "
        f"are in the formats html and json"
    )
    columns = _columns("disagreement", "answers", *findings.plan.systems)
    return [Table(columns, rows, "item", "Most disputed items", [note])]


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    shown = "".join(character if character.isprintable() else "\ufffd" for character in line)
    return shown if len(shown) <= _CLIP else shown[: _CLIP - 1] + "…"


def _columns(*names: str) -> list[Column]:
    return [Column(name) for name in names]


def _row(name: str, *cells: Cell | str | int) -> TableRow:
    return TableRow(name, [cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in cells])


def _split_row(name: str, split: Split) -> TableRow:
    p = Cell(p_text(split), stars(split.p))
    return _row(name, split.better, split.worse, p, share_text(split.share), interval_text(split))


def p_text(split: Split) -> str:
    if split.better + split.worse == 0:
        return "1 (no data)"
    return f"{split.p:.4f}" if split.p >= 0.0001 else "<0.0001"


def share_text(share: float | None) -> str:
    return "no data" if share is None else f"{100 * share:.1f} %"


def interval_text(split: Split) -> str:
    interval = split.interval
    return "" if interval is None else f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _name(person: Person) -> str:
    return person.name + (" (excluded)" if person.excluded else "")


def answer_names(findings: Findings) -> list[str]:
    """The five answers, as they are about the systems."""
    baseline, challenger = findings.plan.systems
    better = [f"{challenger} slightly better", f"{challenger} much better"]
    return [f"{baseline} much better", f"{baseline} slightly better", "no difference", *better]


def _notes(findings: Findings) -> list[str]:
    """What must be known to read the result: whether the study is complete first of all."""
    plan, items = findings.plan, findings.answers.total
    complete = f"complete: all {plan.stop:,} planned judgements are there"
    incomplete = (
        f"NOT COMPLETE: {findings.judgements:,} of {plan.stop:,} planned judgements are there; p-values "
        f"hold only for the complete study, since stopping when they look good voids them"
    )
    single = f"unit of analysis: the item, judged by one person each; {items:,} items are judged"
    combined = (
        f"unit of analysis: the item, as {COMBINE[plan.combine]}; {items:,} items are judged, "
        f"{findings.judged_by_all:,} of them by all {plan.per_item} planned people who are not excluded; "
        f"judgements are never pooled"
    )
    unseen = f", of which {plan.automatic:,} have identical outputs and were not shown"
    return [
        complete if findings.complete else incomplete,
        single if plan.per_item == 1 else combined,
        f"ties, left out: {findings.ties:,}{unseen if plan.automatic else ''}",
        "p: exact two-tailed sign test; interval: Clopper-Pearson; * p < 0.05, ** p < 0.01, *** p < 0.001",
        *([_cannot_note(findings)] if findings.cannot else []),
        _exclusion_note(findings),
    ]


def _cannot_note(findings: Findings) -> str:
    return f"cannot judge: said {findings.cannot:,} times; that is no answer and counts for nobody"


def _exclusion_note(findings: Findings) -> str:
    if findings.plan.pass_share is None:
        return "excluded: nobody, as the plan says"
    rule = f"fewer than {100 * findings.plan.pass_share:.0f} % of the attention checks passed"
    names = [person.name for person in findings.people if person.excluded]
    return f"excluded ({rule}): {', '.join(names) or 'nobody'}"
