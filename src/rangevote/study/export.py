"""Judgements for other programs. Links are never among them, and annotators go by their pseudonyms.

jsonl        one judgement a line, nothing changed
csv          the same for spreadsheets: texts that a spreadsheet would take for a formula get an apostrophe
raw-csv      the same without that
record       how the study was made and run, for datasheets such as HEDS
comparator   the JSON of LLM Comparator, a page for looking through side-by-side evaluations
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rangevote.study.analysis import VALUES, Agreement, AnswerCounts, Findings, Person, Split, analyse
from rangevote.study.plan import COMBINE, StudyPlan
from rangevote.study.report import verdict
from rangevote.study.study_file import Judgement, Snapshot

#: The columns of a CSV.
COLUMNS = (
    *("number", "supersedes", "annotator", "item", "again", "check", "left", "right", "shown", "value"),
    *("winner", "cannot_judge", "comment", "baseline_output", "challenger_output", "source", "image"),
    "image_missing",
    *("opened", "received", "client_time", "duration_ms"),
)
#: What a spreadsheet may take for a formula, after OWASP.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")
#: LLM Comparator's scores and words for our answers; a positive score favours A, which is the baseline here.
_COMPARATOR = {
    -2: (1.5, "A is much better"),
    -1: (0.5, "A is slightly better"),
    0: (0.0, "same"),
    1: (-0.5, "B is slightly better"),
    2: (-1.5, "B is much better"),
}


def rows(snapshot: Snapshot, *, history: bool = False) -> Iterator[dict[str, Any]]:
    """The judgements that count; with `history` all that were ever made, undone ones too."""
    current = {row.number for row in snapshot.current()}
    for row in snapshot.rows:
        if history or row.number in current:
            yield _row(snapshot, row) | ({"counts": row.number in current} if history else {})


def _row(snapshot: Snapshot, row: Judgement) -> dict[str, Any]:
    plan, pair = snapshot.study.plan, snapshot.pair(row)
    left, right = reversed(plan.systems) if row.swapped else plan.systems
    return {
        "number": row.number,
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


def to_csv(snapshot: Snapshot, *, history: bool = False, safe: bool = True, mark: bool = False) -> str:
    """A table after RFC 4180; `safe` for spreadsheets, `mark`: with a byte order mark, for Excel."""
    first, second = snapshot.study.plan.systems
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*COLUMNS, *(["counts"] if history else [])], lineterminator="\r\n")
    writer.writeheader()
    for row in rows(snapshot, history=history):
        outputs = row.pop("outputs")
        row |= {"baseline_output": outputs[first], "challenger_output": outputs[second]}
        writer.writerow({name: harmless(value) if safe else value for name, value in row.items()})
    return ("\ufeff" if mark else "") + out.getvalue()


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


def to_comparator(snapshot: Snapshot) -> str:
    """The file that LLM Comparator shows; checks, second judgements and "cannot judge" are left out."""
    plan, judged = snapshot.study.plan, defaultdict(list)
    for row in snapshot.current():
        if snapshot.pair(row).counts and not row.cannot:
            judged[row.pair].append(row)
    data = {
        "metadata": {"source_path": plan.title, "custom_fields_schema": []},
        "models": [{"name": name} for name in plan.systems],
        "examples": [_example(snapshot, judged[number]) for number in sorted(judged)],
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _example(snapshot: Snapshot, judgements: list[Judgement]) -> dict[str, Any]:
    pair = snapshot.pair(judgements[0])
    scored = [_COMPARATOR[row.resolved or 0] for row in judgements]
    raters = [
        {"score": score, "rating_label": label, "is_flipped": row.swapped, "rationale": row.comment or ""}
        for row, (score, label) in zip(judgements, scored, strict=True)
    ]
    return {
        "input_text": pair.source or "",
        "tags": [],
        "output_text_a": pair.first,
        "output_text_b": pair.second,
        "score": sum(score for score, _ in scored) / len(scored),
        "individual_rater_scores": raters,
        "custom_fields": {},
    }


def items_data(findings: Findings) -> list[dict[str, Any]]:
    """The judged items, those first that people disagree about most."""
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
    return {
        better: split.better,
        worse: split.worse,
        "p": split.p,
        "share": split.share,
        "interval": list(split.interval) if split.interval else None,
    }


def _agreement_data(agreement: Agreement) -> dict[str, Any]:
    return {
        "items": agreement.items,
        "krippendorff_alpha_ordinal": agreement.alpha,
        "same_answer": agreement.same,
        "same_direction": agreement.same_direction,
    }


def _person_data(person: Person) -> dict[str, Any]:
    return {
        "name": person.name,
        "assigned": person.assigned,
        "judged": person.judged,
        "finished": person.finished,
        "excluded": person.excluded,
        **_answers_data(person.answers),
        "cannot_judge": person.cannot,
        "left_right": _split_data(person.sides, "left", "right"),
        "checks": {"passed": person.passed, "failed": person.checked - person.passed},
        "changed": person.changed,
        "median_seconds": person.seconds,
        "without_image": person.without_image,
        "judged_twice": _agreement_data(person.itself),
    }


#: name -> writer; those of tables take `history`.
WRITERS: dict[str, Callable[..., str]] = {
    "comparator": to_comparator,
    "csv": to_csv,
    "jsonl": to_jsonl,
    "raw-csv": lambda snapshot, **options: to_csv(snapshot, safe=False, **options),
    "record": to_record,
}
