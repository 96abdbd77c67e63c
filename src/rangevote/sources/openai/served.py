"""Requests answered by a server: it samples or searches, the election is held here.

Many requests are under way at once and come back in order. Seeds follow from the place of an input in the
whole run, so that a resumed run asks what an uninterrupted one would have asked.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

import msgspec

from rangevote.decoding.base import Search
from rangevote.decoding.beam import Beam
from rangevote.decoding.sample import Sampling
from rangevote.election.elect import elect_ballot
from rangevote.election.electorate import Electorate
from rangevote.errors import DataError, warn
from rangevote.formats.exact import parse
from rangevote.generation.adaptive import AdaptiveElections
from rangevote.generation.batch import STREAMS, Elected, ElectedBatches, Request
from rangevote.generation.plan import GenerationPlan
from rangevote.hypothesis import Hypothesis
from rangevote.sources.openai.asking import Asking
from rangevote.sources.openai.endpoint import Endpoint, UpstreamError
from rangevote.sources.openai.messages import Choice, hypotheses_in, told
from rangevote.sources.openai.sampling import answered

#: Statuses that are about one request and not about the server.
BAD_REQUEST = frozenset({400, 413, 422})
#: Statuses after which no other request will fare better.
NO_USE = frozenset({401, 403, 404})


class Served:
    """Answers requests by one server.

    `skip`: an input at which the server fails gets an error, and the others are asked all the same.
    """

    def __init__(
        self, endpoint: Endpoint, asking: Asking, plan: GenerationPlan, *, ahead: int = 32, skip: bool = False
    ) -> None:
        self._endpoint, self._asking, self._plan = endpoint, asking, plan
        self._ahead, self._skip = ahead, skip

    def answer(self, requests: Iterable[Request]) -> ElectedBatches:
        """The election of each request, or why there is none, in order; at most `ahead` are under way."""
        loop, under_way = asyncio.new_event_loop(), deque[asyncio.Task[Elected | DataError]]()
        try:
            loop.run_until_complete(self._endpoint.__aenter__())
            for request in requests:
                under_way.append(loop.create_task(self._elect(request)))
                if len(under_way) >= self._ahead:
                    yield [loop.run_until_complete(under_way[0])]
                    under_way.popleft()
            while under_way:
                yield [loop.run_until_complete(under_way[0])]
                under_way.popleft()
        finally:
            loop.run_until_complete(self._end(under_way))
            loop.close()

    async def _end(self, under_way: Iterable[asyncio.Task[Any]]) -> None:
        """Leave nothing open, whatever became of it."""
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._endpoint.__aexit__(None, None, None)

    async def _elect(self, request: Request) -> Elected | DataError:
        try:
            return await self._held(request)
        except DataError as error:
            return error.at(f"inputs[{request.number}]")
        except UpstreamError as error:
            told = _with_what_it_said(error)
            if error.status in BAD_REQUEST or (self._skip and _may_pass(error)):
                return DataError(told, field=f"inputs[{request.number}]")
            raise UpstreamError(told, kind=error.kind, status=error.status) from error

    async def _held(self, request: Request) -> Elected:
        """Search for candidates, search for voters, vote."""
        plan, began, voting = self._plan, perf_counter(), 0.0
        slate = await self._found(plan.candidates, request, "candidates")
        voters: list[Hypothesis] | None = None
        drawn: Electorate | None = None
        if plan.voters is not None and plan.confidence is None:
            voters = await self._found(plan.voters, request, "voters")
        elif plan.voters is not None:
            election = await self._turnout(request, slate)
            voters, drawn, voting = election.voters[0], election.electorates[0], election.seconds
        searching = perf_counter() - began - voting
        began = perf_counter()
        ballot = msgspec.structs.replace(request.blank, candidates=slate, voters=voters)
        result = elect_ballot(ballot, plan.settings) if drawn is None else drawn.result()
        return Elected(ballot, result, searching, voting + perf_counter() - began)

    async def _turnout(self, request: Request, slate: Sequence[Hypothesis]) -> AdaptiveElections:
        """Voters in rounds, until the election is decided."""
        plan = self._plan
        assert plan.voters is not None
        assert plan.confidence is not None
        election = AdaptiveElections([slate], plan.settings, plan.confidence)
        for draws, _ in election.rounds(plan.voters.size):
            election.add(0, await self._found(plan.voters, request, "voters", draws))
        return election

    async def _found(
        self, search: Search, request: Request, role: str, draws: range | None = None
    ) -> list[Hypothesis]:
        """The hypotheses of a search; of a sampling only some draws, if so told."""
        path, body = self._asking.request(search, request.input)
        if isinstance(search, Beam):
            answer = await self._endpoint.call(path, {**body, "n": search.size})
            wanted, choices, failed = search.size, answered(answer, path), list[UpstreamError]()
            _check_beams(choices, search)
        else:
            assert isinstance(search, Sampling)
            draws = range(search.size) if draws is None else draws
            seed = seed_of(search.seed, STREAMS[role], request.number) + draws.start
            samples = await self._endpoint.sample(
                path, body, len(draws), seed=seed if self._asking.seeded else None
            )
            wanted, choices, failed = len(draws), samples.choices, samples.failed
        if len(choices) < wanted:
            why = f": {_with_what_it_said(failed[0])}" if failed else "."
            warn(f"inputs[{request.number}]: only {len(choices)} of {wanted} {role} came{why}")
        return _hypotheses(choices, role, sampled=not isinstance(search, Beam))


def seed_of(seed: int, stream: int, number: int) -> int:
    """Where the seeds of an input begin: elsewhere for every one, and for candidates and voters.

    >>> seed_of(0, 0, 0) != seed_of(0, 1, 0) != seed_of(0, 1, 1)
    True
    """
    digest = hashlib.blake2b(f"{seed}/{stream}/{number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 2  # room for the samples, below 2**31


def _hypotheses(choices: Sequence[Choice], role: str, *, sampled: bool) -> list[Hypothesis]:
    """Those with text, at least one."""
    found = hypotheses_in(choices, sampled=sampled)
    if not found:
        kinds = Counter(choice.kind for choice in choices)
        told = ", ".join(f"{count} of kind {kind!r}" for kind, count in kinds.items())
        raise DataError(f"the server gave no text for {role}, only choices without: {told}.")
    return found


def _check_beams(choices: Sequence[Choice], search: Beam) -> None:
    """Servers that pass over what they do not know give something else than beams."""
    beams = [(choice.text, choice.logprob) for choice in choices if choice.kind == "text"]
    unknown = any(logprob is None for _, logprob in beams)
    if unknown or len(set(beams)) < len(beams):
        came = "beams without their log-probabilities" if unknown else "the same beam more than once"
        raise DataError(
            f"the server answered {str(search)!r} with {came}; it must be a vLLM server, started with "
            f"--max-logprobs {2 * search.size} or more."
        )


def _may_pass(error: UpstreamError) -> bool:
    """Whether the next request may fare better than this one."""
    return error.kind not in ("connect", "rate", "redirect") and error.status not in NO_USE


def _with_what_it_said(error: UpstreamError) -> str:
    """The message with the server's own words: who runs the command may read them."""
    try:
        body = parse(error.detail.encode())
        said = body.get("error", body) if isinstance(body, dict) else error.detail
    except DataError:  # not all say it in JSON
        said = error.detail
    words = told(said)
    return f"{error} It said: {words}" if words else str(error)
