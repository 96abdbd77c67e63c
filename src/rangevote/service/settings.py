"""What a service is told before it starts: by the command line, or by a file.

upstream = "http://127.0.0.1:8000/v1"
allow_models = ["small", "large"]
allow_image_hosts = ["images.example"]
forward = ["chat_template_kwargs"]        # further parameters that go to the upstream as they are

[options]                                 # of every request, as in its `rangevote` object
samples = 16

[limits]                                  # see `limits.py`
total_seconds = 120

[profiles.careful]                        # at /v1/careful/chat/completions
samples = 64
adaptive = 0.99

[profiles.tuned]
file = "tuned.toml"                       # of `rangevote tune`

[aliases.elected]                         # a name for a model with a profile
model = "large"
profile = "careful"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rangevote.decoding import get_search
from rangevote.decoding.beam import Beam
from rangevote.election.settings import read_toml
from rangevote.errors import DataError, RangevoteError, UsageError, choose
from rangevote.service.limits import Limits
from rangevote.service.options import Options, orders_of, profile_of
from rangevote.sources.openai.asking import DIALECTS

#: What a profile may be called: it stands in addresses.
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
#: Parts of addresses that are no profiles.
TAKEN = frozenset({"chat", "completions", "models"})


@dataclass(frozen=True)
class Alias:
    """A name that clients use for a model, and perhaps a profile."""

    model: str
    profile: str | None = None


@dataclass(frozen=True)
class ServiceSettings:
    """All of it. `source` is the kind of server that the upstream is, as of `rangevote generate`; `models`
    are those that clients may ask for, none: those that the upstream lists."""

    upstream: str | None = None
    source: str = "openai"
    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    profiles: Mapping[str, Options] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    image_hosts: frozenset[str] = frozenset()
    forward: frozenset[str] = frozenset()
    kept: int = 0
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what stands for itself."""
        choose("source", self.source, DIALECTS)
        for name in self.profiles:
            if not NAME.fullmatch(name) or name in TAKEN:
                raise UsageError(
                    f"a profile is called {name!r}; use small letters, digits, '-' and '_', and not "
                    f"{', '.join(sorted(TAKEN))}."
                )
        for alias in self.aliases.values():
            if alias.profile is not None:
                choose("profile", alias.profile, self.profiles)
        for options in (self.options, *self.profiles.values()):
            self._check(options)

    def _check(self, options: Options) -> None:
        """What every request would be refused for."""
        if options.samples > self.limits.samples:
            raise UsageError(f"{options.samples} samples are more than the limit {self.limits.samples}.")
        if options.min_votes > options.samples:
            raise UsageError(f"{options.min_votes} votes cannot come of {options.samples} samples.")
        self.check_orders(options)
        self.check_searches(options)

    def check_orders(self, options: Options) -> None:
        """Whether the n-grams of a measure fit into memory, however long the samples are."""
        measure = options.settings(1).measure
        if (orders := orders_of(measure)) > self.limits.orders:
            raise UsageError(
                f"similarity {measure.name} counts n-grams of {orders} orders; {self.limits.orders} are "
                f"allowed (limits.orders)."
            )

    def check_searches(self, options: Options) -> None:
        """Whether what is to stand and vote can be had: local models search, few servers do."""
        if self.upstream is None:
            if isinstance(options.candidates, int):
                raise UsageError(f"candidates of a local model are a search, as 'beam:{options.candidates}'.")
            return
        if not isinstance(options.candidates, str):
            if options.voters == "candidates":
                raise UsageError("voters are samples where the candidates are.")
            return
        search = get_search(options.candidates)
        if Beam not in DIALECTS[self.source].searches or search != Beam(search.size):
            raise UsageError(
                f"candidates of a server are samples, so a number of them, or 'beam:10' of a vLLM server "
                f"(--source vllm); got {options.candidates!r}."
            )


KEYS: dict[str, type[Any]] = {
    "upstream": str,
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
    found = read_toml(Path(path))
    try:
        for name, value in found.items():
            kind: type[Any] = choose("key", name, KEYS)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise UsageError(f"{name} must be a {kind.__name__}, got {value!r:.60}.")
            if kind is list and not all(isinstance(item, str) for item in value):
                raise UsageError(f"{name} must be a list of names.")
        for name, value in found.get("limits", {}).items():
            choose("limit", name, {one.name: value for one in fields(Limits)})
        found["profiles"] = {name: _profile(name, given, path) for name, given in _tables(found, "profiles")}
        found["aliases"] = {name: _alias(name, given) for name, given in _tables(found, "aliases")}
    except DataError:
        raise
    except RangevoteError as error:
        raise DataError(str(error), where=path) from None
    return found


def _tables(found: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = list(found.get(name, {}).items())
    for key, table in tables:
        if not isinstance(table, Mapping):
            raise UsageError(f"{name}.{key} must be a table.")
    return tables


def _profile(name: str, given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Options that stand in the file, or in another one beside it."""
    options = dict(given)
    file = options.pop("file", None)
    if file is None:
        return options
    if not isinstance(file, str):
        raise UsageError(f"profiles.{name}.file must be a path.")
    return {**profile_of(str(Path(path).parent / file)), **options}


def _alias(name: str, given: Mapping[str, Any]) -> Alias:
    known = {one.name: None for one in fields(Alias)}
    for key, value in given.items():
        choose(f"key of the alias {name}", key, known)
        if not isinstance(value, str):
            raise UsageError(f"aliases.{name}.{key} must be a name.")
    if "model" not in given:
        raise UsageError(f"aliases.{name} names no model.")
    return Alias(**given)
