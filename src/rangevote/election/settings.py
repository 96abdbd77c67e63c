"""The options of an election, each declared once, in `Settings`.

The declaration has the option's type, default, check, help, flags and name in the signature; `SCHEMA` has
all of them by name. The commands' options, the fields of a request to the service and the table in
docs/reference/election.md are made from it. To add an option, declare it in `Settings`, repeat its type in
`ElectionOptions`, which type checkers read, and give it a meaning where votes are counted.

A profile has the same options in a TOML file, as `rangevote tune` writes it:

    [election]
    similarity = "overlap_1-4@0.25"
    temperature = 2.0

    [tuned]                # how they were chosen; not read again
    metric = "bleu"
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec.structs import force_setattr

from rangevote import __version__
from rangevote.election.merge import Merging, fault_finder
from rangevote.election.rules import RULES, WITHOUT_VOTERS, evidence
from rangevote.election.weights import AGREEMENT, CONFIDENCE, WEIGHTS, PanelShares, Shares, check_shares
from rangevote.errors import DataError, SetupError, UsageError, choose, nearest, shown
from rangevote.hypothesis import Array, Hypotheses, is_number
from rangevote.kernel import Election
from rangevote.similarity import DEFAULT_PRESET, PRESETS, Preset, get_similarity, spelled
from rangevote.similarity.base import Measure, Similarity, Tokenise, number_text
from rangevote.similarity.json_leaves import canonical
from rangevote.similarity.ngram import formula_of
from rangevote.similarity.pairwise import Cutoff
from rangevote.similarity.tool_calls import TextOrToolCalls

if TYPE_CHECKING:
    from typing_extensions import Unpack

Weights = str | Sequence[float] | None
Grader = str | Similarity | Callable[[Any, Any], Any]
Check = Callable[[str, Any], object]
F = TypeVar("F", bound=Callable[..., Any])

#: Types of options that settings can be found by again.
PLAIN = frozenset({str, int, float, bool, type(None)})
#: Options that an election in one call understands; the others must have their defaults.
ONE_CALL_OPTIONS = frozenset(
    {"similarity", "preset", "weights", "temperature", "likelihood", "tokenize", "shares"}
)
#: The cutoff of rule="cluster" and rule="merge", if none is given.
CLUSTERED = 0.5
#: How rule="merge" grades whole samples: by the values that two have in common.
WHOLE_JSON = "overlap_1@0.5"
NORMAL_FORMS = dict.fromkeys(("NFC", "NFD", "NFKC", "NFKD"))
#: Beginnings of signatures that settings keep, most often one.
SIGNATURES_KEPT = 64
_SERIES = ".".join(__version__.split(".")[:2])
#: What goes with a similarity that is given without a preset: equation 1 as it stands.
_PLAIN = Preset("")


@dataclass(frozen=True)
class Option:
    """The declaration of one option of an election.

    `flags` are those of the command line, followed by a placeholder for the value. `check(name, value)`
    raises for a wrong value. `client`: a request to the service may set it. `sign`: its name in the
    signature, where it stands if it is not the default. `not_under`: rules under which it has no meaning.
    `of_similarity`: a new similarity resets it. The last three fields are filled in from the
    declaration; `types` are those of values in a file or a request.
    """

    flags: str
    help: str
    check: Check | None = None
    client: bool = True
    sign: str = ""
    not_under: Collection[str] = ()
    of_similarity: bool = False
    name: str = ""
    default: Any = None
    types: tuple[type, ...] = ()


def escaped(name: str) -> str:
    """A name that the user chose, such as a regular expression, escaped for a signature."""
    return name.replace("%", "%25").replace("|", "%7C")


def _number(expected: str, test: Callable[[float], bool]) -> Check:
    def check(name: str, value: Any) -> None:
        if not is_number(value) or not abs(value) <= sys.float_info.max or not test(value):
            raise UsageError(f"{name} must be {expected}, got {shown(value)}.")

    return check


def _whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**63:
        raise UsageError(f"{name} must be a whole number from 1, got {shown(value)}.")


def _one_of(table: Mapping[str, Any]) -> Check:
    return lambda name, value: choose(name, value, table)


def _score_weights(name: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(score, str) for score in value):
        raise UsageError(
            f"{name} must be numbers by the name of a score, such as {{'reward': 0.5}}, got {shown(value)}."
        )
    for score, x in value.items():
        _number("a finite number", lambda x: True)(f"{name}[{score!r}]", x)


def _schema(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{name} must be a JSON schema, an object such as {{'type': 'object'}}, got {shown(value)}."
        )
    fault_finder(value)


def _weights(name: str, value: Any) -> None:
    if isinstance(value, str):  # numbers are checked against the voters
        choose(name, value, WEIGHTS)


class ElectionOptions(TypedDict, total=False):
    """The options of `elect` and of others that take `**options`; the table on this page explains them."""

    similarity: Grader | None
    preset: str | None
    weights: Weights
    temperature: float | None
    likelihood: float | None
    scores: Mapping[str, float] | None
    cutoff: float | None
    rule: str
    winners: int
    tokenize: Tokenise | None
    normalize: str | None
    merge: bool
    shares: Shares | Literal["agreement"] | None
    min_score: float | None
    min_share: float | None
    schema: Mapping[str, Any] | None


class Settings(msgspec.Struct, frozen=True, dict=True):
    """Checked options of an election.

    `similarity` is resolved, by the `preset` where it is not given. `temperature` and `likelihood` stay None
    where they are not given; `vote_temperature` and `own_likelihood` are the numbers that count.
    """

    similarity: Annotated[
        Grader | None,
        Option(
            "-s --similarity NAME",
            "How voters grade candidates: a name listed by `rangevote similarities`, or your own function "
            "(module:function on the command line). Default: the preset's.",
            of_similarity=True,
        ),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            "--preset NAME",
            "Options that belong together: blend (overlap_1-4@0.25, temperature 2), paper (overlap_2) or "
            "consensus (overlap_1-4, likelihood 0.4; for sampled voters). Explicit options override the "
            "preset. Default: blend, unless a similarity is given.",
            check=_one_of(PRESETS),
            of_similarity=True,
        ),
    ] = None
    weights: Annotated[
        Weights,
        Option(
            "--weights NAME",
            "How much a voter counts: by probability, count, importance, or the model's confidence in its "
            "tokens (confidence, lowest_confidence, last_confidence). Default: count for samples or if a "
            "log-probability is missing, otherwise probability.",
            check=_weights,
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Option(
            "--temperature --vote-temperature T",
            "Voters weighted by probability or confidence count P^(1/T). Default: the preset's, or 1.",
            check=_number("a number above 0", lambda x: x > 0),
            sign="T",
            of_similarity=True,
        ),
    ] = None
    likelihood: Annotated[
        float | None,
        Option(
            "--likelihood X",
            "Add X log P(c) / |c| to the votes for candidate c: its own log-probability per token.",
            check=_number("a finite number from 0", lambda x: x >= 0),
            sign="L",
            not_under=WITHOUT_VOTERS | {"merge"},
            of_similarity=True,
        ),
    ] = None
    scores: Annotated[
        Mapping[str, float] | None,
        Option(
            "--score-weights NAME=X,...",
            "Add X times the score NAME of a candidate, such as a reward model's, to its votes. Scores are "
            "standardised within the ballot (mean 0, standard deviation 1).",
            check=_score_weights,
            client=False,  # what a server samples carries no scores
            sign="scores",
            not_under=WITHOUT_VOTERS | {"merge"},
        ),
    ] = None
    cutoff: Annotated[
        float | None,
        Option(
            "--cutoff S",
            "Count only voters at least this similar to the candidate, for example 0.5, so that a compromise "
            "among different texts does not win. Default: 0.5 under the rules cluster and merge.",
            check=_number("a similarity above 0 and up to 1", lambda x: 0 < x <= 1),
            sign="cut",
            not_under=WITHOUT_VOTERS,
        ),
    ] = None
    rule: Annotated[
        str,
        Option(
            "--rule NAME",
            "range, reweighted (several winners that represent different voters), cluster (the best of the "
            "largest group of similar texts), merge (JSON merged field by field), most_likely or "
            "length_normalised.",
            check=_one_of(RULES),
            sign="rule",
        ),
    ] = "range"
    winners: Annotated[
        int,
        Option(
            "--winners N",
            "How many to elect, each from another group of candidates that the similarity tells apart.",
            check=_whole,
            client=False,  # it is the request's `n`
            sign="win",
            not_under={"merge"},
        ),
    ] = 1
    tokenize: Annotated[
        Tokenise | None,
        Option(
            "--tokenize NAME",
            "What n-grams are made of: words (letters and digits, without case), space (cut at white space), "
            "chars, 13a, intl, zh, json (values) or tokens (model ids). Default: the preset's, or words.",
        ),
    ] = None
    normalize: Annotated[
        str | None,
        Option(
            "--normalize FORM",
            "Compare texts in a Unicode normal form: NFC, NFD, NFKC or NFKD.",
            check=_one_of(NORMAL_FORMS),
            sign="norm",
        ),
    ] = None
    merge: Annotated[
        bool,
        Option(
            "--merge",
            "Give the first of equal texts the probability of all of them. JSON is merged by --rule merge.",
            sign="merge:text",
        ),
    ] = False
    shares: Annotated[
        Shares | Literal["agreement"] | None,
        Option(
            "--shares A=0.7,B=0.3",
            "The share of each member of a panel; or, where answers are compared, agreement: by how often a "
            "member agrees with the others over all ballots. Default: equal shares.",
            check=check_shares,
        ),
    ] = None
    min_score: Annotated[
        float | None,
        Option(
            "--min-score X",
            "Elect nobody whose score is below X.",
            check=_number("a finite number", lambda x: True),
            sign="min_score",
        ),
    ] = None
    min_share: Annotated[
        float | None,
        Option(
            "--min-share X",
            "Elect nobody unless a share X of the vote says the same, for example 0.5 of the answers. The "
            "rule merge leaves out fields with less; its default is more than half.",
            check=_number("a share of the vote from 0 to 1", lambda x: 0 <= x <= 1),
            sign="min_share",
            not_under=WITHOUT_VOTERS,
        ),
    ] = None
    schema: Annotated[
        Mapping[str, Any] | None,
        Option(
            "--schema FILE",
            "A JSON schema for the rule merge: samples that do not fit it abstain. If the merged object does "
            "not fit, the best whole sample is taken.",
            check=_schema,
            client=False,  # its regular expressions are run
        ),
    ] = None

    def __post_init__(self) -> None:
        for option in SCHEMA.values():
            value = getattr(self, option.name)
            if option.check is not None and value is not option.default:
                option.check(option.name, value)
        for option in SCHEMA.values():
            value = getattr(self, option.name)
            if self.rule in option.not_under and value and value != option.default:
                reason = "which makes one object" if self.rule == "merge" else "under which nobody votes"
                raise UsageError(
                    f"{option.name} does not apply to rule={self.rule!r}, {reason}; leave it out, or use "
                    f"rule='range'."
                )
        if self.schema is not None and self.rule != "merge":
            raise UsageError("schema is for rule='merge'; set that rule, or leave the schema out.")
        similarity, preset = self.similarity, self.preset
        if preset is None and similarity is None:
            preset = DEFAULT_PRESET
        elif preset is None and isinstance(similarity, str) and spelled(similarity) in PRESETS:
            preset = spelled(similarity)
        force_setattr(self, "preset", preset)
        units = self._preset.tokenize if self.tokenize is None else self.tokenize
        measure = get_similarity(self._preset.similarity if similarity is None else similarity, units)
        force_setattr(self, "similarity", measure)
        if self.shares == AGREEMENT and not measure.answers:
            raise UsageError(
                f"shares='agreement' is for answers, and {measure.name} compares texts. Members whose texts "
                f"agree most are not the best (no gain over equal shares by expert ratings of "
                f"16 summarisers on 50 articles and of 13 translators on 529 segments). Use a similarity "
                f"of answers such as 'exact:last_number', leave shares out for equal shares, or give numbers."
            )

    @property
    def least_grade(self) -> float | None:
        """From which similarity on a voter counts for a candidate; None: from any."""
        return CLUSTERED if self.cutoff is None and self.rule in ("cluster", "merge") else self.cutoff

    @property
    def _preset(self) -> Preset:
        return _PLAIN if self.preset is None else PRESETS[self.preset]

    @cached_property
    def measure(self) -> Measure:
        """What grades: the similarity, with its cutoff; under rule="merge" the values in common."""
        return get_similarity(WHOLE_JSON, "json") if self.rule == "merge" else self.text_measure

    @cached_property
    def merging(self) -> Merging | None:
        """How rule="merge" merges; None under other rules."""
        if self.rule != "merge":
            return None
        return Merging(
            self.text_measure, self.min_share, None if self.schema is None else fault_finder(self.schema)
        )

    @property
    def text_measure(self) -> Measure:
        """The similarity with its cutoff. Equal answers are as similar as can be, so that they need none, and
        the texts beside tool calls have theirs already."""
        measure = cast("Measure", self.similarity)
        if self.least_grade is None or measure.answers or measure.staged:
            return measure
        return Cutoff(measure, self.least_grade)

    @property
    def vote_temperature(self) -> float:
        """The temperature: the given one, or the preset's, which is one of probabilities."""
        if self.temperature is not None:
            return self.temperature
        confident = isinstance(self.weights, str) and self.weights in CONFIDENCE
        return 1.0 if confident else self._preset.temperature

    @cached_property
    def own_likelihood(self) -> float:
        """How much a candidate's own likelihood counts beside the votes: as given, or the preset's."""
        if self.rule == "merge":
            return 0.0
        return self._preset.likelihood if self.likelihood is None else self.likelihood

    @property
    def has_evidence(self) -> bool:
        """Whether anything is added to the votes."""
        return bool(self.own_likelihood or any((self.scores or {}).values()))

    def evidence(self, candidates: Hypotheses) -> Array | None:
        """What is added to the votes for each candidate."""
        return evidence(candidates, self.own_likelihood, self.scores)

    @cached_property
    def one_call(self) -> Election | None:
        """These elections as one call into the kernels, for lists that need no warning or error; None where
        the options or the measure ask for more than that."""
        measure = self.measure
        formula = formula_of(measure)
        if Election is None or formula is None:
            return None
        # not by `fields`, which evaluates the annotations every time
        defaults = zip(self.__struct_fields__, self.__struct_defaults__, strict=True)
        if any(getattr(self, name) != default for name, default in defaults if name not in ONE_CALL_OPTIONS):
            return None
        if measure.tokenize not in ("space", "words", "chars"):
            return None
        if self.weights not in (None, "probability", "count"):
            return None
        return Election(
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

    def replace(self, **options: Unpack[ElectionOptions]) -> Settings:
        """The same with other options."""
        return msgspec.structs.replace(self, **options)

    def about(self, source: str | None) -> Settings:
        """The same for hypotheses about this source, where the measure looks at it."""
        similarity = cast("Measure", self.similarity)
        about = similarity.about(source)
        return self if about is similarity else self.replace(similarity=about)

    def with_tool_calls(self) -> Settings:
        """The same for an election in which some call tools."""
        if self.rule == "merge":
            raise UsageError("rule='merge' merges JSON texts, not tool calls; use rule='range'.")
        return self if self.measure.staged else self.replace(similarity=TextOrToolCalls(self.measure))

    def signature(
        self, weighting: str, candidates: Hypotheses, voters: int, panel: PanelShares | None = None
    ) -> str:
        """Names all that can change a result: `rv:0.3|sim:overlap_2|on:words|w:probability|T:1|...`."""
        members = panel and (panel.left_out, *panel.shares.items())
        key = weighting, candidates.texts is not None, members
        beginning = self._beginnings.get(key)
        if beginning is None:
            if len(self._beginnings) == SIGNATURES_KEPT:
                self._beginnings.clear()
            beginning = self._beginnings[key] = self._signature_beginning(*key)
        return f"{beginning}cand:{len(candidates)}|vot:{voters}|tie:score,logprob,first"

    @cached_property
    def _beginnings(self) -> dict[tuple[Any, ...], str]:
        """Signatures but for the numbers of candidates and voters, kept since most ballots share one.

        Not an `lru_cache` of a method, which refers to these settings: Python's garbage collector does not
        look into a msgspec struct whose fields are plain values, so they would never be freed.
        """
        return {}

    def _signature_beginning(self, weighting: str, texts: bool, panel: tuple[Any, ...] | None) -> str:
        measure = self.measure
        parts = [f"rv:{_SERIES}", f"sim:{escaped(measure.name)}"]
        if units := measure.signature_on(Hypotheses([""] if texts else None)):
            parts.append(f"on:{units}")
        if measure.staged:
            parts.append("calls:name,arguments")
        if self.merging is not None:
            free_text = self.merging.texts
            parts.append(f"texts:{escaped(free_text.name)}:{free_text.signature_on(Hypotheses(['']))}")
        if self.schema is not None:
            parts.append(f"schema:{hashlib.sha256(canonical(self.schema).encode()).hexdigest()[:8]}")
        parts.append(f"w:{weighting}")
        effective = {
            "temperature": self.vote_temperature if has_temperature(weighting) else None,
            "likelihood": self.own_likelihood or None if weighting != "none" else None,
            "cutoff": self.least_grade,
            "scores": ",".join(
                f"{escaped(name)}={number_text(x)}" for name, x in sorted((self.scores or {}).items()) if x
            )
            or None,
        }
        for option in SCHEMA.values():
            value = effective.get(option.name, getattr(self, option.name)) if option.sign else None
            if value is True:
                parts.append(option.sign)
            elif value is not None and value != option.default:
                parts.append(f"{option.sign}:{number_text(value) if is_number(value) else value}")
        if panel is not None:
            parts.append(str(PanelShares(dict(panel[1:]), panel[0])))
        return "|".join([*parts, ""])


def _declared() -> Iterator[Option]:
    annotations = get_type_hints(Settings, include_extras=True)
    for name, default in zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True):
        annotation, option = get_args(annotations[name])
        kinds = {get_origin(kind) or kind for kind in (*get_args(annotation), annotation)}
        types: tuple[type, ...] = tuple(kind for kind in (str, int, float, bool) if kind in kinds)
        types = (int, float) if float in types else (dict,) if Mapping in kinds else types
        types = (str, *types) if Literal in kinds else types
        yield replace(option, name=name, default=default, types=types)


#: The options of an election by name, in their order.
SCHEMA: dict[str, Option] = {option.name: option for option in _declared()}
#: Those that a request to the service may set.
CLIENT_OPTIONS = [option.name for option in SCHEMA.values() if option.client]


def with_option_names(function: F) -> F:
    """Replace `**options` in the signature of a function by the options themselves, which IPython completes
    and `help` shows."""
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    named = [parameter for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    named += [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=ElectionOptions.__annotations__[option.name],
        )
        for option in SCHEMA.values()
    ]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return function


def settings_of(options: ElectionOptions) -> Settings:
    """The settings of a call. Those of plain values are kept for the next; objects are not kept alive."""
    if not options.keys() <= SCHEMA.keys():
        name = next(name for name in options if name not in SCHEMA)
        near = nearest(name, [*SCHEMA, "logprobs", "voters", "voter_logprobs"])
        raise UsageError(f"an election has no option {name!r}.{near}")
    if PLAIN.issuperset(map(type, options.values())):
        return _kept(**options)  # type: ignore[arg-type]
    return Settings(**options)


@lru_cache(maxsize=64, typed=True)
def _kept(**options: Unpack[ElectionOptions]) -> Settings:
    return Settings(**options)


def check_option(name: str, value: object) -> None:
    """Refuse an option of a file or a request that `elect` does not have, or of another type."""
    types = choose("option", name, SCHEMA).types
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        expected = " or ".join(kind.__name__ for kind in types)
        raise UsageError(f"{name} must be {expected}, got {shown(value)}.")


def override(base: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """These options over those of a profile. A new similarity or preset also resets the temperature and the
    likelihood, which were chosen for the old one.

    >>> override({"preset": "blend", "temperature": 2.0, "weights": "count"}, {"similarity": "exact"})
    {'weights': 'count', 'similarity': 'exact'}
    """
    new_similarity = not options.keys().isdisjoint(("similarity", "preset"))
    kept = {name: x for name, x in base.items() if not (new_similarity and SCHEMA[name].of_similarity)}
    return {**kept, **options}


def read_profile(path: str | PathLike[str], **explicit: Unpack[ElectionOptions]) -> dict[str, Any]:
    """The options in a profile's table `election`, for `elect(ballot, **read_profile(path))`.

    They are checked as `elect` checks them; other tables of the file are not read. Explicit options override
    them, and a new similarity resets what was chosen for the old one, as on the command line.
    """
    options = read_toml(Path(path)).get("election")
    if not isinstance(options, Mapping) or not options:
        raise DataError(
            'there is no table [election] with options, such as similarity = "overlap_2".', where=str(path)
        )
    try:
        for name, value in options.items():
            check_option(name, value)
        if ":command" in str(options.get("similarity")):  # however the name before it is spelled
            raise UsageError("a profile runs no programs: name exact:command=... where you use the profile.")
        Settings(**options)
    except UsageError as error:
        raise DataError(str(error), field="election", where=str(path)) from None
    return override(options, explicit)


def read_toml(path: Path) -> dict[str, Any]:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
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
    """Tables of plain values, or of tables of such, as TOML; None is left out.

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
    """JSON, from which TOML differs in tables and in one character that strings must escape."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def has_temperature(weighting: str) -> bool:
    """Whether a temperature changes these weights, by their name in a signature."""
    return any(name == "probability" or name in CONFIDENCE for name in weighting.split(","))
