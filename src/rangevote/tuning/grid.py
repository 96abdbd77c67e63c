"""Which settings are tried: measures, their exponents, temperatures of the weights, word units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.errors import UsageError
from rangevote.similarity import PRESETS, get_similarity
from rangevote.similarity.base import short
from rangevote.similarity.ngram import Ngrams

#: 5 measures x 5 exponents x 4 temperatures: 100 settings.
SIMILARITIES = ("overlap_1", "overlap_2", "overlap_3", "overlap_1-4", "precision_1-4")
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
TEMPERATURES = (0.5, 1.0, 2.0, 4.0)
TOKENIZE = ("words",)


@dataclass(frozen=True)
class Setting:
    """One way to elect, named as `elect` names it."""

    similarity: str
    temperature: float = 1.0
    tokenize: str = "words"
    rule: str = "range"

    @property
    def voted(self) -> bool:
        """Whether anybody votes."""
        return self.rule not in WITHOUT_VOTERS

    @property
    def name(self) -> str:
        """`overlap_2`, with what is not usual: `overlap_2, T = 2, 13a`; or a rule in which nobody votes."""
        if not self.voted:
            return self.rule
        parts = [self.similarity]
        parts += [f"T = {short(self.temperature)}"] if self.temperature != 1 else []
        parts += [self.tokenize] if self.tokenize != "words" else []
        return ", ".join(parts)

    @property
    def options(self) -> dict[str, Any]:
        """For `elect`, and for a profile."""
        return {"similarity": self.similarity, "temperature": self.temperature, "tokenize": self.tokenize}


#: An election without any options, and what is done without one: not among the choices, but told beside them.
DEFAULT = Setting("overlap_2")
BASELINES = (
    Setting("overlap_2", rule="most_likely"),
    Setting("overlap_2", rule="length_normalised"),
)


def grid(
    similarities: Sequence[str] = SIMILARITIES,
    exponents: Sequence[float] = EXPONENTS,
    temperatures: Sequence[float] = TEMPERATURES,
    tokenize: Sequence[str] = TOKENIZE,
) -> list[Setting]:
    """All combinations, each once.

    Exponents are for n-gram measures that have none in their name; a preset is one setting with the
    temperature it brings.

    >>> [setting.name for setting in grid(["overlap_2", "states"], [0, 0.5], [1, 2])]
    ['overlap_2', 'overlap_2, T = 2', 'overlap_2@0.5', 'overlap_2@0.5, T = 2', 'states', 'states, T = 2']
    """
    _check("similarities", similarities, str)
    _check("tokenize", tokenize, str)
    for a in _check("exponents", exponents, (int, float)):
        if not 0 <= a <= 1:
            raise UsageError(f"exponents go from 0 to 1, got {a!r}.")
    for temperature in _check("temperatures", temperatures, (int, float)):
        if not 0 < temperature < math.inf:
            raise UsageError(f"temperatures are numbers above 0, got {temperature!r}.")
    found: dict[Setting, None] = {}
    for words, similarity in product(tokenize, similarities):
        found |= dict.fromkeys(_settings(similarity, words, exponents, temperatures))
    return list(found)


def _settings(
    similarity: str, words: str, exponents: Sequence[float], temperatures: Sequence[float]
) -> Iterator[Setting]:
    measure = get_similarity(similarity, words)  # refuses names that do not exist
    if similarity in PRESETS:
        yield Setting(PRESETS[similarity].similarity, PRESETS[similarity].temperature, words)
        return
    names = [similarity]
    if isinstance(measure, Ngrams) and "@" not in similarity:
        orders = range(measure.orders[0], measure.orders[-1] + 1)
        names = [Ngrams(orders, bag=measure.bag, a=float(a)).name for a in exponents]
    for name, temperature in product(names, temperatures):
        yield Setting(name, float(temperature), words)


def _check(name: str, given: Sequence[Any], kind: type | tuple[type, ...]) -> Sequence[Any]:
    if isinstance(given, (str, bytes)) or not len(given):
        raise UsageError(f"{name} must be a list with something in it, got {given!r}.")
    for value in given:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UsageError(f"{name}: {value!r} is no {'name' if kind is str else 'number'}.")
    return given
