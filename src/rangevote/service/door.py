"""Who may come in: the guard of all our applications, speaking as OpenAI's API does, and then the keys."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from rangevote.service.keys import Keys
from rangevote.service.problem import Problem
from rangevote.web.guard import HEADERS, Guard, GuardedResponse, Refused

CODES = {400: "invalid_host", 403: "cross_site", 413: "too_large", 415: "not_json"}
#: What anybody may ask: whether the process is there.
OPEN = "/healthz"
#: How addresses end to which something is sent.
WRITTEN = "/completions"
#: Pages for a browser, which asks its user for the key as a password.
PAGES = ("/elections/", "/static/", "/favicon.ico")


class Told(GuardedResponse):
    """Refusals in the shape of OpenAI's errors."""

    async def refuse(self, refused: Refused) -> None:
        """Answer in the application's place."""
        self.refused = refused
        problem = Problem(refused.status, refused.message, code=CODES.get(refused.status, "refused"))
        await problem.response()(self._scope, self._receive, self._pass)


class Door(Guard):
    """The guard, and a key for every address but one."""

    answers = Told

    def __init__(self, app: ASGIApp, keys: Keys, *, hosts: Sequence[str], max_body: int) -> None:
        super().__init__(app, hosts=hosts, max_body=max_body)
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or let through."""
        locked = scope["type"] == "http" and scope["path"] != OPEN
        if locked and not self._keys.admit(_authorization(scope)):
            await _locked(scope)(scope, receive, Told(scope, receive, send, HEADERS).send)
            return
        await super().__call__(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        if scope["path"] == OPEN:  # asked for under any name, by those who look after machines
            return
        if scope["method"] != "POST" or not scope["path"].endswith(WRITTEN):  # they get as far as a 405
            scope = {**scope, "method": "GET"}
        super()._check(scope)


def _authorization(scope: Scope) -> bytes:
    """The header as it came: it need not be text."""
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    return values[0] if len(values) == 1 else b""


def _locked(scope: Scope) -> ASGIApp:
    problem = Problem(401, "a valid API key is needed: Authorization: Bearer ...", code="invalid_api_key")
    response = problem.response()
    headers = Headers(scope=scope)
    browser = "text/html" in headers.get("accept", "") or "sec-fetch-site" in headers
    page = browser and scope["path"].startswith(PAGES)  # and its parts: each is asked for alone
    response.headers["www-authenticate"] = 'Basic realm="rangevote", charset="UTF-8"' if page else "Bearer"
    return response
