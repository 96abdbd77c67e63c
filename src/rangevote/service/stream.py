"""Answers that take long: a race between the work and the client's patience.

A stream cannot begin before the election. Its headers are held back a moment, so that an early failure has
its real status; then it is 200 with signs of life until the answer is there, and a late failure is an event.
Whoever goes away, or a service that must stop, cancels the work and with it every call upstream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rangevote.service.limits import Limits
from rangevote.service.problem import Problem, as_json, internal
from rangevote.service.reply import KEEP_ALIVE, Reply, event

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
STOPPING = "the service is stopping; try again"


class Answering(Response):
    """The response to one request, whose work is still to be done.

    `told` is called with a `Problem` that becomes the answer, with a mistake of ours, or with None if the
    client went away.
    """

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, Reply]],
        limits: Limits,
        told: Callable[[Problem | BaseException | None], None],
        *,
        stream: bool,
    ) -> None:
        super().__init__()
        self._work, self._limits, self._told, self._stream = work, limits, told, stream
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Work, and answer unless nobody is there."""
        task = asyncio.create_task(self._work())
        gone = asyncio.create_task(_gone(receive))
        try:
            if await self._wait(task, gone, send):
                await self._answer(task, scope, receive, send)
            else:
                self._told(None)
        except asyncio.CancelledError:  # the service stops, and no longer waits for us
            problem = Problem(503, STOPPING, code="stopping", retry_after=1)
            self._told(problem)
            await self._fail(problem, scope, receive, send)
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _wait(self, task: asyncio.Task[Reply], gone: asyncio.Task[None], send: Send) -> bool:
        """Until the work is done (True) or the client has gone, with signs of life in a stream."""
        pause = self._limits.hold if self._stream else None
        while True:
            done, _ = await asyncio.wait({task, gone}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if gone in done:  # even with an answer at hand: there is nobody to read it
                return False
            if task in done:
                return True
            if not self._begun:
                await self._begin(send)
                pause = self._limits.keep_alive
            await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    async def _answer(self, task: asyncio.Task[Reply], scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = task.result()
        except Problem as problem:
            self._told(problem)
            await self._fail(problem, scope, receive, send)
        except Exception as error:
            self._told(error)
            await self._fail(internal(), scope, receive, send)
        else:
            if not self._stream:
                await as_json(reply.whole())(scope, receive, send)
                return
            if not self._begun:
                await self._begin(send)
            for chunk in reply.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, send: Send) -> None:
        self._begun = True
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _fail(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        """The problem as an answer, or as the last event of a stream that has begun."""
        if self._begun:
            await send({"type": "http.response.body", "body": event(problem.body()), "more_body": False})
        else:
            await problem.response()(scope, receive, send)


async def _gone(receive: Receive) -> None:
    """Until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
