"""Draw samples from a server or a panel of servers and elect, for `generate --engine` and the service.

`ServerElection` draws candidates and voters, in rounds or stages if that may save samples, and elects.
Subclasses override a few methods that say what a failure means.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise, zip_longest
from time import perf_counter
from typing import Any, TypeVar

import msgspec

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
from rangevote.generation.plan import Escalation, derived_seed, parts
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis
from rangevote.similarity.json_leaves import read_json

T = TypeVar("T")

#: How many samples stand for election if they are drawn in rounds; later ones only vote.
STANDING = 16
#: Characters whose votes are counted faster than a thread is woken, and that are parsed fast enough.
FEW, MANY = 16 * 2**10, 256 * 2**10


@dataclass(frozen=True)
class Query:
    """A request for `n` samples with seeds from `seed` on, or (`beams`) for a search that finds `n`.

    The `members` of a panel divide the samples; of beams each finds `n`.
    """

    path: str
    body: Mapping[str, Any]
    n: int
    seed: int | None = None
    beams: bool = False
    members: tuple[str, ...] = ("",)

    def size(self, stage: Sequence[str]) -> int:
        """How many hypotheses are requested from these members."""
        if self.beams:
            return self.n * len(stage)
        return sum(len(part) for name, part in parts(range(self.n), self.members).items() if name in stage)


def needs_logprobs(settings: Settings) -> bool:
    """Whether the election needs log-probabilities; not every server reports them."""
    weighed = settings.weights in ("probability", *CONFIDENCE)
    return weighed or settings.rule in WITHOUT_VOTERS or settings.own_likelihood > 0


def is_json(text: str) -> bool:
    """Whether a text is a JSON value, in a code fence or not."""
    try:
        read_json(text)
    except ValueError:
        return False
    return True


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all coroutines; when one fails, the others are cancelled."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class NoBeams(DataError):
    """A server did not return beams, for example since it ignores unknown fields."""


def check_beams(choices: Sequence[ServerChoice], size: int) -> None:
    """Raise an error if these cannot be the beams of a search."""
    beams = [(choice.text, choice.logprob) for choice in choices if choice.kind == "text"]
    unknown = any(logprob is None for _, logprob in beams)
    if unknown or len(set(beams)) < len(beams):
        problem = "beams without their log-probabilities" if unknown else "the same beam more than once"
        raise NoBeams(
            f"the server answered 'beam:{size}' with {problem}; it must be a vLLM server, started with "
            f"--max-logprobs {2 * size} or more."
        )


class SamplePool:
    """The choices of one query over several rounds, with `size` characters in all.

    `counts` says what became of them; `usable` ones stand and vote. Without a limit of `longest` tokens these
    are all texts and tool calls. With a limit, longer texts are left out, and texts that were cut off are
    left out if most of the same member's were not. With `json`, texts that are not JSON are left out. If no
    text is usable, those that are not JSON are used, and without these the refusals.
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
        """Add the samples of a round in which so many were requested; those that are missing are counted."""
        self.usage += samples.usage
        self.size += samples.characters
        self.asked += asked
        self.failed += samples.failed
        self.counts["failed"] += max(0, asked - len(samples.choices))
        if not samples.choices:
            return
        before = self.usable
        outcomes = [self._outcome(choice) for choice in samples.choices]
        self._choices += zip(outcomes, samples.choices, strict=True)
        self.counts.update(outcomes)
        self.usable = self._usable()
        if self.usable[: len(before)] != before:  # others are usable now
            self.ends.clear()
        if self.usable:
            self.ends.append(len(self.usable))

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


@dataclass(frozen=True)
class ElectionOutcome:
    """One election. `counts` says what became of the samples, `saved` how many were not needed, `members` how
    many were requested from each member of a panel, `certain` whether sampling stopped because the winner was
    certain. `choices` has the server's choice for each candidate; `seconds` is the time of counting votes."""

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
    members: Mapping[str, int]

    @property
    def votes(self) -> int:
        """How many voters there were; without voters, how many candidates."""
        return len(self.result.voters) or len(self.ballot.candidates)

    @property
    def winner_is_mode(self) -> bool:
        """Whether no text was sampled more often than the winner's."""
        voters = self.ballot.voters or self.ballot.candidates
        times = Counter(voter.content for voter in voters if isinstance(voter.content, str))
        return bool(times) and times[str(self.result)] == max(times.values())


class ServerElection:
    """Queries to one server or to the members of a panel, and the election among their samples.

    `candidates` is a query of its own, or how many samples (the first ones) stand for election; None: all,
    or 16 with a `confidence` unless answers are compared. Without `voters` the candidates vote.
    With a `confidence`, samples are drawn in rounds until the winner is that certain, or certainly at most
    `within` below the best. Only samples that do not depend on the candidates decide that: all if answers
    are compared (`exact`), otherwise those after the candidates, or all while the candidates are equal. So a
    winner that is called certain differs from the one that endless sampling would elect with probability at
    most 1 - confidence. All samples vote in the final election.

    With `escalate` the members of a panel are asked in order, the next one only if those before it do not
    agree. Each stage may be the last, so the allowed error is divided among them. A member that fails is not
    asked again, and is left out if it returned nothing before.

    Sampling goes on until `min_votes` samples are usable. A `deadline` is a time of `time.monotonic()`.
    """

    min_votes = 1
    deadline: float | None = None

    def __init__(
        self,
        clients: Mapping[str, Client],
        settings: Settings,
        candidates: Query | int | None,
        voters: Query | None,
        *,
        confidence: float | None = None,
        within: float = 0.0,
        escalate: Escalation | None = None,
        pool: Callable[[], SamplePool] = SamplePool,
    ) -> None:
        self.clients, self.settings, self.candidates, self.voters = clients, settings, candidates, voters
        self.within, self.escalate = within, escalate
        self.searched, self.sampled = pool(), pool()
        self.seconds, self.saved, self.failing = 0.0, 0, set[str]()
        drawn = candidates if voters is None else voters
        assert isinstance(drawn, Query)
        self.drawn, self.asked = drawn, dict.fromkeys(drawn.members, 0)
        self.stages = [(name,) for name in self.asked] if escalate else [tuple(self.asked)]
        self.confidence = None if confidence is None else 1 - (1 - confidence) / len(self.stages)

    async def elect(self) -> ElectionOutcome:
        """Search for candidates, draw voters, count the votes."""
        shares = self.settings.shares
        for number, stage in enumerate(self.stages, 1):
            self.more = number < len(self.stages)
            if self.escalate and isinstance(shares, Mapping):
                so_far = [name for each in self.stages[:number] for name in each]
                self.settings = self.settings.replace(shares={name: shares[name] for name in so_far})
            self.certain = await self._ask_stage(stage)
            if self.more and not await self.run(self._goes_on):
                break
        self.check_votes()
        return await self.run(self._outcome)

    async def _ask_stage(self, stage: Sequence[str]) -> bool:
        """Draw candidates and voters of these members; returns whether the winner is certain."""
        if isinstance(self.candidates, Query):
            searching = self.candidates.members if self.escalate is None else stage
            size = self.candidates.size(searching)
            await self._ask(self.candidates, self.searched, range(size), searching)
        if self.voters is None:
            return False
        size, stop = self.voters.size(stage), 0
        first = size if self.confidence is None else max(FIRST_ROUND, len(stage))
        plan = rounds(size, first, self._decided)
        while draws := await self.run(lambda: next(plan, None)):
            if not await self._ask(self.voters, self.sampled, draws, stage):
                return False
            stop = draws.stop
        self.saved += size - stop
        last_look = self.more and self.confidence is not None  # was the last round enough?
        return stop < size or (last_look and await self.run(self._decided))

    async def _ask(self, query: Query, pool: SamplePool, draws: range, stage: Sequence[str]) -> bool:
        """Request some of a query's hypotheses; False if none came but earlier ones suffice."""
        dealt = dict.fromkeys(stage, range(query.n)) if query.beams else parts(draws, stage)
        asked = {name: part for name, part in dealt.items() if part and name not in self.failing}
        answers = await gather(self._ask_member(query, *each) for each in asked.items())
        # in the order of the draws: one of each member in turn
        turns = zip_longest(*(answer.choices for answer in answers))
        samples = Samples(
            [choice for turn in turns for choice in turn if choice is not None],
            sum((answer.usage for answer in answers), Usage()),
            sum(answer.calls for answer in answers),
            [error for answer in answers for error in answer.failed],
        )
        if samples.characters <= MANY:
            pool.add(samples, len(draws))
        else:
            await self.run(lambda: pool.add(samples, len(draws)))
        self.received(query, pool, samples, len(draws))
        return bool(samples.choices)

    async def _ask_member(self, query: Query, name: str, draws: range) -> Samples:
        """A member's samples; none if it failed."""
        panel = len(query.members) > 1
        if query is self.drawn:
            self.asked[name] += len(draws)
        if panel and query.seed is not None:  # otherwise equal models would draw the same
            query = replace(query, seed=derived_seed(query.seed, name))
        try:
            samples = await self.fetch(name, query, draws)
        except UpstreamError as error:
            if panel:
                self.failing.add(name)
                self.left_out(name, error)
            return Samples([], Usage(), 0, [error])
        if query.beams:
            check_beams(samples.choices, query.n)
        choices = [one._replace(member=name) for one in samples.choices] if panel else samples.choices
        return samples._replace(choices=choices)

    # Subclasses override these.

    async def fetch(self, member: str, query: Query, draws: range) -> Samples:
        """Request some of a query's samples, or all its beams."""
        client = self.clients[member]
        if query.beams:
            answer = await client.call(query.path, {**query.body, "n": query.n}, deadline=self.deadline)
            return Samples(answered(answer)[: query.n], usage_of(answer), 1, [])
        seed = None if query.seed is None else query.seed + draws.start
        return await sample(client, query.path, query.body, len(draws), seed=seed, deadline=self.deadline)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`; a subclass may run it in a thread if it is not `light`."""
        return work()

    def left_out(self, member: str, error: UpstreamError) -> None:
        """Called when a member of a panel failed, which is not asked again."""

    def received(self, query: Query, pool: SamplePool, samples: Samples, asked: int) -> None:
        """Called when samples were added to the pool, perhaps none: raise or warn if they do not suffice."""
        if not samples.choices and not self.more and not pool.usable and pool.failed:
            raise pool.failed[0]

    def check_votes(self) -> None:
        """Raise an error if too few samples can vote."""

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
    def voting(self) -> SamplePool:
        """The samples that vote."""
        return self.searched if self.voters is None else self.sampled

    def _standing(self, samples: Sequence[Hypothesis | ServerChoice]) -> list[bool] | None:
        """Which samples stand for election, the first ones of each member; None: all."""
        most = self.candidates
        if most is None and self.confidence is not None:
            answers = self.settings.measure.answers and not self.settings.has_evidence
            most = None if answers else STANDING
        if not isinstance(most, int) or self.voters is None:
            return None
        left = {name: len(part) for name, part in parts(range(most), self.voters.members).items()}
        standing = []
        for one in samples:
            name = one.member or self.voters.members[0]
            left[name] -= 1
            standing.append(left[name] >= 0)
        return standing

    def _choices(self) -> tuple[list[ServerChoice], list[ServerChoice] | None]:
        """The choices that stand for election, and those that vote (None: the same)."""
        sampled = self.sampled.usable
        if isinstance(self.candidates, Query):
            return self.searched.usable, sampled or None
        standing = self._standing(sampled)
        if standing is None or all(standing):
            return sampled, None
        return list(compress(sampled, standing)), sampled

    def _ballot(self) -> Ballot:
        candidates, voters = self._choices()
        drawn = not (isinstance(self.candidates, Query) and self.candidates.beams)
        return Ballot(
            [hypothesis_of(choice, sampled=drawn) for choice in candidates],
            None if voters is None else [hypothesis_of(choice) for choice in voters],
        )

    def _decided(self) -> bool:
        """Whether the winner is certain and all samples together elect the same."""
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
        """The winner, if the samples that are independent of the candidates have decided; otherwise None."""
        assert self.confidence is not None
        samples, ends = [hypothesis_of(choice) for choice in self.sampled.usable], self.sampled.ends
        settings, standing = self.settings.replace(weights="count"), self._standing(samples)
        if isinstance(settings.shares, Mapping):
            silent = self.failing - {one.member for one in samples}
            shares = {name: share for name, share in settings.shares.items() if name not in silent}
            settings = settings.replace(shares=shares)
        if isinstance(self.candidates, Query):
            election = Electorate(self._ballot().candidates, settings=settings)
        elif standing is None:
            election = Electorate(settings=settings)
        elif not all(standing):
            election = Electorate(list(compress(samples, standing)), settings=settings)
            ends = [standing[:end].count(False) for end in ends if not all(standing[:end])]
            samples = [one for one, stands in zip(samples, standing, strict=True) if not stands]
        elif len(set(settings.measure.keys(Hypotheses.of(samples)))) == 1:
            election = Electorate(similarity="exact", shares=settings.shares)
            samples = [msgspec.structs.replace(samples[0], member=one.member) for one in samples]
        else:
            return None
        for start, end in pairwise([0, *ends]):
            election.add(samples[start:end])
        return election.result().winner if election.decided(self.confidence, self.within) else None

    def _goes_on(self) -> bool:
        """Whether the next member is asked."""
        assert self.escalate is not None
        ballot = self._ballot()
        if not ballot.candidates or len(self.voting.usable) < self.min_votes:
            return True
        try:
            return self.escalate.goes_on(self.vote(ballot), self.certain)
        except (DataError, SetupError):  # raised again by the final election
            return False

    def _outcome(self) -> ElectionOutcome:
        began, ballot = perf_counter(), self._ballot()
        result = self.vote(ballot)
        self.seconds += perf_counter() - began
        spared = [name for name, asked in self.asked.items() if not asked and name not in self.failing]
        return ElectionOutcome(
            ballot=ballot,
            result=result,
            settings=self.settings,
            usage=self.sampled.usage + self.searched.usage,
            asked=self.voting.asked,
            counts={name: count for name, count in self.voting.counts.items() if count},
            saved=self.saved + self.drawn.size(spared),
            certain=self.certain,
            choices=self._choices()[0],
            seconds=self.seconds,
            members=self.asked,
        )
