"""The application behind the page: what an annotator sees and sends.

The browser learns an item's handle, two texts and the source; never a system's name, a check's answer or
another annotator's judgement. Links are in the address's fragment, which browsers keep to themselves, and
travel in the header Authorization.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rangevote.errors import SetupError
from rangevote.study.access import Doorkeeper, Unknown
from rangevote.study.message import check_empty, judgement_of, undo_of
from rangevote.study.plan import Assignment
from rangevote.study.store import Answer, Refused, Store
from rangevote.web.guard import Guard
from rangevote.web.serving import asset_routes, assets

#: Largest message of the page, in bytes.
MAX_BODY = 4096
#: A picture never changes under its name.
KEEP = "private, max-age=86400, immutable"

Handler = Callable[[Request], Awaitable[Response]]


def study_app(store: Store, *, hosts: Sequence[str] = ()) -> ASGIApp:
    """The application of one study; `hosts` are further names of the server."""
    desk = Desk(store)
    routes = [
        Route("/", desk.page),
        *asset_routes("rangevote.web", "rangevote.study"),
        Route("/openapi.json", desk.description),
        Route("/img/{sha256}", desk.image),
        Route("/api/session", told(desk.session)),
        Route("/api/judgement", told(desk.judgement), methods=["POST"]),
        Route("/api/undo", told(desk.undo), methods=["POST"]),
        Route("/api/finish", told(desk.finish), methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), hosts=hosts, max_body=MAX_BODY)


def told(handler: Handler) -> Handler:
    """Errors as answers: 404, 429 for a wrong link; 400, 403 for what cannot be meant; 503 for not saved."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except Unknown as error:
            if error.wait:
                return problem("too many wrong links; wait", 429, {"retry-after": str(error.wait)})
            return problem("this link is not known", 404)
        except Refused as error:
            return problem(str(error), error.status)
        except SetupError:  # its words may name paths
            return problem("not saved: the study's file cannot be used at the moment", 503)

    return handle


def problem(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """An error in JSON."""
    return JSONResponse({"error": message}, status, headers)


class Desk:
    """What there is to ask for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._door = Doorkeeper(store.study.annotators)
        self._hands: dict[int, list[Assignment]] = {}
        for dealt in store.study.assignments:
            self._hands.setdefault(dealt.annotator, []).append(dealt)

    async def page(self, request: Request) -> Response:
        """The one page."""
        asset = assets("rangevote.study")["study.html"]
        return Response(asset.content, media_type=asset.media_type)

    async def description(self, request: Request) -> Response:
        """What this application answers, in OpenAPI's terms."""
        from rangevote.study.openapi import description

        return JSONResponse(description())

    async def image(self, request: Request) -> Response:
        """A picture by its content's hash, looked up and never a path."""
        found = await run_in_threadpool(self._store.image, request.path_params["sha256"])
        if found is None:
            return Response(status_code=404)
        return Response(found.content, media_type=found.type, headers={"cache-control": KEEP})

    async def session(self, request: Request) -> Response:
        """All that the page needs: wording, items in order, and what was judged before."""
        return JSONResponse(await run_in_threadpool(self._session, self._who(request)))

    def _session(self, who: int) -> dict[str, Any]:
        plan = self._store.study.plan
        return {
            "study": self._store.digest[:16],
            "opened": self._store.visit(who),
            "annotator": self._store.study.annotators[who].name,
            "title": plan.title,
            "question": plan.question,
            "instructions": plan.instructions,
            "scale": plan.scale,
            "items": [self._item(dealt) for dealt in self._hands.get(who, [])],
            "judged": list(self._store.judged(who).items()),
            "finished": self._store.finished(who),
        }

    def _item(self, dealt: Assignment) -> dict[str, Any]:
        pair = self._store.study.pairs[dealt.pair]
        left, right = (pair.second, pair.first) if dealt.swapped else (pair.first, pair.second)
        item = {"id": dealt.handle, "left": left, "right": right}
        if pair.source is not None:
            item["source"] = pair.source
        if pair.image is not None:
            item["image"] = f"/img/{pair.image}"
        return item

    async def judgement(self, request: Request) -> Response:
        """Save one answer."""
        return await self._record(request, judgement_of)

    async def undo(self, request: Request) -> Response:
        """Take one back."""
        return await self._record(request, undo_of)

    async def _record(self, request: Request, read: Callable[[bytes], Answer]) -> Response:
        who = self._who(request)
        answer = read(await request.body())
        saved = await run_in_threadpool(self._store.record, who, answer)
        return JSONResponse({"value": saved.shown, "replaced": saved.replaced})

    async def finish(self, request: Request) -> Response:
        """Close one's answers."""
        who = self._who(request)
        check_empty(await request.body())
        await run_in_threadpool(self._store.finish, who)
        return JSONResponse({"finished": True})

    def _who(self, request: Request) -> int:
        address = request.client.host if request.client else ""
        return self._door.annotator(request.headers.get("authorization", ""), address)
