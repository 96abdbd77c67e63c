"""The service as a web application: the paths of OpenAI's API, and those for operators."""

from __future__ import annotations

import secrets
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rangevote.engines.openai.client import UpstreamError
from rangevote.engines.openai.sample_and_elect import ElectionOutcome, gather
from rangevote.service.chat_api import Reply, respond
from rangevote.service.config import ServiceConfig
from rangevote.service.errors import ApiError, internal_error, json_response, timeout, upstream_failure
from rangevote.service.metrics import CONTENT_TYPE, Metrics
from rangevote.service.middleware import AccessLog, Auth, Keys, Queue, log_event, log_failure
from rangevote.service.requests import CompletionRequest, Endpoint, read_object, read_request
from rangevote.service.responses_api import ResponsesReply, chat_fields
from rangevote.service.upstream import Upstream
from rangevote.web.app import Ballots, ElectionPage, election_app
from rangevote.web.serving import asset_routes

#: Seconds in which a stopping service sends errors to the requests that it cuts off.
LAST_ERRORS = 2.0
#: Seconds after which a thread that counts votes yields to the event loop. It does so several times per
#: request, so Python's default of 5 ms would slow down other requests noticeably.
SWITCH_INTERVAL = 0.001
#: Bytes of a request that are parsed in the event loop; longer ones are parsed in a thread.
SMALL = 32 * 2**10
#: Characters of a question that the list of elections shows.
SHOWN_QUESTION = 200
LIST_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'",
}
LIST_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Elections</title>
<meta name="viewport" content="width=device-width">
<link rel="icon" href="/favicon.ico" type="image/svg+xml"><link rel="stylesheet" href="/static/base.css">
<link rel="stylesheet" href="/static/election.css"></head><body><main>
<h1>Recent elections</h1>
<table>
<thead><tr><th scope="col">time (UTC)</th><th scope="col">question</th><th scope="col">model</th>
<th scope="col">margin</th><th scope="col">samples used</th></tr></thead>
<tbody>
{rows}
</tbody></table></main></body></html>
"""
#: Paths of elections, below /v1 or the path of a profile.
ENDPOINTS: dict[str, Endpoint] = {
    "/chat/completions": "chat",
    "/completions": "completions",
    "/responses": "responses",
}
ID_PREFIXES = {"chat": "chatcmpl-", "completions": "cmpl-", "responses": "resp_"}
#: Characters of all texts of an election; larger ones are not kept.
LARGEST_KEPT = 4 * 2**20


def service_app(
    upstream: Upstream,
    config: ServiceConfig,
    metrics: Metrics,
    *,
    keys: Keys | None = None,
    details: bool = False,
) -> ASGIApp:
    """The application; with `details`, error messages of upstreams are logged."""
    service = Service(upstream, config, metrics, details)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            async with upstream:
                yield
                await access_log.idle(LAST_ERRORS)
        finally:
            sys.setswitchinterval(interval)

    inner = Starlette(
        routes=service.routes(),
        lifespan=lifespan,
        exception_handlers={
            HTTPException: _unknown_address,
            ApiError: service.refuse,
            UpstreamError: service.refuse,
            Exception: _failed,
        },
    )
    auth = Auth(inner, keys or Keys(), hosts=config.hosts, max_body=config.limits.body_bytes)
    access_log = AccessLog(auth, metrics)
    return access_log


class Service:
    """The handlers of all paths."""

    def __init__(self, upstream: Upstream, config: ServiceConfig, metrics: Metrics, details: bool) -> None:
        self._upstream, self._config, self._metrics, self._details = upstream, config, metrics, details
        self._queue = Queue(config.limits)
        self._pages = ElectionPages(config.keep_elections, config.hosts)
        metrics.gauge("rangevote_in_flight", "Elections under way.", lambda: self._queue.running)
        metrics.gauge("rangevote_queue", "Requests that wait for their turn.", lambda: self._queue.waiting)

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = []
        for base in ("/v1", "/v1/{profile}"):
            for path, endpoint in ENDPOINTS.items():
                routes.append(Route(base + path, ElectionRoute(self, endpoint), methods=["POST"]))
            routes += [Route(f"{base}/models", self.models), Route(base + "/models/{id:path}", self.models)]
        routes += [
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.metrics),
        ]
        return routes + self._pages.routes()

    async def health(self, request: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether an upstream answers."""
        with anyio.move_on_after(self._config.limits.connect_seconds):
            if await self._upstream.answers():
                return json_response({"status": "ready"})
        raise ApiError(503, "the model's server does not answer", code="not_ready", retry_after=2)

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        """All models, or the one that the path names."""
        self._profile(request)
        models = {
            name: {"id": name, "object": "model", "created": 0, "owned_by": "rangevote"}
            for name in (*await self._upstream.models(), *self._config.aliases)
        }
        name = request.path_params.get("id")
        if name is None:
            return json_response({"object": "list", "data": list(models.values())})
        if name not in models:
            raise no_model()
        return json_response(models[name])

    async def answer(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request, elect and reply; the request holds one slot of the queue all the while."""
        limits, state = self._config.limits, scope["state"]
        deadline = time.monotonic() + limits.total_seconds
        with self._queue.enter():
            request = await self._read(Request(scope, receive), endpoint)
            work = self._reply(request, state, deadline)
            report = partial(self._report, state["request"])
            if not await respond(
                work, scope, receive, send, stream=request.stream, limits=limits, report=report
            ):
                self._metrics.cancelled.add()
                log_event("cancelled", request=state["request"])

    async def _read(self, http_request: Request, endpoint: Endpoint) -> CompletionRequest:
        try:
            with anyio.fail_after(self._config.limits.body_seconds):
                content = await http_request.body()
        except TimeoutError:
            raise ApiError(408, "the request did not arrive in time", code="body_timeout") from None
        profile = self._profile(http_request)

        def read() -> CompletionRequest:
            sent = read_object(content)
            if endpoint == "responses":
                request = read_request(chat_fields(sent), profile, self._config, "chat")
                return replace(request, endpoint=endpoint, sent=sent)
            return read_request(sent, profile, self._config, endpoint)

        return read() if len(content) <= SMALL else await run_in_threadpool(read)

    def _profile(self, request: Request) -> str | None:
        profile: str | None = request.path_params.get("profile")
        if profile is not None and profile not in self._config.profiles:
            raise ApiError(404, "there is no such profile", code="profile_not_found")
        return profile

    async def _reply(self, request: CompletionRequest, state: Mapping[str, Any], deadline: float) -> Reply:
        """Wait for a turn, elect, count and log."""
        try:
            with anyio.fail_after(deadline - time.monotonic()):
                outcomes = await self._elect(request, deadline)
        except TimeoutError:
            raise timeout() from None
        id = ID_PREFIXES[request.endpoint] + secrets.token_hex(16)  # cannot be guessed
        pages = []
        for number, (one, outcome) in enumerate(zip(request.each(), outcomes, strict=True)):
            self._metrics.count(outcome)
            log_event(
                "election",
                request=state["request"],
                answer=id,
                model=request.name,
                signature=outcome.result.signature,
                votes=outcome.votes,
                saved=outcome.saved,
                tokens=outcome.usage.total,
                seconds=round(outcome.seconds, 4),
            )
            page_id = id if len(outcomes) == 1 else f"{id}-{number}"
            pages.append(self._pages.keep(page_id, one, outcome, state["client"]))
        reply = ResponsesReply if request.endpoint == "responses" else Reply
        return reply(id, request, outcomes, pages)

    async def _elect(self, request: CompletionRequest, deadline: float) -> list[ElectionOutcome]:
        """The elections of all prompts, which take one turn."""
        if request.name not in (*await self._upstream.models(), *self._config.aliases):
            raise no_model()
        async with self._queue.turn():
            return await gather(self._upstream.elect(one, deadline) for one in request.each())

    async def refuse(self, request: Request, error: Exception) -> Response:
        return self._report(request.scope["state"]["request"], error).response()

    def _report(self, request_id: str, error: BaseException) -> ApiError:
        """Log why a request failed; returns the error for the client."""
        shown = upstream_failure(error) if isinstance(error, UpstreamError) else error
        if not isinstance(shown, ApiError):
            log_failure(request_id, error)
            return internal_error()
        note = {"note": shown.note} if self._details and shown.note else {}
        log_event("problem", request=request_id, status=shown.status, code=shown.code, **note)
        return shown


class ElectionRoute:
    """A path of elections, as an application: the response needs `receive` to see a client go away."""

    def __init__(self, service: Service, endpoint: Endpoint) -> None:
        self._service, self._endpoint = service, endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._service.answer(self._endpoint, scope, receive, send)


def no_model() -> ApiError:
    message = "there is no such model here; see /v1/models"
    return ApiError(404, message, code="model_not_found", param="model")


async def _failed(request: Request, error: Exception) -> Response:
    """The response to a bug; the access log has the details."""
    return internal_error().response()


async def _unknown_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "there is no such path", 405: "the path does not support this method"}
    message = messages.get(error.status_code, "the request cannot be processed")
    response = ApiError(error.status_code, message, code="unknown_address").response()
    response.headers.update(error.headers or {})
    return response


@dataclass
class KeptElection:
    """An election whose page can be opened; the page is made when it is first requested."""

    client: int
    at: float
    question: str
    model: str
    outcome: ElectionOutcome
    hosts: Sequence[str]

    @cached_property
    def page(self) -> ASGIApp:
        lists = [Ballots("this answer", [self.outcome.ballot])]
        return election_app(ElectionPage(lists, self.outcome.settings), hosts=self.hosts)

    def row(self, id: str) -> str:
        """A row of the list of elections."""
        result, when = self.outcome.result, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.at))
        margin = "" if result.margin is None else f"{result.margin:.4f}"
        used = f"{self.outcome.votes} of {self.outcome.asked + self.outcome.saved}"
        link = f'<a href="/elections/{id}/">{escape(self.question) or "(no text)"}</a>'
        cells = (when, link, escape(self.model), margin, used)
        return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


class ElectionPages:
    """The election pages of recent answers and a list of them, in memory; the oldest is dropped first. A
    client sees only its own."""

    def __init__(self, most: int, hosts: Sequence[str]) -> None:
        self._most, self._hosts = most, hosts
        self._kept: OrderedDict[str, KeptElection] = OrderedDict()

    def routes(self) -> list[BaseRoute]:
        if not self._most:
            return []
        pages = [Route("/elections/", self.listing), Mount("/elections/{id}", self.page)]
        return [*pages, *asset_routes("rangevote.web")]

    def keep(self, id: str, request: CompletionRequest, outcome: ElectionOutcome, client: int) -> str | None:
        """Keep an election; returns the address of its page, or None if it is not kept."""
        ballot = outcome.ballot
        size = sum(len(one.text or "") for one in (*ballot.candidates, *(ballot.voters or ())))
        if not self._most or size > LARGEST_KEPT:
            return None
        question = " ".join(request.question[:SHOWN_QUESTION].split())
        self._kept[id] = KeptElection(client, time.time(), question, request.name, outcome, self._hosts)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return f"/elections/{id}/"

    async def listing(self, request: Request) -> Response:
        """The page that lists the client's elections, the latest first."""
        client, kept = request.state.client, reversed(self._kept.items())
        rows = "\n".join(one.row(id) for id, one in kept if one.client == client)
        page = LIST_PAGE.format(rows=rows or '<tr><td colspan="5">none yet</td></tr>')
        return Response(page, headers=LIST_HEADERS)

    async def page(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = self._kept.get(scope["path_params"]["id"])
        if kept is None or kept.client != scope["state"]["client"]:
            message = "there is no such election, or it is no longer kept"
            raise ApiError(404, message, code="election_not_found")
        await kept.page(scope, receive, send)
