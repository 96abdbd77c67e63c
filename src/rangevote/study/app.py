"""The application behind the page of a study: what an annotator sees and sends.

The browser gets an item's handle, two texts and the source; never a system's name, a check's answer or
another annotator's judgement. The secret of a link is in the address's fragment, which browsers do not send,
and goes to the server in the header Authorization. Whoever runs the study has a link to another page, which
shows how far everybody is, and no result.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rangevote.errors import SetupError
from rangevote.study.plan import Annotator, Pair, coin
from rangevote.study.store import Answer, AnswerRefused, PersonProgress, SentAnswer, Store, now
from rangevote.web.security import Guard
from rangevote.web.serving import asset_routes, assets

#: Largest message of the page, in bytes.
MAX_BODY = 16_384
#: An image never changes under its name.
CACHE_IMAGE = "private, max-age=86400, immutable"
#: Wrong links that one address may try within so many seconds.
MOST_WRONG, WINDOW = 20, 60.0
_MOST_ADDRESSES = 10_000
#: In place of an annotator's number: whoever runs the study.
RUNNER = -1

T = TypeVar("T", bound=Struct)


class FinishMessage(Struct, forbid_unknown_fields=True):
    """Closes an annotator's answers: an empty object."""


class Finish(Struct):
    """Whether an annotator has finished, and only then the code that proves it."""

    finished: bool
    code: str | None


class Item(Struct):
    """A pair as far as the browser may know it."""

    id: str
    left: str
    right: str
    source: str | None
    image: str | None

    @classmethod
    def of(cls, pair: Pair, handle: str, swapped: bool) -> Item:
        left, right = (pair.second, pair.first) if swapped else (pair.first, pair.second)
        return cls(handle, left, right, pair.source, None if pair.image is None else f"/img/{pair.image}")


class Session(Finish, kw_only=True):
    """All that the page needs: wording, items in order, and what was `judged` before (`Store.judged`)."""

    study: str
    opened: str
    annotator: str
    title: str
    question: str
    instructions: str
    scale: tuple[str, ...]
    differences: bool
    practice: Item
    items: list[Item]
    judged: list[tuple[str, Answer, str | None]]


class StudyProgress(Struct):
    """How far everybody is; `time` is the server's."""

    title: str
    time: str
    people: list[PersonProgress]


def parse_message(body: bytes, kind: type[T]) -> T:
    """A message of the page, checked field by field."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AnswerRefused(f"{error}.") from None


class UnknownLink(Exception):
    """Nobody has this link; after `wait` seconds another may be tried."""

    def __init__(self, wait: int = 0) -> None:
        super().__init__()
        self.wait = wait


class LinkAuth:
    """Finds annotators by the digests of their links. Addresses are kept in memory and never written.

    After too many wrong links from an address, only links that were used from there before are accepted for
    a while: guessing is slow, and annotators at the same address can go on.
    """

    def __init__(self, annotators: Sequence[Annotator], clock: Callable[[], float] = time.monotonic) -> None:
        self._numbers = {_digest(one.token): number for number, one in enumerate(annotators)}
        self._numbers[_digest(runner_token(annotators))] = RUNNER
        self._clock = clock
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._known: dict[str, set[bytes]] = {}

    def who(self, authorization: str, address: str) -> int:
        """The number of the annotator whose link it is, or `RUNNER`."""
        scheme, _, token = authorization.partition(" ")
        digest = _digest(token.strip()) if scheme.lower() == "bearer" else b""
        wrong, now = self._wrong.get(address, deque()), self._clock()
        while wrong and wrong[0] <= now - WINDOW:
            wrong.popleft()
        if len(wrong) >= MOST_WRONG and digest not in self._known.get(address, ()):
            raise UnknownLink(int(wrong[0] + WINDOW - now) + 1)
        if digest in self._numbers:
            self._known.setdefault(address, set()).add(digest)
            return self._numbers[digest]
        wrong.append(now)
        self._wrong[address] = wrong
        self._wrong.move_to_end(address)
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        raise UnknownLink


def runner_token(annotators: Sequence[Annotator]) -> str:
    """The secret of whoever runs the study, made of the annotators' so that it stays the same."""
    secret = "\n".join(one.token for one in annotators).encode()
    return hmac.digest(secret, b"runner", hashlib.sha256)[:16].hex()


def _digest(token: str) -> bytes:
    """Looked up instead of the token, so that the time of the comparison says nothing about the token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def study_app(store: Store, *, hosts: Sequence[str] = ()) -> ASGIApp:
    """The application of one study; `hosts` are further host names that it answers to."""
    auth, pages, plan = LinkAuth(store.study.annotators), assets("rangevote.study"), store.study.plan

    def progress(runner: int) -> StudyProgress:
        return StudyProgress(plan.title, now(), store.progress())

    def finish(who: int, message: FinishMessage) -> Finish:
        store.finish(who)
        return Finish(True, plan.completion_code)

    async def image(request: Request) -> Response:
        """An image by its content's hash, looked up in the study: never a path."""
        picture = await run_in_threadpool(store.image, request.path_params["sha256"])
        if picture is None:
            return Response(status_code=404)
        return Response(picture.content, media_type=picture.type, headers={"cache-control": CACHE_IMAGE})

    routes = [
        Route("/", pages["study.html"].respond),
        Route("/progress", pages["progress.html"].respond),
        *asset_routes("rangevote.web", "rangevote.study"),
        Route("/img/{sha256}", image),
        _route("/api/progress", auth, progress, runner=True),
        _route("/api/session", auth, partial(session_of, store)),
        _route("/api/judgement", auth, store.record, SentAnswer),
        _route("/api/finish", auth, finish, FinishMessage),
    ]
    return Guard(Starlette(routes=routes), hosts=hosts, max_body=MAX_BODY)


def session_of(store: Store, who: int) -> Session:
    """What the page of an annotator needs; that it was opened is recorded."""
    study, plan, finished = store.study, store.study.plan, store.finished(who)
    name, practice = plan.annotators[who], study.practice
    return Session(
        study=store.digest[:16],
        opened=store.visit(who),
        annotator=name,
        title=plan.title,
        question=plan.question,
        instructions=plan.instructions,
        scale=plan.scale,
        differences=plan.differences,
        practice=Item.of(practice, "practice", coin(plan.seed, "side", name, practice.key)),
        items=[
            Item.of(study.pairs[one.pair], one.handle, one.swapped)
            for one in study.assignments
            if one.annotator == who
        ],
        judged=store.judged(who),
        finished=finished,
        code=plan.completion_code if finished else None,
    )


def _route(
    path: str,
    auth: LinkAuth,
    answer: Callable[..., object],
    kind: type[Struct] | None = None,
    *,
    runner: bool = False,
) -> Route:
    """A route that returns `answer(who)` as JSON, or `answer(who, message)` where a message of a `kind` is
    sent; it runs in a thread. 404 or 429 for a wrong link; 400 or 403 for a refused answer; 503 for one that
    is not saved."""

    async def handle(request: Request) -> Response:
        try:
            address = request.client.host if request.client else ""
            who = auth.who(request.headers.get("authorization", ""), address)
            if (who == RUNNER) != runner:
                raise UnknownLink
            message = () if kind is None else (parse_message(await request.body(), kind),)
            return JSONResponse(msgspec.to_builtins(await run_in_threadpool(answer, who, *message)))
        except UnknownLink as error:
            if error.wait:
                return _error("too many wrong links; wait", 429, {"retry-after": str(error.wait)})
            return _error("this link is not known", 404)
        except AnswerRefused as error:
            return _error(str(error), error.status)
        except SetupError:  # its message may name paths
            return _error("not saved: the study's file cannot be used at the moment", 503)

    return Route(path, handle, methods=["GET" if kind is None else "POST"])


def _error(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)
