"""A study from pairs of outputs: which items, which checks, who sees what in which order."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from rangevote.errors import DataError, UsageError
from rangevote.study.chance import coin, shuffled
from rangevote.study.plan import (
    INSTRUCTIONS,
    ITEMS,
    QUESTION,
    TITLE,
    Annotator,
    Assignment,
    Pair,
    Plan,
    Study,
    check_options,
)
from rangevote.study.sides import SIDES


@dataclass(frozen=True)
class Wishes:
    """What the user asks of a study."""

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
    title: str = TITLE
    question: str = QUESTION
    instructions: str = INSTRUCTIONS


def make_study(systems: tuple[str, str], pairs: Sequence[Pair], wishes: Wishes) -> Study:
    """Draw the items, add the checks, and deal all out. Only the secrets differ from call to call."""
    per_item = wishes.annotators if wishes.per_item is None else wishes.per_item
    own = [pair for pair in pairs if pair.expected is not None]
    check_options(
        items=wishes.items,
        annotators=wishes.annotators,
        per_item=per_item,
        checks=wishes.checks + len(own),
        repeats=wishes.repeats,
        sides=wishes.sides,
        combine=wishes.combine,
        share=wishes.pass_share,
    )
    items, spare = drawn([pair for pair in pairs if pair.expected is None], wishes.items, wishes.seed)
    checks = [*own, *made_checks(wishes.checks, spare or items, [*items, *spare], wishes.seed)]
    shown = [pair for pair in items if wishes.show_identical or not pair.identical]
    repeats = repeated(wishes.repeats, shown, [*pairs, *checks], wishes.seed)
    names = tuple(f"annotator-{number}" for number in range(1, wishes.annotators + 1))
    plan = Plan(
        systems=systems,
        annotators=names,
        seed=wishes.seed,
        items=len(items),
        available=len(items) + len(spare),
        automatic=len(items) - len(shown),
        checks=len(checks),
        per_item=per_item,
        stop=len(shown) * per_item,
        sides=wishes.sides,
        combine=wishes.combine,
        pass_share=wishes.pass_share,
        repeats=len(repeats),
        show_identical=wishes.show_identical,
        title=wishes.title,
        question=wishes.question,
        instructions=wishes.instructions,
    )
    everything = [*items, *checks, *repeats]
    annotators = [Annotator(name, secrets.token_urlsafe(16)) for name in names]
    return Study(plan, everything, annotators, dealt(plan, everything, annotators))


def drawn(pairs: Sequence[Pair], number: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """So many of the pairs at random, in file order; and those that were not drawn."""
    if not pairs:
        raise DataError("there are no pairs of outputs to judge.")
    chosen = set(shuffled([pair.key for pair in pairs], seed, "items")[:number])
    return [pair for pair in pairs if pair.key in chosen], [pair for pair in pairs if pair.key not in chosen]


def made_checks(number: int, base: Sequence[Pair], donors: Sequence[Pair], seed: int) -> list[Pair]:
    """Attention checks: an output beside the scrambled words of another item's, or beside itself.

    They are made of items that were not drawn, where there are any.
    """
    usable = [pair for pair in base if pair.first.strip() and not pair.identical]
    broken = [text for pair in donors if len((text := pair.first).split()) > 2]
    if number and not (usable and len(set(broken)) > 1):
        raise DataError("the outputs are too few or too short to make attention checks of; use --checks 0.")
    by_key = {pair.key: pair for pair in usable}
    order = shuffled(by_key, seed, "checks")
    taken = {pair.key for pair in donors}
    checks: list[Pair] = []
    for index in range(number):
        pair = by_key[order[index % len(order)]]
        key = free(f"check-{index + 1}", taken)
        if index % 2:
            checks.append(replace(pair, key=key, second=pair.first, expected=0))
            continue
        other = next(text for text in shuffled(broken, seed, "broken", index) if text != pair.first)
        wreck = " ".join(word for _, word in shuffled(enumerate(other.split()), seed, "words", index))
        second_wins = coin(seed, "check", index)
        texts = (wreck, pair.first) if second_wins else (pair.first, wreck)
        expected = 1 if second_wins else -1
        checks.append(replace(pair, key=key, first=texts[0], second=texts[1], expected=expected))
    return checks


def free(key: str, taken: Container[str]) -> str:
    """The key, or one like it where an item of the user's has it."""
    while key in taken:
        key += "'"
    return key


def repeated(number: int, shown: Sequence[Pair], everything: Sequence[Pair], seed: int) -> list[Pair]:
    """So many of the items at random, once more."""
    if number > len(shown):
        raise UsageError(
            f"--repeats is {number}; it must be from 0 to the {len(shown)} items that are shown."
        )
    taken = {pair.key for pair in everything}
    drawn = shuffled([pair.key for pair in shown], seed, "repeats")[:number]
    by_key = {pair.key: pair for pair in shown}
    return [replace(by_key[key], key=free(f"{key} again", taken), again=key) for key in drawn]


def dealt(plan: Plan, pairs: Sequence[Pair], annotators: Sequence[Annotator]) -> list[Assignment]:
    """Each annotator's items in an order of their own; identical pairs go to nobody unless shown.

    What is shown again goes to those who have it already.
    """
    hands: list[list[int]] = [[] for _ in annotators]
    turn = 0
    for index in shuffled(range(len(pairs)), plan.seed, "deal"):
        pair = pairs[index]
        if pair.expected is not None:
            for hand in hands:
                hand.append(index)
        elif pair.counts and (plan.show_identical or not pair.identical):
            for step in range(plan.per_item):
                hands[(turn + step) % len(hands)].append(index)
            turn += plan.per_item
    places = {pair.key: index for index, pair in enumerate(pairs)}
    for index, pair in enumerate(pairs):
        if pair.again is not None:
            for hand in hands:
                hand += [index] if places[pair.again] in hand else []
    return [
        found for number, hand in enumerate(hands) for found in _hand(plan, pairs, annotators, number, hand)
    ]


def _hand(
    plan: Plan, pairs: Sequence[Pair], annotators: Sequence[Annotator], number: int, hand: Sequence[int]
) -> list[Assignment]:
    who = annotators[number]
    order = _later(pairs, shuffled(hand, plan.seed, "order", who.name))
    swapped = SIDES[plan.sides](plan.seed, who.name, [pairs[index].key for index in order])
    return [
        Assignment(number, index, position, _handle(who, pairs[index].key), side)
        for position, (index, side) in enumerate(zip(order, swapped, strict=True))
    ]


def _later(pairs: Sequence[Pair], order: Sequence[int]) -> list[int]:
    """The order, but with items that are shown twice at the first of their places and again at the last.

    So the first look always comes first, and as many others as are repeated lie between the two.
    """
    places = {pairs[index].key: place for place, index in enumerate(order)}
    again = [index for index in order if pairs[index].again is not None]
    first = [order[places[str(pairs[index].again)]] for index in again]
    moved = list(order)
    for place, index in zip(
        sorted(order.index(index) for index in (*first, *again)), (*first, *again), strict=True
    ):
        moved[place] = index
    return moved


def _handle(annotator: Annotator, key: str) -> str:
    """An id that tells nothing and that nobody else can make."""
    return hmac.digest(annotator.token.encode(), key.encode(), hashlib.sha256)[:16].hex()
