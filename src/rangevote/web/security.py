"""Middleware of all our applications: which requests are accepted, and what a page may load.

Every page in the user's browser can reach a server on 127.0.0.1. Therefore the Host must be one of ours
(against DNS rebinding), a request that writes must come from our own page (against forgery), bodies are
counted as they arrive, and the headers of answers forbid the page to load or send anything elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Names under which a machine reaches itself.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
#: Largest body of a request, in bytes, unless an application says otherwise.
MAX_BODY = 64 * 1024

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Refused(Exception):
    """A request is refused; the message says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Guard:
    """An ASGI middleware; `hosts` are further names under which the server may be asked for.

    Refusals are `{"error": message}` with 400 (a foreign host), 403 (a foreign page), 413 (too much) or 415
    (not JSON).
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str] = (), max_body: int = MAX_BODY) -> None:
        self._app, self._max_body = app, max_body
        self._hosts = {name.lower() for name in (*LOOPBACK, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on; count its body, and add our headers to the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken, begun, refused = 0, False, None

        async def receive_counted() -> Message:
            nonlocal taken, refused
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._max_body:
                refused = self._too_long()
                raise refused
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def send_unless_refused(message: Message) -> None:
            if refused is None:
                await send_with_headers(message)

        try:
            self._check(scope)
            await self._app(scope, receive_counted, send_unless_refused)
        except Refused as error:
            refused = error
        if refused is not None and not begun:
            await self._refusal(refused, scope)(scope, receive, send_with_headers)

    def _refusal(self, refused: Refused, scope: Scope) -> Response:
        return JSONResponse({"error": refused.message}, refused.status)

    def _too_long(self) -> Refused:
        return Refused(413, f"the request is longer than {self._max_body:,} bytes")

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            raise Refused(400, "this server does not answer to that host name (see --allow-host)")
        if scope["method"] in READING:
            return
        if not same_origin(headers, host):
            raise Refused(403, "requests that write must come from this server's own page")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "send application/json")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal():
            raise Refused(400, "the Content-Length is not a number")
        if len(length) > 18 or int(length) > self._max_body:
            raise self._too_long()


def host_name(host: str) -> str:
    """A Host header without its port.

    >>> host_name("LOCALHOST:8080"), host_name("[::1]:80"), host_name("::1")
    ('localhost', '[::1]', '::1')
    """
    host = host.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and ":" not in name else host


def same_origin(headers: Headers, host: str) -> bool:
    """Whether a request comes from our own page, or from no page at all (curl, a client library)."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
