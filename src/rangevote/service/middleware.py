"""What every request passes through: request id, access log, metrics, guard, keys and queue."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timezone
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rangevote.errors import DataError
from rangevote.service.config import Limits
from rangevote.service.errors import ApiError, internal_error
from rangevote.service.metrics import Metrics
from rangevote.web.security import Guard, Refused

#: Shorter keys can be guessed.
SHORTEST_KEY = 16
#: Codes of the guard's refusals.
CODES = {
    400: "invalid_host",
    401: "invalid_api_key",
    403: "cross_site",
    413: "too_large",
    415: "not_json",
}
#: The one path that needs no key.
OPEN = "/healthz"
#: Pages for browsers, which send the key as a password.
PAGES = ("/elections/", "/static/", "/favicon.ico")
#: First parts of paths, and their names in metrics and logs; all others are "other".
ROUTES = ("healthz", "readyz", "metrics", "elections", "static")
#: Logged when a client disconnects before it gets a response; never sent.
GONE = 499
#: Characters of one value in the log.
LONGEST = 500

logger = logging.getLogger("rangevote.service")


def log_event(event: str, **fields: Any) -> None:
    """Log an event; its fields never contain prompts, answers or keys."""
    logger.info(event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """One JSON object per line, in ASCII, so that no value can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        fields = {name: _shortened(value) for name, value in getattr(record, "fields", {}).items()}
        return json.dumps({"time": moment, "event": record.getMessage(), **fields})


def _shortened(value: Any) -> Any:
    return value[:LONGEST] + "..." if isinstance(value, str) and len(value) > LONGEST else value


@contextmanager
def log_to(handler: logging.Handler) -> Iterator[None]:
    """Send the service's log to this handler alone, and afterwards to where it went before."""
    before = logger.handlers, logger.propagate, logger.level
    handler.setFormatter(JsonLines())
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate, level = before
        logger.setLevel(level)


class AccessLog:
    """The outermost layer: gives every request an id, a line in the log, a count, and always a response."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._requests: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, began, status = secrets.token_hex(8), time.monotonic(), GONE
        scope.setdefault("state", {})["request"] = request

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request
            await send(message)

        task = asyncio.current_task()
        assert task is not None
        self._requests.add(task)
        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            log_failure(request, error)
            if status != GONE:
                raise
            await internal_error().response()(scope, receive, send_with_id)
        finally:
            self._requests.discard(task)
            route = route_of(scope["path"])
            self._metrics.requests.add(route, str(status))
            seconds = round(time.monotonic() - began, 4)
            log_event("request", request=request, route=route, status=status, seconds=seconds)

    async def idle(self, seconds: float) -> None:
        """Wait until no request is under way, or the time is up."""
        if self._requests:
            await asyncio.wait(self._requests, timeout=seconds)


def log_failure(request: str, error: BaseException) -> None:
    """Log a bug by its file and line, without anything that a client sent."""
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
        trace = trace.tb_next
    log_event("failure", request=request, error=type(error).__name__, where=where)


def route_of(path: str) -> str:
    """The name of a path in metrics and logs: one of a fixed set, whatever clients request.

    >>> route_of("/v1/careful/chat/completions"), route_of("/v1/models"), route_of("/wp-admin")
    ('chat', 'models', 'other')
    """
    parts = path.strip("/").split("/")
    if parts[0] == "v1":
        if parts[-2:] == ["chat", "completions"]:
            return "chat"
        return parts[-1] if parts[-1] in ("completions", "models", "responses") else "other"
    return parts[0] if parts[0] in ROUTES else "other"


class Keys:
    """The keys of clients, kept as digests; without keys the service is open to everyone who can reach it."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __repr__(self) -> str:
        return f"Keys({len(self._digests)})"

    def client(self, authorization: bytes) -> int | None:
        """The number of the client, by its key in a header `Bearer KEY`, or from browsers `Basic` with the
        key as password; None if there is no such key. All keys are compared, in constant time."""
        if not self._digests:
            return 0
        scheme, _, key = authorization.partition(b" ")
        if scheme.lower() == b"basic":
            try:
                key = base64.b64decode(key.strip(), validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                return None
        elif scheme.lower() != b"bearer":
            return None
        digest = hashlib.sha256(key.strip()).digest()
        matches = [hmac.compare_digest(expected, digest) for expected in self._digests]
        return matches.index(True) if any(matches) else None


def read_keys(text: str, where: str) -> list[str]:
    """Read keys, separated by line ends or commas; lines that begin with # are ignored."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    keys = [key.strip() for line in lines for key in line.split(",") if key.strip()]
    if not keys:
        raise DataError("contains no key.", where=where)
    for number, key in enumerate(keys, 1):
        if len(key) < SHORTEST_KEY or any(character.isspace() for character in key):
            raise DataError(
                f"key {number} is shorter than {SHORTEST_KEY} characters or contains a space; make one with: "
                f"openssl rand -hex 32",
                where=where,
            )
    return keys


class Auth(Guard):
    """The guard of all our applications, with keys for all paths but one and errors in OpenAI's shape."""

    def __init__(self, app: ASGIApp, keys: Keys, *, hosts: Sequence[str], max_body: int) -> None:
        super().__init__(app, hosts=hosts, max_body=max_body)
        self._keys = keys

    def _check(self, scope: Scope) -> None:
        if scope["path"] == OPEN:  # monitoring requests it under any host name
            return
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        client = self._keys.client(values[0] if len(values) == 1 else b"")
        if client is None:
            raise Refused(401, "a valid API key is needed: Authorization: Bearer ...")
        scope["state"]["client"] = client
        super()._check(scope)

    def _refusal(self, refused: Refused, scope: Scope) -> Response:
        code = CODES.get(refused.status, "refused")
        response = ApiError(refused.status, refused.message, code=code).response()
        if refused.status == 401:
            headers = Headers(scope=scope)
            browser = "text/html" in headers.get("accept", "") or "sec-fetch-site" in headers
            page = browser and scope["path"].startswith(PAGES)
            scheme = 'Basic realm="rangevote", charset="UTF-8"' if page else "Bearer"
            response.headers["www-authenticate"] = scheme
        return response


class Queue:
    """Limits how many elections run and how many requests wait; others get a 503."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.in_flight + limits.queue
        self._turns = asyncio.Semaphore(limits.in_flight)
        self.present = self.running = 0

    @property
    def waiting(self) -> int:
        """Requests that are being read or wait for their turn."""
        return self.present - self.running

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Join the queue. Requests do so before their body is read, which limits memory."""
        if self.present >= self._most:
            raise ApiError(503, "the service is busy; try again", code="overloaded", retry_after=1)
        self.present += 1
        try:
            yield
        finally:
            self.present -= 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until another election may run."""
        async with self._turns:
            self.running += 1
            try:
                yield
            finally:
                self.running -= 1
