"""How one request is answered: the object `rangevote` of a request, a profile, and what the service is told.

{"samples": 16, "similarity": "overlap_2", "adaptive": 0.99, "min_votes": 4, "explain": true}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.election.settings import OPTION_TYPES as ELECTION
from rangevote.election.settings import Settings, check_option, read_profile, read_toml
from rangevote.errors import DataError, RangevoteError, UsageError, choose
from rangevote.generation.plan import CONFIDENCE
from rangevote.similarity.base import Similarity
from rangevote.similarity.mixture import Mixture

#: What only the operator says: how many win is the request's `n`.
OWN = frozenset({"winners"})
#: A measure, and what goes with it: who changes one leaves the others behind.
TOGETHER = frozenset({"similarity", "preset", "temperature"})


@dataclass(frozen=True)
class Options:
    """How many samples, who stands and votes, and how the votes are counted.

    `candidates`: with an upstream, how many of the samples (the first ones) stand for election, by default
    all, or 16 where sampling is adaptive; with a local model the search that finds them. `voters`: with a
    local model, "samples" or "candidates". `adaptive`: ask for samples in rounds, until the winner is this
    certain. `min_votes` usable samples are needed for an answer. `election` are options of `elect`.
    """

    samples: int = 16
    candidates: int | str | None = None
    voters: str = "samples"
    adaptive: float | None = None
    min_votes: int = 1
    explain: bool = False
    election: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, given: Mapping[str, Any]) -> Options:
        """With these options instead; each is checked."""
        found: dict[str, Any] = {}
        election: dict[str, Any] = {}
        for name, value in given.items():
            if value is None:
                continue
            if name in ELECTION and name not in OWN:
                election[name] = _election(name, value)
            else:
                choose("option", name, CHECKS)
                found[name] = CHECKS[name](name, value)
        changed = replace(self, **found, election=merged(self.election, election))
        changed.settings(1)
        return changed

    def settings(self, winners: int) -> Settings:
        """The election of so many winners; several are chosen to speak for different voters."""
        options = dict(self.election)
        if winners > 1 and options.get("rule", "range") == "range":
            options["rule"] = "reweighted"
        settings = _settings(tuple(sorted(options.items())), winners)
        if self.adaptive is not None and settings.rule in WITHOUT_VOTERS:
            raise UsageError(f"adaptive needs voters, and rule={settings.rule!r} has none.")
        if self.adaptive is not None and settings.weights not in (None, "count"):
            raise UsageError(f"adaptive needs voters that count the same, not weights={settings.weights!r}.")
        return settings


def orders_of(measure: Similarity) -> int:
    """How many orders of n-grams a measure counts, over all its parts.

    >>> from rangevote.similarity import get_similarity
    >>> orders_of(get_similarity("0.5*overlap_1-4+0.5*overlap_2")), orders_of(get_similarity("exact"))
    (5, 0)
    """
    if isinstance(measure, Mixture):
        return sum(orders_of(part) for _, part in measure.parts)
    return len(getattr(measure, "orders", ()))


def merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an election over others; a measure does not inherit another's temperature.

    >>> merged({"preset": "blend", "temperature": 2.0, "weights": "count"}, {"similarity": "exact"})
    {'weights': 'count', 'similarity': 'exact'}
    """
    dropped = TOGETHER if given.keys() & {"similarity", "preset"} else frozenset()
    return {**{name: value for name, value in base.items() if name not in dropped}, **given}


@lru_cache(maxsize=256)
def _settings(options: tuple[tuple[str, Any], ...], winners: int) -> Settings:
    return Settings(**dict(options), winners=winners)


def _election(name: str, value: Any) -> Any:
    check_option(name, value)
    if isinstance(value, str) and len(value) > 100:
        raise UsageError(f"{name} is longer than 100 characters.")
    return value


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number from 1, got {value!r:.60}.")
    return value


def _candidates(name: str, value: Any) -> int | str:
    if isinstance(value, str) and len(value) <= 100:
        from rangevote.decoding import get_search

        return str(get_search(value))
    return _whole(name, value)


def _voters(name: str, value: Any) -> str:
    if value not in ("samples", "candidates"):
        raise UsageError(f"{name} must be 'samples' or 'candidates', got {value!r:.60}.")
    return str(value)


def _adaptive(name: str, value: Any) -> float | None:
    if isinstance(value, bool):
        return CONFIDENCE if value else None
    if not isinstance(value, (int, float)) or not 0 < value < 1:
        raise UsageError(f"{name} must be a confidence between 0 and 1, true or false, got {value!r:.60}.")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, got {value!r:.60}.")
    return value


CHECKS: dict[str, Any] = {
    "samples": _whole,
    "candidates": _candidates,
    "voters": _voters,
    "adaptive": _adaptive,
    "min_votes": _whole,
    "explain": _flag,
}
assert {one.name for one in fields(Options)} == {*CHECKS, "election"}


def profile_of(path: str) -> dict[str, Any]:
    """The options in a profile: `[election]` as of `rangevote tune`, `[sampling]` for the service alone."""
    election = {name: value for name, value in read_profile(path).items() if name not in OWN}
    sampling = read_toml(Path(path)).get("sampling", {})
    if not isinstance(sampling, Mapping):
        raise DataError("must be a table, as [sampling] with samples = 16.", field="sampling", where=path)
    try:
        Options().changed({**election, **sampling})
    except RangevoteError as error:
        raise DataError(str(error), where=path) from None
    return {**election, **sampling}
