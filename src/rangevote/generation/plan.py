"""The plan of a generation: all options, checked before a model runs.

Also what several models, a panel, need: the draws and seed of each member, and when the next one is asked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rangevote.decoding import MAX_ROWS, check_rows, get_search
from rangevote.decoding.base import Search, SearchSum
from rangevote.decoding.sample import Sampling
from rangevote.election.merge import SHARE_SLACK
from rangevote.election.result import Result
from rangevote.election.rules import NOT_ADAPTIVE
from rangevote.election.sequential_test import FIRST_ROUND, check_within
from rangevote.election.settings import Settings
from rangevote.errors import UsageError
from rangevote.models.protocol import Engine, LanguageModel

Model = LanguageModel[Any] | Engine

#: How sure an adaptive election is of its winner by default.
CONFIDENCE = 0.99
#: The default voters of the preset "consensus": half of the whole distribution, half of its nucleus.
CONSENSUS_VOTERS = "sample:50+nucleus:50,p=0.9"
_CONDITION = re.compile(r"\s*(share|score|margin)\s*<\s*(\d+\.?\d*|\.\d+)\s*|\s*undecided\s*")


class Escalation(NamedTuple):
    """When those asked so far do not agree: the winner's `share` of the vote, its `score` or its `margin` is
    below a number, or (`undecided`) adaptive sampling has not made it certain.

    >>> Escalation.of("share<1"), str(Escalation.of(" undecided"))
    (Escalation(by='share', below=1.0), 'undecided')
    """

    by: str
    below: float = 0.0

    @classmethod
    def of(cls, condition: str) -> Escalation:
        """Read "share<1", "score<0.8", "margin<0.2" or "undecided"."""
        match = _CONDITION.fullmatch(condition)
        if match is None or (match[1] and not 0 < float(match[2]) <= 1):
            raise UsageError(
                f"escalate must be 'share<1', 'score<0.8' or 'margin<0.2', with any number above 0 and at "
                f"most 1, or 'undecided'; got {condition!r:.60}."
            )
        return cls(match[1], float(match[2])) if match[1] else cls("undecided")

    def check(self, members: int, *, adaptive: bool) -> None:
        """Refuse a condition that is always or never true."""
        if members < 2:
            raise UsageError(
                f"escalate={str(self)!r} asks the members of a panel in order, so it needs a panel."
            )
        if self.by == "undecided" and not adaptive:
            raise UsageError("escalate='undecided' needs adaptive, which tells when the winner is certain.")

    def goes_on(self, result: Result, certain: bool) -> bool:
        """Whether the next member is asked; a single vote is not agreement."""
        if self.by == "undecided":
            return not certain
        if len(result.voters) < 2 or not result.elected:
            return True
        if self.by == "share":
            value: float | None = next(g.share for g in result.groups if result.leader in g.candidates)
        else:
            value = result.score if self.by == "score" else result.margin
        return value is not None and value < self.below - SHARE_SLACK

    def __str__(self) -> str:
        return self.by if self.by == "undecided" else f"{self.by}<{self.below:g}"


@dataclass(frozen=True)
class GenerationPlan:
    """One search for the candidates, one for the voters (None: the candidates vote), and the election.

    `confidence`: voters are drawn in rounds until the winner is this certain, or certainly at most `within`
    below the best; None: all of them vote.
    Several models are a panel, asked in order if `escalate` says when to go on. `voter_models` search for the
    voters instead of the models of the candidates; several are a panel. `states`: hypotheses keep the mean of
    their hidden states. At most `max_rows` hypotheses are extended at a time.
    """

    settings: Settings
    candidates: Search
    voters: Search | None
    confidence: float | None
    states: bool
    max_rows: int
    within: float = 0.0
    escalate: Escalation | None = None
    voter_models: Mapping[str, Model] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        settings: Settings,
        candidates: Search | str = "beam:10",
        voters: Search | str | None = None,
        *,
        adaptive: float | bool | None = None,
        within: float = 0.0,
        states: bool | None = None,
        max_rows: int = MAX_ROWS,
        escalate: str | None = None,
    ) -> GenerationPlan:
        """Check every option."""
        voters = usual_voters(settings) if voters is None else voters
        voting = None if voters is None else get_search(voters)
        check_rows(max_rows)
        confidence = _confidence(adaptive)
        if confidence is not None:
            _check_adaptive(settings, voting)
        check_within(within)
        if within and confidence is None:
            raise UsageError(
                f"within={within!r} is how far below the best a certain winner may be, so it needs adaptive, "
                f"as adaptive={CONFIDENCE}."
            )
        needs_states = any(part.needs_states for _, part in settings.measure.parts())
        keep = needs_states if states is None else bool(states)
        condition = None if escalate is None else Escalation.of(escalate)
        return cls(settings, get_search(candidates), voting, confidence, keep, max_rows, within, condition)

    def by(self, models: Collection[str], voter_models: Collection[str] = ()) -> GenerationPlan:
        """A copy with a share for each model that votes; refuses options that these models cannot have."""
        settings, voting = self.settings, list(voter_models or models)
        if voter_models and self.voters is None:
            raise UsageError("voters of another model need a search, such as voters='sample:100'.")
        if (voter_models or len(models) > 1) and settings.tokenize == "tokens":
            raise UsageError("tokens of different models cannot be compared; use tokenize='words'.")
        if self.escalate is not None:
            self.escalate.check(len(models), adaptive=self.confidence is not None)
            if voter_models:
                raise UsageError("escalate cannot be combined with voter models.")
        if len(voting) > 1 and settings.shares is None:  # so that a member that fails is named
            settings = settings.replace(shares=dict.fromkeys(voting, 1.0))
        if isinstance(settings.shares, str):
            raise UsageError(
                f"shares={settings.shares!r} is found over a whole file of ballots: write one (--ballots "
                f"FILE) for rangevote vote --shares agreement, or find the shares beforehand with rangevote "
                f"tune --shares agreement and give them as --profile."
            )
        if settings.shares is not None and set(settings.shares) != set(voting):
            raise UsageError(
                f"shares must be a number for each model that votes, {', '.join(map(repr, voting))}; got "
                f"{settings.shares!r:.200}."
            )
        return replace(self, settings=settings)

    @property
    def batch(self) -> int:
        """How many inputs go through the model together."""
        voters = 0 if self.voters is None else self.voters.size
        if self.confidence is not None:
            voters = min(voters, FIRST_ROUND)  # few elections need more
        return max(1, self.max_rows // max(self.candidates.size, voters))


def usual_voters(settings: Settings) -> str | None:
    """The default search for voters; None: the candidates vote."""
    return CONSENSUS_VOTERS if settings.preset == "consensus" else None


def _confidence(adaptive: float | bool | None) -> float | None:
    if adaptive is None or adaptive is False:
        return None
    if adaptive is True:
        return CONFIDENCE
    if not isinstance(adaptive, (int, float)) or not 0 < adaptive < 1:
        raise UsageError(
            f"adaptive must be True or a confidence between 0 and 1, such as {CONFIDENCE}; got {adaptive!r}."
        )
    return float(adaptive)


def _check_adaptive(settings: Settings, voters: Search | None) -> None:
    """Refuse voters that do not tell how further ones would vote, and elections of several winners."""
    if not isinstance(voters, Sampling):
        voting = "the candidates vote" if voters is None else f"the voters are {str(voters)!r}"
        raise UsageError(
            f"adaptive draws voters until the election is decided, so they must be samples, but {voting}. "
            f"Use voters='sample:1000', or leave adaptive out."
        )
    check_sampling(settings)
    if settings.winners > 1:
        raise UsageError(f"adaptive elects one winner, got winners={settings.winners}; leave adaptive out.")


def check_sampling(settings: Settings) -> None:
    """Refuse weights and rules for which a sample of the voters does not tell who wins."""
    if settings.weights not in (None, "count"):
        raise UsageError(
            f"adaptive needs voters of equal weight, got weights={settings.weights!r}; use weights='count'."
        )
    if settings.rule in NOT_ADAPTIVE:
        raise UsageError(f"adaptive does not work with rule={settings.rule!r}; use rule='range'.")


def parts(draws: range, members: Sequence[str]) -> dict[str, range]:
    """Deal draws to members in turn: which of its own draws each member makes.

    >>> parts(range(5), ["a", "b"]), parts(range(5, 7), ["a", "b"])
    ({'a': range(0, 3), 'b': range(0, 2)}, {'a': range(3, 4), 'b': range(2, 3)})
    """
    each = len(members)
    return {
        name: range(-((place - draws.start) // each), -((place - draws.stop) // each))
        for place, name in enumerate(members)
    }


def derived_seed(*parts: object) -> int:
    """A seed that depends on all parts; it and the seeds counted from it are below 2**31.

    >>> derived_seed(0, "a") != derived_seed(0, "b") != derived_seed(1, "b")
    True
    """
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 2


def seeded(search: Search, member: str) -> Search:
    """The search with the member's own seed: with the same seed, equal models would draw the same."""
    if isinstance(search, SearchSum):
        return SearchSum(tuple(seeded(part, member) for part in search.parts))
    seed = getattr(search, "seed", None)
    return search if seed is None else search.with_options(seed=derived_seed(seed, member))
