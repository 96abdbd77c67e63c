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
from collections.abc import Callable, Iterator
from typing import Any

from rangevote.study.comparator import to_comparator
from rangevote.study.plan import Plan
from rangevote.study.record import to_record
from rangevote.study.snapshot import Judgement, Snapshot

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


def _winner(plan: Plan, value: int | None) -> str | None:
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


#: name -> writer; those of tables take `history`.
WRITERS: dict[str, Callable[..., str]] = {
    "comparator": to_comparator,
    "csv": to_csv,
    "jsonl": to_jsonl,
    "raw-csv": lambda snapshot, **options: to_csv(snapshot, safe=False, **options),
    "record": to_record,
}
