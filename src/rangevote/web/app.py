"""The election page as a web application: one page, its files, and the answers it asks for (`answers.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rangevote.errors import RangevoteError
from rangevote.web.answers import Absent, Answers, as_json
from rangevote.web.assets import asset_routes, assets
from rangevote.web.election import Json
from rangevote.web.guard import Guard

#: Digits of the largest number that a request may name.
DIGITS = 9

Ask = Callable[[Request], Json]


class Wrong(Exception):
    """A request that cannot be meant."""


def election_app(answers: Answers, *, hosts: Sequence[str] = ()) -> Starlette:
    """The application; `hosts` are further names under which it may be asked for."""

    def ballot(request: Request) -> Json:
        return answers.election(_place(request), _list(request))

    def grades(request: Request) -> Json:
        return answers.grades(_place(request), _list(request))

    def parts(request: Request) -> Json:
        return answers.parts(_place(request), _list(request), _number(request.path_params["index"], "index"))

    def text(request: Request) -> Json:
        role = request.query_params.get("role", "candidates")
        return answers.text(_place(request), _list(request), role, _asked(request, "index"))

    def winners(request: Request) -> Json:
        return answers.winners(_place(request), _list(request))

    def stability(request: Request) -> Json:
        return answers.stability(_place(request), _list(request))

    asked: dict[str, Ask] = {
        "/api/election": lambda request: answers.about(),
        "/api/ballots": lambda request: answers.page(_asked(request, "page")),
        "/api/find": lambda request: answers.find(request.query_params.get("id", "")),
        "/api/ballots/{number}": ballot,
        "/api/ballots/{number}/grades": grades,
        "/api/ballots/{number}/candidates/{index}": parts,
        "/api/ballots/{number}/text": text,
        "/api/ballots/{number}/winners": winners,
        "/api/ballots/{number}/stability": stability,
    }
    routes = [Route(path, _answering(ask)) for path, ask in asked.items()]
    routes += [Route("/", _page), *asset_routes("rangevote.web")]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


async def _page(request: Request) -> Response:
    page = assets("rangevote.web")["election.html"]
    return Response(page.content, media_type=page.media_type)


def _answering(ask: Ask) -> Callable[[Request], Response]:
    """A plain function, so that counting votes goes to a thread and the server stays awake."""

    def answer(request: Request) -> Response:
        try:
            return _json(ask(request), 200)
        except Wrong as wrong:
            return _json({"error": str(wrong)}, 400)
        except Absent as absent:
            return _json({"error": str(absent)}, 404)
        except RangevoteError as error:  # a ballot that cannot be voted on in this way
            return _json({"error": str(error)}, 422)

    return answer


def _json(answer: Json, status: int) -> Response:
    return Response(as_json(answer), status, media_type="application/json")


def _place(request: Request) -> int:
    return _number(request.path_params["number"], "number")


def _list(request: Request) -> int:
    return _asked(request, "list")


def _asked(request: Request, name: str) -> int:
    """A number in the query; 0 where it is not there."""
    return _number(request.query_params.get(name, "0"), name)


def _number(given: str, name: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) <= DIGITS):
        raise Wrong(f"{name} must be a whole number from 0, of at most {DIGITS} digits.")
    return int(given)
