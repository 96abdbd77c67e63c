"""Run the service on a socket until it is told to stop; connections with slow headers are closed."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import h11
import msgspec
import uvicorn

from rangevote.service.config import Limits
from rangevote.service.errors import ApiError
from rangevote.web.serving import server as web_server
from rangevote.web.strict_http import StrictProtocol

#: Seconds after which a thread that counts votes yields to the event loop, several times in one request;
#: Python's default of 5 ms would be felt.
SWITCH_INTERVAL = 0.001


def protocol_of(limits: Limits) -> type[StrictProtocol]:
    """HTTP/1.1 whose clients must send their headers in time, and not too much of them."""

    class TimedHeaders(StrictProtocol):
        timer: asyncio.TimerHandle | None = None
        head_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.start_timer()

        def data_received(self, data: bytes) -> None:
            if self.conn.their_state is h11.IDLE:
                self.head_bytes += len(data)
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and self.head_bytes:
                self.start_timer()
            else:
                self.stop_timer()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            begun = len(self.conn.trailing_data[0]) if self.conn.their_state is h11.IDLE else 0
            if begun and not self.transport.is_closing():  # the next request, sent early
                self.head_bytes = begun
                self.start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self.stop_timer()
            super().connection_lost(exc)

        def start_timer(self) -> None:
            """From the first byte on, all headers must come within `header_seconds`."""
            if self.timer is None:
                self.timer = self.loop.call_later(limits.header_seconds, self.close)

        def stop_timer(self) -> None:
            self.head_bytes = 0
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

        def close(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            """Answer what is not HTTP, or has too long headers, with an error of the API."""
            self.abandon()
            long = self.head_bytes > limits.header_bytes
            error = (
                ApiError(431, "the headers are too long", code="headers_too_long")
                if long
                else ApiError(400, "this is not an HTTP request", code="invalid_http")
            )
            self.refuse(error)

        def refuse(self, error: ApiError) -> None:
            if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer has begun
                self.transport.close()
                return
            body = msgspec.json.encode(error.body())
            headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
            start = h11.Response(status_code=error.status, headers=[*headers, ("connection", "close")])
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return TimedHeaders


def server(app: Any, limits: Limits, ready: Callable[[], None] | None = None) -> uvicorn.Server:
    """A server that is yet to run; it drains for `limits.drain` seconds when told to stop."""
    new: uvicorn.Server = web_server(
        app,
        ready=ready,
        drain=limits.drain,
        http=protocol_of(limits),
        ws="none",
        lifespan="on",
        proxy_headers=False,
        h11_max_incomplete_event_size=limits.header_bytes,
    )
    return new


def serve(
    app: Any, listening: socket.socket, limits: Limits, ready: Callable[[], None] | None = None
) -> None:
    """Answer until SIGINT or SIGTERM, then finish what is under way."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # uvicorn sends it again at the end
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        server(app, limits, ready).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
        sys.setswitchinterval(interval)
        signal.signal(signal.SIGTERM, before)
