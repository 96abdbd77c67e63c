"""The election page as a web application: one page, its files, and the JSON it asks for (`api.py`)."""

from __future__ import annotations

from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rangevote import __version__
from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.election.settings import Settings
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Ballot
from rangevote.text import WEB_IMAGE_ENDINGS
from rangevote.web import api, clusters
from rangevote.web.api import ElectedBallot, Json
from rangevote.web.ballots import BallotLists
from rangevote.web.images import PageImage, load_image
from rangevote.web.security import Guard
from rangevote.web.serving import asset_routes, assets
from rangevote.web.what_if import WhatIf

#: Ballots of the list that come at a time.
PAGE = 100
#: Elections that are kept, so that the parts of a page are not elected again.
KEPT = 8
#: Digits of a grade after the point in an export.
EXPORT_DIGITS = 4
#: Digits of the largest number that a request may name.
DIGITS = 9
#: What JavaScript's encodeURIComponent leaves as it is.
UNQUOTED = "-_.!~*'()"
AS_IS = WhatIf()


class NotFound(Exception):
    """There is no such ballot, list or candidate."""


class BadNumber(Exception):
    """A request with something else where a whole number belongs."""


class ElectionPage:
    """All that the page can ask about the ballots of some lists; nothing is elected before it is asked for.

    `kept` is the number of ballots that the page has, where an export leaves some out. `images` is the
    folder in which pictures lie that a ballot's source, or else its id, names.
    """

    def __init__(
        self,
        lists: BallotLists,
        settings: Settings,
        *,
        kept: int | None = None,
        images: Path | None = None,
    ) -> None:
        self._lists, self._settings, self._images = lists, settings, images
        self.kept = len(lists) if kept is None else min(kept, len(lists))
        self._elected: OrderedDict[tuple[int, int, WhatIf], ElectedBallot] = OrderedDict()
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
            "measures": list(clusters.MEASURES) if self._settings.rule not in WITHOUT_VOTERS else [],
        }

    def page(self, page: int) -> Json:
        """A part of the list of ballots, with the outcome of each."""
        pages = -(-self.kept // PAGE)
        if not 0 <= page < pages:
            raise NotFound(f"there is no page {page}; pages go from 0 to {pages - 1}.")
        numbers = range(page * PAGE, min((page + 1) * PAGE, self.kept))
        return {
            "page": page,
            "pages": pages,
            "total": self.kept,
            "ballots": [self._listed(number) for number in numbers],
        }

    def _listed(self, number: int) -> Json:
        ballot = self._lists.lists[0][number]
        row = api.summary(ballot, number)
        try:
            elected = ElectedBallot(ballot, self._settings)
            recounts = clusters.recounts(elected.result, elected.matrix)
            stays = int((recounts.winners == elected.result.leader).sum())
            return row | api.outcome(elected) | {"tried": len(recounts.tried), "same": stays}
        except RangevoteError as error:
            return row | {"error": str(error)}

    def find(self, id: str) -> Json:
        """The number of the ballot of this id, null where there is none."""
        number = self._lists.lists[0].find(id)
        return {"number": number if number is not None and number < self.kept else None}

    def election(self, number: int, list: int, turned: WhatIf = AS_IS) -> Json:
        elected = self._elect(number, list, turned)
        answer = api.election(elected, number)
        answer["ballot"]["image"] = self._image_path(number, list)
        answer["stability"] = clusters.stability(elected.result, elected.matrix)
        answer["before"] = None if turned == AS_IS else self._before(number, list)
        return answer

    def _before(self, number: int, list: int) -> Json:
        """What a reader who turned the settings compares with."""
        result = self._elect(number, list).result
        ranks = {str(index): rank for rank, index in enumerate(result.ranking[: api.LISTED], 1)}
        return {"winner": result.leader, "ranks": ranks}

    def grades(self, number: int, list: int, turned: WhatIf = AS_IS, digits: int = api.DIGITS) -> Json:
        """Its grades, voter by candidate."""
        return api.grades(self._elect(number, list, turned), digits)

    def parts(self, number: int, list: int, index: int, turned: WhatIf = AS_IS) -> Json:
        """What earned one candidate its score."""
        elected = self._elect(number, list, turned)
        return api.score_parts(elected, _index(index, len(elected.result.candidates), "candidates"))

    def text(self, number: int, list: int, role: str, index: int, turned: WhatIf = AS_IS) -> Json:
        result = self._elect(number, list, turned).result
        if role not in ("candidates", "voters"):
            raise NotFound(f"a role is candidates or voters, not {role!r}.")
        return api.whole_text(result, role, _index(index, len(getattr(result, role)), role))

    def winners(self, number: int, list: int, turned: WhatIf = AS_IS) -> Json:
        """The winners under other measures, none where the list has no such ballot."""
        ballot, name, settings = self._ballot(number, list), self._lists.lists[list].name, self._settings
        if ballot is not None:
            ballot, settings = turned.apply(ballot, settings)
        return clusters.winners(ballot, name, settings)

    def image(self, number: int, list: int) -> PageImage | None:
        """The picture that a ballot is about."""
        ballot = self._ballot(number, list)
        if self._images is None or ballot is None:
            return None
        names = [
            str(name) for name in (ballot.source, ballot.id) if str(name).lower().endswith(WEB_IMAGE_ENDINGS)
        ]
        for name in names:
            try:
                return load_image(Path(name), self._images, "ballots")[1]
            except RangevoteError:  # a text that ends like a picture's name, or a picture that is not here
                continue
        return None

    def _image_path(self, number: int, list: int) -> str | None:
        return None if self.image(number, list) is None else f"api/ballots/{number}/image?list={list}"

    def _ballot(self, number: int, list: int) -> Ballot | None:
        _index(number, self.kept, "ballots")
        _index(list, len(self._lists.lists), "lists")
        return self._lists.ballot(number, list)

    def _elect(self, number: int, list: int, turned: WhatIf = AS_IS) -> ElectedBallot:
        key = (number, list, turned)
        with self._lock:
            if key in self._elected:
                self._elected.move_to_end(key)
                return self._elected[key]
        ballot = self._ballot(number, list)
        if ballot is None:
            raise NotFound(f"the list {self._lists.lists[list].name} has no such ballot.")
        ballot, settings = turned.apply(ballot, self._settings)
        elected = ElectedBallot(ballot, settings)
        with self._lock:
            self._elected[key] = elected
            while len(self._elected) > KEPT:
                self._elected.popitem(last=False)
        return elected

    def general(self) -> Iterator[tuple[str, Json]]:
        """Each path of the page that belongs to no single ballot, with its answer, for an export."""
        yield "api/election", {**self.about(), "measures": []}  # nothing is elected again in a file
        for page in range(-(-self.kept // PAGE)):
            yield f"api/ballots?page={page}", self.page(page)
        for number in range(self.kept):
            id = self._lists.lists[0][number].id
            if id is not None:
                yield f"api/find?id={quote(str(id), safe=UNQUOTED)}", {"number": number}

    def everything(self, number: int, explained: int) -> Iterator[tuple[str, Json]]:
        """Each path that a page can ask for about one ballot, with its answer, for an export.

        The parts of the first `explained` candidates are in it, without the votes that the page finds by
        itself. What fails is kept as its message.
        """
        for list in range(len(self._lists.lists)):
            yield from self._all_of(number, list, explained)

    def _all_of(self, number: int, list: int, explained: int) -> Iterator[tuple[str, Json]]:
        start, end = f"api/ballots/{number}", f"?list={list}"
        yield f"{start}/winners{end}", _or_error(lambda: self.winners(number, list))
        shown = _or_error(lambda: self.election(number, list))
        yield start + end, shown
        if "error" in shown:
            return
        if (image := self.image(number, list)) is not None:
            shown["ballot"]["image"] = f"data:{image.type};base64,{b64encode(image.content).decode()}"
        graded = _or_error(lambda: self.grades(number, list, digits=EXPORT_DIGITS))
        packed = [api.packed_grades(row) for row in graded.get("grades", ())]
        yield f"{start}/grades{end}", graded | ({} if "error" in graded else {"grades": packed})
        rows = shown["candidates"]["rows"]
        wanted = [row["index"] for row in rows[:explained]]
        if shown["most_likely"] not in (None, *wanted):
            wanted.append(shown["most_likely"])
        for index in wanted:
            parts = self.parts(number, list, index)
            if api.shows_votes(graded, shown, index):
                del parts["votes"], parts["votes_rest"]
            yield f"{start}/candidates/{index}{end}", parts
        for role in ("candidates", "voters"):
            for row in shown[role]["rows"]:
                if row.get("more"):
                    index = row["index"]
                    text = self.text(number, list, role, index)
                    yield f"{start}/text{end}&role={role}&index={index}", text


def _or_error(answer: Callable[[], Json]) -> Json:
    try:
        return answer()
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
        "/api/ballots/{number}": lambda request: page.election(*_ballot_of(request), _turned(request)),
        "/api/ballots/{number}/grades": lambda request: page.grades(*_ballot_of(request), _turned(request)),
        "/api/ballots/{number}/candidates/{index}": lambda request: page.parts(
            *_ballot_of(request), _number(request.path_params["index"], "index"), _turned(request)
        ),
        "/api/ballots/{number}/text": lambda request: page.text(
            *_ballot_of(request),
            request.query_params.get("role", "candidates"),
            _query_number(request, "index"),
            _turned(request),
        ),
        "/api/ballots/{number}/winners": lambda request: page.winners(*_ballot_of(request), _turned(request)),
    }
    routes = [Route(path, _json_endpoint(answer)) for path, answer in answers.items()]
    routes += [
        Route("/api/ballots/{number}/image", _image_endpoint(page)),
        Route("/", _html),
        *asset_routes("rangevote.web"),
    ]
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


def _image_endpoint(page: ElectionPage) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        try:
            image = page.image(*_ballot_of(request))
        except (BadNumber, NotFound):
            image = None
        return Response(status_code=404) if image is None else Response(image.content, media_type=image.type)

    return respond


def _turned(request: Request) -> WhatIf:
    return WhatIf.of(request.query_params)


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
