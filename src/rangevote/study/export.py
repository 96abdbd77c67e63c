"""Judgements for other programs. Links are never among them, and annotators go by their pseudonyms.

jsonl        one judgement a line, nothing changed
csv          the same for spreadsheets: texts that a spreadsheet would take for a formula get an apostrophe
raw-csv      the same without that
record       how the study was made and run, for datasheets such as HEDS
comparator   the JSON of LLM Comparator
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rangevote.study.analysis import VALUES, Agreement, AnswerCounts, Findings, Person, Split, analyse
from rangevote.study.study_file import Judgement, Snapshot
from rangevote.study.study_plan import COMBINE, StudyPlan

#: The columns of a CSV.
COLUMNS = (
    *(
        "number",
        "supersedes",
        "annotator",
        "item",
        "again",
        "check",
        "left",
        "right",
        "shown",
        "value",
        "winner",
    ),
    *("baseline_output", "challenger_output", "source", "image", "image_missing"),
    *("opened", "received", "client_time", "duration_ms"),
)
#: LLM Comparator's scores of our answers; there a positive one favours A, which is the baseline here.
_SCORES = {-2: 1.5, -1: 0.5, 0: 0.0, 1: -0.5, 2: -1.5}
#: What a spreadsheet may take for a formula, after OWASP.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")


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
    """One judgement a line."""
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
    """How the study was made and run, in the words that a datasheet of an evaluation asks for."""
    plan, found = snapshot.study.plan, analyse(snapshot)
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
        "scale": {"type": "ordinal, five points", "wording": list(plan.scale), "values": [-2, -1, 0, 1, 2]},
        "order": "items in an order of each annotator's own, at random, by seed",
        "sides": plan.sides,
        "attention_checks": plan.checks,
        "shown_twice": f"{plan.repeats} items, to see how far annotators agree with themselves",
        "exclusion": f"passed fewer than {plan.pass_share} of the checks" if plan.pass_share else "nobody",
        "stopping": f"{plan.stop} judgements, fixed beforehand",
        "aggregation": f"an item is {COMBINE[plan.combine]}"
        if plan.per_item > 1
        else "one judgement an item",
        "unit_of_analysis": "item",
        "test": "exact two-tailed sign test, ties left out; of all answers, and of 'much better' alone",
        "interval": "Clopper-Pearson, 95 %",
        "agreement": "Krippendorff's alpha, ordinal",
        "collected": {"from": min(times, default=None), "to": max(times, default=None)},
        "personal_data": "none: no names, no addresses",
        "results": as_data(found),
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def to_comparator(snapshot: Snapshot) -> str:
    """The file that LLM Comparator shows; checks and second judgements are left out."""
    plan, judged = snapshot.study.plan, defaultdict(list)
    for row in snapshot.current():
        judged[row.pair].append(row)
    examples = [
        _example(snapshot, number, judged[number])
        for number in sorted(judged)
        if snapshot.study.pairs[number].counts
    ]
    data = {
        "metadata": {"source_path": plan.title, "custom_fields_schema": []},
        "models": [{"name": name} for name in plan.systems],
        "examples": examples,
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _example(snapshot: Snapshot, number: int, rows: list[Judgement]) -> dict[str, Any]:
    pair = snapshot.study.pairs[number]
    scores = [_SCORES[row.resolved] for row in rows if row.resolved is not None]
    raters = [
        {"score": score, "rating_label": _label(score), "is_flipped": row.swapped, "rationale": ""}
        for score, row in zip(scores, rows, strict=True)
    ]
    return {
        "input_text": pair.source or "",
        "tags": [],
        "output_text_a": pair.first,
        "output_text_b": pair.second,
        "score": sum(scores) / len(scores),
        "individual_rater_scores": raters,
        "custom_fields": {},
    }


def _label(score: float) -> str:
    if score == 0:
        return "same"
    much = "much " if abs(score) > 1 else "slightly "
    return f"{'A' if score > 0 else 'B'} is {much}better"


def as_data(found: Findings) -> dict[str, Any]:
    """Everything, as plain data; numbers are not rounded."""
    plan = found.plan
    return {
        "title": plan.title,
        "systems": list(plan.systems),
        "digest": found.digest,
        "complete": found.complete,
        "judgements": found.judgements,
        "planned": plan.stop,
        "unit": "item",
        "combined_by": plan.combine if plan.per_item > 1 else None,
        "items": found.answers.total,
        "identical_not_shown": plan.automatic,
        "ties": found.ties,
        "answers": answers_data(found.answers),
        "sign_test": split_data(found.answers.all),
        "sign_test_much": split_data(found.answers.much),
        "agreement": agreement_data(found.agreement),
        "exclusion": {
            "pass_share": plan.pass_share,
            "excluded": [p.name for p in found.people if p.excluded],
        },
        "annotators": [_person_data(person) for person in found.people],
    }


def agreement_data(agreement: Agreement) -> dict[str, Any]:
    """How far answers to the same items agree."""
    return {
        "items": agreement.items,
        "krippendorff_alpha_ordinal": agreement.alpha,
        "same_answer": agreement.same,
        "same_direction": agreement.same_direction,
    }


def answers_data(answers: AnswerCounts) -> dict[str, int]:
    """Counts by answer, for the challenger."""
    return {str(value): count for value, count in zip(VALUES, answers.counts, strict=True)}


def split_data(split: Split) -> dict[str, Any]:
    """A sign test."""
    interval = list(split.interval) if split.interval else None
    return {
        "better": split.better,
        "worse": split.worse,
        "p": split.p,
        "share": split.share,
        "interval": interval,
    }


def _person_data(person: Person) -> dict[str, Any]:
    sides = split_data(person.sides)
    return {
        "name": person.name,
        "assigned": person.assigned,
        "judged": person.judged,
        "finished": person.finished,
        "excluded": person.excluded,
        "answers": answers_data(person.answers),
        "sign_test": split_data(person.answers.all),
        "sign_test_much": split_data(person.answers.much),
        "left_right": {"left": sides.pop("better"), "right": sides.pop("worse"), **sides},
        "checks": {"passed": person.passed, "failed": person.checked - person.passed},
        "changed": person.changed,
        "median_seconds": person.seconds,
        "without_image": person.without_image,
        "judged_twice": agreement_data(person.itself),
    }


#: name -> writer; those of tables take `history`.
WRITERS: dict[str, Callable[..., str]] = {
    "comparator": to_comparator,
    "csv": to_csv,
    "jsonl": to_jsonl,
    "raw-csv": lambda snapshot, **options: to_csv(snapshot, safe=False, **options),
    "record": to_record,
}
