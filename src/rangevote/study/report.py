"""What comes out of a study: the report as text, tables, JSON or one HTML page; the judgements; the record.

Links are in none of them, and annotators go by their pseudonyms. The page has no script and loads nothing,
also from file://. Outputs are text, whatever they hold.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.resources
import io
import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from html import escape
from typing import Any

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
from rangevote.study.analysis import (
    VALUES,
    Agreement,
    AnswerCounts,
    Findings,
    JudgedItem,
    Person,
    Split,
    analyse,
)
from rangevote.study.plan import COMBINE, StudyPlan
from rangevote.study.store import Judgement, Snapshot
from rangevote.text import BOM, escape_controls

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

#: What changes how a text is seen without being seen itself, as in web/static/unseen.js: spelled out.
_UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_EMPTY = '<i class="faint">(empty)</i>'
#: Words up to which differences of texts are looked for.
_COMPARABLE = 500
#: Columns of a CSV.
COLUMNS = (
    *("number", "supersedes", "annotator", "item", "again", "check", "left", "right", "shown", "value"),
    *("winner", "cannot_judge", "comment", "baseline_output", "challenger_output", "source", "image"),
    *("image_missing", "opened", "received", "client_time", "duration_ms"),
)
#: What a spreadsheet may take for a formula, after OWASP.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")


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
    shown = escape_controls(" ".join(text.split()))
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


def as_html(findings: Findings) -> str:
    folders = [importlib.resources.files(name) / "static" for name in ("rangevote.web", "rangevote.study")]
    files = zip(folders, ("base.css", "report.css"), strict=True)
    style = "".join((folder / name).read_text(encoding="utf-8") for folder, name in files)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    result, *others = tables(findings)
    kind = "verdict" if findings.complete else "verdict banner"
    body = [
        f"<h1>{escape(result.title)}</h1>",
        f'<p class="{kind}">{escape(verdict(findings))}</p>',
        f"<p>{escape(agreement_words(findings))}</p>",
        _html_table(result, heading=False),
        *(_html_table(table) for table in others),
        *_items(findings),
        f'<p class="faint">Made with {escape(findings.plan.software)}. Digest of the study: '
        f"<code>{escape(findings.digest)}</code></p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(result.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _html_table(table: Table, *, heading: bool = True) -> str:
    head = "".join(f'<th scope="col">{escape(column.name)}</th>' for column in table.columns)
    rows = []
    for name, *texts in table.texts(escape, "{}", escape):
        cells = "".join(f"<td>{text}</td>" for text in texts)
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    title = f"<h2>{escape(table.title)}</h2>" if heading and table.title else ""
    label = escape(table.title)
    return (
        f'{title}<div class="scroll" role="group" tabindex="0" aria-label="{label}"><table><thead><tr>'
        f'<th scope="col">{escape(table.corner)}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>" + (f'<ul class="notes">{notes}</ul>' if notes else "")
    )


def _items(findings: Findings) -> list[str]:
    """Every judged item with both texts, the most disputed first."""
    if not findings.items:
        return []
    disputed = sum(item.disagreement > 0 for item in findings.items)
    about = "Words that only one of the two outputs has are marked."
    if disputed:
        about = f"{disputed:,} of {len(findings.items):,} are judged differently and come first. {about}"
    return [f"<h2>Items</h2><p>{about}</p>", *(_item(item, findings) for item in findings.items)]


def _item(item: JudgedItem, findings: Findings) -> str:
    names = answer_names(findings)
    said = "".join(
        f"<li>{escape(one.annotator)}: "
        + ("cannot judge" if one.value is None else escape(names[one.value + 2]))
        + (f' <q dir="auto">{_text(one.comment)}</q>' if one.comment else "")
        + "</li>"
        for one in item.opinions
    )
    apart = f', <span class="faint">{item.disagreement:.2g} apart</span>' if item.disagreement else ""
    source = f'<p class="source" dir="auto">{_text(item.pair.source)}</p>' if item.pair.source else ""
    outputs = "".join(
        f'<div><h4>{escape(name)}</h4><p class="output" dir="auto">{text}</p></div>'
        for name, text in zip(findings.plan.systems, _marked(item.pair.first, item.pair.second), strict=True)
    )
    return (
        f'<article class="item"><h3>Item {_text(item.pair.key)}{apart}</h3>{source}'
        f'<div class="outputs">{outputs}</div><ul class="said">{said}</ul></article>'
    )


def _marked(one: str, other: str) -> tuple[str, str]:
    """Two outputs as HTML; words that are not in both, in the same order, are marked."""
    first, second = (re.findall(r"\s+|\w+|[^\w\s]", text) for text in (one, other))
    if max(len(first), len(second)) > 2 * _COMPARABLE:
        return _text(one) or _EMPTY, _text(other) or _EMPTY
    marked: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        for side, words in zip(marked, (first[a:b], second[c:d]), strict=True):
            text = "".join(words)
            own = text.strip() if kind != "equal" else ""
            before, _, after = text.partition(own) if own else ("", "", text)
            side += [_text(before), f"<mark>{_text(own)}</mark>" if own else "", _text(after)]
    return "".join(marked[0]) or _EMPTY, "".join(marked[1]) or _EMPTY


def _text(text: str) -> str:
    """A text of a model's or a person's as HTML."""
    return _UNSEEN.sub(lambda found: f'<bdi class="unseen">U+{ord(found[0]):04X}</bdi>', escape(text))


def rows(snapshot: Snapshot, *, history: bool = False) -> Iterator[dict[str, Any]]:
    """The judgements that count; with `history` all that were ever made, undone ones too."""
    current = {row.id for row in snapshot.current()}
    for row in snapshot.rows:
        if history or row.id in current:
            yield _judgement_data(snapshot, row) | ({"counts": row.id in current} if history else {})


def _judgement_data(snapshot: Snapshot, row: Judgement) -> dict[str, Any]:
    plan, pair = snapshot.study.plan, snapshot.pair(row)
    left, right = reversed(plan.systems) if row.swapped else plan.systems
    return {
        "number": row.id,
        "supersedes": row.supersedes,
        "annotator": plan.annotators[row.annotator],
        "item": pair.key,
        "again": pair.again,
        "check": _winner(plan, pair.expected),
        "left": left,
        "right": right,
        "shown": row.shown,
        "value": row.resolved,
        "winner": _winner(plan, row.resolved),
        "cannot_judge": row.cannot,
        "comment": row.comment,
        "outputs": {plan.systems[0]: pair.first, plan.systems[1]: pair.second},
        "source": pair.source,
        "image": pair.image,
        "image_missing": row.image_missing,
        "opened": row.opened,
        "received": row.received,
        "client_time": row.client_time,
        "duration_ms": row.duration_ms,
    }


def _winner(plan: StudyPlan, value: int | None) -> str | None:
    """The system that an answer favours, or "tie"; None for no answer."""
    if value is None:
        return None
    return "tie" if value == 0 else plan.systems[value > 0]


def to_jsonl(snapshot: Snapshot, *, history: bool = False) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(snapshot, history=history))


def to_csv(snapshot: Snapshot, *, history: bool = False, mark: bool = False) -> str:
    """A table after RFC 4180, safe for spreadsheets; `mark`: with a byte order mark, for Excel."""
    first, second = snapshot.study.plan.systems
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*COLUMNS, *(["counts"] if history else [])], lineterminator="\r\n")
    writer.writeheader()
    for row in rows(snapshot, history=history):
        outputs = row.pop("outputs")
        row |= {"baseline_output": outputs[first], "challenger_output": outputs[second]}
        writer.writerow({name: harmless(value) for name, value in row.items()})
    return (BOM.decode() if mark else "") + out.getvalue()


def harmless(value: Any) -> Any:
    """A text that no spreadsheet runs; numbers stay numbers.

    >>> harmless("=1+1"), harmless(-2)
    ("'=1+1", -2)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def to_record(snapshot: Snapshot) -> str:
    """What a datasheet of a human evaluation, such as HEDS, asks for and a program can know."""
    plan = snapshot.study.plan
    times = [row.received for row in snapshot.rows]
    record = {
        "design": "pairwise comparison of two systems' outputs, shown side by side, blind",
        "systems": list(plan.systems),
        "items": {
            "number": plan.items,
            "drawn_from": plan.available,
            "selection": "at random, by seed" if plan.items < plan.available else "all",
            "identical_outputs": f"{plan.automatic} counted as ties, not shown",
        },
        "seed": plan.seed,
        "software": plan.software,
        "digest": snapshot.digest,
        "annotators": {"number": len(plan.annotators), "per_item": plan.per_item, "names": "pseudonyms"},
        "question": plan.question,
        "instructions": plan.instructions,
        "scale": {
            "type": "ordinal, five points, and 'cannot judge', which counts for nobody",
            "wording": list(plan.scale),
            "values": list(VALUES),
        },
        "practice": "one item before the first, whose answer is not kept",
        "differences_marked": "the annotator may switch it off" if plan.differences else "no",
        "comments": "an annotator may write one to each item",
        "order": "items in an order of each annotator's own, at random, by seed",
        "sides": plan.sides,
        "attention_checks": plan.checks,
        "shown_twice": f"{plan.repeats} items, to see how far annotators agree with themselves",
        "exclusion": f"passed fewer than {plan.pass_share} of the checks" if plan.pass_share else "nobody",
        "stopping": f"{plan.stop} judgements, fixed beforehand",
        "aggregation": (
            f"an item is {COMBINE[plan.combine]}" if plan.per_item > 1 else "one judgement an item"
        ),
        "unit_of_analysis": "item",
        "test": "exact two-tailed sign test, ties left out; of all answers, and of 'much better' alone",
        "interval": "Clopper-Pearson, 95 %",
        "agreement": "Krippendorff's alpha, ordinal",
        "collected": {"from": min(times, default=None), "to": max(times, default=None)},
        "personal_data": "no names, no addresses; only what annotators write into comments",
        "results": as_data(analyse(snapshot)),
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def items_data(findings: Findings) -> list[dict[str, Any]]:
    """The judged items, the most disputed first."""
    first, second = findings.plan.systems
    return [
        {
            "item": item.pair.key,
            "disagreement": item.disagreement,
            "outputs": {first: item.pair.first, second: item.pair.second},
            "source": item.pair.source,
            "judgements": [
                {"annotator": one.annotator, "value": one.value, "comment": one.comment}
                for one in item.opinions
            ],
        }
        for item in findings.items
    ]


def as_data(findings: Findings) -> dict[str, Any]:
    """Findings as plain data for JSON; numbers are not rounded."""
    plan = findings.plan
    return {
        "title": plan.title,
        "systems": list(plan.systems),
        "verdict": verdict(findings),
        "digest": findings.digest,
        "complete": findings.complete,
        "judgements": findings.judgements,
        "planned": plan.stop,
        "unit": "item",
        "combined_by": plan.combine if plan.per_item > 1 else None,
        "items": findings.answers.total,
        "identical_not_shown": plan.automatic,
        "ties": findings.ties,
        "cannot_judge": findings.cannot,
        **_answers_data(findings.answers),
        "agreement": _agreement_data(findings.agreement),
        "exclusion": {
            "pass_share": plan.pass_share,
            "excluded": [person.name for person in findings.people if person.excluded],
        },
        "annotators": [_person_data(person) for person in findings.people],
    }


def _answers_data(answers: AnswerCounts) -> dict[str, Any]:
    """Counts by answer, for the challenger, and both sign tests."""
    return {
        "answers": {str(value): count for value, count in zip(VALUES, answers.counts, strict=True)},
        "sign_test": _split_data(answers.all, "better", "worse"),
        "sign_test_much": _split_data(answers.much, "better", "worse"),
    }


def _split_data(split: Split, better: str, worse: str) -> dict[str, Any]:
    counts = {better: split.better, worse: split.worse}
    return {**counts, "p": split.p, "share": split.share, "interval": split.interval}


def _agreement_data(agreement: Agreement) -> dict[str, Any]:
    return {
        "items": agreement.items,
        "krippendorff_alpha_ordinal": agreement.alpha,
        "same_answer": agreement.same,
        "same_direction": agreement.same_direction,
    }


def _person_data(person: Person) -> dict[str, Any]:
    return {
        **{name: getattr(person, name) for name in ("name", "assigned", "judged", "finished", "excluded")},
        **_answers_data(person.answers),
        "cannot_judge": person.cannot,
        "left_right": _split_data(person.sides, "left", "right"),
        "checks": {"passed": person.passed, "failed": person.checked - person.passed},
        "changed": person.changed,
        "median_seconds": person.seconds,
        "without_image": person.without_image,
        "judged_twice": _agreement_data(person.itself),
    }
