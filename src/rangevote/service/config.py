"""Request options, limits and the configuration file; docs/reference/service.md has an example."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rangevote.decoding import get_search
from rangevote.decoding.beam import Beam
from rangevote.election.sequential_test import check_within
from rangevote.election.settings import SCHEMA, Settings, check_option, override, read_profile, read_toml
from rangevote.engines.openai.generating import DIALECTS
from rangevote.errors import DataError, RangevoteError, UsageError, choose
from rangevote.formats.jsonl import convert
from rangevote.generation.plan import CONFIDENCE, Escalation, check_sampling
from rangevote.similarity import WITH_MODELS
from rangevote.similarity.base import Measure
from rangevote.similarity.exact import UNSAFE

#: Names of profiles, which are part of a path.
PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
#: Parts of paths that cannot be profiles.
RESERVED = frozenset({"chat", "completions", "models", "responses"})

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0.001, lt=2**53)]
Short = Annotated[str, Meta(max_length=100)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes, numbers and seconds; each can be set in the table `limits` of the configuration.

    `orders` is how many n-gram orders the parts of a measure may have in all, since each takes memory.
    `pairwise_chars` limits the characters of all samples if every pair is compared. `in_flight` elections run
    at a time, `queue` more requests wait, and others get a 503. `workers` threads count votes. `hold` is how
    long a stream waits for a real status before it begins, `keep_alive` the pause between the comments that
    keep it open, and `drain` how long a stopping service may take to finish running requests.
    """

    body_bytes: Positive = 8 * 2**20
    body_seconds: Seconds = 10.0
    samples: Positive = 64
    messages: Positive = 256
    prompts: Positive = 32
    prompt_chars: Positive = 500_000
    candidate_tokens: Positive = 20_000
    orders: Positive = 8
    pairwise_chars: Positive = 2**20
    in_flight: Positive = 16
    queue: NotNegative = 64
    workers: Positive = 2
    upstream_calls: Positive = 64
    connect_seconds: Seconds = 5.0
    read_seconds: Seconds = 120.0
    total_seconds: Seconds = 300.0
    response_bytes: Positive = 4 * 2**20
    retries: NotNegative = 2
    hold: Annotated[float, Meta(ge=0, lt=2**53)] = 1.0
    keep_alive: Seconds = 10.0
    drain: Annotated[float, Meta(ge=0, lt=2**53)] = 30.0


class RequestOptions(msgspec.Struct, frozen=True):
    """How many samples are drawn, which of them stand and vote, and how the votes are counted.

    `candidates`: how many samples (the first ones) stand for election; by default all, or 16 if sampling is
    adaptive and texts are compared. With vLLM it may also be a search, and then `voters` are "samples" or
    "candidates". `adaptive`: draw samples in rounds until the winner is this certain, or certainly at most
    `within` below the best. `escalate`: ask the members of a panel in order, the next one only if those so
    far do not agree, for example "share<1". `min_votes` usable samples are needed for an answer. `election`
    has the options of `elect` that `SCHEMA` lets clients set.
    """

    samples: Positive = 16
    candidates: Positive | Short | None = None
    voters: Literal["samples", "candidates"] = "samples"
    adaptive: Annotated[float, Meta(gt=0, lt=1)] | None = None
    within: float = 0.0
    escalate: Short | None = None
    min_votes: Positive = 1
    explain: bool = False
    election: dict[str, Any] = {}

    def changed(self, options: Mapping[str, Any]) -> RequestOptions:
        """A copy with these options, which are checked."""
        values, election = msgspec.structs.asdict(self), dict[str, Any]()
        for name, value in options.items():
            if value is None:
                continue
            if name in SCHEMA and SCHEMA[name].client:
                check_option(name, value)
                if isinstance(value, str) and len(value) > 100:
                    raise UsageError(f"{name} is longer than 100 characters.")
                election[name] = value
            else:
                choose("option", name, OWN_OPTIONS)
                values[name] = value
        if isinstance(values["adaptive"], bool):
            values["adaptive"] = CONFIDENCE if values["adaptive"] else None
        check_within(values["within"])
        try:
            changed = convert({**values, "election": override(self.election, election)}, RequestOptions)
        except DataError as error:
            raise UsageError(f"{error.field}: {error.problem}.") from None
        if isinstance(changed.candidates, str):
            get_search(changed.candidates)
        changed.settings(1)
        return changed

    def settings(self, winners: int) -> Settings:
        """The settings for so many winners; several are elected to represent different voters."""
        options = dict(self.election)
        if winners > 1 and options.get("rule", "range") == "range":
            options["rule"] = "reweighted"
        settings = Settings(**options, winners=winners)
        if self.adaptive is not None:
            check_sampling(settings)
        return settings


OWN_OPTIONS = dict.fromkeys(name for name in RequestOptions.__struct_fields__ if name != "election")


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name that clients can use for a model, with or without a profile."""

    model: str
    profile: str | None = None


class OperatorOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the operator, in the file of `--config` or as options of the command with the same names.

    `upstream` is the server to sample from; `upstreams` are several by name, a panel that clients address as
    the model `panel`. `engine` is the kind of server, as in `rangevote generate`. Clients may use
    `allow_models` (empty: all that the upstream lists) and pictures on `allow_image_hosts`. `forward` names
    further parameters that go to the server.
    """

    upstream: str = ""
    upstreams: dict[str, str] = {}
    panel: str = "panel"
    engine: str = "openai"
    allow_models: tuple[str, ...] = ()
    allow_image_hosts: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()
    keep_elections: NotNegative = 0
    limits: Limits = Limits()
    aliases: dict[str, Alias] = {}


class ConfigFile(OperatorOptions, frozen=True):
    """The file of `--config`; a profile in it may name another file."""

    options: dict[str, Any] = {}
    profiles: dict[str, dict[str, Any]] = {}


class ServiceConfig(OperatorOptions, frozen=True, dict=True):
    """The whole configuration of a service; `hosts` are names of this machine that clients use."""

    options: RequestOptions = RequestOptions()
    profiles: dict[str, RequestOptions] = {}
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        choose("engine", self.engine, DIALECTS)
        for name in self.profiles:
            if not PROFILE_NAME.fullmatch(name) or name in RESERVED:
                raise UsageError(
                    f"a profile is called {name!r}; use small letters, digits, '-' and '_', and not "
                    f"{', '.join(sorted(RESERVED))}."
                )
        if self.panel in self.upstreams or not self.panel.strip():
            raise UsageError(f"the panel is called {self.panel!r}; give it another name than its members.")
        for alias in self.aliases.values():
            if alias.profile is not None:
                choose("profile", alias.profile, self.profiles)
        for options in (self.options, *self.profiles.values()):
            self.check(options)

    def check(self, options: RequestOptions, *, client: bool = False) -> None:
        """Refuse options that could not be carried out; a `client` must not choose models either."""
        limits, measure = self.limits, options.settings(1).measure
        if options.samples > limits.samples:
            raise UsageError(
                f"samples must be at most {limits.samples} (limits.samples), got {options.samples}."
            )
        if options.min_votes > options.samples:
            raise UsageError(
                f"min_votes must be at most samples, {options.samples}, got {options.min_votes}."
            )
        if (orders := sum(len(part.orders) for _, part in measure.parts())) > limits.orders:
            raise UsageError(  # each takes memory, however short the samples are
                f"similarity {measure.name} counts n-grams of {orders} orders; {limits.orders} are allowed "
                f"(limits.orders)."
            )
        if options.escalate is not None:
            adaptive = options.adaptive is not None
            Escalation.of(options.escalate).check(len(self.upstreams), adaptive=adaptive)
        self._check_search(options)
        if client:
            self._check_models(measure)
        else:
            self._check_members(options)

    def _check_search(self, options: RequestOptions) -> None:
        """Check that the server can find such candidates: few servers search."""
        if not isinstance(options.candidates, str):
            if options.voters == "candidates":
                raise UsageError("voters='candidates' needs a search as candidates, such as 'beam:10'.")
            return
        search = get_search(options.candidates)
        if Beam not in DIALECTS[self.engine].searches or search != Beam(search.size):
            raise UsageError(
                f"candidates must be a number of samples, or a search such as 'beam:10' of a vLLM server "
                f"(--engine vllm); got {options.candidates!r}."
            )
        if search.size > self.limits.samples:
            raise UsageError(
                f"candidates must be at most {self.limits.samples} beams (limits.samples), got {search.size}."
            )

    def _check_members(self, options: RequestOptions) -> None:
        """Check that there is a sample for every member of the panel, and that only members have shares."""
        if options.samples < len(self.upstreams):
            raise UsageError(
                f"samples must be at least the number of members of the panel, {len(self.upstreams)}; got "
                f"{options.samples}."
            )
        shares = options.election.get("shares", {})
        if isinstance(shares, str) or not shares.keys() <= self.upstreams.keys():
            names = ", ".join(self.upstreams) or "there is no panel"
            raise UsageError(
                f"shares must be numbers for members of the panel ({names}), got {shares!r:.200}; 'rangevote "
                f"tune --shares agreement' finds them, and members must have the same names there and here."
            )

    def _check_models(self, measure: Measure) -> None:
        """Check that the operator named every model that a measure would load."""
        for name in models_of(measure) - self.named_models:
            allowed = ", ".join(sorted(self.named_models)) or "none"
            raise UsageError(
                f"similarity {name} loads a model, and requests may use only those that the service's "
                f"options and profiles name: {allowed}."
            )

    def check_key(self, asked: Mapping[str, Any]) -> None:
        """Check that the operator wrote the same measure, if it has a key that clients may not choose.

        The key follows a colon, however the name before it is spelled.
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


def models_of(measure: Measure) -> frozenset[str]:
    """The names of a measure's parts that load a model.

    >>> from rangevote.similarity import get_similarity
    >>> sorted(models_of(get_similarity("0.5*overlap_2+0.50*embedding:x")))
    ['embedding:x']
    """
    names = (part.name for _, part in measure.parts())
    return frozenset(name for name in names if name.partition(":")[0] in WITH_MODELS)


def read_config(path: str) -> ConfigFile:
    """Read a configuration file and check its keys and their types."""
    tables = read_toml(Path(path))
    try:
        for name in tables:
            choose("key", name, dict.fromkeys(ConfigFile.__struct_fields__))
        config = convert(tables, ConfigFile)
    except UsageError as error:
        raise DataError(str(error), where=path) from None
    except DataError as error:
        raise error.at(path) from None
    for name, options in config.profiles.items():
        file = options.pop("file", None)
        if file is not None and not isinstance(file, str):
            raise DataError("must be a path.", field=f"profiles.{name}.file", where=path)
        if file is not None:
            config.profiles[name] = override(profile_options(str(Path(path).parent / file)), options)
    return config


def profile_options(path: str) -> dict[str, Any]:
    """The options in a profile: `[election]`, as `rangevote tune` writes it, and `[sampling]`."""
    election = {name: value for name, value in read_profile(path).items() if SCHEMA[name].client}
    sampling = read_toml(Path(path)).get("sampling", {})
    if not isinstance(sampling, Mapping):
        raise DataError(
            "must be a table, for example [sampling] with samples = 16.", field="sampling", where=path
        )
    try:
        RequestOptions().changed({**election, **sampling})
    except RangevoteError as error:
        raise DataError(str(error), where=path) from None
    return {**election, **sampling}
