"""Connections over real sockets: what is kept, and what servers may do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from rangevote.engines.openai.client import CallLimits, Client, UpstreamError

BODY = b'{"data": [{"id": "tiny"}]}'
GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
LIMITS = CallLimits(connect=1.0, read=0.3, total=5.0, retries=0)


def talked(
    replies: Sequence[bytes], use: Callable[[Client], Any], *, close: bool = False, later: bytes = b""
) -> list[bytes]:
    """What a server read at a time, on all connections, with b"" where one began.

    To each request it says the next of these bytes, the last again and again; then it hangs up with `close`,
    or says something `later`.
    """
    read: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read.append(b"")
        with suppress(ConnectionError):
            while request := await reader.read(2**20):
                number = sum(map(bool, read))
                read.append(request)
                writer.write(replies[min(number, len(replies) - 1)])
                if close:
                    break
                await asyncio.sleep(0.01)
                writer.write(later)
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with Client(f"http://127.0.0.1:{port}/v1", limits=LIMITS) as client:
            await use(client)
        await asyncio.sleep(0.05)  # the server sees its clients go
        server.close()

    asyncio.run(run())
    return read


async def twice(client: Client) -> None:
    for _ in range(2):
        assert await client.models() == ["tiny"]
        await asyncio.sleep(0.1)


def test_a_connection_is_used_again_unless_the_server_closed_it():
    assert talked([GOOD], twice).count(b"") == 1
    assert talked([GOOD], twice, close=True).count(b"") == 2


def test_what_comes_between_two_calls_is_never_the_answer_to_the_second():
    evil = GOOD.replace(b"tiny", b"evil")
    assert talked([GOOD], twice, later=evil).count(b"") == 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "timeout"),
        (GOOD[:-5], "timeout"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "connect"),
        (b"SSH-2.0\r\n\r\n", "connect"),
    ],
)
def test_silence_and_what_is_not_http_are_errors(answer, kind):
    async def use(client: Client) -> None:
        with pytest.raises(UpstreamError) as caught:
            await client.models()
        assert caught.value.kind == kind

    talked([answer], use)
