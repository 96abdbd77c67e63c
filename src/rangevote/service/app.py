"""The service as a web application: OpenAI's addresses, and what operators want to know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rangevote.service.description import openapi
from rangevote.service.door import Door
from rangevote.service.elections import Elections
from rangevote.service.keys import Keys
from rangevote.service.limits import Gate
from rangevote.service.log import Log, to_stderr
from rangevote.service.metrics import CONTENT_TYPE, Metrics
from rangevote.service.outcome import Outcome
from rangevote.service.problem import Problem, as_json, internal, late
from rangevote.service.reply import Reply, new_id, reply_to
from rangevote.service.request import Kind, Order, read_order
from rangevote.service.settings import ServiceSettings
from rangevote.service.source import Source
from rangevote.service.stream import Answering
from rangevote.service.watch import Watch, place_of
from rangevote.web.serving import asset_routes

#: Seconds for the last words of answers that a stopping service cuts short.
LAST_WORDS = 2.0
#: Seconds for which the upstream's state is believed, good or bad.
READY_KEPT = 2.0
#: Bytes of a request that are read at once; longer ones are read in a thread.
SMALL = 32 * 2**10


def service_app(
    source: Source,
    settings: ServiceSettings,
    metrics: Metrics,
    *,
    keys: Keys | None = None,
    log: Log = to_stderr,
    details: bool = False,
) -> ASGIApp:
    """The application; `details` puts what upstreams say of their failures into the log."""
    desk = Desk(source, settings, metrics, log, details)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with source:
            yield
            await watch.idle(LAST_WORDS)

    inner = Starlette(
        routes=desk.routes(),
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_there, Problem: desk.told, Exception: _failed},
    )
    door = Door(inner, keys or Keys(), hosts=settings.hosts, max_body=settings.limits.body_bytes)
    watch = Watch(door, metrics, log)
    return watch


class Desk:
    """What there is to ask for."""

    def __init__(
        self, source: Source, settings: ServiceSettings, metrics: Metrics, log: Log, details: bool
    ) -> None:
        self._source, self._settings, self._metrics = source, settings, metrics
        self._log, self._details = log, details
        self._gate = Gate(settings.limits)
        self._elections = Elections(settings.kept, settings.hosts)
        self._ready: tuple[float, Problem | None] = (-READY_KEPT, None)
        metrics.gauge("rangevote_in_flight", "Elections under way.", lambda: self._gate.running)
        metrics.gauge("rangevote_queue", "Requests that wait for their turn.", lambda: self._gate.waiting)

    def routes(self) -> list[BaseRoute]:
        """All addresses."""
        chat, completions = Answer(self, "chat"), Answer(self, "completions")
        routes: list[BaseRoute] = [
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/{profile}/chat/completions", chat, methods=["POST"]),
            Route("/v1/{profile}/completions", completions, methods=["POST"]),
            Route("/v1/{profile}/models", self.models),
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
            Route("/openapi.json", self.description),
        ]
        if self._settings.kept:
            routes += [Mount("/elections", self._elections), *asset_routes("rangevote.web")]
        return routes

    async def health(self, request: Request) -> Response:
        """The process is there."""
        return as_json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether there would be answers."""
        at, problem = self._ready
        if time.monotonic() - at > READY_KEPT:
            try:
                await asyncio.wait_for(self._source.check_ready(), self._settings.limits.connect_seconds)
                problem = None
            except asyncio.TimeoutError:
                problem = late()
            except Problem as found:
                problem = found
            self._ready = time.monotonic(), problem
        if problem is None:
            return as_json({"status": "ready"})
        raise Problem(503, "the model's server does not answer", code="not_ready", retry_after=READY_KEPT)

    async def metrics(self, request: Request) -> Response:
        """Numbers for Prometheus."""
        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def description(self, request: Request) -> Response:
        """All of this, for machines."""
        return Response(openapi(), media_type="application/json")

    async def models(self, request: Request) -> Response:
        """What may stand in `model`."""
        self._profile(request)
        names = [*await self._source.models(), *self._settings.aliases]
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "rangevote"} for name in names]
        return as_json({"object": "list", "data": listed})

    async def answer(self, kind: Kind, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request, elect and reply, all in one place of the queue."""
        began, id = time.monotonic(), scope["state"]["request"]
        with self._gate.place():
            order = await self._order(Request(scope, receive), kind)

            async def work() -> Reply:
                return await self._elect(order, id, began + self._settings.limits.total_seconds)

            told = partial(self._note, id)
            response = Answering(work, self._settings.limits, told, stream=order.stream)
            await response(scope, receive, send)

    async def _order(self, request: Request, kind: Kind) -> Order:
        try:
            content = await asyncio.wait_for(request.body(), self._settings.limits.body_seconds)
        except asyncio.TimeoutError:
            raise Problem(408, "the request did not arrive in time", code="body_timeout") from None
        reading = partial(read_order, content, kind, self._profile(request), self._settings)
        order = reading() if len(content) <= SMALL else await run_in_threadpool(reading)
        self._source.check(order)
        return order

    async def _check_model(self, name: str) -> None:
        if name not in self._settings.aliases and name not in await self._source.models():
            message = "there is no such model here; see /v1/models"
            raise Problem(404, message, code="model_not_found", param="model")

    def _profile(self, request: Request) -> str | None:
        profile: str | None = request.path_params.get("profile")
        if profile is not None and profile not in self._settings.profiles:
            raise Problem(404, "there is no such profile", code="profile_not_found")
        return profile

    async def _elect(self, order: Order, request: str, deadline: float) -> Reply:
        """Wait for a turn, elect, and take notes."""
        try:
            left = deadline - time.monotonic()
            outcome = await asyncio.wait_for(self._in_turn(order, deadline), left)
        except asyncio.TimeoutError:
            raise late() from None
        self._count(outcome)
        id = new_id(order.kind)
        self._log(
            "election",
            request=request,
            answer=id,
            model=order.name,
            signature=outcome.result.signature,
            votes=outcome.votes,
            saved=outcome.saved,
            tokens=outcome.usage.total,
            seconds=round(outcome.seconds, 4),
        )
        return reply_to(order, outcome, id, self._elections.keep(id, outcome))

    async def _in_turn(self, order: Order, deadline: float) -> Outcome:
        await self._check_model(order.name)
        async with self._gate.turn():
            return await self._source.elect(order, deadline)

    def _count(self, outcome: Outcome) -> None:
        metrics = self._metrics
        metrics.elections.add()
        metrics.modes.add(by=outcome.winner_is_mode)
        metrics.saved.add(by=outcome.saved)
        metrics.election_seconds.add(outcome.seconds)
        for name, count in outcome.counts.items():
            metrics.samples.add(name, by=count)
        metrics.tokens.add("prompt", by=outcome.usage.prompt)
        metrics.tokens.add("completion", by=outcome.usage.completion)

    async def told(self, request: Request, problem: Exception) -> Response:
        """A request that got no further."""
        assert isinstance(problem, Problem)
        self._note(request.scope["state"]["request"], problem)
        return problem.response()

    def _note(self, request: str, found: Problem | BaseException | None) -> None:
        """What became of a request that got no answer."""
        if found is None:
            self._metrics.cancelled.add()
            self._log("cancelled", request=request)
        elif isinstance(found, Problem):
            note = {"note": found.note} if self._details and found.note else {}
            self._log("problem", request=request, status=found.status, code=found.code, **note)
        else:
            self._log("failure", request=request, error=type(found).__name__, where=place_of(found))


class Answer:
    """An address at which elections are held."""

    def __init__(self, desk: Desk, kind: Kind) -> None:
        self._desk, self._kind = desk, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hold one."""
        await self._desk.answer(self._kind, scope, receive, send)


async def _failed(request: Request, error: Exception) -> Response:
    """A mistake of ours; what it was is logged further out."""
    return internal().response()


async def _not_there(request: Request, error: Exception) -> Response:
    """Unknown addresses and methods."""
    assert isinstance(error, HTTPException)
    messages = {404: "there is nothing at this address", 405: "this address does not know that method"}
    message = messages.get(error.status_code, "the request cannot be answered")
    response = Problem(error.status_code, message, code="unknown_address").response()
    response.headers.update(error.headers or {})
    return response
