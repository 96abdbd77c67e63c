"""What is not plain HTTP/1.1 is refused, over real sockets."""

from __future__ import annotations

import socket
import threading

import pytest

pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from rangevote.web.serving import bound, server

#: Requests whose end, or whose headers, two servers may read differently.
_START = b"POST /v1/chat/completions HTTP/1.1\r\n"
_HEADERS = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"
_CHUNKED = _START + _HEADERS + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
AMBIGUOUS = {
    "length, then chunked": _START
    + _HEADERS
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunked, then length": _START
    + _HEADERS
    + b"transfer-encoding: chunked\r\nX: y\r\ncontent-length: 12\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "lines end in LF": _START.replace(b"\r", b"") + _HEADERS.replace(b"\r", b"") + b"Content-Length: 2\n\n{}",
    "one line ends in LF": _START + b"X: y\n" + _HEADERS + b"Content-Length: 2\r\n\r\n{}",
    "the empty line ends in LF": _START + _HEADERS + b"Content-Length: 2\r\n\n{}",
    "folded by a space": _START + _HEADERS + b"X: y\r\n Content-Length: 20\r\nContent-Length: 2\r\n\r\n{}",
    "folded by a tab": _START + _HEADERS + b"Content-Length:\r\n\t2\r\n\r\n{}",
    "chunks end in LF": _CHUNKED + b"\n",
    "trailers end in LF": _CHUNKED + b"X: y\n\n",
    "folded trailers": _CHUNKED + b"X: y\r\n z\r\n\r\n",
}
PLAIN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"


@pytest.fixture(scope="module", params=["reads the body", "does not"])
def port(request):
    async def answer(given: Request) -> Response:
        return PlainTextResponse(await given.body() if request.param == "reads the body" else b"{}")

    listening = bound("127.0.0.1", 0)
    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    running = server(app)
    thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    running.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


def exchange(port: int, *parts: bytes) -> bytes:
    """All that comes back for these, until the connection is closed."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        while more := connection.recv(65536):
            received += more
    return received


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_request_that_others_may_read_differently_is_400_and_the_last(port, name):
    answer = exchange(port, AMBIGUOUS[name] + PLAIN + b"Content-Length: 2\r\n\r\n{}")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 3\r\n\r\n{\n}",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\n{\n}\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\n{\n}\r\n0\r\nX: y\r\n\r\n",
    ],
)
def test_plain_requests_are_answered_whatever_their_bodies_hold(port, rest):
    answer = exchange(port, b"\n", PLAIN, rest)  # an empty line before a request is skipped
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.partition(b"\r\n\r\n")[2] in (b"{\n}", b"{}")
