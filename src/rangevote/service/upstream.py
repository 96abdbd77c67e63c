"""The servers behind the service: they sample, or search if they can, and the service elects.

Several servers are a panel: each member has its share of the vote, however many samples it gave. Clients
address the panel by its name, or a member by the member's name. A member that fails is left out of the
election and named in the reply.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rangevote.decoding import get_search
from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.election.weights import CONFIDENCE
from rangevote.engines.openai.client import CallLimits, Client, UpstreamError
from rangevote.engines.openai.generating import LOGPROBS, beam_fields
from rangevote.engines.openai.sample_and_elect import (
    ElectionOutcome,
    NoBeams,
    Query,
    SamplePool,
    ServerElection,
    needs_logprobs,
)
from rangevote.engines.openai.sampling import Samples, is_greedy
from rangevote.errors import DataError, SetupError
from rangevote.formats.choices import CHAT, COMPLETIONS
from rangevote.generation.plan import Escalation
from rangevote.hypothesis import Ballot
from rangevote.service.config import ServiceConfig
from rangevote.service.errors import ApiError
from rangevote.service.metrics import Metrics
from rangevote.service.requests import CompletionRequest

T = TypeVar("T")

#: Parameters without meaning in a beam search.
OF_SAMPLING = frozenset({"temperature", "top_p", "top_k", "min_p", "seed"})
PATHS = {"chat": CHAT, "completions": COMPLETIONS, "responses": CHAT}


class Upstream:
    """One OpenAI-compatible server, or the named members of a panel; all are called with the same key.

    `most_choices` is how many choices one call returns, if that is known.
    """

    #: Seconds for which a list of models is reused.
    models_kept = 60.0

    def __init__(
        self,
        config: ServiceConfig,
        metrics: Metrics,
        *,
        key: str | None = None,
        most_choices: int | None = None,
    ) -> None:
        limits = config.limits
        self.config, self.metrics = config, metrics
        self.workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="rangevote-election")
        calls = CallLimits(
            limits.connect_seconds,
            limits.read_seconds,
            limits.total_seconds,
            limits.response_bytes,
            limits.retries,
            busy_again=False,  # clients are told when to come back
        )
        self.clients = {
            name: Client(
                url, key=key, limits=calls, concurrency=limits.upstream_calls, most_choices=most_choices
            )
            for name, url in (config.upstreams or {"": config.upstream}).items()
        }
        self._models: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def __aenter__(self) -> Upstream:
        for client in self.clients.values():
            await client.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        self.workers.shutdown(wait=False, cancel_futures=True)
        for client in self.clients.values():
            await client.__aexit__(*raised)

    async def models(self) -> tuple[str, ...]:
        """The models that clients may request: those of the configuration, or all that the server lists."""
        if self.config.upstreams:
            return (self.config.panel, *self.clients)
        return self.config.allow_models or await self._list("")

    async def model_of(self, member: str) -> str:
        """The model to request from a member's server: that of the member's name if it lists one, else the
        first."""
        models = await self._list(member)
        if not models:
            raise UpstreamError("the model's server lists no model.", kind="shape")
        return member if member in models else models[0]

    async def _list(self, member: str) -> tuple[str, ...]:
        at, models = self._models.get(member, (-self.models_kept, ()))
        if time.monotonic() - at > self.models_kept:
            try:
                models = tuple(await self.clients[member].models())
            except UpstreamError:
                if not models:  # otherwise the last list is used
                    raise
            self._models[member] = time.monotonic(), models
        return models

    async def answers(self) -> bool:
        """Whether at least one server answers."""
        calls = (client.models() for client in self.clients.values())
        answers = await asyncio.gather(*calls, return_exceptions=True)
        return not all(isinstance(answer, UpstreamError) for answer in answers)

    async def elect(self, request: CompletionRequest, deadline: float) -> ElectionOutcome:
        try:
            return await UpstreamElection(self, request, deadline).elect()
        except DataError as error:  # a choice that cannot be a hypothesis, or no beam
            message, code = "the model's server failed to answer", "upstream_shape"
            if isinstance(error, NoBeams):
                message, code = "the model's server did not answer with beams", "upstream_beams"
            raise ApiError(502, message, code=code, note=str(error)) from None


class UpstreamElection(ServerElection):
    """The election for one request, by one server or several."""

    def __init__(self, upstream: Upstream, request: CompletionRequest, deadline: float) -> None:
        options, members, self._upstream = request.options, request.members, upstream
        settings, panel = options.settings(request.n), len(members) > 1
        if panel:
            shares = settings.shares or dict.fromkeys(members, 1.0)
            assert not isinstance(shares, str)
            settings = settings.replace(shares={name: shares[name] for name in members})
        elif settings.shares is not None:
            settings = settings.replace(shares=None)
        size = len(members) if is_greedy(request.body) else options.samples  # greedy samples are all equal
        super().__init__(
            upstream.clients,
            settings,
            _beams(request) if isinstance(options.candidates, str) else options.candidates,
            None if options.voters == "candidates" else _samples(request, size),
            confidence=options.adaptive if request.n == 1 else None,
            within=options.within,
            escalate=Escalation.of(options.escalate) if options.escalate and panel else None,
            pool=partial(SamplePool, upstream.config.limits.candidate_tokens, json=request.json),
        )
        self.min_votes, self.deadline = min(options.min_votes, size), deadline

    async def fetch(self, member: str, query: Query, draws: range) -> Samples:
        began = time.monotonic()
        try:
            if member:
                query = replace(query, body={**query.body, "model": await self._upstream.model_of(member)})
            return await super().fetch(member, query, draws)
        finally:
            self._upstream.metrics.upstream_seconds.add(time.monotonic() - began)

    async def run(self, work: Callable[[], T]) -> T:
        """Do heavy work in a thread, so that other requests are not blocked."""
        if self.light:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._upstream.workers, work)

    def check_votes(self) -> None:
        voting = self.voting
        if len(voting.usable) < self.min_votes:
            raise ApiError(
                502,
                f"{len(voting.usable)} of {voting.asked} samples are usable, and {self.min_votes} are needed",
                code="insufficient_votes",
                note=f"{dict(voting.counts)} {[failure.kind for failure in voting.failed][:3]}",
            )

    def vote(self, ballot: Ballot) -> Result:
        if not self.settings.measure.linear and self.size > self._upstream.config.limits.pairwise_chars:
            raise ApiError(
                400,
                "the samples are too long for a similarity that compares every pair; choose overlap_2 or "
                "another that counts n-grams",
                code="too_long",
                param="rangevote.similarity",
            )
        return count_votes(ballot, self.settings)


def _samples(request: CompletionRequest, size: int) -> Query:
    """The client's query, with log-probabilities if the election needs them."""
    path, body = PATHS[request.endpoint], dict(request.body)
    if needs_logprobs(request.options.settings(request.n)):
        body["logprobs"] = body.get("logprobs") or LOGPROBS[path]
    return Query(path, body, size, request.body.get("seed"), members=request.members)


def _beams(request: CompletionRequest) -> Query:
    path = PATHS[request.endpoint]
    body = {name: value for name, value in request.body.items() if name not in OF_SAMPLING}
    size = get_search(str(request.options.candidates)).size
    return Query(path, {**body, **beam_fields(path)}, size, beams=True, members=request.members)


def count_votes(ballot: Ballot, settings: Settings) -> Result:
    """Elect; if the samples cannot be voted on as requested, the error is the client's."""
    voters = ballot.voters or ballot.candidates
    complete = settings.weights != "probability" or all(voter.logprob is not None for voter in voters)
    if settings.weights in CONFIDENCE:
        complete = all(voter.token_logprobs is not None for voter in voters)
    if not complete:
        settings = settings.replace(weights="count")  # the signature says so
    if settings.winners > len(ballot.candidates):
        settings = settings.replace(winners=len(ballot.candidates))
    try:
        return elect_ballot(ballot, settings)
    except DataError as error:
        raise ApiError(
            400,
            "the samples cannot be voted on in this way; choose another similarity, rule or weights",
            code="election_impossible",
            param="rangevote",
            note=str(error),
        ) from None
    except SetupError as error:  # the operator's model cannot be used
        raise ApiError(
            503, "the model of the similarity could not be used", code="similarity_failed", note=str(error)
        ) from None
