"""Connections to one server, kept open between calls: h11 over asyncio.

A general client spends more time on a call than the election it is for, on what is not needed here: all calls
go to one server, `Client` limits how many are under way, and a body is whole before it is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import h11
import httpx

#: Seconds for which a connection is kept without a call: many servers close it after five.
KEPT = 4.0
#: Bytes of the head of an answer.
HEAD_BYTES = 100 * 2**10
#: Seconds after which another address of a name is tried beside one that does not answer.
NEXT_ADDRESS = 0.25


class Connection(asyncio.Protocol):
    """One connection, with one call at a time."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self._transport: asyncio.Transport
        self._more: asyncio.Future[None] | None = None
        self._rests_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._http.their_state not in (h11.SEND_RESPONSE, h11.SEND_BODY):
            self.abort()  # an answer that nobody asked for must not become that to the next call
            return
        self._http.receive_data(data)
        self._wake()

    def eof_received(self) -> None:
        self._http.receive_data(b"")
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.eof_received()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    def send(self, request: httpx.Request) -> None:
        """Write a request in one piece: else its head alone would wake the server."""
        method, target, headers = request.method, request.url.raw_path, request.headers.raw
        try:
            head = h11.Request(method=method, target=target, headers=headers)
            events = (head, h11.Data(data=request.content), h11.EndOfMessage())
            self._transport.write(b"".join(self._http.send(event) or b"" for event in events))
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error

    async def event(self, silence: float | None) -> object:
        """What comes next of an answer, within so many seconds."""
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._more = asyncio.get_running_loop().create_future()
                with anyio.fail_after(silence):
                    await self._more
        except TimeoutError:
            raise httpx.ReadTimeout("the server fell silent") from None
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        return event

    def rest(self) -> bool:
        """Wait for the next call, if the last one is over and nothing came after it."""
        over = self._http.our_state is self._http.their_state is h11.DONE
        if not over or self._http.trailing_data[0]:
            return False
        self._http.start_next_cycle()
        self._rests_since = time.monotonic()
        return True

    @property
    def usable(self) -> bool:
        return not self._transport.is_closing() and time.monotonic() - self._rests_since < KEPT

    def abort(self) -> None:
        self._transport.abort()


class Connections(httpx.AsyncBaseTransport):
    """The connections to the server of this address; proxies of the environment are not used."""

    def __init__(self, url: httpx.URL) -> None:
        self._host = url.raw_host.decode("ascii")
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._ssl = httpx.create_ssl_context(trust_env=False) if url.scheme == "https" else None
        self._idle: list[Connection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeout = request.extensions["timeout"]
        connection = self._kept() or await self._opened(timeout["connect"])
        try:
            connection.send(request)
            event = await connection.event(timeout["read"])
            while isinstance(event, h11.InformationalResponse):
                event = await connection.event(timeout["read"])
        except BaseException:
            connection.abort()
            raise
        assert isinstance(event, h11.Response)
        body = AnswerBody(connection, self._idle, timeout["read"])
        return httpx.Response(event.status_code, headers=event.headers.raw_items(), stream=body)

    def _kept(self) -> Connection | None:
        """The connection that was used last, if it is still good; those that are not are closed."""
        while self._idle and not self._idle[0].usable:
            self._idle.pop(0).abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.abort()
        return None

    async def _opened(self, seconds: float | None) -> Connection:
        loop = asyncio.get_running_loop()
        several: dict[str, Any] = {}
        if isinstance(loop, asyncio.BaseEventLoop):  # others, as uvloop's, try one address after the other
            several["happy_eyeballs_delay"] = NEXT_ADDRESS
        try:
            with anyio.fail_after(seconds):
                connection: Connection
                _, connection = await loop.create_connection(
                    Connection, self._host, self._port, ssl=self._ssl, **several
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection

    async def aclose(self) -> None:
        while self._idle:
            self._idle.pop().abort()
        await asyncio.sleep(0)  # in which they are closed


class AnswerBody(httpx.AsyncByteStream):
    """The body of an answer; closing it before its end closes the connection, else that is kept."""

    def __init__(self, connection: Connection, idle: list[Connection], silence: float | None) -> None:
        self._connection, self._idle, self._silence = connection, idle, silence

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._connection.event(self._silence), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        if self._connection.rest():
            self._idle.append(self._connection)
        else:
            self._connection.abort()
