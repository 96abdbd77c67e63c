"""The election page as a web application: one page, its files, and the JSON it asks for (`api.py`)."""

from __future__ import annotations

import inspect
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rangevote import __version__
from rangevote.election.elect import elect_ballot
from rangevote.election.rules import WITHOUT_VOTERS
from rangevote.election.settings import Settings
from rangevote.errors import DataError, RangevoteError, without_warnings
from rangevote.evaluation.panel_report import PanelCount, PanelSummary, resolve_shares
from rangevote.formats.jsonl import decode_ballot, write_ballot
from rangevote.formats.reader import Entry, ReadOptions
from rangevote.hypothesis import Ballot
from rangevote.text import WEB_IMAGE_ENDINGS
from rangevote.web import api, clusters
from rangevote.web.clusters import WhatIf
from rangevote.web.images import PageImage, load_image
from rangevote.web.security import Guard
from rangevote.web.serving import asset_routes, assets

#: Ballots per page of the list.
PAGE = 100
#: Ballots of a list over which the members of a panel are counted.
COUNTED = 10_000
#: Elections that are kept, so that the answers about one ballot do not elect again.
KEPT = 8
AS_IS = WhatIf()
#: Warnings were given when the file was read.
_QUIET = ReadOptions(warn=lambda message: None)

Index = Annotated[int, Meta(ge=0, lt=10**9)]


class NotFound(Exception):
    """There is no such ballot, list or candidate."""


class PageQuery(msgspec.Struct):
    """The parameters of an address other than the settings in `WhatIf`."""

    number: Index = 0
    list: Index = 0
    page: Index = 0
    index: Index = 0
    role: Literal["candidates", "voters"] = "candidates"
    id: str = ""


class Ballots:
    """The ballots of one input, which the page calls `name`.

    They are kept in a temporary database, mostly on the disk, so that the page shows one state of the input
    even if the file changes, and any number of ballots fits.
    """

    def __init__(self, name: str, ballots: Iterable[Ballot]) -> None:
        self.name = name
        self._lock = Lock()  # requests come from several threads
        self._db = sqlite3.connect("", check_same_thread=False)
        weakref.finalize(self, self._db.close)
        self._db.execute("CREATE TABLE ballot (number INTEGER PRIMARY KEY, line BLOB)")
        self.members: set[str] = set()
        self.ids: dict[str, int] = {}  # the number of the first ballot with each id
        self._length = self._db.executemany("INSERT INTO ballot VALUES (?, ?)", self._rows(ballots)).rowcount

    @classmethod
    def read(cls, name: str, entries: Iterable[Entry]) -> Ballots:
        """Keep the ballots of a reader; the first that cannot be read raises its error."""
        kept = cls(name, (entry.get() for entry in entries))
        if not len(kept):
            raise DataError("holds no ballots, so there is nothing to show.", where=name)
        return kept

    def _rows(self, ballots: Iterable[Ballot]) -> Iterator[tuple[int, bytes]]:
        for number, ballot in enumerate(ballots):
            self.members.update(one.member for one in ballot.candidates if one.member is not None)
            if ballot.id is not None:
                self.ids.setdefault(str(ballot.id), number)
            yield number, write_ballot(ballot)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> Ballot:
        with self._lock:
            row = self._db.execute("SELECT line FROM ballot WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise IndexError(number)
        return decode_ballot(row[0], _QUIET)

    def __iter__(self) -> Iterator[Ballot]:
        return map(self.__getitem__, range(len(self)))


def names_of(paths: Sequence[str]) -> list[str]:
    """The names of files on the page: without endings, unless two would be equal.

    >>> names_of(["runs/k4.jsonl", "runs/k10.jsonl.gz"]), names_of(["a/beam.jsonl", "b/beam.jsonl"])
    (['k4', 'k10'], ['a/beam.jsonl', 'b/beam.jsonl'])
    """
    names = ["standard input" if path == "-" else Path(path).name.partition(".")[0] or path for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


class ElectionPage:
    """Answers the page's questions about lists of ballots; an election is held when it is first needed.

    Several lists are of the same elections, such as beams of different sizes; the first names the ballots.
    `kept` is the number of ballots that the page has, where an export leaves some out. `images` is the
    folder of the pictures that a ballot's source or id names.
    """

    def __init__(
        self,
        lists: Sequence[Ballots],
        settings: Settings,
        *,
        kept: int | None = None,
        images: Path | None = None,
    ) -> None:
        self._lists, self._images = lists, images
        self._settings = resolve_shares(settings, (Entry(lists[0].name, ballot) for ballot in lists[0]))
        self.kept = len(lists[0]) if kept is None else min(kept, len(lists[0]))
        self._elect = lru_cache(KEPT)(self._elected)
        self.members = cache(self._members)

    def about(self) -> api.About:
        """The lists, and the measures that the reader can choose."""
        return api.About(
            version=__version__,
            lists=[api.NamedList(ballots.name, len(ballots)) for ballots in self._lists],
            ballots=len(self._lists[0]),
            kept=self.kept,
            page=PAGE,
            measure=self._settings.measure.name,
            measures=list(clusters.MEASURES) if self._settings.rule not in WITHOUT_VOTERS else [],
            members=sorted(set().union(*(ballots.members for ballots in self._lists))),
        )

    def unmatched(self) -> Iterator[tuple[str, int]]:
        """Name of each further list that has ballots without a partner in the first, and how many."""
        first = self._lists[0]
        for other in self._lists[1:]:
            shared = (
                len(other.ids.keys() & first.ids) if other.ids or first.ids else min(len(first), len(other))
            )
            if len(other) > shared:
                yield other.name, len(other) - shared

    def page(self, page: int) -> list[api.BallotRow]:
        """A part of the list of ballots, with the outcome of each."""
        _index(page, -(-self.kept // PAGE), "pages")
        return [self._row(number) for number in range(self.kept)[page * PAGE : (page + 1) * PAGE]]

    def _row(self, number: int) -> api.BallotRow:
        ballot = self._lists[0][number]
        try:
            elected = api.ElectedBallot(ballot, self._settings)
            return api.ballot_row(elected, number, clusters.stability(elected))
        except RangevoteError as error:
            return api.BallotRow(number, ballot.id, api.title(ballot), error=str(error))

    def find(self, id: str) -> api.BallotNumber:
        number = self._lists[0].ids.get(id)
        return api.BallotNumber(number if number is not None and number < self.kept else None)

    def election(self, number: int, list: int, what_if: WhatIf = AS_IS) -> api.Election:
        elected = self._elect(number, list, what_if)
        image = None if self.image(number, list) is None else f"api/ballots/{number}/image?list={list}"
        original = None if what_if == AS_IS else self._elect(number, list, AS_IS).result
        return api.election(elected, number, image, clusters.stability(elected), original)

    def grades(self, number: int, list: int, what_if: WhatIf = AS_IS) -> api.Grades:
        return clusters.grades(self._elect(number, list, what_if))

    def parts(self, number: int, list: int, index: int, what_if: WhatIf = AS_IS) -> api.Parts:
        """What earned one candidate its score."""
        elected = self._elect(number, list, what_if)
        return api.score_parts(elected, _index(index, len(elected.result.candidates), "candidates"))

    def text(self, number: int, list: int, role: str, index: int, what_if: WhatIf = AS_IS) -> api.Text:
        result = self._elect(number, list, what_if).result
        return api.whole_text(result, role, _index(index, len(getattr(result, role)), role))

    def winners(self, number: int, list: int, what_if: WhatIf = AS_IS) -> api.MeasureWinners:
        """The winners under other measures, none where the list has no such ballot."""
        ballot, settings = self._ballot(number, list), self._settings
        if ballot is not None:
            ballot, settings = what_if.apply(ballot, settings)
        return clusters.winners(ballot, self._lists[list].name, settings)

    def image(self, number: int, list: int) -> PageImage | None:
        """The picture that the source or the id of a ballot names."""
        ballot = self._ballot(number, list)
        names = () if ballot is None or self._images is None else (str(ballot.source), str(ballot.id))
        for name in names:
            if name.lower().endswith(WEB_IMAGE_ENDINGS):
                with suppress(RangevoteError):  # a text that ends like a name, or a picture that is missing
                    return load_image(Path(name), self._images or Path(), "ballots")[1]
        return None

    def _members(self, list: int) -> PanelSummary:
        """What the members of the panel did in a list; elections that fail are not counted."""
        ballots = self._lists[_index(list, len(self._lists), "lists")]
        count, agreement = PanelCount(self._settings), None
        for ballot in islice(ballots, COUNTED):
            with suppress(RangevoteError):
                count.add(ballot, elect_ballot(ballot, self._settings))
        with suppress(DataError):  # no two members have answers to the same ballot
            agreement = count.agreement()
        return count.summary(len(ballots), agreement)

    def _ballot(self, number: int, list: int) -> Ballot | None:
        """The ballot of a list that belongs to ballot `number` of the first: the one with its id, or, where
        neither list has ids, the one with the same number. None where there is none."""
        _index(number, self.kept, "ballots")
        wanted = self._lists[_index(list, len(self._lists), "lists")]
        ballot = self._lists[0][number]
        if list == 0:
            return ballot
        other = number if ballot.id is None and not wanted.ids else wanted.ids.get(str(ballot.id))
        return wanted[other] if other is not None and other < len(wanted) else None

    def _elected(self, number: int, list: int, what_if: WhatIf) -> api.ElectedBallot:
        ballot = self._ballot(number, list)
        if ballot is None:
            raise NotFound(f"the list {self._lists[list].name} has no such ballot.")
        if what_if == AS_IS:
            return api.ElectedBallot(ballot, self._settings)
        with without_warnings():  # the page shows what is odd about the reader's own settings
            return api.ElectedBallot(*what_if.apply(ballot, self._settings))


def _index(index: int, length: int, name: str) -> int:
    if not 0 <= index < length:
        raise NotFound(f"there is no number {index} among the {length:,} {name}.")
    return index


def election_app(page: ElectionPage, *, hosts: Sequence[str] = ()) -> Starlette:
    """The application; `hosts` are further host names that it answers to."""
    ballot = "/api/ballots/{number}"
    answers: dict[str, Callable[..., object]] = {
        "/api/election": page.about,
        "/api/ballots": page.page,
        "/api/members": page.members,
        "/api/find": page.find,
        ballot: page.election,
        f"{ballot}/grades": page.grades,
        f"{ballot}/candidates/{{index}}": page.parts,
        f"{ballot}/text": page.text,
        f"{ballot}/winners": page.winners,
        f"{ballot}/image": page.image,
    }
    routes = [Route(path, _endpoint(answer)) for path, answer in answers.items()]
    html = assets("rangevote.web")["election.html"]
    routes += [Route("/", html.respond), *asset_routes("rangevote.web")]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


def _endpoint(answer: Callable[..., object]) -> Callable[[Request], Response]:
    """Answers with what its parameters name. A plain function, which Starlette runs in a thread: counting
    votes does not block the server."""
    parameters = inspect.signature(answer).parameters

    def respond(request: Request) -> Response:
        query = {name: value for name, value in request.query_params.items() if value} | request.path_params
        try:
            arguments = msgspec.structs.asdict(msgspec.convert(query, PageQuery, strict=False))
            arguments["what_if"] = msgspec.convert(query, WhatIf, strict=False)
            content = answer(**{name: arguments[name] for name in parameters.keys() & arguments.keys()})
        except msgspec.ValidationError as error:
            return _json({"error": f"{error}."}, 400)
        except NotFound as error:
            return _json({"error": str(error)}, 404)
        except RangevoteError as error:  # a ballot that cannot be voted on in this way
            return _json({"error": str(error)}, 422)
        if isinstance(content, PageImage):
            return Response(content.content, media_type=content.type)
        return Response(status_code=404) if content is None else _json(content, 200)

    return respond


def _json(answer: object, status: int) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")
