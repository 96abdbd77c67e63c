"""Around everything: a number for each request, a line in the log, a count, and always an answer."""

from __future__ import annotations

import asyncio
import secrets
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rangevote.service.log import Log
from rangevote.service.metrics import Metrics
from rangevote.service.problem import internal

#: First parts of addresses, and what they are called in metrics and logs; all others are "other".
ROUTES = ("healthz", "readyz", "metrics", "elections", "static", "openapi.json")
#: What is logged where a client went away before there was an answer; it is never sent.
GONE = 499


class Watch:
    """The outermost layer."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: Log) -> None:
        self._app, self._metrics, self._log = app, metrics, log
        self.present = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and take notes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, began, status = secrets.token_hex(8), time.monotonic(), GONE
        scope.setdefault("state", {})["request"] = request

        async def passed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request
            await send(message)

        self.present += 1
        try:
            await self._app(scope, receive, passed)
        except Exception as error:
            self._log("failure", request=request, error=type(error).__name__, where=place_of(error))
            if status == GONE:
                await internal().response()(scope, receive, passed)
            else:
                raise
        finally:
            self.present -= 1
            route = route_of(scope["path"])
            self._metrics.requests.add(route, str(status))
            seconds = round(time.monotonic() - began, 4)
            self._log("request", request=request, route=route, status=status, seconds=seconds)

    async def idle(self, seconds: float) -> None:
        """Until nobody is answered any more, or the time is up."""
        end = time.monotonic() + seconds
        while self.present and time.monotonic() < end:
            await asyncio.sleep(0.02)


def route_of(path: str) -> str:
    """What an address is called; one of a fixed set, whatever clients ask for.

    >>> route_of("/v1/careful/chat/completions"), route_of("/v1/models"), route_of("/wp-admin")
    ('chat', 'models', 'other')
    """
    parts = path.strip("/").split("/")
    if parts[0] == "v1":
        if parts[-2:] == ["chat", "completions"]:
            return "chat"
        return parts[-1] if parts[-1] in ("completions", "models") else "other"
    return parts[0] if parts[0] in ROUTES else "other"


def place_of(error: BaseException) -> str:
    """File and line of a mistake of ours: enough to find it, and nothing of what a client sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
