"""Samples drawn from a server of the tests by a `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from rangevote.engines.openai.client import CallLimits, Client, UpstreamError
from rangevote.engines.openai.sampling import Samples, sample
from rangevote.formats.choices import CHAT
from tests.engines.openai.upstream import Upstream

T = TypeVar("T")
ASK = {"model": "tiny", "messages": [{"role": "user", "content": "when?"}], "logprobs": True}
#: Quick where calls are repeated.
LIMITS = CallLimits(pause=0.02)


def asked(upstream: Upstream, use: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """What `use` gets of a client at this server."""

    async def run() -> T:
        async with Client(upstream.url, **{"limits": LIMITS, **options}) as client:
            return await use(client)

    return asyncio.run(run())


def drawn(upstream: Upstream, n: int, *, times: int = 1, path: str = CHAT, **options: Any) -> Samples:
    """The samples of the last of some requests to one client."""

    async def use(client: Client) -> Samples:
        for _ in range(times):
            samples = await sample(client, path, ASK, n, seed=options.pop("seed", 100))
        return samples

    return asked(upstream, use, **options)


def fault(mode: str, n: int = 1, **options: Any) -> UpstreamError:
    """The error that a misbehaving server comes to."""
    with Upstream(mode) as upstream, pytest.raises(UpstreamError) as caught:
        drawn(upstream, n, **options)
    return caught.value


def texts(samples: Samples) -> list[str | None]:
    return [choice.text for choice in samples.choices]
