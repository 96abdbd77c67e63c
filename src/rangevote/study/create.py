"""A study from pairs of outputs: which items, which checks, which annotator sees what in which order."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from rangevote.errors import DataError, UsageError, choose
from rangevote.study.plan import (
    COMBINE,
    INSTRUCTIONS,
    ITEMS,
    QUESTION,
    SIDES,
    TITLE,
    Annotator,
    Assignment,
    Pair,
    Study,
    StudyPlan,
    coin,
    shuffled,
)

#: For practice, where no pair is left over for it.
PRACTICE = Pair(
    "practice",
    "A man on a bench reads a newspaper in the park.",
    "A man the park bench on bench a newspaper.",
    source="For practice: a photograph of a man who sits on a bench in a park and reads.",
    practice=True,
)


@dataclass(frozen=True)
class StudyOptions:
    """What the user asks of a study; `per_item` None: all annotators judge each item."""

    items: int = ITEMS
    annotators: int = 1
    per_item: int | None = None
    checks: int = 0
    repeats: int = 0
    seed: int = 12345
    sides: str = "coin"
    combine: str = "median"
    pass_share: float | None = None
    show_identical: bool = False
    differences: bool = False
    completion_code: str | None = None
    title: str = TITLE
    question: str = QUESTION
    instructions: str = INSTRUCTIONS


def make_study(systems: tuple[str, str], pairs: Sequence[Pair], options: StudyOptions) -> Study:
    """Draw the items, add the checks, and assign all. Only the secrets differ from call to call."""
    own = [pair for pair in pairs if pair.expected is not None]
    per_item = options.annotators if options.per_item is None else options.per_item
    _check(options, per_item, options.checks + len(own))
    seed = options.seed
    items, spare = draw_items([pair for pair in pairs if pair.counts], options.items, seed)
    available = len(items) + len(spare)
    practice, spare = choose_practice(pairs, spare, seed)
    checks = [*own, *make_checks(options.checks, spare or items, [*items, *spare], seed)]
    shown = [pair for pair in items if options.show_identical or not pair.identical]
    repeats = draw_repeats(options.repeats, shown, [*pairs, *checks, practice], seed)
    names = tuple(f"annotator-{number}" for number in range(1, options.annotators + 1))
    plan = StudyPlan(
        systems=systems,
        annotators=names,
        seed=seed,
        items=len(items),
        available=available,
        automatic=len(items) - len(shown),
        checks=len(checks),
        per_item=per_item,
        stop=len(shown) * per_item,
        sides=options.sides,
        combine=options.combine,
        pass_share=options.pass_share,
        repeats=len(repeats),
        show_identical=options.show_identical,
        differences=options.differences,
        completion_code=options.completion_code,
        title=options.title,
        question=options.question,
        instructions=options.instructions,
    )
    everything = [*items, *checks, *repeats]
    annotators = [Annotator(name, secrets.token_urlsafe(16)) for name in names]
    return Study(plan, everything, annotators, assign(plan, everything, annotators), practice)


def _check(options: StudyOptions, per_item: int, checks: int) -> None:
    """Refuse a plan that cannot be carried out."""
    choose("way to set the sides", options.sides, SIDES)
    choose("way to combine judgements", options.combine, COMBINE)
    for name, least in {"items": 1, "annotators": 1, "checks": 0, "repeats": 0}.items():
        value = getattr(options, name)
        if value < least:
            raise UsageError(f"--{name} is {value}; it must be {least} or more.")
    if not 1 <= per_item <= options.annotators:
        raise UsageError(
            f"--per-item is {per_item}; it must be from 1 to the {options.annotators} annotators."
        )
    if options.pass_share is not None:
        if not 0 <= options.pass_share <= 1:
            raise UsageError(f"--pass-share is {options.pass_share}; it must be from 0 to 1.")
        if not checks:
            raise UsageError("--pass-share needs attention checks: give --checks N as well.")
    code = options.completion_code
    if code is not None and not (code.strip() and code.isprintable() and len(code) <= 200):
        raise UsageError("--completion-code must be from 1 to 200 characters that can be seen.")


def draw_items(pairs: Sequence[Pair], number: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """So many of the pairs at random, in file order; and those that were not drawn."""
    if not pairs:
        raise DataError("there are no pairs of outputs to judge.")
    chosen = set(shuffled([pair.key for pair in pairs], seed, "items")[:number])
    return [pair for pair in pairs if pair.key in chosen], [pair for pair in pairs if pair.key not in chosen]


def choose_practice(pairs: Sequence[Pair], spare: Sequence[Pair], seed: int) -> tuple[Pair, list[Pair]]:
    """The pair to practise with, and the spare ones that are left: the user's own, else one that was not
    drawn, else a made-up one."""
    own = [pair for pair in pairs if pair.practice]
    if len(own) > 1:
        raise DataError(f"{own[0].key!r} and {own[1].key!r} are both for practice; there can be one.")
    if own:
        return own[0], list(spare)
    by_key = {pair.key: pair for pair in spare if not pair.identical}
    for key in shuffled(by_key, seed, "practice")[:1]:
        return replace(by_key[key], practice=True), [pair for pair in spare if pair.key != key]
    return replace(PRACTICE, key=_free(PRACTICE.key, {pair.key for pair in pairs})), list(spare)


def make_checks(number: int, base: Sequence[Pair], donors: Sequence[Pair], seed: int) -> list[Pair]:
    """Attention checks: an output beside the scrambled words of another item's, or beside itself.

    They are made of items that were not drawn, where there are any.
    """
    usable = {pair.key: pair for pair in base if pair.first.strip() and not pair.identical}
    long = [pair.first for pair in donors if len(pair.first.split()) > 2]
    if number and not (usable and len(set(long)) > 1):
        raise DataError("the outputs are too few or too short to make attention checks of; use --checks 0.")
    order = shuffled(usable, seed, "checks")
    taken = {pair.key for pair in donors}
    checks: list[Pair] = []
    for index in range(number):
        pair = usable[order[index % len(order)]]
        key = _free(f"check-{index + 1}", taken)
        if index % 2:
            checks.append(replace(pair, key=key, second=pair.first, expected=0))
            continue
        other = next(text for text in shuffled(long, seed, "broken", index) if text != pair.first)
        scrambled = " ".join(word for _, word in shuffled(enumerate(other.split()), seed, "words", index))
        second_wins = coin(seed, "check", index)
        first, second = (scrambled, pair.first) if second_wins else (pair.first, scrambled)
        expected = 1 if second_wins else -1
        checks.append(replace(pair, key=key, first=first, second=second, expected=expected))
    return checks


def _free(key: str, taken: Container[str]) -> str:
    """The key, or one like it where an item of the user's has it."""
    while key in taken:
        key += "'"
    return key


def draw_repeats(number: int, shown: Sequence[Pair], everything: Sequence[Pair], seed: int) -> list[Pair]:
    """So many of the items at random, to be shown a second time."""
    if number > len(shown):
        raise UsageError(
            f"--repeats is {number}; it must be from 0 to the {len(shown)} items that are shown."
        )
    taken = {pair.key for pair in everything}
    by_key = {pair.key: pair for pair in shown}
    drawn = shuffled(by_key, seed, "repeats")[:number]
    return [replace(by_key[key], key=_free(f"{key} again", taken), again=key) for key in drawn]


def assign(plan: StudyPlan, pairs: Sequence[Pair], annotators: Sequence[Annotator]) -> list[Assignment]:
    """Each annotator's items in an order of their own; identical pairs go to nobody unless shown.

    What is shown again goes to those who have it already.
    """
    lists: list[list[int]] = [[] for _ in annotators]
    turn = 0
    for index in shuffled(range(len(pairs)), plan.seed, "deal"):
        pair = pairs[index]
        if pair.expected is not None:
            for listed in lists:
                listed.append(index)
        elif pair.counts and (plan.show_identical or not pair.identical):
            for step in range(plan.per_item):
                lists[(turn + step) % len(lists)].append(index)
            turn += plan.per_item
    indices = {pair.key: index for index, pair in enumerate(pairs)}
    for index, pair in enumerate(pairs):
        if pair.again is not None:
            for listed in lists:
                listed += [index] if indices[pair.again] in listed else []
    return [
        assignment
        for number, listed in enumerate(lists)
        for assignment in _assignments(plan, pairs, number, annotators[number], listed)
    ]


def _assignments(
    plan: StudyPlan, pairs: Sequence[Pair], number: int, who: Annotator, listed: Sequence[int]
) -> list[Assignment]:
    order = _repeats_last(pairs, shuffled(listed, plan.seed, "order", who.name))
    swapped = SIDES[plan.sides](plan.seed, who.name, [pairs[index].key for index in order])
    return [
        Assignment(number, index, position, _handle(who, pairs[index].key), side)
        for position, (index, side) in enumerate(zip(order, swapped, strict=True))
    ]


def _repeats_last(pairs: Sequence[Pair], order: Sequence[int]) -> list[int]:
    """The order, but items that are shown twice take the first of their positions and the repeats the last.

    So the first look always comes first, and as many others as are repeated lie between the two.
    """
    by_key = {pairs[index].key: index for index in order}
    again = [index for index in order if pairs[index].again is not None]
    first = [by_key[str(pairs[index].again)] for index in again]
    moved = list(order)
    positions = sorted(order.index(index) for index in (*first, *again))
    for position, index in zip(positions, (*first, *again), strict=True):
        moved[position] = index
    return moved


def _handle(annotator: Annotator, key: str) -> str:
    """An id that says nothing and that nobody else can make."""
    return hmac.digest(annotator.token.encode(), key.encode(), hashlib.sha256)[:16].hex()
