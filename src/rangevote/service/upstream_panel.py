"""Several servers that vote together: each member has its share of the vote, whatever it sampled.

Clients ask for the panel by a name of its own, or for one member by the member's. A member that fails is left
out of the election and named in the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from rangevote.engines.openai.choices import Usage
from rangevote.engines.openai.client import UpstreamError
from rangevote.engines.openai.sample_and_elect import ElectionOutcome, Query
from rangevote.engines.openai.sampling import Samples, sample
from rangevote.service.config import ServiceConfig
from rangevote.service.errors import ApiError, invalid
from rangevote.service.metrics import Metrics
from rangevote.service.requests import CompletionRequest
from rangevote.service.upstream import Upstream, UpstreamElection


class UpstreamPanel:
    """The members, by name; all are called with the same key."""

    def __init__(self, config: ServiceConfig, metrics: Metrics, *, key: str | None = None) -> None:
        self.config = config
        self.members = {
            name: Upstream(replace(config, upstream=url, members={}, models=()), metrics, key=key)
            for name, url in config.members.items()
        }

    async def __aenter__(self) -> UpstreamPanel:
        for member in self.members.values():
            await member.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members.values():
            await member.__aexit__(kind, error, trace)

    async def models(self) -> tuple[str, ...]:
        return (self.config.panel, *self.members)

    async def check_ready(self) -> None:
        """One member that answers is enough."""
        ready = await asyncio.gather(
            *(member.check_ready() for member in self.members.values()), return_exceptions=True
        )
        if all(isinstance(one, Exception) for one in ready):
            raise next(one for one in ready if isinstance(one, Exception))

    def check(self, request: CompletionRequest) -> None:
        if request.body["model"] in self.members:
            self.members[request.body["model"]].check(request)
            return
        if request.options.adaptive is not None:
            raise invalid("rangevote.adaptive", "is for one model, and knows no panels; leave it out")
        if isinstance(request.options.candidates, str):
            raise invalid("rangevote.candidates", "must be a number of samples for a panel")
        for name in request.options.election.get("shares", ()):
            if name not in self.members:
                raise invalid("rangevote.shares", f"must be of the members: {', '.join(self.members)}")
        next(iter(self.members.values())).check(request)

    async def elect(self, request: CompletionRequest, deadline: float) -> ElectionOutcome:
        name = request.body["model"]
        if name not in self.members:
            return await PanelElection(self, request, deadline).outcome(request)
        member = self.members[name]
        body = {**request.body, "model": await model_of(member, name)}
        return await member.elect(replace(request, body=body), deadline)


async def model_of(member: Upstream, name: str) -> str:
    """What the member's server calls its model: the member's own name where it lists that, else the first."""
    listed = await member.models()
    if not listed:
        raise ApiError(502, "the model's server lists no model", code="upstream_shape")
    return name if name in listed else listed[0]


class PanelElection(UpstreamElection):
    """The election of one request by all members, who draw as many samples each."""

    def __init__(self, panel: UpstreamPanel, request: CompletionRequest, deadline: float) -> None:
        super().__init__(next(iter(panel.members.values())), request, deadline)
        self._members = panel.members
        shares: Mapping[str, float] = self.settings.shares or dict.fromkeys(panel.members, 1.0)
        self.settings = self.settings.replace(shares=dict(shares))
        self._members = {name: member for name, member in panel.members.items() if name in shares}

    async def fetch(self, query: Query, draws: range) -> Samples:
        """Samples of all members; those of members that fail are missing."""
        each = -(-len(draws) // len(self._members))
        answers = await asyncio.gather(
            *(self._ask_member(name, query, each, draws.start) for name in self._members),
            return_exceptions=True,
        )
        choices, usage, calls, failed = [], Usage(), 0, list[UpstreamError]()
        for name, answer in zip(self._members, answers, strict=True):
            if isinstance(answer, (UpstreamError, ApiError)):
                failed.append(answer if isinstance(answer, UpstreamError) else UpstreamError(answer.message))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                choices += [choice._replace(member=name) for choice in answer.choices]
                usage, calls = usage + answer.usage, calls + answer.calls
                failed += answer.failed
        if not choices:
            raise failed[0]
        return Samples(choices, usage, calls, failed)

    async def _ask_member(self, name: str, query: Query, n: int, first: int) -> Samples:
        member = self._members[name]
        body: dict[str, Any] = {**query.body, "model": await model_of(member, name)}
        seed = None if query.seed is None else query.seed + first
        return await sample(member.client, query.path, body, n, seed=seed, deadline=self.deadline)
