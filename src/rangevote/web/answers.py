"""The questions a page can ask, and their answers: served as they are asked, or written into a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from rangevote.election.elect import hold
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Ballot
from rangevote.version import __version__
from rangevote.web.ballots import Lists
from rangevote.web.comparing import stability, winners
from rangevote.web.election import Json, election, grades, parts, whole

#: Ballots on one page of their list.
PAGE = 20
#: Characters of a ballot's title in the list.
TITLE = 120
#: Elections that are kept, so that the parts of a page are not elected again.
KEPT = 8
#: What JavaScript's encodeURIComponent leaves as it is.
UNQUOTED = "-_.!~*'()"


class Absent(Exception):
    """There is no such ballot, list or candidate."""


class Held(NamedTuple):
    """An election that was held for the page."""

    ballot: Ballot
    result: Result


class Answers:
    """Answers about the ballots of some lists; nothing is elected before it is asked for.

    `kept` is the number of ballots that the page has, where an export leaves some out.
    """

    def __init__(self, lists: Lists, settings: Settings, *, kept: int | None = None) -> None:
        self._lists, self._settings = lists, settings
        self.kept = len(lists) if kept is None else min(kept, len(lists))
        self._held: OrderedDict[tuple[int, int], Held] = OrderedDict()
        self._lock = Lock()

    def about(self) -> Json:
        """The lists, and how elections are held."""
        return {
            "version": __version__,
            "lists": [{"name": ballots.name, "ballots": len(ballots)} for ballots in self._lists.lists],
            "ballots": len(self._lists),
            "kept": self.kept,
            "page": PAGE,
            "measure": self._settings.similarity.name,
        }

    def page(self, page: int) -> Json:
        """One page of the list of ballots."""
        pages = -(-self.kept // PAGE)
        if not 0 <= page < pages:
            raise Absent(f"there is no page {page}; pages go from 0 to {pages - 1}.")
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
        """The place of the ballot of this id, null where there is none."""
        number = self._lists.lists[0].find(id)
        return {"number": number if number is not None and number < self.kept else None}

    def election(self, number: int, list: int) -> Json:
        """The election of one ballot in one of the lists."""
        held = self._elect(number, list)
        return election(held.ballot, number, held.result, self._settings.rule_name)

    def grades(self, number: int, list: int) -> Json:
        """Its grades, voter by candidate."""
        return grades(self._elect(number, list).result)

    def parts(self, number: int, list: int, index: int) -> Json:
        """What earned one candidate its score."""
        result = self._elect(number, list).result
        return parts(result, _index(index, len(result.candidates), "candidates"))

    def text(self, number: int, list: int, role: str, index: int) -> Json:
        """One whole text."""
        result = self._elect(number, list).result
        if role not in ("candidates", "voters"):
            raise Absent(f"a role is candidates or voters, not {role!r}.")
        return whole(result, role, _index(index, len(getattr(result, role)), role))

    def winners(self, number: int, list: int) -> Json:
        """The winners under other measures, none where the list has no such ballot."""
        _index(number, self.kept, "ballots")
        _index(list, len(self._lists.lists), "lists")
        return winners(self._lists.ballot(number, list), self._lists.lists[list].name, self._settings)

    def stability(self, number: int, list: int) -> Json:
        """The winners without single voters."""
        return stability(self._elect(number, list).result)

    def _ballot(self, number: int, list: int) -> Ballot:
        _index(number, self.kept, "ballots")
        _index(list, len(self._lists.lists), "lists")
        ballot = self._lists.ballot(number, list)
        if ballot is None:
            raise Absent(f"the list {self._lists.lists[list].name} has no such ballot.")
        return ballot

    def _elect(self, number: int, list: int) -> Held:
        key = (number, list)
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        ballot = self._ballot(number, list)
        held = Held(ballot, hold(ballot, self._settings))
        with self._lock:
            self._held[key] = held
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
        return held

    def everything(
        self, explained: int, done: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, Json]]:
        """Each path that a page can ask for, with its answer: what an exported file holds.

        Of each ballot the parts of the first `explained` candidates. What fails is kept as its message.
        `done` is called after each ballot.
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
        shown = _told(lambda: self.election(number, list))
        yield start + end, shown
        if "error" in shown:
            return
        yield f"{start}/grades{end}", _told(lambda: self.grades(number, list))
        yield f"{start}/winners{end}", _told(lambda: self.winners(number, list))
        yield f"{start}/stability{end}", _told(lambda: self.stability(number, list))
        rows = shown["candidates"]["rows"]
        wanted = [row["index"] for row in rows[:explained]]
        if shown["most_likely"] not in (None, *wanted):
            wanted.append(shown["most_likely"])
        for index in wanted:
            yield f"{start}/candidates/{index}{end}", self.parts(number, list, index)
        for role in ("candidates", "voters"):
            for row in shown[role]["rows"]:
                if row.get("more"):
                    index = row["index"]
                    text = self.text(number, list, role, index)
                    yield f"{start}/text{end}&role={role}&index={index}", text


def as_json(answer: Any) -> bytes:
    """JSON in UTF-8."""
    return msgspec.json.encode(answer)


def _told(answer: Callable[[], Json]) -> Json:
    """The answer, or what is in its way."""
    try:
        return answer()
    except (RangevoteError, Absent) as error:
        return {"error": str(error)}


def _index(index: int, length: int, what: str) -> int:
    if not 0 <= index < length:
        raise Absent(f"there is no number {index} among the {length:,} {what}.")
    return index
