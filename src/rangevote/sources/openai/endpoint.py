"""One OpenAI-compatible server, asked with patience and within bounds.

    async with Endpoint("http://127.0.0.1:8000/v1", key=key) as endpoint:
        samples = await endpoint.sample("/chat/completions", {"model": ..., "messages": [...]}, 16, seed=1)

Calls are bounded in number, time and bytes. Redirects are not followed, proxies of the environment are not
used, and keys stand in no message.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import anyio
import httpx
import msgspec

from rangevote.errors import DataError, UsageError
from rangevote.formats.exact import parse
from rangevote.sources.openai.address import checked_key, checked_url
from rangevote.sources.openai.refusal import Reason, late, not_ok, unreachable
from rangevote.sources.openai.refusal import UpstreamError as UpstreamError
from rangevote.sources.openai.sampling import Samples as Samples
from rangevote.sources.openai.sampling import Sampling

#: Seconds before a call is repeated: doubled for every further time, and by chance down to a half of it.
PAUSE, LONGEST_PAUSE = 0.5, 8.0
#: Of what comes with an error, no more is read.
ERROR_BYTES = 16 * 2**10
#: Answers of more bytes than this are parsed in a thread.
LONG = 256 * 2**10


@dataclass(frozen=True)
class Limits:
    """Seconds for connecting, for each silence while reading, and for a call with its repetitions; how long a
    response may be, and how often a call is repeated."""

    connect: float = 5.0
    read: float = 120.0
    total: float = 300.0
    response_bytes: int = 4 * 2**20
    retries: int = 2


class Endpoint:
    """One server; `async with` opens its connections and closes them.

    At most `concurrency` calls are under way at a time. `deadline`, where a method takes one, is a time of
    `time.monotonic()`; without it a call may take `limits.total` seconds from when its turn comes. Cancelling
    a task that waits for an answer closes its connection.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None = None,
        limits: Limits | None = None,
        concurrency: int = 16,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise UsageError(f"concurrency must be a whole number from 1, got {concurrency!r}.")
        self.base_url, self._key = checked_url(base_url), checked_key(key)
        try:
            httpx.URL(self.base_url)
        except httpx.InvalidURL as error:
            raise UsageError(f"the base URL {self.base_url!r} cannot be one: {error}.") from None
        self.limits = limits or Limits()
        self._concurrency, self._transport = concurrency, transport
        self._most: dict[tuple[str, object], int] = {}  # see Sampling
        self._client: httpx.AsyncClient | None = None
        self._turns: asyncio.Semaphore

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"

    async def __aenter__(self) -> Endpoint:
        limits, headers = self.limits, {"accept": "application/json", "accept-encoding": "identity"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        self._turns = asyncio.Semaphore(self._concurrency)
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(limits.read, connect=limits.connect, pool=None),
            limits=httpx.Limits(max_connections=self._concurrency),
            transport=self._transport,
            follow_redirects=False,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        assert client is not None
        await client.aclose()

    async def models(self) -> list[str]:
        """The names of the models that the server has."""
        answer = await self._ask("GET", "/models", None, None)
        listed = answer.get("data")
        names = (
            [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else [None]
        )
        if not all(isinstance(name, str) for name in names):
            raise self._odd("does not list its models")
        return [str(name) for name in names]

    async def call(
        self, path: str, body: Mapping[str, Any], *, deadline: float | None = None
    ) -> dict[str, Any]:
        """The response to one POST; `path` goes behind the base URL, as "/chat/completions".

        The call is repeated only where no answer came or the server is busy or broken (429, 5xx), after a
        pause by chance or the one that it asks for, as far as the deadline allows.
        """
        return await self._ask("POST", path, body, deadline)

    async def sample(
        self,
        path: str,
        body: Mapping[str, Any],
        n: int,
        *,
        seed: int | None = None,
        deadline: float | None = None,
    ) -> Samples:
        """`n` choices: by one call where the server can, else by as many as it takes.

        What a server can do is remembered for each model. Every choice has a seed of its own, from `seed`
        (else that of the body) on: with one for all they would be clones. Raises where not one choice came.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise UsageError(f"n must be a whole number from 1, got {n!r}.")
        plain = {name: value for name, value in body.items() if name not in ("n", "seed")}

        async def call(asked: Mapping[str, Any]) -> dict[str, Any]:
            return await self.call(path, asked, deadline=deadline)

        first = body.get("seed") if seed is None else seed
        return await Sampling(call, path, plain, first, self._most).draw(n)

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, deadline: float | None
    ) -> dict[str, Any]:
        """Wait for a turn, then ask until there is an answer or no point in asking again."""
        async with self._turn(deadline) as until:
            content = None if body is None else msgspec.json.encode(body)  # not before: many may wait
            for repetition in range(self.limits.retries):
                try:
                    return await self._once(method, path, content, until)
                except UpstreamError as error:
                    pause = _pause(repetition, error.retry_after)
                    if not error.transient or time.monotonic() + pause >= until:
                        raise
                await asyncio.sleep(pause)
            return await self._once(method, path, content, until)

    @asynccontextmanager
    async def _turn(self, deadline: float | None) -> AsyncIterator[float]:
        """Until when to ask. A turn is kept through the pauses: a server that is busy gets fewer calls."""
        left = math.inf if deadline is None else deadline - time.monotonic()
        with anyio.move_on_after(left) as waiting:
            await self._turns.acquire()
        if waiting.cancelled_caught:
            raise late(self.base_url)
        try:
            until = time.monotonic() + self.limits.total
            yield until if deadline is None else min(until, deadline)
        finally:
            self._turns.release()

    async def _once(self, method: str, path: str, content: bytes | None, until: float) -> dict[str, Any]:
        assert self._client is not None, "use the endpoint in `async with`"
        url = f"{self.base_url}/{path.lstrip('/')}"
        headers = {} if content is None else {"content-type": "application/json"}
        try:
            with anyio.fail_after(until - time.monotonic()):
                async with self._client.stream(method, url, content=content, headers=headers) as response:
                    return await self._answer(response)
        except TimeoutError:
            raise late(self.base_url) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # of names that cannot be any
            raise unreachable(self.base_url, error) from error

    async def _answer(self, response: httpx.Response) -> dict[str, Any]:
        """The JSON object of a response, or the error that it stands for."""
        content = await self._content(response)
        if response.status_code != 200:
            raise not_ok(self.base_url, response.status_code, response.headers, content, self._key)
        try:
            # Parsing holds the event loop; what is long goes to a thread, so that other calls go on.
            long = len(content) > LONG
            answer = await anyio.to_thread.run_sync(parse, content) if long else parse(content)
        except DataError as error:
            came = f"{response.headers.get('content-type', '')}: {error.problem}: {content[:200]!r}"
            raise self._odd("answered with what is not JSON", "not_json", came) from None
        if not isinstance(answer, dict):
            raise self._odd("answered with JSON that is no object")
        return answer

    async def _content(self, response: httpx.Response) -> bytes:
        """The body, counted while it comes in; of an error's only the beginning."""
        fine = response.status_code == 200
        if fine and response.headers.get("content-encoding", "identity") != "identity":
            raise self._odd("compressed its answer though asked not to")
        most, content = self.limits.response_bytes if fine else ERROR_BYTES, bytearray()
        try:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > most:
                    if fine:
                        raise self._odd(f"answered with more than {most:,} bytes", "too_large")
                    break
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            if fine:
                raise self._odd("broke off in the middle of its answer", "not_json", repr(error)) from error
        return bytes(content[:most])

    def _odd(self, what: str, kind: Reason = "shape", detail: str = "") -> UpstreamError:
        """The error of an answer that is none."""
        return UpstreamError(f"{self.base_url} {what}.", kind=kind, status=200, detail=detail)


def _pause(repetition: int, wanted: float | None) -> float:
    """Seconds to wait: by chance, so that calls that failed together do not come back together."""
    longest = min(LONGEST_PAUSE, PAUSE * 2.0**repetition)
    return max(longest * random.uniform(0.5, 1.0), wanted or 0.0)
