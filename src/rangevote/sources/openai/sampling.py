"""So many choices of one request, from servers that do not all understand `n`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import anyio

from rangevote.errors import DataError
from rangevote.hypothesis import Hypothesis
from rangevote.sources.openai.messages import Choice, Usage, choices_of, hypotheses_in, told, usage_of
from rangevote.sources.openai.refusal import UpstreamError

#: Statuses by which servers refuse a request that they do not understand, as one with `n`.
NOT_UNDERSTOOD = frozenset({400, 422, 501})


class Samples(NamedTuple):
    """What came of asking for `n` choices: there may be fewer, and `failed` tells why.

    `usage` and `calls` count all that was asked, whatever became of it.
    """

    choices: list[Choice]
    usage: Usage
    calls: int
    failed: list[UpstreamError]

    @property
    def hypotheses(self) -> list[Hypothesis]:
        """The choices that have text, to be voted on."""
        return hypotheses_in(self.choices)


class Sampling:
    """Choices collected over several calls.

    `most` is what is known of the server: how many choices one call gives, where that is fewer than asked
    for. The seed of a call is `seed` and the number of choices before it: servers with `n` number the seeds
    of one call in the same way, so no two choices share one.
    """

    def __init__(
        self,
        call: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
        path: str,
        body: Mapping[str, Any],
        seed: int | None,
        most: dict[tuple[str, object], int],
    ) -> None:
        self._call, self._path, self._body, self._seed = call, path, body, seed
        self._most, self._server = most, (path.strip("/"), body.get("model"))
        self._found: dict[int, list[Choice]] = {}  # the choices of each call, by the number of the first
        self._usage, self._calls, self._failed = Usage(), 0, list[UpstreamError]()

    async def draw(self, n: int) -> Samples:
        """Ask for all at once where that may work, then for what is missing, all calls together."""
        if n > 1 and self._server not in self._most:
            await self._try(n)
        await self._together(self._missing(n), self._most.get(self._server, 1))
        if not self._failed:  # some call may have given fewer than the one before it
            await self._together(self._missing(n), 1)
        if not self._choices:
            raise self._failed[0]
        return Samples(self._choices[:n], self._usage, self._calls, self._failed)

    @property
    def _choices(self) -> list[Choice]:
        return [choice for _, choices in sorted(self._found.items()) for choice in choices]

    def _missing(self, n: int) -> list[int]:
        """The numbers of the choices that are not there, which are those of their seeds."""
        there = {first + i for first, choices in self._found.items() for i in range(len(choices))}
        return [number for number in range(n) if number not in there]

    async def _try(self, n: int) -> None:
        """Find out what the server makes of `n`."""
        try:
            got = await self._ask(0, n)
        except UpstreamError as error:
            if error.status not in NOT_UNDERSTOOD:
                raise
            got = await self._ask(0, 1)  # where this fails too, `n` was not the reason
        if got < n:
            self._most[self._server] = got

    async def _together(self, numbers: Sequence[int], size: int) -> None:
        """Calls for the choices of these numbers, `size` a call; those that fail are kept as errors."""

        async def ask(some: Sequence[int]) -> None:
            try:
                await self._ask(some[0], len(some))
            except UpstreamError as error:
                self._failed.append(error)

        async with anyio.create_task_group() as calls:
            for i in range(0, len(numbers), size):
                calls.start_soon(ask, numbers[i : i + size])

    async def _ask(self, number: int, size: int) -> int:
        """One call; returns how many choices it gave."""
        body = dict(self._body)
        if size > 1:
            body["n"] = size
        if self._seed is not None:
            body["seed"] = self._seed + number
        self._calls += 1
        answer = await self._call(body)
        self._usage += usage_of(answer)
        self._found[number] = answered(answer, self._path)[:size]
        return len(self._found[number])


def answered(answer: Mapping[str, Any], path: str) -> list[Choice]:
    """The choices of a response, at least one."""
    try:
        choices = choices_of(answer, path)
    except DataError as error:
        said = answer.get("error")  # some gateways answer so, with status 200
        raise _misshapen(str(error) if said is None else told(said)) from None
    if not choices:
        raise _misshapen("the list of choices is empty")
    return choices


def _misshapen(detail: str) -> UpstreamError:
    return UpstreamError(
        "the server's answer is not one to a completion request.", kind="shape", status=200, detail=detail
    )
