"""Which settings are tried, and the elections of one ballot under all of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import msgspec

from rangevote.election.preprocess import prepare
from rangevote.election.rules import RULES, WITHOUT_VOTERS, Contest, evidence, leader
from rangevote.election.settings import has_temperature
from rangevote.election.weights import Shares, weigh
from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import Array, Ballot, Hypotheses, is_number
from rangevote.similarity import DEFAULT_PRESET, PRESETS, get_similarity
from rangevote.similarity.base import Poll, number_text
from rangevote.similarity.ngram import DEFAULT_UNIT, Ngrams

#: 5 measures x 5 exponents x 4 temperatures x 4 likelihoods: 400 settings.
SIMILARITIES = ("overlap_1", "overlap_2", "overlap_3", "overlap_1-4", "precision_1-4")
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
TEMPERATURES: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
LIKELIHOODS: tuple[float, ...] = (0.0, 0.2, 0.4, 0.8)
SCORE_WEIGHTS: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)
TOKENIZE = (DEFAULT_UNIT,)


@dataclass(frozen=True)
class Setting:
    """One way to elect, named as `elect` names it; `equal`: members of a panel have equal shares, whatever
    theirs are; `member`: the election among the outputs of this member alone."""

    similarity: str
    temperature: float = 1.0
    likelihood: float = 0.0
    tokenize: str = DEFAULT_UNIT
    rule: str = "range"
    weights: str | None = None
    score: tuple[str, float] | None = None  # the name of a score that candidates carry, and its weight
    equal: bool = False
    member: str | None = None

    @property
    def scores(self) -> dict[str, float]:
        return dict([self.score]) if self.score else {}

    @property
    def has_voters(self) -> bool:
        return self.rule not in WITHOUT_VOTERS

    @property
    def name(self) -> str:
        """`overlap_2`, with what is not usual: `overlap_2, T = 2, L = 0.4, 13a`; or a rule without voters."""
        if self.member is not None:
            return f"{self.member} alone"
        if not self.has_voters:
            return self.rule
        parts = [self.similarity]
        parts += [f"T = {number_text(self.temperature)}"] if self.temperature != 1 else []
        parts += [f"L = {number_text(self.likelihood)}"] if self.likelihood else []
        parts += [f"{name} = {number_text(x)}" for name, x in self.scores.items()]
        parts += [self.tokenize] if self.tokenize != DEFAULT_UNIT else []
        parts += [self.weights] if self.weights else []
        parts += ["equal shares"] if self.equal else []
        return ", ".join(parts)

    @property
    def options(self) -> dict[str, Any]:
        """For `elect`, and for a profile."""
        options = {
            "similarity": self.similarity,
            "temperature": self.temperature if self.temperature != 1 else None,  # 1 beside a similarity
            "likelihood": self.likelihood or None,
            "scores": self.scores or None,
            "tokenize": self.tokenize,
            "weights": self.weights,
        }
        return {name: value for name, value in options.items() if value is not None}


#: An election without any options, and rules without voters: not among the choices, but reported beside them.
DEFAULT = Setting(*PRESETS[DEFAULT_PRESET])
BASELINES = (
    Setting("overlap_2", rule="most_likely"),
    Setting("overlap_2", rule="length_normalised"),
)


def grid(
    similarities: Sequence[str] = SIMILARITIES,
    exponents: Sequence[float] = EXPONENTS,
    temperatures: Sequence[float] | None = None,
    tokenize: Sequence[str] = TOKENIZE,
    likelihoods: Sequence[float] = LIKELIHOODS,
    weights: Sequence[str | None] = (None,),
    scores: Sequence[str] = (),
    score_weights: Sequence[float] = SCORE_WEIGHTS,
) -> list[Setting]:
    """All combinations, each once; weights that no temperature changes are tried with one, and everything is
    tried without a score and with each of `scores`.

    Exponents are for n-gram measures that have none in their name. Without `temperatures` everything is tried
    with all of TEMPERATURES, but a preset with its own.

    >>> [setting.name for setting in grid(["overlap_2", "states"], [0, 0.5], [1], likelihoods=[0, 1])]
    ['overlap_2', 'overlap_2, L = 1', 'overlap_2@0.5', 'overlap_2@0.5, L = 1', 'states', 'states, L = 1']
    """
    tried = TEMPERATURES if temperatures is None else temperatures
    lists: dict[str, tuple[Sequence[Any], float | None]] = {
        "similarities": (similarities, None),
        "tokenize": (tokenize, None),
        "exponents": (exponents, 1.0),
        "temperatures": (tried, math.inf),
        "likelihoods": (likelihoods, math.inf),
        "score_weights": (score_weights, math.inf),
        **({"scores": (scores, None)} if len(scores) else {}),
    }
    for name, (values, highest) in lists.items():
        if isinstance(values, (str, bytes)) or not len(values):
            raise UsageError(f"{name} must be a list with something in it, got {values!r}.")
        for value in values:
            if not (isinstance(value, str) if highest is None else is_number(value)):
                raise UsageError(f"{name}: {value!r} is not a {'name' if highest is None else 'number'}.")
            if highest is not None and not (0 <= value <= highest and value < math.inf):
                raise UsageError(f"{name} must be finite numbers from 0 to {highest:g}, got {value!r}.")
    if 0 in tried:
        raise UsageError("temperatures must be above 0, got 0.")
    pairs = [None, *((name, float(x)) for name in scores for x in score_weights if x)]
    settings: dict[Setting, None] = {}
    for words, similarity, scheme in product(tokenize, similarities, weights):
        warm = scheme is None or has_temperature(scheme)
        for setting in _settings(similarity, words, exponents, temperatures if warm else (1.0,)):
            settings |= dict.fromkeys(
                replace(setting, likelihood=float(x), weights=scheme, score=score)
                for x, score in product(likelihoods, pairs)
            )
    return list(settings)


def _settings(
    similarity: str, words: str, exponents: Sequence[float], temperatures: Sequence[float] | None
) -> Iterator[Setting]:
    measure = get_similarity(similarity, words)  # refuses names that do not exist
    names, usual = [similarity], TEMPERATURES
    if similarity in PRESETS:
        names, usual = [PRESETS[similarity].similarity], (PRESETS[similarity].temperature,)
        words = PRESETS[similarity].tokenize if words == DEFAULT_UNIT else words
    elif measure.linear and measure.orders and "@" not in similarity:
        orders = range(measure.orders[0], measure.orders[-1] + 1)
        names = [Ngrams(orders, bag=measure.bag, a=float(a)).name for a in exponents]
    for name, temperature in product(names, usual if temperatures is None else temperatures):
        yield Setting(name, float(temperature), tokenize=words)


class SharedOptions(NamedTuple):
    """Options that all elections have; their names are those of `elect`."""

    normalize: str | None = None
    merge: bool = False
    shares: Shares | None = None


NONE_SHARED = SharedOptions()
#: Instead of an index, where log-probabilities are missing that would decide: by a rule without voters, or as
#: the candidates' own likelihood.
UNKNOWN = -1


class SharedCounts:
    """Elections of one ballot under many settings: whom `elect` elects with the same options.

    Weights are made once for each temperature, n-grams are counted once for all settings that count the same
    ones, and votes once for all likelihoods and scores.
    """

    def __init__(self, ballot: Ballot, shared: SharedOptions = NONE_SHARED) -> None:
        normalize, merge, self._shares = shared
        if not ballot.candidates:
            raise DataError("there are no candidates, so nobody can be elected.", field="candidates")
        self._raw_voters = Hypotheses.of(ballot.candidates)
        self._candidates = self._voters = prepare(self._raw_voters, normalize, merge)
        if ballot.voters is not None:
            self._raw_voters = Hypotheses.of(ballot.voters, role="voters")
            self._voters = prepare(self._raw_voters, normalize, merge)
        self._source = ballot.source
        self._weights: dict[tuple[str | None, float, bool], Array] = {}
        self._polls: dict[Hashable, Poll] = {}
        self._votes: dict[Setting, Array] = {}

    def winner(self, setting: Setting) -> tuple[int, float]:
        """The winner's index, or UNKNOWN, and its score."""
        if not self._candidates.complete and (setting.likelihood or not setting.has_voters):
            return UNKNOWN, math.nan
        if setting.has_voters:
            scores = self.votes(replace(setting, likelihood=0.0, score=None))
            support = evidence(self._candidates, setting.likelihood, setting.scores)
            scores = scores if support is None else scores + support
            index = leader(scores, self._candidates)
        else:
            scores, (index, *_), *_ = RULES[setting.rule](Contest(self._candidates), 1)
        return index, float(scores[index])

    def votes(self, setting: Setting) -> Array:
        if setting not in self._votes:
            key = setting.weights, setting.temperature, setting.equal
            if key not in self._weights:
                shares = None if setting.equal else self._shares
                self._weights[key] = weigh(self._voters, *key[:2], self._raw_voters, shares)[1]
            contest = Contest(self._candidates, poll=self.poll(setting))
            self._votes[setting] = contest.scores(self._weights[key])
        return self._votes[setting]

    def poll(self, setting: Setting) -> Poll:
        """The poll of a setting's measure, with all voters in it."""
        measure = get_similarity(setting.similarity, setting.tokenize)
        features = measure.features(self._candidates)
        if features not in self._polls:
            self._polls[features] = measure.about(self._source).poll(self._candidates)
            self._polls[features].add(self._voters)
        return measure.under(self._polls[features])


def own_winners(ballot: Ballot, setting: Setting, shared: SharedOptions = NONE_SHARED) -> dict[str, int]:
    """Of each member of a panel the index of its own output: the winner among its candidates."""
    indices: dict[str, list[int]] = {}
    for index, candidate in enumerate(ballot.candidates):
        if candidate.member is not None:
            indices.setdefault(candidate.member, []).append(index)
    winners = {name: some[0] for name, some in indices.items()}
    for name, some in indices.items():
        if len(some) > 1:
            candidates = [ballot.candidates[i] for i in some]
            voters = [voter for voter in ballot.voters or () if voter.member in (None, name)]
            alone = msgspec.structs.replace(
                ballot, candidates=candidates, voters=ballot.voters and (voters or None)
            )
            winners[name] = some[SharedCounts(alone, shared._replace(shares=None)).winner(setting)[0]]
    return winners
