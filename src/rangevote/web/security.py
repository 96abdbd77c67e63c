"""The middleware of every application of ours: who may ask, how much may be sent, what a page may load.

A server on 127.0.0.1 can be reached by every page in the user's browser. So the Host must be one of ours
(against DNS rebinding), a request that writes must come from our own page (against forgery), bodies are
counted as they arrive, and answers forbid the page to load or send anything elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
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
    """Why a request goes no further."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class GuardedResponse:
    """The response of the application with our headers, or a refusal instead of it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str]) -> None:
        self._scope, self._receive, self._send, self._headers = scope, receive, send, headers
        self.begun = False
        self.refused: Refused | None = None

    async def send(self, message: Message) -> None:
        if self.refused is None:
            await self._pass(message)
        elif not self.begun:
            await self.refuse(self.refused)

    async def refuse(self, refused: Refused) -> None:
        """Answer instead of the application."""
        self.refused = refused
        response = JSONResponse({"error": refused.message}, refused.status)
        await response(self._scope, self._receive, self._pass)

    async def _pass(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
        await self._send(message)


class Guard:
    """An ASGI middleware; `hosts` are further names under which the server may be asked for.

    Refusals are `{"error": message}` with 400 (a foreign host), 403 (a foreign page), 413 (too much) or 415
    (not JSON); applications that word them in another way have another kind of `answers`.
    """

    answers: ClassVar[type[GuardedResponse]] = GuardedResponse

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Sequence[str] = (),
        max_body: int = MAX_BODY,
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        self._app, self._max_body, self._headers = app, max_body, headers
        self._hosts = {name.lower() for name in (*LOOPBACK, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or let through with a counted body and with our headers on the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self.answers(scope, receive, send, self._headers)
        try:
            self._check(scope)
            await self._app(scope, counted(receive, self._max_body, answer), answer.send)
        except Refused as refused:
            if not answer.begun:
                await answer.refuse(refused)
            elif answer.refused is None:
                raise

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
            raise Refused(413, f"the request is longer than {self._max_body:,} bytes")


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


def counted(receive: Receive, limit: int, answer: GuardedResponse) -> Receive:
    """The same stream, which ends in a refusal when the body has more than `limit` bytes."""
    taken = 0

    async def take() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > limit:
                answer.refused = Refused(413, f"the request is longer than {limit:,} bytes")
                raise answer.refused
        return message

    return take
