"""Findings as data for JSON."""

from __future__ import annotations

from typing import Any

from rangevote.study.analysis import VALUES, Agreement, Answers, Findings, Person, Split


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


def answers_data(answers: Answers) -> dict[str, int]:
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
