"""Requests to our web applications without a socket: what a server makes of bytes, and what comes back."""

from __future__ import annotations

import asyncio
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.types import ASGIApp

_NAME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(rb"/[\x21-\x7e]*")


class Reply(NamedTuple):
    """What an application answered."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        """The body, which must be JSON as browsers read it: without NaN."""
        return strict_json(self.content.decode())


@lru_cache(maxsize=1)
def loop() -> asyncio.AbstractEventLoop:
    """One loop for all inputs: to make one takes longer than most requests."""
    return asyncio.new_event_loop()


def parted(data: bytes) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    """First line, headers and body, as a server takes them; what it would refuse itself is left out."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if colon and _NAME.fullmatch(name) and _VALUE.fullmatch(value.strip()):
            headers.append((name.lower(), value.strip()))
    return first, headers, body


def scope_of(first: bytes, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    """`POST /path?query` as ASGI has it; what is no request line asks for the first page."""
    method, _, target = first.partition(b" ")
    if not _NAME.fullmatch(method) or not _TARGET.fullmatch(target):
        method, target = b"GET", b"/"
    path, _, query = target.partition(b"?")
    known = {name for name, _ in headers}
    given = [pair for pair in ((b"host", b"127.0.0.1"),) if pair[0] not in known]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method.decode().upper(),
        "scheme": "http",
        "path": unquote(path.decode()),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [*given, *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


def asked(app: ASGIApp, data: bytes, **headers: str) -> Reply:
    """The answer to the request that the bytes spell; `headers` are added where it has none of that name."""
    first, found, body = parted(data)
    known = {name for name, _ in found}
    extra = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = scope_of(first, [*found, *(pair for pair in extra if pair[0] not in known)])
    return loop().run_until_complete(_answered(app, scope, body))


async def _answered(app: ASGIApp, scope: dict[str, Any], body: bytes) -> Reply:
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        await asyncio.Event().wait()  # the client stays

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Reply(start["status"], headers, b"".join(one.get("body", b"") for one in sent[1:]))


def strict_json(text: str) -> Any:
    """JSON without Python's extensions."""

    def refused(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refused)
