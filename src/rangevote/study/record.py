"""A study's record: what a datasheet of a human evaluation, such as HEDS, asks for and a program can know."""

from __future__ import annotations

import json

from rangevote.study.analysis import analyse
from rangevote.study.data import as_data
from rangevote.study.plan import COMBINE
from rangevote.study.snapshot import Snapshot


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
