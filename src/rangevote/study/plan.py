"""What is fixed before the first judgement: systems, wording, sides, exclusion, number of items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rangevote import __version__
from rangevote.errors import DataError, UsageError, choose
from rangevote.study.sides import SIDES

#: As many as the paper had.
ITEMS = 500
#: Longest text of an output or a source, in characters.
LONGEST = 4 * 2**20

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
    "majority": "what more than half of its judgements say, else a tie",
}


@dataclass(frozen=True)
class Plan:
    """The study's rules; the systems are (baseline, challenger), and results are told of the challenger.

    `per_item` of the annotators judge each item, `repeats` of the items twice. `pass_share`: who passes fewer
    of the attention checks is left out of the analysis; None leaves nobody out. `stop` is the number of
    judgements, checks and second ones not counted, after which the study is complete: fixed beforehand, since
    a look at p-values on the way voids them.
    """

    systems: tuple[str, str]
    annotators: tuple[str, ...]
    seed: int
    items: int
    available: int
    automatic: int
    checks: int
    per_item: int
    stop: int
    sides: str = "coin"
    combine: str = "median"
    pass_share: float | None = None
    repeats: int = 0
    show_identical: bool = False
    title: str = TITLE
    question: str = QUESTION
    instructions: str = INSTRUCTIONS
    scale: tuple[str, ...] = SCALE
    software: str = f"rangevote {__version__}"

    def text(self) -> str:
        """The plan as canonical JSON."""
        return canonical(asdict(self))

    @classmethod
    def of(cls, text: str) -> Plan:
        """The plan that `text` wrote."""
        found: dict[str, Any] = json.loads(text)
        return cls(**{f.name: _frozen(found[f.name]) for f in fields(cls)})


@dataclass(frozen=True)
class Pair:
    """Two outputs for one input; `first` is of the baseline.

    `image` is the SHA-256 of an imported picture. An attention check has an `expected` answer: 1 the second
    must be judged better, -1 the first, 0 neither. `again` is the key of an item that is shown a second time,
    to see how far people agree with themselves.
    """

    key: str
    first: str
    second: str
    source: str | None = None
    image: str | None = None
    expected: int | None = None
    again: str | None = None

    @property
    def counts(self) -> bool:
        """Whether judgements of it are results: it is neither a check nor shown before."""
        return self.expected is None and self.again is None

    @property
    def identical(self) -> bool:
        """Whether there is nothing to choose between."""
        return self.first == self.second


@dataclass(frozen=True)
class Annotator:
    """A pseudonym, and the secret in the link."""

    name: str
    token: str


@dataclass(frozen=True)
class Assignment:
    """An annotator sees a pair at a place of their order; `swapped`: the second system stands on the left.

    `handle` is all that the browser knows it by.
    """

    annotator: int
    pair: int
    position: int
    handle: str
    swapped: bool


@dataclass(frozen=True)
class Study:
    """A plan with all that it speaks of."""

    plan: Plan
    pairs: Sequence[Pair]
    annotators: Sequence[Annotator]
    assignments: Sequence[Assignment]

    def digest(self) -> str:
        """SHA-256 of everything that is fixed beforehand; tokens go in as digests of their own."""
        secret = [[one.name, hashlib.sha256(one.token.encode()).hexdigest()] for one in self.annotators]
        parts = [
            asdict(self.plan),
            [asdict(pair) for pair in self.pairs],
            secret,
            [asdict(assignment) for assignment in self.assignments],
        ]
        return hashlib.sha256(canonical(parts).encode()).hexdigest()


def canonical(value: object) -> str:
    """JSON of one form for one value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def check_options(
    *,
    items: int,
    annotators: int,
    per_item: int,
    checks: int,
    repeats: int,
    sides: str,
    combine: str,
    share: float | None,
) -> None:
    """Refuse a plan that cannot be carried out."""
    choose("way to set the sides", sides, SIDES)
    choose("way to combine judgements", combine, COMBINE)
    given = {
        "items": (items, 1),
        "annotators": (annotators, 1),
        "checks": (checks, 0),
        "repeats": (repeats, 0),
    }
    for name, (value, least) in given.items():
        if value < least:
            raise UsageError(f"--{name} is {value}; it must be {least} or more.")
    if not 1 <= per_item <= annotators:
        raise UsageError(f"--per-item is {per_item}; it must be from 1 to the {annotators} annotators.")
    if share is not None and not 0 <= share <= 1:
        raise UsageError(f"--pass-share is {share}; it must be from 0 to 1.")
    if share is not None and not checks:
        raise UsageError("--pass-share needs attention checks: give --checks N as well.")


def check_pair(pair: Pair, where: str) -> None:
    """Refuse texts that no page can show."""
    for name, text in (("first", pair.first), ("second", pair.second), ("source", pair.source or "")):
        if len(text) > LONGEST:
            raise DataError(
                f"has {len(text):,} characters; at most {LONGEST:,} can be shown. Shorten or drop it.",
                field=name,
                where=where,
            )
