"""The election page as a web application: one page, its files, and the JSON it asks for (`page_data.py`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rangevote import __version__
from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Ballot
from rangevote.web import page_data, robustness
from rangevote.web.ballots import BallotLists
from rangevote.web.guard import Guard
from rangevote.web.page_data import Json
from rangevote.web.serving import asset_routes, assets

#: Ballots on one page of their list.
PAGE = 20
#: Characters of a ballot's title in the list.
TITLE = 120
#: Elections that are kept, so that the parts of a page are not elected again.
KEPT = 8
#: Digits of the largest number that a request may name.
DIGITS = 9
#: What JavaScript's encodeURIComponent leaves as it is.
UNQUOTED = "-_.!~*'()"


class NotFound(Exception):
    """There is no such ballot, list or candidate."""


class BadNumber(Exception):
    """A request with something else where a whole number belongs."""


class ElectedBallot(NamedTuple):
    ballot: Ballot
    result: Result


class ElectionPage:
    """All that the page can ask about the ballots of some lists; nothing is elected before it is asked for.

    `kept` is the number of ballots that the page has, where an export leaves some out.
    """

    def __init__(self, lists: BallotLists, settings: Settings, *, kept: int | None = None) -> None:
        self._lists, self._settings = lists, settings
        self.kept = len(lists) if kept is None else min(kept, len(lists))
        self._elected: OrderedDict[tuple[int, int], ElectedBallot] = OrderedDict()
        self._lock = Lock()

    def about(self) -> Json:
        """The lists, and how elections are held."""
        return {
            "version": __version__,
            "lists": [{"name": ballots.name, "ballots": len(ballots)} for ballots in self._lists.lists],
            "ballots": len(self._lists),
            "kept": self.kept,
            "page": PAGE,
            "measure": self._settings.measure.name,
        }

    def page(self, page: int) -> Json:
        pages = -(-self.kept // PAGE)
        if not 0 <= page < pages:
            raise NotFound(f"there is no page {page}; pages go from 0 to {pages - 1}.")
        numbers = range(page * PAGE, min((page + 1) * PAGE, self.kept))
        return {
            "page": page,
            "pages": pages,
            "total": self.kept,
            "ballots": [self._title(number) for number in numbers],
        }

    def _title(self, number: int) -> Json:
        ballot = self._lists.lists[0][number]
        first = ballot.candidates[0].content if ballot.candidates else ""
        title = ballot.source or (first if isinstance(first, str) else " ".join(map(str, first)))
        return {
            "number": number,
            "id": ballot.id,
            "title": title[:TITLE],
            "candidates": len(ballot.candidates),
        }

    def find(self, id: str) -> Json:
        """The number of the ballot of this id, null where there is none."""
        number = self._lists.lists[0].find(id)
        return {"number": number if number is not None and number < self.kept else None}

    def election(self, number: int, list: int) -> Json:
        ballot, result = self._elect(number, list)
        return page_data.election(ballot, number, result, self._settings.rule)

    def grades(self, number: int, list: int) -> Json:
        """Its grades, voter by candidate."""
        return page_data.grades(self._elect(number, list).result)

    def parts(self, number: int, list: int, index: int) -> Json:
        """What earned one candidate its score."""
        result = self._elect(number, list).result
        return page_data.score_parts(result, _index(index, len(result.candidates), "candidates"))

    def text(self, number: int, list: int, role: str, index: int) -> Json:
        result = self._elect(number, list).result
        if role not in ("candidates", "voters"):
            raise NotFound(f"a role is candidates or voters, not {role!r}.")
        return page_data.whole_text(result, role, _index(index, len(getattr(result, role)), role))

    def winners(self, number: int, list: int) -> Json:
        """The winners under other measures, none where the list has no such ballot."""
        ballot = self._ballot(number, list)
        return robustness.winners(ballot, self._lists.lists[list].name, self._settings)

    def stability(self, number: int, list: int) -> Json:
        """The winners without single voters."""
        return robustness.stability(self._elect(number, list).result)

    def _ballot(self, number: int, list: int) -> Ballot | None:
        _index(number, self.kept, "ballots")
        _index(list, len(self._lists.lists), "lists")
        return self._lists.ballot(number, list)

    def _elect(self, number: int, list: int) -> ElectedBallot:
        key = (number, list)
        with self._lock:
            if key in self._elected:
                self._elected.move_to_end(key)
                return self._elected[key]
        ballot = self._ballot(number, list)
        if ballot is None:
            raise NotFound(f"the list {self._lists.lists[list].name} has no such ballot.")
        elected = ElectedBallot(ballot, elect_ballot(ballot, self._settings))
        with self._lock:
            self._elected[key] = elected
            while len(self._elected) > KEPT:
                self._elected.popitem(last=False)
        return elected

    def everything(
        self, explained: int, done: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, Json]]:
        """Each path that a page can ask for, with its answer: the content of an exported file.

        Of each ballot the parts of the first `explained` candidates, without the votes that the page finds by
        itself. What fails is kept as its message. `done` is called after each ballot.
        """
        yield "api/election", self.about()
        for page in range(-(-self.kept // PAGE)):
            yield f"api/ballots?page={page}", self.page(page)
        for number in range(self.kept):
            id = self._lists.lists[0][number].id
            if id is not None:
                yield f"api/find?id={quote(str(id), safe=UNQUOTED)}", {"number": number}
            for list in range(len(self._lists.lists)):
                yield from self._all_of(number, list, explained)
            done()

    def _all_of(self, number: int, list: int, explained: int) -> Iterator[tuple[str, Json]]:
        start, end = f"api/ballots/{number}", f"?list={list}"
        shown = _or_error(self.election, number, list)
        yield start + end, shown
        if "error" in shown:
            return
        graded = _or_error(self.grades, number, list)
        yield f"{start}/grades{end}", graded
        yield f"{start}/winners{end}", _or_error(self.winners, number, list)
        yield f"{start}/stability{end}", _or_error(self.stability, number, list)
        rows = shown["candidates"]["rows"]
        wanted = [row["index"] for row in rows[:explained]]
        if shown["most_likely"] not in (None, *wanted):
            wanted.append(shown["most_likely"])
        for index in wanted:
            parts = self.parts(number, list, index)
            if page_data.shows_votes(graded, shown, index):
                del parts["votes"], parts["votes_rest"]
            yield f"{start}/candidates/{index}{end}", parts
        for role in ("candidates", "voters"):
            for row in shown[role]["rows"]:
                if row.get("more"):
                    index = row["index"]
                    text = self.text(number, list, role, index)
                    yield f"{start}/text{end}&role={role}&index={index}", text


def _or_error(answer: Callable[[int, int], Json], number: int, list: int) -> Json:
    try:
        return answer(number, list)
    except (RangevoteError, NotFound) as error:
        return {"error": str(error)}


def _index(index: int, length: int, name: str) -> int:
    if not 0 <= index < length:
        raise NotFound(f"there is no number {index} among the {length:,} {name}.")
    return index


def election_app(page: ElectionPage, *, hosts: Sequence[str] = ()) -> Starlette:
    """The application; `hosts` are further host names that it answers to."""
    answers: dict[str, Callable[[Request], Json]] = {
        "/api/election": lambda request: page.about(),
        "/api/ballots": lambda request: page.page(_query_number(request, "page")),
        "/api/find": lambda request: page.find(request.query_params.get("id", "")),
        "/api/ballots/{number}": lambda request: page.election(*_ballot_of(request)),
        "/api/ballots/{number}/grades": lambda request: page.grades(*_ballot_of(request)),
        "/api/ballots/{number}/candidates/{index}": lambda request: page.parts(
            *_ballot_of(request), _number(request.path_params["index"], "index")
        ),
        "/api/ballots/{number}/text": lambda request: page.text(
            *_ballot_of(request),
            request.query_params.get("role", "candidates"),
            _query_number(request, "index"),
        ),
        "/api/ballots/{number}/winners": lambda request: page.winners(*_ballot_of(request)),
        "/api/ballots/{number}/stability": lambda request: page.stability(*_ballot_of(request)),
    }
    routes = [Route(path, _json_endpoint(answer)) for path, answer in answers.items()]
    routes += [Route("/", _html), *asset_routes("rangevote.web")]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


async def _html(request: Request) -> Response:
    page = assets("rangevote.web")["election.html"]
    return Response(page.content, media_type=page.media_type)


def _json_endpoint(answer: Callable[[Request], Json]) -> Callable[[Request], Response]:
    """A plain function, which Starlette runs in a thread: counting votes does not block the server."""

    def respond(request: Request) -> Response:
        try:
            return _json(answer(request), 200)
        except BadNumber as error:
            return _json({"error": str(error)}, 400)
        except NotFound as error:
            return _json({"error": str(error)}, 404)
        except RangevoteError as error:  # a ballot that cannot be voted on in this way
            return _json({"error": str(error)}, 422)

    return respond


def _json(answer: Json, status: int) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _ballot_of(request: Request) -> tuple[int, int]:
    return _number(request.path_params["number"], "number"), _query_number(request, "list")


def _query_number(request: Request, name: str) -> int:
    """A number in the query; 0 where it is not there."""
    return _number(request.query_params.get(name, "0"), name)


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise BadNumber(f"{name} must be a whole number from 0, of at most {DIGITS} digits.")
    return int(text)
