"""The plan of a study, fixed before the first judgement: systems, wording, sides, exclusion, items.

Random choices depend on a seed and on names, and on nothing else: not on the order of calls, nor on the
version of Python.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from rangevote import __version__

T = TypeVar("T")

#: As many as the paper had.
ITEMS = 500
#: Items in a block of which half have their sides swapped.
BLOCK = 10

TITLE = "Which output is better?"
QUESTION = "Which one is better?"
INSTRUCTIONS = (
    "You will see pairs of outputs for the same input. Judge which of the two is better, or that there is no "
    "difference. Their order is random. There is no right answer: judge as you see it."
)
#: The answers as they are worded, from -2 to 2; {left} and {right} name the sides as they are seen.
SCALE = (
    "{left} is much better",
    "{left} is slightly better",
    "No difference",
    "{right} is slightly better",
    "{right} is much better",
)
COMBINE = {
    "median": "the median of its judgements",
    "majority": "what more than half of its judgements say, otherwise a tie",
}


class StudyRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chooses and the plan keeps as it is.

    `pass_share`: annotators who pass fewer of the attention checks are excluded from the analysis; None
    excludes nobody. `differences`: the page can mark the words in which two outputs differ.
    `completion_code` is shown to annotators who have finished.
    """

    repeats: int = 0
    sides: str = "coin"
    combine: str = "median"
    pass_share: float | None = None
    show_identical: bool = False
    differences: bool = False
    completion_code: str | None = None
    title: str = TITLE
    question: str = QUESTION
    instructions: str = INSTRUCTIONS


class StudyPlan(StudyRules, frozen=True, kw_only=True):
    """The study's rules; the systems are (baseline, challenger), and results are about the challenger.

    `per_item` of the annotators judge each item, `repeats` of the items twice. `stop` is the number of
    judgements, not counting checks and repeats, after which the study is complete: fixed beforehand, since
    looking at p-values on the way makes them invalid.
    """

    seed: int
    systems: tuple[str, str]
    annotators: tuple[str, ...]
    items: int
    available: int
    automatic: int
    checks: int
    per_item: int
    stop: int
    scale: tuple[str, ...] = SCALE
    software: str = f"rangevote {__version__}"


class Pair(msgspec.Struct, frozen=True):
    """Two outputs for one input; `first` is of the baseline.

    `image` is the SHA-256 of an image. An attention check has an `expected` answer: 1 the second must be
    judged better, -1 the first, 0 neither. `again` is the key of an item that is shown a second time, to see
    how far people agree with themselves. A `practice` pair is shown to all before the first item; answers to
    it are not kept.
    """

    key: str
    first: str
    second: str
    source: str | None = None
    image: str | None = None
    expected: int | None = None
    again: str | None = None
    practice: bool = False

    @property
    def counts(self) -> bool:
        """Whether judgements of it are results: it is not a check, a repeat or for practice."""
        return self.expected is None and self.again is None and not self.practice

    @property
    def identical(self) -> bool:
        return self.first == self.second


class Annotator(msgspec.Struct, frozen=True):
    """A pseudonym, and the secret in the link."""

    name: str
    token: str


class Assignment(msgspec.Struct, frozen=True):
    """An annotator sees a pair at a position of their order; `swapped`: the second system is on the left.

    `handle` is all that the browser knows it by.
    """

    annotator: int
    pair: int
    position: int
    handle: str
    swapped: bool


class Study(msgspec.Struct, frozen=True):
    """Everything that is fixed beforehand: a plan with its pairs, annotators and assignments, and the pair to
    practise with."""

    plan: StudyPlan
    pairs: list[Pair]
    annotators: list[Annotator]
    assignments: list[Assignment]
    practice: Pair

    def document(self) -> bytes:
        """The study as JSON of one form."""
        return msgspec.json.encode(self, order="sorted")

    def digest(self) -> str:
        """SHA-256 of the document."""
        return hashlib.sha256(self.document()).hexdigest()


def draw(seed: int, *names: object) -> int:
    """128 random bits for these names: the first half of HMAC-SHA256(seed, names).

    Every name goes in with its length, so that no two lists of names are the same message.
    """
    message = b"".join(b"%d:%b" % (len(part), part) for part in (str(name).encode() for name in names))
    return int.from_bytes(hmac.digest(str(seed).encode(), message, hashlib.sha256)[:16], "big")


def coin(seed: int, *names: object) -> bool:
    return bool(draw(seed, *names) & 1)


def shuffled(values: Iterable[T], seed: int, *names: object) -> list[T]:
    """The values in random order; it depends on how they are written (`str`)."""
    return sorted(values, key=lambda value: draw(seed, *names, value))


def coin_sides(seed: int, annotator: str, keys: Sequence[str]) -> list[bool]:
    """A fair coin for each annotator and item, as in the paper."""
    return [coin(seed, "side", annotator, key) for key in keys]


def balanced_sides(seed: int, annotator: str, keys: Sequence[str]) -> list[bool]:
    """Half of each block of ten is swapped, so that a bias to one side favours neither system."""
    swapped: list[bool] = []
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        mixed = shuffled(block, seed, "side", annotator, start)
        odd = len(block) % 2 and coin(seed, "odd", annotator, start)
        chosen = set(mixed[: len(block) // 2 + odd])
        swapped += [key in chosen for key in block]
    return swapped


#: name -> (seed, annotator, keys of the items in the order of being seen) -> whether each one's sides are
#: swapped
SIDES: dict[str, Callable[[int, str, Sequence[str]], list[bool]]] = {
    "balanced": balanced_sides,
    "coin": coin_sides,
}


def resolved(shown: int, swapped: bool) -> int:
    """What an answer means for the second system: -2 (the first is much better) to 2 (the second is).

    `shown` is -2 (left much better) to 2 (right much better); the second system is on the right unless the
    sides are swapped.
    """
    return -shown if swapped else shown
