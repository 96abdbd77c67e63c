"""Judgements in the JSON of LLM Comparator, a page for looking through side-by-side evaluations."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from rangevote.study.snapshot import Judgement, Snapshot

#: LLM Comparator's scores of our answers; there a positive one favours A, which is the baseline here.
_SCORES = {-2: 1.5, -1: 0.5, 0: 0.0, 1: -0.5, 2: -1.5}


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
