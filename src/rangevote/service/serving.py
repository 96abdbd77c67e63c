"""Run the service on a socket until it is told to stop; connections that dawdle are closed."""

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
from uvicorn.protocols.http.h11_impl import H11Protocol

from rangevote.service.limits import Limits
from rangevote.service.problem import Problem
from rangevote.web.serving import server as web_server

#: Seconds after which a thread that counts votes lets the loop have its turn: it has several in one request,
#: and Python's own 5 ms each time would be felt.
SWITCH = 0.001


def protocol_of(limits: Limits) -> type[H11Protocol]:
    """HTTP/1.1 whose clients must send their headers in time, and not too much of them."""

    class Patient(H11Protocol):
        late: asyncio.TimerHandle | None = None
        heading = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.hurry()

        def data_received(self, data: bytes) -> None:
            if self.conn.their_state is h11.IDLE:
                self.heading += len(data)
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and self.heading:
                self.hurry()
            else:
                self.relax()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            begun = len(self.conn.trailing_data[0]) if self.conn.their_state is h11.IDLE else 0
            if begun and not self.transport.is_closing():  # of the next request, sent too early
                self.heading = begun
                self.hurry()

        def connection_lost(self, exc: Exception | None) -> None:
            self.relax()
            super().connection_lost(exc)

        def hurry(self) -> None:
            """From the first byte on there is so much time for all headers."""
            if self.late is None:
                self.late = self.loop.call_later(limits.header_seconds, self.give_up)

        def relax(self) -> None:
            self.heading = 0
            if self.late is not None:
                self.late.cancel()
                self.late = None

        def give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            """What is no HTTP, or has too long headers, in the words of the API."""
            long = self.heading > limits.header_bytes
            problem = (
                Problem(431, "the headers are too long", code="headers_too_long")
                if long
                else Problem(400, "this is not an HTTP request", code="invalid_http")
            )
            self.refuse(problem)

        def refuse(self, problem: Problem) -> None:
            if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # in the midst of an answer
                self.transport.close()
                return
            body = msgspec.json.encode(problem.body())
            headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
            start = h11.Response(status_code=problem.status, headers=[*headers, ("connection", "close")])
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Patient


def server(app: Any, limits: Limits, ready: Callable[[], None] | None = None) -> uvicorn.Server:
    """A server that is yet to run; it drains for `limits.drain` seconds when told to stop."""
    found: uvicorn.Server = web_server(
        app,
        ready=ready,
        drain=limits.drain,
        http=protocol_of(limits),
        ws="none",
        lifespan="on",
        proxy_headers=False,
        h11_max_incomplete_event_size=limits.header_bytes,
    )
    return found


def serve(
    app: Any, listening: socket.socket, limits: Limits, ready: Callable[[], None] | None = None
) -> None:
    """Answer until SIGINT or SIGTERM, then finish what is under way."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # sent again when all is done
    patience = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        server(app, limits, ready).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
        sys.setswitchinterval(patience)
        signal.signal(signal.SIGTERM, before)
