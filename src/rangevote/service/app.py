"""The service as a web application: the paths of OpenAI's API, and those for operators."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rangevote.engines.openai.client import UpstreamError
from rangevote.engines.openai.sample_and_elect import ElectionOutcome
from rangevote.service.chat_api import ElectionResponse, Reply, new_id
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
#: Seconds for which the result of a readiness check is reused.
READY_KEPT = 2.0
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
#: Characters of all texts of an election; larger ones are not kept.
LARGEST_KEPT = 4 * 2**20


def service_app(
    source: Upstream,
    config: ServiceConfig,
    metrics: Metrics,
    *,
    keys: Keys | None = None,
    details: bool = False,
) -> ASGIApp:
    """The application; with `details`, error messages of upstreams are logged."""
    service = Service(source, config, metrics, details)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            async with source:
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

    def __init__(
        self,
        source: Upstream,
        config: ServiceConfig,
        metrics: Metrics,
        details: bool,
    ) -> None:
        self._source, self._config, self._metrics, self._details = source, config, metrics, details
        self._queue = Queue(config.limits)
        self._pages = ElectionPages(config.keep_elections, config.hosts)
        self._ready = -READY_KEPT, False
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
        if self._config.keep_elections:
            routes += [Mount("/elections", self._pages), *asset_routes("rangevote.web")]
        return routes

    async def health(self, request: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether an upstream answers; the result is kept for a moment."""
        at, ready = self._ready
        if time.monotonic() - at > READY_KEPT:
            try:
                ready = await asyncio.wait_for(self._source.answers(), self._config.limits.connect_seconds)
            except asyncio.TimeoutError:
                ready = False
            self._ready = time.monotonic(), ready
        if ready:
            return json_response({"status": "ready"})
        raise ApiError(503, "the model's server does not answer", code="not_ready", retry_after=READY_KEPT)

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        """All models, or the one that the path names."""
        self._profile(request)
        listed = {
            name: {"id": name, "object": "model", "created": 0, "owned_by": "rangevote"}
            for name in (*await self._source.models(), *self._config.aliases)
        }
        name = request.path_params.get("id")
        if name is None:
            return json_response({"object": "list", "data": list(listed.values())})
        if name not in listed:
            raise no_model()
        return json_response(listed[name])

    async def answer(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a request, elect and reply; the request holds one slot of the queue all the while."""
        began, state = time.monotonic(), scope["state"]
        with self._queue.enter():
            request, given = await self._read(Request(scope, receive), endpoint)
            deadline = began + self._config.limits.total_seconds
            kind = partial(ResponsesReply, given=given) if endpoint == "responses" else Reply
            work = partial(self._reply, kind, new_id(endpoint), request, state, deadline)
            report = partial(self._report, state["request"])
            await ElectionResponse(work, self._config.limits, report, stream=request.stream)(
                scope, receive, send
            )

    async def _read(
        self, http_request: Request, endpoint: Endpoint
    ) -> tuple[CompletionRequest, Mapping[str, Any]]:
        """The request, and its fields as the client sent them."""
        try:
            with anyio.fail_after(self._config.limits.body_seconds):
                content = await http_request.body()
        except TimeoutError:
            raise ApiError(408, "the request did not arrive in time", code="body_timeout") from None
        profile = self._profile(http_request)

        def read() -> tuple[CompletionRequest, Mapping[str, Any]]:
            given = read_object(content)
            if endpoint == "responses":
                return read_request(chat_fields(given), profile, self._config, "chat"), given
            return read_request(given, profile, self._config, endpoint), given

        request, given = read() if len(content) <= SMALL else await run_in_threadpool(read)
        for one in request.each():
            self._source.check(one)
        return request, given

    def _profile(self, request: Request) -> str | None:
        profile: str | None = request.path_params.get("profile")
        if profile is not None and profile not in self._config.profiles:
            raise ApiError(404, "there is no such profile", code="profile_not_found")
        return profile

    async def _reply(
        self,
        kind: Callable[..., Reply],
        id: str,
        request: CompletionRequest,
        state: Mapping[str, Any],
        deadline: float,
    ) -> Reply:
        """Wait for a turn, elect, count and log."""
        try:
            with anyio.fail_after(deadline - time.monotonic()):
                outcomes = await self._elect(request, deadline)
        except TimeoutError:
            raise timeout() from None
        except UpstreamError as error:
            raise upstream_failure(error) from None
        pages = []
        for number, (one, outcome) in enumerate(zip(request.each(), outcomes, strict=True)):
            self._count(outcome)
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
            own = id if len(outcomes) == 1 else f"{id}-{number}"
            pages.append(self._pages.keep(own, one, outcome, state["client"]))
        return kind(id, request, outcomes, pages)

    async def _elect(self, request: CompletionRequest, deadline: float) -> list[ElectionOutcome]:
        """The elections of all prompts, which take one turn."""
        if request.name not in (*await self._source.models(), *self._config.aliases):
            raise no_model()
        async with self._queue.turn():
            elections = [self._source.elect(one, deadline) for one in request.each()]
            return [await elections[0]] if len(elections) == 1 else await asyncio.gather(*elections)

    def _count(self, outcome: ElectionOutcome) -> None:
        metrics = self._metrics
        metrics.elections.add()
        metrics.modes.add(by=outcome.winner_is_mode)
        metrics.saved.add(by=outcome.saved)
        metrics.election_seconds.add(outcome.seconds)
        for name, count in outcome.counts.items():
            metrics.samples.add(name, by=count)
        if len(outcome.members) > 1:
            left_out = () if outcome.result.panel is None else outcome.result.panel.left_out
            for name, asked in outcome.members.items():
                metrics.members.add(name, "left_out" if name in left_out else "asked" if asked else "spared")
        for name in outcome.result.members:
            metrics.wins.add(name)
        metrics.tokens.add("prompt", by=outcome.usage.prompt)
        metrics.tokens.add("completion", by=outcome.usage.completion)

    async def refuse(self, request: Request, error: Exception) -> Response:
        shown = upstream_failure(error) if isinstance(error, UpstreamError) else error
        assert isinstance(shown, ApiError)
        self._report(request.scope["state"]["request"], shown)
        return shown.response()

    def _report(self, request_id: str, error: BaseException | None) -> None:
        """Log a request that failed; without an error, the client disconnected."""
        if error is None:
            self._metrics.cancelled.add()
            log_event("cancelled", request=request_id)
        elif isinstance(error, ApiError):
            note = {"note": error.note} if self._details and error.note else {}
            log_event("problem", request=request_id, status=error.status, code=error.code, **note)
        else:
            log_failure(request_id, error)


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
    page: ASGIApp | None = None


class ElectionPages:
    """The election pages of recent answers, mounted at /elections, where a list of them is; in memory, the
    oldest is dropped first. A client sees only its own."""

    def __init__(self, most: int, hosts: Sequence[str]) -> None:
        self._most, self._hosts = most, hosts
        self._kept: OrderedDict[str, KeptElection] = OrderedDict()

    def keep(self, id: str, request: CompletionRequest, outcome: ElectionOutcome, client: int) -> str | None:
        """Keep an election; returns the address of its page, or None if it is not kept."""
        ballot = outcome.ballot
        size = sum(len(one.text or "") for one in (*ballot.candidates, *(ballot.voters or ())))
        if not self._most or size > LARGEST_KEPT:
            return None
        question = " ".join(request.question[:SHOWN_QUESTION].split())
        self._kept[id] = KeptElection(client, time.time(), question, request.name, outcome)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return f"/elections/{id}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        id, slash, rest = path.lstrip("/").partition("/")
        client = scope["state"]["client"]
        if not id:
            await Response(self._list(client), headers=LIST_HEADERS)(scope, receive, send)
        elif id not in self._kept or self._kept[id].client != client:
            message = "there is no such election, or it is no longer kept"
            error = ApiError(404, message, code="election_not_found")
            await error.response()(scope, receive, send)
        elif not slash:
            await RedirectResponse(f"/elections/{id}/", 307)(scope, receive, send)
        else:
            inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}
            await self._page(id)(inner, receive, send)

    def _list(self, client: int) -> str:
        """The page that lists one client's elections, the latest first."""
        rows = []
        for id, kept in reversed(self._kept.items()):
            if kept.client != client:
                continue
            result, when = kept.outcome.result, time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(kept.at))
            margin = "" if result.margin is None else f"{result.margin:.4f}"
            used = f"{kept.outcome.votes} of {kept.outcome.asked + kept.outcome.saved}"
            link = f'<a href="/elections/{id}/">{escape(kept.question) or "(no text)"}</a>'
            cells = (when, link, escape(kept.model), margin, used)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        return LIST_PAGE.format(rows="\n".join(rows) or '<tr><td colspan="5">none yet</td></tr>')

    def _page(self, id: str) -> ASGIApp:
        kept = self._kept[id]
        if kept.page is None:
            lists = [Ballots("this answer", [kept.outcome.ballot])]
            kept.page = election_app(ElectionPage(lists, kept.outcome.settings), hosts=self._hosts)
        return kept.page
