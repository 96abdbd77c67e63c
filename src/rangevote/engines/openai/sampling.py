"""Draw samples from a server, also from servers that do not support `n`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import anyio

from rangevote.engines.openai.client import Client, UpstreamError
from rangevote.errors import DataError, UsageError
from rangevote.formats.choices import (
    ServerChoice,
    Usage,
    choices_of,
    error_text,
    usage_of,
)

#: Statuses of servers that do not support a parameter, such as `n`.
NOT_UNDERSTOOD = frozenset({400, 422, 501})
#: vLLM treats lower temperatures as 0.
SMALLEST_TEMPERATURE = 1e-5


class Samples(NamedTuple):
    """The choices that a server returned; if there are fewer than requested, `failed` says why.

    `usage` and `calls` count all calls, whether they succeeded or not.
    """

    choices: list[ServerChoice]
    usage: Usage
    calls: int
    failed: list[UpstreamError]

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
    """Draw `n` choices in one call if the server can, otherwise in several.

    How many one call returns is remembered for a while, for each model, and separately for greedy requests,
    since some servers return only one for those. Every choice has its own seed, counting from `seed` or that
    of the body: with the same seed they would be equal. Raises an error if no choice was returned.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"n must be a whole number from 1, got {n!r}.")
    plain = {name: value for name, value in body.items() if name not in ("n", "seed")}
    first = body.get("seed") if seed is None else seed
    return await SampleCollector(client, path, plain, first, deadline).collect(n)


class SampleCollector:
    """Choices collected over several calls.

    The seed of a call is `seed` plus the number of choices before it. Servers count the seeds of one call in
    the same way, so no two choices have the same seed.
    """

    def __init__(
        self, client: Client, path: str, body: Mapping[str, Any], seed: int | None, deadline: float | None
    ) -> None:
        self._client, self._path, self._body, self._seed = client, path, body, seed
        self._deadline, self._kind = deadline, (path.strip("/"), body.get("model"), is_greedy(body))
        self._choices: dict[int, ServerChoice] = {}  # by their numbers, which are the offsets of their seeds
        self._usage, self._calls, self._failed = Usage(), 0, list[UpstreamError]()

    async def collect(self, n: int) -> Samples:
        """Request all choices at once if that may work, then the missing ones in parallel."""
        most = self._client.most_choices(self._kind)
        if n > 1 and most is None:
            most = await self._probe(n)
            if most < n:
                self._client.remember_most(self._kind, most)
        if missing := self._missing(n):
            await self._call_all(missing, most or 1)
        if not self._failed and (missing := self._missing(n)):  # a call returned fewer than expected
            await self._call_all(missing, 1)
        if not self._choices:
            raise self._failed[0]
        choices = [choice for _, choice in sorted(self._choices.items())]
        return Samples(choices, self._usage, self._calls, self._failed)

    def _missing(self, n: int) -> list[int]:
        return [number for number in range(n) if number not in self._choices]

    async def _probe(self, n: int) -> int:
        """Find out how many of `n` choices the server returns in one call."""
        try:
            return await self._call(0, n)
        except UpstreamError as error:
            if error.status not in NOT_UNDERSTOOD:
                raise
        await self._call(0, 1)  # if this fails too, `n` was not the reason
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
        """Request the choices with these numbers, `size` per call; errors are collected."""

        async def call(some: Sequence[int]) -> None:
            try:
                await self._call(some[0], len(some))
            except UpstreamError as error:
                self._failed.append(error)

        async with anyio.create_task_group() as calls:
            for i in range(0, len(numbers), size):
                calls.start_soon(call, numbers[i : i + size])

    async def _call(self, number: int, size: int) -> int:
        """Make one call; returns the number of choices."""
        body = dict(self._body)
        if size > 1:
            body["n"] = size
        if self._seed is not None:
            body["seed"] = self._seed + number
        self._calls += 1
        answer = await self._client.call(self._path, body, deadline=self._deadline)
        choices = answered(answer)
        most = body.get("max_tokens", body.get("max_completion_tokens"))
        self._usage += usage_of(answer, choices, most if isinstance(most, int) else math.inf)
        self._choices |= enumerate(choices[:size], number)
        return min(len(choices), size)


def is_greedy(body: Mapping[str, Any]) -> bool:
    """Whether all samples of a request would be equal; servers treat very small temperatures as 0."""
    temperature = body.get("temperature")
    return isinstance(temperature, (int, float)) and temperature < SMALLEST_TEMPERATURE


def answered(answer: Mapping[str, Any]) -> list[ServerChoice]:
    """The choices of a response, at least one."""
    try:
        choices = choices_of(answer)
        detail = "the list of choices is empty"
    except DataError as problem:
        error = answer.get("error")  # some gateways send errors with status 200
        choices, detail = [], str(problem) if error is None else error_text(error)
    if not choices:
        message = "the server's response is not a completion."
        raise UpstreamError(message, kind="shape", status=200, detail=detail)
    return choices
