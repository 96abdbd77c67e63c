"""What servers of models answer, and where they are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import httpx

from fuzz.asgi import loop, parted
from rangevote.errors import RangevoteError
from rangevote.formats.jsonl import parse
from rangevote.sources.openai import hypotheses_of
from rangevote.sources.openai.client import CallLimits, Client, checked_key, checked_url, retry_seconds
from rangevote.sources.openai.messages import (
    CHAT,
    COMPLETIONS,
    choices_of,
    error_text,
    hypotheses_in,
    usage_of,
)
from rangevote.sources.openai.sampling import sample


def choices(data: bytes) -> None:
    """The choices of a response, to chat and to completions."""
    body = parse(data)
    assert "\n" not in error_text(body)
    assert usage_of(body).total >= 0
    for path in (CHAT, COMPLETIONS):
        try:
            found = choices_of(body, path)
        except RangevoteError:
            continue
        for choice in found:
            assert choice.logprob is None or choice.logprob <= 0
        assert len(hypotheses_in(found)) <= len(found)
    hypotheses_of([body])


class _Said(httpx.AsyncBaseTransport):
    """A server that answers every request with the same bytes."""

    status, headers, content = 200, list[tuple[bytes, bytes]](), b""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(self.status, headers=self.headers, stream=httpx.ByteStream(self.content))


@lru_cache(maxsize=1)
def _server() -> _Said:
    return _Said()


def answers(data: bytes) -> None:
    """A whole answer: status and headers, then the body."""
    first, headers, content = parted(data)
    status = first.split(b" ")[0]
    said = _server()
    said.status = int(status) if status.isdigit() and len(status) == 3 and status[0] in b"2345" else 200
    said.headers = [pair for pair in headers if pair[0] not in (b"content-length", b"transfer-encoding")]
    said.content = content
    loop().run_until_complete(_asked(said))


async def _asked(said: _Said) -> None:
    limits = CallLimits(retries=0, total=60.0)
    body: dict[str, Any] = {"model": "m", "prompt": "p"}
    async with Client("http://127.0.0.1:1/v1", limits=limits, transport=said) as client:
        for path in (CHAT, COMPLETIONS):
            try:
                found = await sample(client, path, body, 3, seed=1)
                assert 0 < len(found.choices) <= 3
            except RangevoteError:
                continue
        await client.models()


def addresses(data: bytes) -> None:
    """A base URL, a key and a Retry-After, each as text of any kind."""
    text = data.decode("utf-8", "surrogateescape")
    seconds = retry_seconds(data.decode("latin-1"))
    assert seconds is None or seconds >= 0
    try:
        checked_key(text)
    except RangevoteError as error:
        shown = str(error)
        if len(text) >= 8 and text in shown:
            raise AssertionError("the key is shown") from None
    Client(checked_url(text))
