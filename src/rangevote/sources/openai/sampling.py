"""Samples of a server and the election among them, for `generate --source` and for the service alike.

`sample` draws from servers that do not all understand `n`. `ServerElection` draws candidates and voters, in
rounds where that may save some, and elects; its users say what a failure means by overriding a few methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import anyio

from rangevote.election.elect import elect_ballot
from rangevote.election.electorate import Electorate
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.errors import DataError, SetupError, UsageError
from rangevote.generation.adaptive import FIRST_ROUND, rounds
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.similarity.ngram import Ngrams
from rangevote.sources.openai.client import Client, UpstreamError
from rangevote.sources.openai.messages import (
    ServerChoice,
    Usage,
    choices_of,
    error_text,
    hypotheses_in,
    hypothesis_of,
    usage_of,
)

T = TypeVar("T")

#: Statuses by which servers refuse a request that they do not understand, as one with `n`.
NOT_UNDERSTOOD = frozenset({400, 422, 501})
#: Below this vLLM is greedy; a few more differ from greedy in nothing that could be seen.
SMALLEST_TEMPERATURE = 1e-5
#: Characters whose votes are counted in less time than it takes to wake a thread, and that are split quickly.
FEW, MANY = 16 * 2**10, 256 * 2**10


class Samples(NamedTuple):
    """The choices that came when `n` were asked for: there may be fewer, and `failed` says why.

    `usage` and `calls` count all that was asked, whatever became of it.
    """

    choices: list[ServerChoice]
    usage: Usage
    calls: int
    failed: list[UpstreamError]

    @property
    def hypotheses(self) -> list[Hypothesis]:
        """The choices that have text, to be voted on."""
        return hypotheses_in(self.choices)

    @property
    def characters(self) -> int:
        return sum(len(choice.text or "") for choice in self.choices)


async def sample(
    client: Client,
    path: str,
    body: Mapping[str, Any],
    n: int,
    *,
    seed: int | None = None,
    deadline: float | None = None,
) -> Samples:
    """`n` choices: by one call where the server can, else by as many as it takes.

    How many one call gives is remembered for a while, for each model and for greedy requests apart, of which
    some servers allow only one. Every choice has a seed of its own, from `seed` (else
    that of the body) on: with one for all they would be clones. Raises where not one choice came.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"n must be a whole number from 1, got {n!r}.")
    plain = {name: value for name, value in body.items() if name not in ("n", "seed")}
    first = body.get("seed") if seed is None else seed
    return await SampleCollector(client, path, plain, first, deadline).collect(n)


class SampleCollector:
    """Choices collected over several calls.

    The seed of a call is `seed` plus the number of choices before it: servers with `n` number the seeds of
    one call in the same way, so no two choices share one.
    """

    def __init__(
        self, client: Client, path: str, body: Mapping[str, Any], seed: int | None, deadline: float | None
    ) -> None:
        self._client, self._path, self._body, self._seed = client, path, body, seed
        self._deadline, self._requests = deadline, (path.strip("/"), body.get("model"), is_greedy(body))
        self._by_first: dict[
            int, list[ServerChoice]
        ] = {}  # the choices of each call, by the number of its first
        self._usage, self._calls, self._failed = Usage(), 0, list[UpstreamError]()

    async def collect(self, n: int) -> Samples:
        """Ask for all at once where that may work, then for what is missing, all calls together."""
        most = self._client.most_choices(self._requests)
        if n > 1 and most is None:
            most = await self._probe(n)
            if most < n:
                self._client.remember_most(self._requests, most)
        await self._call_all(self._missing(n), most or 1)
        if not self._failed:  # some call may have given fewer than the one before it
            await self._call_all(self._missing(n), 1)
        choices = [choice for _, some in sorted(self._by_first.items()) for choice in some]
        if not choices:
            raise self._failed[0]
        return Samples(choices[:n], self._usage, self._calls, self._failed)

    def _missing(self, n: int) -> list[int]:
        """The numbers of the choices that are not there, which are those of their seeds."""
        there = {first + i for first, choices in self._by_first.items() for i in range(len(choices))}
        return [number for number in range(n) if number not in there]

    async def _probe(self, n: int) -> int:
        """How many of `n` choices the server gives in one call."""
        try:
            return await self._call(0, n)
        except UpstreamError as error:
            if error.status not in NOT_UNDERSTOOD:
                raise
        await self._call(0, 1)  # where this fails too, `n` was not the reason
        size = (n + 1) // 2
        while size > 1:
            try:
                return await self._call(1, size)
            except UpstreamError as error:
                if error.status not in NOT_UNDERSTOOD:
                    self._failed.append(error)
                    break
            size //= 2
        return size

    async def _call_all(self, numbers: Sequence[int], size: int) -> None:
        """Calls for the choices of these numbers, `size` a call; the errors of those that fail are kept."""

        async def call(some: Sequence[int]) -> None:
            try:
                await self._call(some[0], len(some))
            except UpstreamError as error:
                self._failed.append(error)

        async with anyio.create_task_group() as calls:
            for i in range(0, len(numbers), size):
                calls.start_soon(call, numbers[i : i + size])

    async def _call(self, number: int, size: int) -> int:
        """One call; returns how many choices it gave."""
        body = dict(self._body)
        if size > 1:
            body["n"] = size
        if self._seed is not None:
            body["seed"] = self._seed + number
        self._calls += 1
        answer = await self._client.call(self._path, body, deadline=self._deadline)
        self._usage += usage_of(answer)
        self._by_first[number] = answered(answer, self._path)[:size]
        return len(self._by_first[number])


def is_greedy(body: Mapping[str, Any]) -> bool:
    """Whether all samples of a request would be the same; servers take the smallest temperatures for 0."""
    temperature = body.get("temperature")
    return isinstance(temperature, (int, float)) and temperature < SMALLEST_TEMPERATURE


def answered(answer: Mapping[str, Any], path: str) -> list[ServerChoice]:
    """The choices of a response, at least one."""
    try:
        choices = choices_of(answer, path)
        detail = "the list of choices is empty"
    except DataError as error:
        given = answer.get("error")  # some gateways answer so, with status 200
        choices, detail = [], str(error) if given is None else error_text(given)
    if not choices:
        message = "the server's answer is not one to a completion request."
        raise UpstreamError(message, kind="shape", status=200, detail=detail)
    return choices


@dataclass(frozen=True)
class Query:
    """A request for `n` samples with seeds from `seed` on, or (`beams`) for a search that finds `n`."""

    path: str
    body: Mapping[str, Any]
    n: int
    seed: int | None = None
    beams: bool = False


class SamplePool:
    """The choices of one query over several rounds, with `size` characters in all.

    Usable is every text; or, with a limit of `longest` tokens, texts that are not longer and that the model
    ended itself. If it ended none, those that were cut off are usable, and keep their finish reason.
    """

    def __init__(self, longest: int | None = None) -> None:
        self._longest = longest
        self._complete: list[ServerChoice] = []
        self._cut: list[ServerChoice] = []
        self.counts: Counter[str] = Counter()
        self.failed: list[UpstreamError] = []
        self.usage = Usage()
        self.asked = self.size = 0

    def add(self, samples: Samples, asked: int) -> None:
        """Take in a round in which so many were asked for."""
        self.usage += samples.usage
        self.size += samples.characters
        for choice in samples.choices:
            outcome = self._outcome(choice)
            self.counts[outcome] += 1
            if outcome == "usable":
                self._complete.append(choice)
            elif outcome == "length":
                self._cut.append(choice)
        self.fail(samples.failed, asked, missing=max(0, asked - len(samples.choices)))

    def fail(self, errors: Sequence[UpstreamError], asked: int, missing: int) -> None:
        """Samples that did not come."""
        self.asked += asked
        self.failed += errors
        self.counts["failed"] += missing

    def _outcome(self, choice: ServerChoice) -> str:
        if choice.kind != "text" or choice.text is None:
            return "null" if choice.kind == "text" else choice.kind
        if self._longest is None:
            return "usable"
        size = len(choice.text.split()) if choice.tokens is None else choice.tokens
        if size > self._longest:
            return "too_long"
        if choice.finish_reason == "content_filter":
            return "filtered"
        return "length" if choice.finish_reason == "length" else "usable"

    @property
    def usable(self) -> list[ServerChoice]:
        return self._complete or self._cut

    def hypotheses(self, *, sampled: bool = True) -> list[Hypothesis]:
        """The usable choices for an election; beams are not `sampled`."""
        return [hypothesis_of(choice, sampled=sampled) for choice in self.usable]


@dataclass(frozen=True)
class ElectionOutcome:
    """One election. `counts` says what became of the samples, `saved` how many were not needed, `certain`
    whether sampling stopped because the winner was certain; `seconds` is the time of counting votes."""

    ballot: Ballot
    result: Result
    settings: Settings
    usage: Usage
    asked: int
    counts: Mapping[str, int] = field(default_factory=dict)
    saved: int = 0
    certain: bool = False
    reasons: Sequence[str] = ()
    seconds: float = 0.0

    def finish_reason(self, index: int) -> str:
        """Why candidate `index` ended."""
        if self.reasons:
            return self.reasons[index]
        return "stop" if self.ballot.candidates[index].finished else "length"

    @property
    def votes(self) -> int:
        """How many voted; where nobody does, how many candidates there were."""
        return len(self.result.voters) or len(self.ballot.candidates)

    @property
    def winner_is_mode(self) -> bool:
        """Whether no text was sampled more often than the winner's."""
        voters = self.ballot.voters or self.ballot.candidates
        times = Counter(voter.content for voter in voters if voter.text is not None)
        return bool(times) and times[str(self.result)] == max(times.values())


class ServerElection:
    """Queries to a server, and the election among what it answers.

    `candidates` is a query of their own, or how many of the samples, the first ones, stand for election
    (None: all, or with a confidence 16). Without `voters` the candidates vote. With a `confidence`, samples
    are drawn in rounds until the winner is that certain. Only samples that are independent of who stands
    decide that, those after the first round; so a winner that is called certain is, with probability at most
    1 - confidence, not the one that endless sampling would elect. All samples vote in the final election.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        candidates: Query | int | None,
        voters: Query | None,
        *,
        confidence: float | None = None,
        min_votes: int = 1,
        longest: int | None = None,
        deadline: float | None = None,
    ) -> None:
        self.client, self.settings, self.candidates, self.voters = client, settings, candidates, voters
        self.confidence, self.min_votes, self.deadline = confidence, min_votes, deadline
        self.searched = SamplePool(longest) if isinstance(candidates, Query) else None
        self.sampled = SamplePool(longest)
        self.seconds = 0.0

    async def elect(self) -> ElectionOutcome:
        """Search for candidates, draw voters, count the votes."""
        if isinstance(self.candidates, Query):
            assert self.searched is not None
            await self._ask(self.candidates, self.searched, range(self.candidates.n))
        certain = self.voters is not None and await self._draw(self.voters)
        self.check_votes()
        return await self.run(lambda: self._outcome(certain), self.light)

    async def _draw(self, voters: Query) -> bool:
        """Draw voters; whether the winner was certain before all were drawn."""
        first = voters.n if self.confidence is None else self._first
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

    async def fetch(self, query: Query, draws: range) -> Samples:
        if query.beams:
            body = {**query.body, "n": query.n}
            answer = await self.client.call(query.path, body, deadline=self.deadline)
            return Samples(answered(answer, query.path)[: query.n], usage_of(answer), 1, [])
        seed = None if query.seed is None else query.seed + draws.start
        return await sample(
            self.client, query.path, query.body, len(draws), seed=seed, deadline=self.deadline
        )

    # What users of this class override.

    async def run(self, work: Callable[[], T], light: bool) -> T:
        """The result of `work`; where it is not light, others may not want to wait for it."""
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
        return self.sampled.size + (0 if self.searched is None else self.searched.size)

    @property
    def light(self) -> bool:
        """Whether the votes can be counted in a fraction of a millisecond."""
        measure = self.settings.measure
        linear = isinstance(measure, Ngrams) and measure.tokenize == "words" and len(measure.orders) <= 4
        return linear and self.settings.rule == "range" and self.size <= FEW

    @property
    def _first(self) -> int:
        """How many samples stand for election where not all do, and the first round in any case."""
        return self.candidates if isinstance(self.candidates, int) else FIRST_ROUND

    def _ballot(self) -> Ballot:
        samples = self.sampled.hypotheses()
        if self.searched is not None:
            assert isinstance(self.candidates, Query)
            return Ballot(self.searched.hypotheses(sampled=not self.candidates.beams), samples or None)
        everyone = self.candidates is None and self.confidence is None
        standing = samples if everyone else samples[: self._first]
        return Ballot(standing, None if len(standing) == len(samples) else samples)

    def _decided(self) -> bool:
        """Whether those who vote after the candidates were fixed have decided, and all together agree."""
        assert self.confidence is not None
        if len(self.sampled.usable) < self.min_votes:
            return False
        began, ballot = perf_counter(), self._ballot()
        later = self.sampled.hypotheses()
        if self.searched is None:
            later = later[self._first :]
        try:
            election = Electorate(ballot.candidates, settings=self.settings.replace(weights="count"))
            if later:
                election.add(later)
            if not election.decided(self.confidence):
                return False
            leader = election.result().winner if later else None
        except (DataError, SetupError):  # raised again by the final election
            return False
        finally:
            self.seconds += perf_counter() - began
        return leader is None or leader == self.vote(ballot).winner

    def _outcome(self, certain: bool) -> ElectionOutcome:
        began, ballot = perf_counter(), self._ballot()
        result = self.vote(ballot)
        self.seconds += perf_counter() - began
        sampled, searched = self.sampled, self.searched
        standing = sampled.usable if searched is None else searched.usable
        return ElectionOutcome(
            ballot,
            result,
            self.settings,
            sampled.usage if searched is None else sampled.usage + searched.usage,
            sampled.asked,
            {name: count for name, count in sampled.counts.items() if count},
            self.voters.n - sampled.asked if certain and self.voters is not None else 0,
            certain,
            [choice.finish_reason or "stop" for choice in standing[: len(ballot.candidates)]],
            self.seconds,
        )
