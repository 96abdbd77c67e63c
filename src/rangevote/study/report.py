"""The output of a study: the report as text, tables, JSON or an HTML page; the judgements; the record.

None of them has the annotators' links, and annotators are named by pseudonyms. The page has no script and
loads nothing. Outputs are always shown as text.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.resources
import io
import json
import re
from collections.abc import Container, Iterator
from html import escape
from typing import Any

import msgspec

from rangevote.evaluation.tables import (
    STARS_NOTE,
    Cell,
    Column,
    Table,
    TableRow,
    escape_latex,
    escape_markdown,
    render,
    stars,
    to_html,
)
from rangevote.study.analysis import VALUES, Findings, JudgedItem, Person, Split, analyse
from rangevote.study.plan import COMBINE, StudyPlan
from rangevote.study.store import Snapshot
from rangevote.text import BOM, differences, escape_controls

#: Results with a smaller p-value are called significant.
SIGNIFICANT = 0.05
#: The words for agreement from this alpha on (Krippendorff 2004, "Content Analysis": conclusions need 0.8,
#: tentative ones 0.667).
AGREEMENT = {
    0.8: "good",
    0.667: "fair, enough for tentative conclusions",
    0.2: "weak",
    -1.0: "hardly better than chance",
}
#: Items in the table of the most disputed, and characters of their texts in it.
_DISPUTED, _CLIP = 10, 40
#: Invisible characters that change how a text looks, as in web/static/unseen.js: they are spelled out.
_UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
#: What a spreadsheet may take for a formula, after OWASP.
_FORMULA = tuple("=+-@\t\r\n\0\uff1d\uff0b\uff0d\uff20")


def verdict(findings: Findings) -> str:
    """The result in a sentence or two: which system is preferred, how often, and whether it may be chance."""
    test, ties = findings.counts.sign_test, findings.ties
    baseline, challenger = findings.plan.systems
    decided = test.better + test.worse
    if not decided:
        result = "no item is decided"
    elif test.better == test.worse:
        result = f"neither is preferred: each wins {test.better:,} of {decided:,} decided items"
    else:
        winner = challenger if test.better > test.worse else baseline
        items = "item" if decided == 1 else "items"
        result = f"{winner} is preferred in {max(test.better, test.worse):,} of {decided:,} decided {items}"
    if not findings.complete:
        done = f"{findings.judgements:,} of {findings.plan.stop:,} judgements are there"
        return f"Not complete: {done}. So far {result}; p-values mean nothing before the end."
    if decided:
        chance = "this is hardly chance" if test.p < SIGNIFICANT else f"with {decided:,} this may be chance"
        result += f"; {chance}, p {f'= {test.p:.2g}' if test.p >= 0.0001 else '< 0.0001'}"
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
        f"Agreement is {words}: Krippendorff's alpha (ordinal) is {value} on {agreement.items:,} items, "
        f"where 1 is perfect and 0 is chance. Of two people who judged an item, "
        f"{_share(agreement.same_answer)} gave the same answer, and {_share(agreement.same_direction)} "
        f"agreed which output is better, or that neither is."
    )


def tables(findings: Findings) -> list[Table]:
    """All tables of a report, the result first."""
    plan, people, counts = findings.plan, findings.annotators, findings.counts
    baseline, challenger = plan.systems
    names = answer_names(findings)
    answers = [
        TableRow(name, [count, f"{100 * count / findings.items:.1f} %" if findings.items else ""])
        for name, count in zip(names, counts.answers.values(), strict=True)
    ]
    if plan.automatic:
        answers.append(TableRow("identical, not shown", [plan.automatic, ""], "identical"))
    notes = ["seconds: median time that an item was visible; changed: answers that were replaced or undone"]
    if missing := sum(person.without_image for person in people):
        notes.append(f"answers given while the image could not be shown: {missing:,}")
    test = ("p", "share of wins", "95 % interval")
    result = [
        _table(
            f"{plan.title} Is {challenger} better than {baseline}?",
            (challenger, "better", "worse", *test),
            [_split("all answers but ties", counts.sign_test), _split("much better", counts.sign_test_much)],
            _notes(findings),
        ),
        _table("Answers", ("answer", "items", "share"), answers),
        _table(
            "Annotators",
            (
                *("annotator", "judged", *names, "cannot judge", "better : worse", "p", "share of wins"),
                *("changed", "seconds"),
            ),
            [_person_row(person) for person in people],
            notes,
        ),
        _table(
            "Left and right",
            ("annotator", "left better", "right better", "p", "share of left", "95 % interval"),
            [_split(person.name, person.left_right) for person in people],
            [f"sides were set by: {plan.sides}"],
        ),
    ]
    if plan.repeats:
        rows = []
        for person in people:
            twice = person.judged_twice
            value = "undefined" if twice.alpha is None else f"{twice.alpha:.3f}"
            shares = _share(twice.same_answer), _share(twice.same_direction)
            rows.append(TableRow(_name(person), [twice.items, *shares, value]))
        columns = ("annotator", "items", "same answer", "same direction", "alpha")
        note = "the first judgement counts; alpha: Krippendorff's, ordinal, of both"
        result.append(_table("Judged twice", columns, rows, [note]))
    if plan.checks:
        rows = [TableRow(_name(one), [one.checks_passed, one.checks_failed]) for one in people]
        result.append(_table("Attention checks", ("annotator", "passed", "failed"), rows))
    return result


def _disputed(findings: Findings) -> list[Table]:
    """The items that people disagree about most, with their texts cut short; none where nobody disagrees."""
    disputed = [item for item in findings.judged_items if item.disagreement > 0]
    rows = [
        TableRow(
            item.item,
            [
                f"{item.disagreement:.2f}",
                " ".join("?" if one.value is None else f"{one.value:+d}" for one in item.judgements),
                *map(_clipped, item.outputs.values()),
            ],
        )
        for item in disputed[:_DISPUTED]
    ]
    note = (
        f"{len(disputed):,} items are judged differently; answers: from -2, {findings.plan.systems[0]} much "
        f"better, to +2; disagreement: how far two people are apart, on average; all items with whole texts "
        f"are in the formats html and json"
    )
    columns = ("item", "disagreement", "answers", *findings.plan.systems)
    return [_table("Most disputed items", columns, rows, [note])] if rows else []


def as_text(findings: Findings, format: str = "text") -> str:
    """The report in a format of `rangevote.evaluation.tables`."""
    escape = {"markdown": escape_markdown, "latex": escape_latex}.get(format, str)
    words = [escape(text) for text in (verdict(findings), agreement_words(findings))]
    rendered = [render(table, format).rstrip("\n") for table in [*tables(findings), *_disputed(findings)]]
    return "\n\n".join([*words, *rendered]) + "\n"


def _table(
    title: str, columns: tuple[str, ...], rows: list[TableRow], notes: list[str] | None = None
) -> Table:
    corner, *names = columns
    return Table([Column(name, decimals=0) for name in names], rows, corner, title, notes or [])


def _split(name: str, test: Split) -> TableRow:
    interval = f"[{100 * test.interval.low:.1f}, {100 * test.interval.high:.1f}]" if test.interval else ""
    return TableRow(name, [test.better, test.worse, _p(test), _share(test.share), interval])


def _p(test: Split) -> Cell | str:
    if test.share is None:
        return "1 (no data)"
    return Cell(f"{test.p:.4f}" if test.p >= 0.0001 else "<0.0001", stars(test.p))


def _share(share: float | None) -> str:
    return "no data" if share is None else f"{100 * share:.1f} %"


def _name(person: Person) -> str:
    return person.name + (" (excluded)" if person.excluded else "")


def _person_row(person: Person) -> TableRow:
    test = person.counts.sign_test
    cells = [
        f"{person.judged} of {person.assigned}{' (finished)' if person.finished else ''}",
        *person.counts.answers.values(),
        person.cannot_judge,
        f"{test.better} : {test.worse}",
        _p(test),
        _share(test.share),
        person.changed,
        "" if person.median_seconds is None else f"{person.median_seconds:.1f}",
    ]
    return TableRow(_name(person), cells)


def _clipped(text: str) -> str:
    shown = escape_controls(" ".join(text.split()))
    return shown if len(shown) <= _CLIP else shown[: _CLIP - 1] + "…"


def answer_names(findings: Findings) -> list[str]:
    """The five answers, as they are about the systems."""
    baseline, challenger = findings.plan.systems
    better = [f"{challenger} slightly better", f"{challenger} much better"]
    return [f"{baseline} much better", f"{baseline} slightly better", "no difference", *better]


def _notes(findings: Findings) -> list[str]:
    """How to read the result; first of all whether the study is complete."""
    plan = findings.plan
    if findings.complete:
        state = f"complete: all {plan.stop:,} planned judgements are there"
    else:
        state = (
            f"NOT COMPLETE: {findings.judgements:,} of {plan.stop:,} planned judgements are there; p-values "
            f"hold only for the complete study, since stopping when they look good makes them invalid"
        )
    unit = f"unit of analysis: the item, judged by one person each; {findings.items:,} items are judged"
    if plan.per_item > 1:
        unit = (
            f"unit of analysis: the item, as {COMBINE[plan.combine]}; {findings.items:,} items are judged, "
            f"{findings.judged_by_all:,} of them by all {plan.per_item} planned people who are not excluded; "
            f"judgements are never pooled"
        )
    unseen = f", of which {plan.automatic:,} have identical outputs and were not shown"
    rule = "the plan excludes nobody"
    if plan.pass_share is not None:
        names = [person.name for person in findings.annotators if person.excluded]
        rule = (
            f"excluded (fewer than {100 * plan.pass_share:.0f} % of the attention checks passed): "
            f"{', '.join(names) or 'nobody'}"
        )
    return [
        state,
        unit,
        f"ties, left out: {findings.ties:,}{unseen if plan.automatic else ''}",
        f"p: exact two-tailed sign test; interval: Clopper-Pearson; {STARS_NOTE}",
        *([f"cannot judge, not counted: {findings.cannot_judge:,}"] if findings.cannot_judge else []),
        rule,
    ]


def as_html(findings: Findings) -> str:
    folders = [importlib.resources.files(name) / "static" for name in ("rangevote.web", "rangevote.study")]
    files = zip(folders, ("base.css", "report.css"), strict=True)
    style = "".join((folder / name).read_text(encoding="utf-8") for folder, name in files)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    items = findings.judged_items
    disputed = sum(item.disagreement > 0 for item in items)
    first = f"{disputed:,} of {len(items):,} are judged differently and come first. " if disputed else ""
    about = f"<p>{first}Words that only one of the two outputs has are marked.</p>"
    body = [
        f"<h1>{escape(findings.plan.title)}</h1>",
        f'<p class="{"verdict" if findings.complete else "verdict banner"}">{escape(verdict(findings))}</p>',
        f"<p>{escape(agreement_words(findings))}</p>",
        *map(to_html, tables(findings)),
        *([f"<h2>Items</h2>{about}"] if items else []),
        *(_html_item(item, answer_names(findings)) for item in items),
        f'<p class="faint">Made with {escape(findings.plan.software)}. Digest of the study: '
        f"<code>{escape(findings.digest)}</code></p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(findings.plan.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _html_item(item: JudgedItem, names: list[str]) -> str:
    """An item with both texts and its judgements."""
    judgements = "".join(
        f"<li>{escape(one.annotator)}: "
        + ("cannot judge" if one.value is None else escape(names[one.value + 2]))
        + (f' <q dir="auto">{_html_text(one.comment)}</q>' if one.comment else "")
        + "</li>"
        for one in item.judgements
    )
    apart = f', <span class="faint">{item.disagreement:.2g} apart</span>' if item.disagreement else ""
    source = f'<p class="source" dir="auto">{_html_text(item.source)}</p>' if item.source else ""
    outputs = "".join(
        f'<div><h4>{escape(name)}</h4><p class="output" dir="auto">{_marked(text, other)}</p></div>'
        for (name, text), other in zip(item.outputs.items(), reversed(item.outputs.values()), strict=True)
    )
    return (
        f'<article class="item"><h3>Item {_html_text(item.item)}{apart}</h3>{source}'
        f'<div class="outputs">{outputs}</div><ul class="said">{judgements}</ul></article>'
    )


def _marked(text: str, other: str) -> str:
    pieces = [(_html_text(piece), own) for piece, own in differences(text, other)]
    marked = "".join(f"<mark>{piece}</mark>" if own else piece for piece, own in pieces)
    return marked or '<i class="faint">(empty)</i>'


def _html_text(text: str) -> str:
    """A text of a model or a person as HTML."""
    return _UNSEEN.sub(lambda match: f'<bdi class="unseen">U+{ord(match[0]):04X}</bdi>', escape(text))


def rows(snapshot: Snapshot, *, history: bool = False) -> Iterator[dict[str, Any]]:
    """The judgements that count; with `history` all that were ever made, undone ones too."""
    plan, current = snapshot.study.plan, {row.id for row in snapshot.current()}
    for row in snapshot.rows:
        if not history and row.id not in current:
            continue
        pair = snapshot.pair(row)
        left, right = reversed(plan.systems) if row.swapped else plan.systems
        yield {
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
            **({"counts": row.id in current} if history else {}),
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
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    names = [*_COLUMNS, *(["counts"] if history else [])]
    writer.writerow(names)
    for row in rows(snapshot, history=history):
        row["baseline_output"], row["challenger_output"] = row.pop("outputs").values()
        writer.writerow([harmless(row[name]) for name in names])
    return (BOM.decode() if mark else "") + out.getvalue()


_COLUMNS = (
    *("number", "supersedes", "annotator", "item", "again", "check", "left", "right", "shown", "value"),
    *("winner", "cannot_judge", "comment", "baseline_output", "challenger_output", "source", "image"),
    *("image_missing", "opened", "received", "client_time", "duration_ms"),
)


def harmless(value: Any) -> Any:
    """A text that no spreadsheet runs; numbers stay numbers.

    >>> harmless("=1+1"), harmless(-2)
    ("'=1+1", -2)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def to_record(snapshot: Snapshot) -> str:
    """The fields of a datasheet of a human evaluation, such as HEDS, that a program can fill in."""
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
            "type": "ordinal, five points, and 'cannot judge', which is not counted",
            "wording": list(plan.scale),
            "values": list(VALUES),
        },
        "practice": "one item before the first; its answer is not kept",
        "differences_marked": "the annotator may switch it off" if plan.differences else "no",
        "comments": "an annotator may comment on each item",
        "order": "at random by seed, different for each annotator",
        "sides": plan.sides,
        "attention_checks": plan.checks,
        "shown_twice": f"{plan.repeats} items, to measure how far annotators agree with themselves",
        "exclusion": f"passed fewer than {plan.pass_share} of the checks" if plan.pass_share else "nobody",
        "stopping": f"{plan.stop} judgements, fixed beforehand",
        "aggregation": f"an item is {COMBINE[plan.combine]}" if plan.per_item > 1 else "one judgement each",
        "unit_of_analysis": "item",
        "test": "exact two-tailed sign test without ties; of all answers, and of 'much better' alone",
        "interval": "Clopper-Pearson, 95 %",
        "agreement": "Krippendorff's alpha, ordinal",
        "collected": {"from": min(times, default=None), "to": max(times, default=None)},
        "personal_data": "no names, no addresses; only what annotators write into comments",
        "results": as_data(analyse(snapshot), without=("plan", "judged_items")),
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def as_data(findings: Findings, *, without: Container[str] = ()) -> dict[str, Any]:
    """Verdict and findings as plain data for JSON; numbers are not rounded."""
    data = {"verdict": verdict(findings), **msgspec.to_builtins(findings)}
    del data["plan"]["completion_code"]  # for annotators who have finished
    for person in data["annotators"]:
        sides = person["left_right"]
        person["left_right"] = {"left": sides.pop("better"), "right": sides.pop("worse"), **sides}
    return {name: value for name, value in data.items() if name not in without}
