"""Options of a request, limits, and the configuration of a service; docs/service.md shows a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rangevote.decoding import get_search
from rangevote.decoding.beam import Beam
from rangevote.election.rules import NOT_ADAPTIVE
from rangevote.election.sequential_test import check_within
from rangevote.election.settings import SCHEMA, Settings, check_option, override, read_profile, read_toml
from rangevote.engines.openai.generating import DIALECTS
from rangevote.errors import DataError, RangevoteError, UsageError, choose
from rangevote.generation.plan import CONFIDENCE
from rangevote.similarity import WITH_MODELS
from rangevote.similarity.answers import UNSAFE
from rangevote.similarity.base import Measure

#: What a profile may be called: its name is part of a path.
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
#: Parts of paths that cannot be profiles.
RESERVED = frozenset({"chat", "completions", "models", "responses"})
#: Limits that may be 0.
MAY_BE_ZERO = frozenset({"queue", "retries", "hold", "drain"})


@dataclass(frozen=True)
class Limits:
    """Sizes, numbers and seconds; each can be set in the table `limits` of the configuration.

    `orders` of n-grams, over all parts of a measure, take memory each; `pairwise_chars` are the characters of
    all samples where every pair of them is compared. `in_flight` elections are under way at a time, `queue`
    more wait, the rest is turned away. `workers` are threads that count votes. `hold` is how long a stream
    waits for a real status before it begins, `keep_alive` its pause between comments that keep the connection
    open, `drain` how long a stopping service finishes what it has.
    """

    body_bytes: int = 8 * 2**20
    body_seconds: float = 10.0
    header_bytes: int = 32 * 2**10
    header_seconds: float = 10.0
    samples: int = 64
    messages: int = 256
    prompts: int = 32
    prompt_chars: int = 500_000
    candidate_tokens: int = 20_000
    orders: int = 8
    pairwise_chars: int = 2**20
    in_flight: int = 16
    queue: int = 64
    workers: int = 2
    upstream_calls: int = 64
    connect_seconds: float = 5.0
    read_seconds: float = 120.0
    total_seconds: float = 300.0
    response_bytes: int = 4 * 2**20
    retries: int = 2
    hold: float = 1.0
    keep_alive: float = 10.0
    drain: float = 30.0

    def __post_init__(self) -> None:
        for limit in fields(self):
            value: Any = getattr(self, limit.name)
            whole = limit.type == "int"
            kinds = (int,) if whole else (int, float)
            least: float = 0 if limit.name in MAY_BE_ZERO else 1 if whole else 0.001
            if type(value) not in kinds or not least <= value < 2**53:  # True is no number here
                kind = "a whole number" if whole else "a number"
                raise UsageError(f"the limit {limit.name} must be {kind} from {least:g}, got {value!r}.")


@dataclass(frozen=True)
class RequestOptions:
    """How many samples, who stands and votes, and how the votes are counted.

    `candidates`: how many of the samples (the first ones) stand for election, by default
    all, or 16 where sampling is adaptive and texts are compared; with vLLM also the search that finds them,
    and then `voters` are "samples" or "candidates". `adaptive`: ask for samples in rounds, until the winner
    is this certain, or certainly at most `within` below the best. `min_votes` usable samples are needed for
    an answer. `election` are options of `elect`.
    """

    samples: int = 16
    candidates: int | str | None = None
    voters: str = "samples"
    adaptive: float | None = None
    within: float = 0.0
    min_votes: int = 1
    explain: bool = False
    election: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, given: Mapping[str, Any]) -> RequestOptions:
        """With these options instead; each is checked."""
        own: dict[str, Any] = {}
        election: dict[str, Any] = {}
        for name, value in given.items():
            if value is None:
                continue
            if name in SCHEMA and SCHEMA[name].client:
                election[name] = _election_option(name, value)
            else:
                choose("option", name, CHECKS)
                own[name] = CHECKS[name](name, value)
        changed = replace(self, **own, election=override(self.election, election))
        changed.settings(1)
        return changed

    def settings(self, winners: int) -> Settings:
        """The election of so many winners; several are chosen to represent different voters."""
        options = dict(self.election)
        if winners > 1 and options.get("rule", "range") == "range":
            options["rule"] = "reweighted"
        if "shares" in options:  # which has no hash
            settings = Settings(**options, winners=winners)
        else:
            settings = _settings(tuple(sorted(options.items())), winners)
        if self.adaptive is not None and settings.rule in NOT_ADAPTIVE:
            raise UsageError(f"adaptive cannot tell when rule={settings.rule!r} is certain; use 'range'.")
        if self.adaptive is not None and settings.weights not in (None, "count"):
            raise UsageError(f"adaptive needs voters that count the same, not weights={settings.weights!r}.")
        return settings


@lru_cache(maxsize=256)
def _settings(options: tuple[tuple[str, Any], ...], winners: int) -> Settings:
    return Settings(**dict(options), winners=winners)


def _election_option(name: str, value: Any) -> Any:
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


def _within(name: str, value: Any) -> float:
    check_within(value)
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
    "within": _within,
    "min_votes": _whole,
    "explain": _flag,
}
assert {option.name for option in fields(RequestOptions)} == {*CHECKS, "election"}


@dataclass(frozen=True)
class Alias:
    """A name that clients use for a model, and perhaps a profile."""

    model: str
    profile: str | None = None


@dataclass(frozen=True)
class ServiceConfig:
    """`source` is the kind of server that the upstream is, as of `rangevote generate`; `models` are those
    that clients may ask for, none: those that the upstream lists. `forward` are parameters that go to the
    server beside those that the service knows. `kept` elections can be looked at. Several
    servers are the `members` of a panel, by name, whose model is called `panel`; `upstream` is the first."""

    upstream: str = ""
    source: str = "openai"
    options: RequestOptions = field(default_factory=RequestOptions)
    limits: Limits = field(default_factory=Limits)
    profiles: Mapping[str, RequestOptions] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    image_hosts: frozenset[str] = frozenset()
    forward: frozenset[str] = frozenset()
    kept: int = 0
    hosts: tuple[str, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict)
    panel: str = "panel"

    def __post_init__(self) -> None:
        choose("source", self.source, DIALECTS)
        for name in self.profiles:
            if not PROFILE_NAME.fullmatch(name) or name in RESERVED:
                raise UsageError(
                    f"a profile is called {name!r}; use small letters, digits, '-' and '_', and not "
                    f"{', '.join(sorted(RESERVED))}."
                )
        if self.panel in self.members or not self.panel.strip():
            raise UsageError(f"the panel is called {self.panel!r}; give it another name than its members.")
        for alias in self.aliases.values():
            if alias.profile is not None:
                choose("profile", alias.profile, self.profiles)
        for options in (self.options, *self.profiles.values()):
            self._check(options)

    def _check(self, options: RequestOptions) -> None:
        """Refuse options for which every request would be refused."""
        if options.samples > self.limits.samples:
            raise UsageError(f"{options.samples} samples are more than the limit {self.limits.samples}.")
        if options.min_votes > options.samples:
            raise UsageError(f"{options.min_votes} votes cannot come of {options.samples} samples.")
        self.check_orders(options)
        self.check_searches(options)

    def check_orders(self, options: RequestOptions) -> None:
        """Whether the n-grams of a measure fit into memory, however long the samples are."""
        measure = options.settings(1).measure
        if (orders := orders_of(measure)) > self.limits.orders:
            raise UsageError(
                f"similarity {measure.name} counts n-grams of {orders} orders; {self.limits.orders} are "
                f"allowed (limits.orders)."
            )

    def check_models(self, options: RequestOptions) -> None:
        """Whether the operator named every model that a measure would load: clients cannot."""
        for name in models_of(options.settings(1).measure) - self.named_models:
            allowed = ", ".join(sorted(self.named_models)) or "none"
            raise UsageError(
                f"similarity {name} loads a model, and requests may use only those that the service's "
                f"options and profiles name: {allowed}."
            )

    def check_key(self, asked: Mapping[str, Any]) -> None:
        """Whether the operator wrote a measure just like that, if it has a key that clients may not name.

        A key stands behind a colon, however the name before it is spelled.
        """
        similarity = asked.get("similarity")
        unsafe = [key for key in UNSAFE if f":{key}" in str(similarity)]
        every = (self.options, *self.profiles.values())
        if unsafe and similarity not in [options.election.get("similarity") for options in every]:
            raise UsageError(
                f"similarity: requests may use exact:{unsafe[0]} only where the service's options or "
                f"profiles name it in just that way."
            )

    @cached_property
    def named_models(self) -> frozenset[str]:
        """The measures with models that the operator's options and profiles name."""
        every = (self.options, *self.profiles.values())
        return frozenset(name for options in every for name in models_of(options.settings(1).measure))

    def check_searches(self, options: RequestOptions) -> None:
        """Whether the server has such candidates and voters: few servers search."""
        if not isinstance(options.candidates, str):
            if options.voters == "candidates":
                raise UsageError("voters are samples where the candidates are.")
            return
        search = get_search(options.candidates)
        if Beam not in DIALECTS[self.source].searches or search != Beam(search.size):
            raise UsageError(
                f"candidates of a server are samples, so a number of them, or 'beam:10' of a vLLM server "
                f"(--engine vllm); got {options.candidates!r}."
            )


def orders_of(measure: Measure) -> int:
    """How many orders of n-grams a measure counts, over all its parts.

    >>> from rangevote.similarity import get_similarity
    >>> orders_of(get_similarity("0.5*overlap_1-4+0.5*overlap_2")), orders_of(get_similarity("exact"))
    (5, 0)
    """
    return sum(len(part.orders) for _, part in measure.parts())


def models_of(measure: Measure) -> frozenset[str]:
    """The parts of a measure that load a model.

    >>> from rangevote.similarity import get_similarity
    >>> sorted(models_of(get_similarity("0.5*overlap_2+0.50*embedding:x")))
    ['embedding:x']
    """
    names = (part.name for _, part in measure.parts())
    return frozenset(name for name in names if name.partition(":")[0] in WITH_MODELS)


KEYS: dict[str, type[Any]] = {
    "upstream": str,
    "upstreams": dict,
    "panel": str,
    "source": str,
    "allow_models": list,
    "allow_image_hosts": list,
    "forward": list,
    "keep_elections": int,
    "options": dict,
    "limits": dict,
    "profiles": dict,
    "aliases": dict,
}


def read_config(path: str) -> dict[str, Any]:
    """A configuration file, its keys and their types checked; profiles in files are read."""
    config = read_toml(Path(path))
    try:
        for name, value in config.items():
            kind: type[Any] = choose("key", name, KEYS)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise UsageError(f"{name} must be a {kind.__name__}, got {value!r:.60}.")
            if kind is list and not all(isinstance(item, str) for item in value):
                raise UsageError(f"{name} must be a list of names.")
        for name, url in config.get("upstreams", {}).items():
            if not isinstance(url, str):
                raise UsageError(f"upstreams.{name} must be an address, as http://127.0.0.1:8000/v1.")
        for name in config.get("limits", {}):
            choose("limit", name, {limit.name: None for limit in fields(Limits)})
        config["profiles"] = {
            name: _profile(name, table, path) for name, table in _tables(config, "profiles")
        }
        config["aliases"] = {name: _alias(name, table) for name, table in _tables(config, "aliases")}
    except DataError:
        raise
    except RangevoteError as error:
        raise DataError(str(error), where=path) from None
    return config


def _tables(config: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = list(config.get(name, {}).items())
    for key, table in tables:
        if not isinstance(table, Mapping):
            raise UsageError(f"{name}.{key} must be a table.")
    return tables


def _profile(name: str, given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Options in this file, or in another one beside it."""
    options = dict(given)
    file = options.pop("file", None)
    if file is None:
        return options
    if not isinstance(file, str):
        raise UsageError(f"profiles.{name}.file must be a path.")
    return override(profile_options(str(Path(path).parent / file)), options)


def _alias(name: str, given: Mapping[str, Any]) -> Alias:
    known = {one.name: None for one in fields(Alias)}
    for key, value in given.items():
        choose(f"key of the alias {name}", key, known)
        if not isinstance(value, str):
            raise UsageError(f"aliases.{name}.{key} must be a name.")
    if "model" not in given:
        raise UsageError(f"aliases.{name} names no model.")
    return Alias(**given)


def profile_options(path: str) -> dict[str, Any]:
    """The options in a profile: `[election]` as of `rangevote tune`, `[sampling]` for the service alone."""
    election = {name: value for name, value in read_profile(path).items() if SCHEMA[name].client}
    sampling = read_toml(Path(path)).get("sampling", {})
    if not isinstance(sampling, Mapping):
        raise DataError("must be a table, as [sampling] with samples = 16.", field="sampling", where=path)
    try:
        RequestOptions().changed({**election, **sampling})
    except RangevoteError as error:
        raise DataError(str(error), where=path) from None
    return {**election, **sampling}
