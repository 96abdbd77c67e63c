"""Draw samples from a server and elect: the one loop of `generate --engine` and of the service.

`ServerElection` draws candidates and voters, in rounds where that may save some, and elects; its users say
what a failure means by overriding a few methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any, TypeVar

from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.election.sequential_test import FIRST_ROUND, rounds
from rangevote.election.settings import Settings
from rangevote.election.streaming import Electorate
from rangevote.election.weights import CONFIDENCE
from rangevote.engines.openai.client import Client, UpstreamError
from rangevote.engines.openai.sampling import Samples, answered, sample
from rangevote.errors import DataError, SetupError
from rangevote.formats.choices import ServerChoice, Usage, hypothesis_of, usage_of
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis
from rangevote.similarity.json_leaves import read_json

T = TypeVar("T")

#: How many samples stand for election where they are drawn in rounds and every later one only votes.
STANDING = 16
#: Characters whose votes are counted in less time than it takes to wake a thread, and that are split quickly.
FEW, MANY = 16 * 2**10, 256 * 2**10


@dataclass(frozen=True)
class Query:
    """A request for `n` samples with seeds from `seed` on, or (`beams`) for a search that finds `n`."""

    path: str
    body: Mapping[str, Any]
    n: int
    seed: int | None = None
    beams: bool = False


async def fetch(client: Client, query: Query, draws: range, deadline: float | None = None) -> Samples:
    """Some of a query's samples, or all its beams."""
    if query.beams:
        answer = await client.call(query.path, {**query.body, "n": query.n}, deadline=deadline)
        return Samples(answered(answer)[: query.n], usage_of(answer), 1, [])
    seed = None if query.seed is None else query.seed + draws.start
    return await sample(client, query.path, query.body, len(draws), seed=seed, deadline=deadline)


def needs_logprobs(settings: Settings) -> bool:
    """Whether the log-probabilities of samples decide something; not every server gives them."""
    weighed = settings.weights in ("probability", *CONFIDENCE)
    return weighed or settings.rule in WITHOUT_VOTERS or settings.own_likelihood > 0


def is_json(text: str) -> bool:
    """Whether a text is a JSON value, in a code fence or not."""
    try:
        read_json(text)
    except ValueError:
        return False
    return True


class SamplePool:
    """The choices of one query over several rounds, with `size` characters in all.

    `counts` says what became of them, `usable` are those that stand and vote. Without a limit of `longest`
    tokens these are all texts and tool calls. With one, texts that are longer are left out, and those that
    were cut off at the end are left out where most of the same panel member's were not. With `json` what is
    not JSON is left out. Where no text is usable, all that is not JSON is, otherwise the refusals.
    """

    def __init__(self, longest: int | None = None, *, json: bool = False) -> None:
        self._longest, self._json = longest, json
        self._choices: list[tuple[str, ServerChoice]] = []
        self.usable: list[ServerChoice] = []
        self.counts: Counter[str] = Counter()
        self.failed: list[UpstreamError] = []
        self.usage = Usage()
        self.asked = self.size = 0
        self.ends: list[int] = []  # how many were usable after each round

    def add(self, samples: Samples, asked: int) -> None:
        """Take in a round in which so many were asked for."""
        self.usage += samples.usage
        self.size += samples.characters
        before = self.usable
        outcomes = [self._outcome(choice) for choice in samples.choices]
        self._choices += zip(outcomes, samples.choices, strict=True)
        self.counts.update(outcomes)
        self.fail(samples.failed, asked, missing=max(0, asked - len(samples.choices)))
        self.usable = self._usable()
        if self.usable[: len(before)] != before:  # others are usable now
            self.ends.clear()
        if self.usable:
            self.ends.append(len(self.usable))

    def fail(self, errors: Sequence[UpstreamError], asked: int, missing: int) -> None:
        """Samples that did not come."""
        self.asked += asked
        self.failed += errors
        self.counts["failed"] += missing

    def _outcome(self, choice: ServerChoice) -> str:
        if choice.kind in ("text", "null") and choice.finish_reason == "content_filter" and self._longest:
            return "filtered"
        if choice.calls:
            return "usable"
        if choice.kind != "text" or choice.text is None:
            return "null" if choice.kind == "text" else choice.kind
        if self._longest is not None:
            size = choice.tokens
            if size is None:  # then words, of which there are no more than characters
                size = len(choice.text) if len(choice.text) <= self._longest else len(choice.text.split())
            if size > self._longest:
                return "too_long"
            if choice.finish_reason == "length":
                return "length"
        return "usable" if not self._json or is_json(choice.text) else "invalid_json"

    def _usable(self) -> list[ServerChoice]:
        times = Counter((choice.member, outcome) for outcome, choice in self._choices)
        kept = [
            choice
            for outcome, choice in self._choices
            if outcome == "usable"
            or (outcome == "length" and times[choice.member, "length"] >= times[choice.member, "usable"])
        ]
        if not kept:
            kept = [choice for outcome, choice in self._choices if outcome == "invalid_json"]
        return kept or [
            choice._replace(text=choice.text or "")
            for outcome, choice in self._choices
            if outcome in ("refusal", "filtered")
        ]

    def hypotheses(self, *, sampled: bool = True) -> list[Hypothesis]:
        """The usable choices for an election; beams are not `sampled`."""
        return [hypothesis_of(choice, sampled=sampled) for choice in self.usable]


@dataclass(frozen=True)
class ElectionOutcome:
    """One election. `counts` says what became of the samples, `saved` how many were not needed, `certain`
    whether sampling stopped because the winner was certain; `choices` are a server's own, one for each
    candidate; `seconds` is the time of counting votes."""

    ballot: Ballot
    result: Result
    settings: Settings
    usage: Usage
    asked: int
    counts: Mapping[str, int]
    saved: int
    certain: bool
    choices: Sequence[ServerChoice]
    seconds: float

    @property
    def votes(self) -> int:
        """How many voted; where nobody does, how many candidates there were."""
        return len(self.result.voters) or len(self.ballot.candidates)

    @property
    def winner_is_mode(self) -> bool:
        """Whether no text was sampled more often than the winner's."""
        voters = self.ballot.voters or self.ballot.candidates
        times = Counter(voter.content for voter in voters if isinstance(voter.content, str))
        return bool(times) and times[str(self.result)] == max(times.values())


class ServerElection:
    """Queries to a server, and the election among what it answers.

    `candidates` is a query of their own, or how many of the samples, the first ones, stand for election
    (None: all, or with a confidence 16 unless answers are compared). Without `voters` the candidates vote.
    With a `confidence`, samples are drawn in rounds until the winner is that certain, or certainly at most
    `within` below the best. Only samples that are independent of who stands decide that: where answers are
    compared (`exact`) all, else those after the ones that stand, or all while these are the same; so a winner
    that is called certain is, with probability at most 1 - confidence, not the one that endless sampling
    would elect. All samples vote in the final election.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        candidates: Query | int | None,
        voters: Query | None,
        *,
        confidence: float | None = None,
        within: float = 0.0,
        min_votes: int = 1,
        longest: int | None = None,
        json: bool = False,
        deadline: float | None = None,
    ) -> None:
        self.client, self.settings, self.candidates, self.voters = client, settings, candidates, voters
        self.confidence, self.within = confidence, within
        self.min_votes, self.deadline = min_votes, deadline
        self.searched, self.sampled = SamplePool(longest, json=json), SamplePool(longest, json=json)
        self.seconds = 0.0

    async def elect(self) -> ElectionOutcome:
        """Search for candidates, draw voters, count the votes."""
        if isinstance(self.candidates, Query):
            await self._ask(self.candidates, self.searched, range(self.candidates.n))
        certain = self.voters is not None and await self._draw(self.voters)
        self.check_votes()
        return await self.run(lambda: self._outcome(certain), self.light)

    async def _draw(self, voters: Query) -> bool:
        """Draw voters; whether the winner was certain before all were drawn."""
        first = voters.n if self.confidence is None else FIRST_ROUND
        plan, stop = rounds(voters.n, first, self._decided), 0
        while draws := await self.run(lambda: next(plan, None), self.light):
            if not await self._ask(voters, self.sampled, draws):
                return False
            stop = draws.stop
        return stop < voters.n

    async def _ask(self, query: Query, pool: SamplePool, draws: range) -> bool:
        """Ask for some of a query's hypotheses; False where none came but those before will do."""
        try:
            samples = await self.fetch(query, draws)
        except UpstreamError as error:
            self.failed(query, pool, error)
            pool.fail([error], len(draws), missing=len(draws))
            return False
        await self.run(lambda: pool.add(samples, len(draws)), samples.characters <= MANY)
        self.received(query, pool, samples, len(draws))
        return True

    # What users of this class override.

    async def fetch(self, query: Query, draws: range) -> Samples:
        return await fetch(self.client, query, draws, self.deadline)

    async def run(self, work: Callable[[], T], light: bool) -> T:
        """The result of `work`; what is not light may run in a thread, to block no other request."""
        return work()

    def failed(self, query: Query, pool: SamplePool, error: UpstreamError) -> None:
        """Raise unless the election can go on with what came before."""
        raise error

    def received(self, query: Query, pool: SamplePool, samples: Samples, asked: int) -> None:
        """Raise or warn where these samples, which are in the pool, will not do."""

    def check_votes(self) -> None:
        """Raise where too few can vote."""

    def vote(self, ballot: Ballot) -> Result:
        return elect_ballot(ballot, self.settings)

    # Counting.

    @property
    def size(self) -> int:
        """Characters of all choices."""
        return self.sampled.size + self.searched.size

    @property
    def light(self) -> bool:
        """Whether the votes can be counted in a fraction of a millisecond."""
        measure = self.settings.measure
        linear = measure.linear and measure.tokenize in ("space", "words") and 0 < len(measure.orders) <= 4
        return linear and self.settings.rule == "range" and self.size <= FEW

    @property
    def _standing(self) -> int | None:
        """How many samples, the first ones, stand for election; None: all."""
        if isinstance(self.candidates, int) or self.confidence is None:
            return None if isinstance(self.candidates, Query) else self.candidates
        answers = self.settings.measure.answers and not self.settings.has_evidence
        return None if answers else STANDING

    def _ballot(self) -> Ballot:
        samples = self.sampled.hypotheses()
        if isinstance(self.candidates, Query):
            return Ballot(self.searched.hypotheses(sampled=not self.candidates.beams), samples or None)
        standing = samples[: self._standing]
        return Ballot(standing, None if len(standing) == len(samples) else samples)

    def _decided(self) -> bool:
        """Whether the winner is certain, and the one whom all samples together elect."""
        if len(self.sampled.usable) < self.min_votes:
            return False
        began = perf_counter()
        try:
            leader = self._certain()
            return leader is not None and leader == self.vote(self._ballot()).winner
        except (DataError, SetupError):  # raised again by the final election
            return False
        finally:
            self.seconds += perf_counter() - began

    def _certain(self) -> str | Sequence[int] | None:
        """The winner, if those who vote without standing for election, or whose answers do, have decided."""
        assert self.confidence is not None
        samples, standing, ends = self.sampled.hypotheses(), self._standing, self.sampled.ends
        settings = self.settings.replace(weights="count")
        if isinstance(self.candidates, Query):
            election = Electorate(self._ballot().candidates, settings=settings)
        elif standing is None:
            election = Electorate(settings=settings)
        elif len(samples) > standing:
            election = Electorate(samples[:standing], settings=settings)
            samples, ends = samples[standing:], [end - standing for end in ends if end > standing]
        elif len(set(settings.measure.keys(Hypotheses.of(samples)))) == 1:
            election, samples = Electorate(similarity="exact"), samples[:1] * len(samples)
        else:
            return None
        for start, end in pairwise([0, *ends]):
            election.add(samples[start:end])
        return election.result().winner if election.decided(self.confidence, self.within) else None

    def _outcome(self, certain: bool) -> ElectionOutcome:
        began, ballot = perf_counter(), self._ballot()
        result = self.vote(ballot)
        self.seconds += perf_counter() - began
        standing = self.searched if isinstance(self.candidates, Query) else self.sampled
        voting = standing if self.voters is None else self.sampled
        return ElectionOutcome(
            ballot,
            result,
            self.settings,
            self.sampled.usage + self.searched.usage,
            voting.asked,
            {name: count for name, count in voting.counts.items() if count},
            self.voters.n - self.sampled.asked if certain and self.voters is not None else 0,
            certain,
            standing.usable[: len(ballot.candidates)],
            self.seconds,
        )
