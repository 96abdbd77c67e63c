"""The options of an election: their names, types and defaults, once for the whole package.

`Settings` checks them and names them in the signature. `ElectionOptions` is the same list for functions that
take `**options: Unpack[ElectionOptions]` and hand them on to `Settings(**options)`. A profile is the same
list in a TOML file, as `rangevote tune` writes it:

    [election]
    similarity = "overlap_1-4@0.25"
    temperature = 2.0

    [tuned]                # how they were chosen; not read again
    metric = "bleu"
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import msgspec
from msgspec.structs import fields, force_setattr

from rangevote import __version__
from rangevote.election.panel import PanelShares, Shares, check_shares
from rangevote.election.rules import RULES, WITHOUT_VOTERS
from rangevote.election.weights import CONFIDENCE, WEIGHTS, has_temperature
from rangevote.errors import DataError, SetupError, UsageError, choose, shown
from rangevote.hypothesis import Hypotheses, Hypothesis
from rangevote.kernel import Election
from rangevote.similarity import DEFAULT_PRESET, PRESETS, Preset, get_similarity, spelled
from rangevote.similarity.base import Measure, Similarity, short
from rangevote.similarity.cutoff import Cutoff, with_cutoff
from rangevote.similarity.json_leaves import TextOrToolCalls
from rangevote.similarity.ngram import IndexMeasure, formula_of
from rangevote.similarity.units import Tokenise

if TYPE_CHECKING:
    from typing_extensions import Unpack

Weights = str | Sequence[float] | None
Grader = str | Similarity | Callable[[Any, Any], Any]

#: Types of options that settings can be found by again.
PLAIN = frozenset({str, int, float, bool, type(None)})
#: Options that an election in one call understands; the others must have their defaults.
ONE_CALL_OPTIONS = frozenset({"similarity", "preset", "weights", "temperature", "likelihood", "tokenize"})
#: Fields of a hypothesis that such an election reads, or that do not matter to it; the others must be None.
ONE_CALL_FIELDS = frozenset(
    {"text", "tokens", "logprob", "finished", "sampled", "state", "ranked_by", "token_logprobs"}
)
#: From which similarity on texts are of one cluster, if nobody says otherwise.
CLUSTERED = 0.5
NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_SERIES = ".".join(__version__.split(".")[:2])
#: What goes with a similarity that is given without a preset: equation 1 as it stands.
_PLAIN = Preset("")


class ElectionOptions(TypedDict, total=False):
    """The options of `elect`, which explains them; `Settings` has their defaults."""

    similarity: Grader | None
    preset: str | None
    weights: Weights
    temperature: float | None
    likelihood: float | None
    cutoff: float | None
    rule: str
    winners: int
    tokenize: Tokenise
    normalize: str | None
    merge: bool
    shares: Shares | None
    min_score: float | None
    min_share: float | None


class Settings(msgspec.Struct, frozen=True, dict=True):
    """Checked options of an election. `similarity` is resolved, by the `preset` where it is not given;
    `temperature` and `likelihood` stay None where they are not given; `vote_temperature` and
    `own_likelihood` are the numbers."""

    similarity: Grader | None = None
    preset: str | None = None
    weights: Weights = None
    temperature: float | None = None
    likelihood: float | None = None
    cutoff: float | None = None
    rule: str = "range"
    winners: int = 1
    tokenize: Tokenise = "words"
    normalize: str | None = None
    merge: bool = False
    shares: Shares | None = None
    min_score: float | None = None
    min_share: float | None = None

    def __post_init__(self) -> None:
        similarity, preset, winners = self.similarity, self.preset, self.winners
        if preset is not None:
            choose("preset", preset, PRESETS)
        elif similarity is None:
            preset = DEFAULT_PRESET
        elif isinstance(similarity, str) and spelled(similarity) in PRESETS:
            preset = spelled(similarity)
        force_setattr(self, "preset", preset)
        temperature = self.vote_temperature
        if not (isinstance(temperature, (int, float)) and 0 < temperature <= sys.float_info.max):
            raise UsageError(f"temperature must be a number above 0, got {shown(temperature)}.")
        if isinstance(winners, bool) or not isinstance(winners, int) or not 1 <= winners < 2**63:
            raise UsageError(f"winners must be a whole number from 1, got {shown(winners)}.")
        if isinstance(self.weights, str):
            choose("weights", self.weights, WEIGHTS)
        if self.normalize is not None and self.normalize not in NORMAL_FORMS:
            raise UsageError(f"normalize must be one of {', '.join(NORMAL_FORMS)}, got {self.normalize!r}.")
        choose("rule", self.rule, RULES)
        self._check_likelihood()
        self._check_thresholds()
        self._check_cutoff()
        if self.shares is not None:
            check_shares(self.shares)
        named = self._preset.similarity if similarity is None else similarity
        measure = get_similarity(named, self.tokenize)
        if self.least_grade is not None or isinstance(measure, Cutoff):
            measure = with_cutoff(measure, self.least_grade)
        force_setattr(self, "similarity", measure)

    def _check_likelihood(self) -> None:
        x = self.likelihood
        if x is None:
            return
        if not _is_number(x) or not 0 <= x <= sys.float_info.max:
            raise UsageError(f"likelihood must be a finite number from 0, got {shown(x)}.")
        if x and self.rule in WITHOUT_VOTERS:
            raise UsageError(
                f"likelihood is added to votes, and nobody votes under rule={self.rule!r}; leave it out, or "
                f"use rule='range'."
            )

    def _check_thresholds(self) -> None:
        score, share = self.min_score, self.min_share
        if score is not None and (not _is_number(score) or not abs(score) <= sys.float_info.max):
            raise UsageError(f"min_score must be a finite number, got {shown(score)}.")
        if share is None:
            return
        if not _is_number(share) or not 0 <= share <= 1:
            raise UsageError(f"min_share must be a share of the vote from 0 to 1, got {shown(share)}.")
        if self.rule in WITHOUT_VOTERS:
            raise UsageError(
                f"min_share is a share of the vote, and nobody votes under rule={self.rule!r}; leave it out, "
                f"or use min_score."
            )

    def _check_cutoff(self) -> None:
        x = self.cutoff
        if x is None:
            return
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not 0 < x <= 1:
            raise UsageError(
                f"cutoff must be a similarity above 0 and up to 1, as 0.5, got {shown(x)}; leave it out to "
                f"count all grades."
            )
        if self.rule in WITHOUT_VOTERS:
            raise UsageError(
                f"cutoff is for votes, and nobody votes under rule={self.rule!r}; leave it out, or use "
                f"rule='range'."
            )

    @property
    def least_grade(self) -> float | None:
        """From which similarity on a voter counts for a candidate; None: from any."""
        return CLUSTERED if self.cutoff is None and self.rule == "cluster" else self.cutoff

    @property
    def _preset(self) -> Preset:
        return _PLAIN if self.preset is None else PRESETS[self.preset]

    @property
    def measure(self) -> Similarity:
        """The similarity, which is an object whatever it was given as."""
        return cast("Similarity", self.similarity)

    @property
    def vote_temperature(self) -> float:
        """The temperature: the given one, or the preset's, which is one of probabilities."""
        if self.temperature is not None:
            return self.temperature
        confident = isinstance(self.weights, str) and self.weights in CONFIDENCE
        return 1.0 if confident else self._preset.temperature

    @property
    def own_likelihood(self) -> float:
        """How much a candidate's own likelihood counts beside the votes: as given, or the preset's."""
        return self._preset.likelihood if self.likelihood is None else self.likelihood

    @cached_property
    def one_call(self) -> Election | None:
        """These elections as one call into the kernels, for lists that need no warning or error; None where
        the options or the measure ask for more than that."""
        measure = self.similarity
        formula = formula_of(measure)
        if Election is None or formula is None:
            return None
        # not by `fields`, which evaluates the annotations every time
        defaults = zip(self.__struct_fields__, self.__struct_defaults__, strict=True)
        if any(getattr(self, name) != default for name, default in defaults if name not in ONE_CALL_OPTIONS):
            return None
        assert isinstance(measure, IndexMeasure)
        if measure.tokenize not in ("words", "chars") or self.weights not in (None, "probability", "count"):
            return None
        return Election(
            Hypothesis,
            [name for name in Hypothesis.__struct_fields__ if name not in ONE_CALL_FIELDS],
            measure.tokenize,
            measure.orders,
            measure.bag,
            measure.short,
            *formula,
            self.weights or "usual",
            self.vote_temperature,
            self.temperature is not None,
            self.own_likelihood,
        )

    @cached_property
    def always_one_call(self) -> bool:
        """Whether nothing in the lists has to be looked at before an election at once: how many pairs they
        make, or who votes."""
        return isinstance(self.similarity, Measure) and self.similarity.linear and self.preset != "consensus"

    def replace(self, **options: Unpack[ElectionOptions]) -> Settings:
        """The same with other options."""
        return msgspec.structs.replace(self, **options)

    def about(self, source: str | None) -> Settings:
        """The same for hypotheses about this source, where the measure looks at it."""
        measure = self.similarity
        if not isinstance(measure, Measure):
            return self
        about = measure.about(source)
        return self if about is measure else self.replace(similarity=about)

    def with_parties(self) -> Settings:
        """The same for an election in which some call tools."""
        return (
            self
            if isinstance(self.measure, TextOrToolCalls)
            else self.replace(similarity=TextOrToolCalls(self.measure))
        )

    def signature(
        self, weighting: str, candidates: Hypotheses, voters: int, panel: PanelShares | None = None
    ) -> str:
        """Names all that can change a result: `rv:0.1|sim:overlap_2|on:words|w:probability|T:1|...`."""
        measure = self.measure
        on = measure.signature_on(candidates) if isinstance(measure, Measure) else ""
        before, between, after = self.signature_around(weighting, on, panel)
        return f"{before}{len(candidates)}{between}{voters}{after}"

    def signature_around(self, weighting: str, on: str, panel: PanelShares | None = None) -> list[str]:
        """What stands before, between and after the numbers of candidates and voters; `on`: what n-grams are
        made of."""
        measure = self.measure
        name = measure.name.replace("%", "%25").replace("|", "%7C")  # of a regular expression
        parts = [f"rv:{_SERIES}", f"sim:{name}"]
        if on:
            parts.append(f"on:{on}")
        if isinstance(measure, TextOrToolCalls):
            parts.append("calls:name,arguments")
        parts.append(f"w:{weighting}")
        if has_temperature(weighting):
            parts.append(f"T:{short(self.vote_temperature)}")
        if self.own_likelihood and weighting != "none":
            parts.append(f"L:{short(self.own_likelihood)}")
        if self.least_grade is not None:
            parts.append(f"cut:{short(self.least_grade)}")
        if self.rule != "range":
            parts.append(f"rule:{self.rule}")
        if self.winners > 1:
            parts.append(f"win:{self.winners}")
        if self.normalize:
            parts.append(f"norm:{self.normalize}")
        if self.merge:
            parts.append("merge:text")
        if self.min_score is not None:
            parts.append(f"min_score:{short(self.min_score)}")
        if self.min_share is not None:
            parts.append(f"min_share:{short(self.min_share)}")
        if panel is not None:
            parts.append(str(panel))
        return ["|".join([*parts, "cand:"]), "|vot:", "|tie:score,logprob,first"]


def settings_of(options: ElectionOptions) -> Settings:
    """The settings of a call. Those of plain values are kept for the next; objects are not kept alive."""
    if PLAIN.issuperset(map(type, options.values())):
        return _kept(**options)  # type: ignore[arg-type]
    return Settings(**options)


@lru_cache(maxsize=64, typed=True)
def _kept(**options: Unpack[ElectionOptions]) -> Settings:
    return Settings(**options)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


#: option -> what its value can be in a profile or a request: as its default, text where that is None
OPTION_TYPES: dict[str, tuple[type, ...]] = {
    option.name: (str,) if option.default is None else (type(option.default),) for option in fields(Settings)
}
for _number in ("temperature", "likelihood", "min_score", "min_share"):
    OPTION_TYPES[_number] = (int, float)
OPTION_TYPES |= dict.fromkeys(("temperature", "likelihood", "cutoff"), (int, float))
OPTION_TYPES["shares"] = (dict,)


def check_option(name: str, value: object) -> None:
    """Refuse an option of a file or a request that `elect` does not have, or of another type."""
    types = choose("option", name, OPTION_TYPES)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        expected = " or ".join(kind.__name__ for kind in types)
        raise UsageError(f"{name} must be {expected}, got {shown(value)}.")


def read_profile(path: str | PathLike[str]) -> dict[str, Any]:
    """The options in a profile's table `election`, for `elect(ballot, **read_profile(path))`.

    They are checked as `elect` checks them; other tables of the file are not read.
    """
    options = read_toml(Path(path)).get("election")
    if not isinstance(options, Mapping) or not options:
        raise DataError(
            'there is no table [election] with options in it, as similarity = "overlap_2".', where=str(path)
        )
    try:
        for name, value in options.items():
            check_option(name, value)
        if ":command" in str(options.get("similarity")):  # however the name before it is spelled
            raise UsageError("a profile runs no programs: name exact:command=... where you use the profile.")
        Settings(**options)
    except UsageError as error:
        raise DataError(str(error), field="election", where=str(path)) from None
    return dict(options)


def read_toml(path: Path) -> dict[str, Any]:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text.", where=str(path)) from None
    except ValueError as error:  # a path with a null character
        raise SetupError(f"cannot read {str(path)!r}: {error}.") from None
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also impossible numbers or dates, and deep nesting
        raise DataError(f"is not TOML: {error}", where=str(path)) from None
    return tables


def write_tables(tables: Mapping[str, Mapping[str, Any]], comment: str = "") -> str:
    """Tables of plain values as TOML; None is left out.

    >>> print(write_tables({"election": {"similarity": "overlap_2", "merge": True, "weights": None}}), end="")
    [election]
    similarity = "overlap_2"
    merge = true
    """
    lines = [f"# {line}" for line in comment.splitlines()]
    for name, table in tables.items():
        lines += [""] * bool(lines) + [f"[{name}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    return f"[{', '.join(map(_toml, value))}]"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if ord(character) < 32 or ord(character) == 127:
        return f"\\u{ord(character):04X}"
    return character
