"""What if: the same ballot under other settings, as a reader of the page turns them.

A query names what differs from the page's own election: `similarity`, `temperature`, `likelihood`, `weights`,
`voters=candidates` (they vote instead of the voters given) and `without=V` (voter V stays away). What comes
is hostile until checked: only measures that the page offers are counted, since others may load models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rangevote.election.settings import Settings
from rangevote.election.weights import WEIGHTS
from rangevote.errors import UsageError, choose
from rangevote.hypothesis import Ballot
from rangevote.similarity import PRESETS, get_similarity
from rangevote.web.api import chosen_tokenisation
from rangevote.web.clusters import MEASURES

#: Largest temperature and likelihood that can be turned to.
MOST = 100.0


class WhatIf(NamedTuple):
    """What differs from the page's own election; None is as there."""

    similarity: str | None = None
    temperature: float | None = None
    likelihood: float | None = None
    weights: str | None = None
    voters: str | None = None
    without: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> WhatIf:
        """Checked; an empty value is as none."""
        given = {name: query[name] for name in cls._fields if query.get(name)}
        found: dict[str, Any] = {}
        for name in ("temperature", "likelihood"):
            if name in given:
                found[name] = _number(name, given[name])
        if "without" in given:
            text = given["without"]
            if not (text.isascii() and text.isdecimal() and len(text) < 10):
                raise UsageError("without must be the number of a voter, from 0.")
            found["without"] = int(text)
        for name, allowed in {"similarity": MEASURES, "weights": WEIGHTS, "voters": ("candidates",)}.items():
            if name in given:
                choose(name, given[name], dict.fromkeys(allowed))
                found[name] = given[name]
        return cls(**found)

    def apply(self, ballot: Ballot, settings: Settings) -> tuple[Ballot, Settings]:
        """The ballot and the settings of the other election."""
        turned: dict[str, Any] = {}
        if self.similarity is not None:
            tokenize = chosen_tokenisation(settings.measure)
            preset = self.similarity if self.similarity in PRESETS else None
            turned.update(similarity=get_similarity(self.similarity, tokenize), preset=preset)
        for name in ("temperature", "likelihood", "weights"):
            if getattr(self, name) is not None:
                turned[name] = getattr(self, name)
        if self.weights not in (None, "probability"):
            turned["temperature"] = None  # it is for probabilities
        voters = None if self.voters is not None else ballot.voters
        if self.without is not None:
            electors = ballot.candidates if voters is None else voters
            if self.without >= len(electors) or len(electors) < 2:
                raise UsageError(f"there is no voter {self.without} to leave out of {len(electors):,}.")
            voters = [voter for v, voter in enumerate(electors) if v != self.without]
        return msgspec.structs.replace(ballot, voters=voters), settings.replace(**turned)


def _number(name: str, text: str) -> float:
    try:
        number = float(text) if len(text) < 20 else math.nan
    except ValueError:
        number = math.nan
    if not (0 if name == "likelihood" else 0.01) <= number <= MOST:
        raise UsageError(f"{name} must be a number up to {MOST:g}.")
    return number
