"""The election page of recent answers: in memory, so many, the oldest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from rangevote.service.outcome import Outcome
from rangevote.service.problem import Problem
from rangevote.web.app import ElectionPage, election_app
from rangevote.web.ballots import BallotLists, Ballots

#: Characters of all texts of an election; larger ones are not kept.
LARGEST = 4 * 2**20


class Elections:
    """An application that is mounted at /elections: /ID/ is a page, and below it is what the page asks."""

    def __init__(self, most: int, hosts: Sequence[str]) -> None:
        self._most, self._hosts = most, hosts
        self._kept: OrderedDict[str, tuple[Outcome, ASGIApp | None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, id: str, outcome: Outcome) -> str | None:
        """Keep an election; the address of its page, or None where none is kept."""
        ballot = outcome.ballot
        size = sum(len(one.text or "") for one in (*ballot.candidates, *(ballot.voters or ())))
        if not self._most or size > LARGEST:
            return None
        self._kept[id] = outcome, None
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return f"/elections/{id}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Show the election that the address names."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        id, slash, rest = path.lstrip("/").partition("/")
        if id not in self._kept:
            problem = Problem(404, "this election is not kept, or not any more", code="election_not_found")
            await problem.response()(scope, receive, send)
        elif not slash:
            await RedirectResponse(f"/elections/{id}/", 307)(scope, receive, send)
        else:
            inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}
            await self._page(id)(inner, receive, send)

    def _page(self, id: str) -> ASGIApp:
        """Made when it is first looked at."""
        outcome, page = self._kept[id]
        if page is None:
            lists = BallotLists([Ballots.of("this answer", [outcome.ballot])])
            page = election_app(ElectionPage(lists, outcome.settings), hosts=self._hosts)
            self._kept[id] = outcome, page
        return page
