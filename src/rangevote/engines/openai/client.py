"""One OpenAI-compatible server, called with retries and within limits.

    async with Client("http://127.0.0.1:8000/v1", key=key) as client:
        answer = await client.call("/chat/completions", {"model": ..., "messages": [...]})

Calls are limited in number, time and bytes. Redirects are not followed, proxies of the environment are not
used, and no message shows a key.
"""

from __future__ import annotations

import asyncio
import math
import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Literal

import anyio
import httpx
import msgspec

from rangevote.errors import DataError, SetupError, UsageError
from rangevote.formats.jsonl import convert, parse

ErrorKind = Literal["connect", "timeout", "status", "rate", "redirect", "not_json", "too_large", "shape"]

#: The longest pause, in seconds, before a call is repeated.
LONGEST_PAUSE = 8.0
#: Seconds for which an idle connection is kept: many servers close it after five.
KEPT = 4.0
#: The most bytes that are read of an error's body.
ERROR_BYTES = 16 * 2**10
#: Longer responses, in bytes, are parsed in a thread.
LONG = 256 * 2**10
JSON = "application/json"
#: A client has few URLs, and httpx takes long to parse one.
parse_url = lru_cache(maxsize=64)(httpx.URL)
#: Some gateways refuse requests without one.
USER_AGENT = f"python-httpx/{httpx.__version__}"
ADVICE = {
    401: "the API key is missing or wrong",
    403: "the API key does not allow this",
    404: "the path or the model is unknown; most base URLs end in /v1",
    413: "the request is too large",
}


class ListedModel(msgspec.Struct):
    id: str


class ModelList(msgspec.Struct):
    data: list[ListedModel]


class UpstreamError(SetupError):
    """A call to a server failed.

    `status` is the HTTP status, if there was one, `retry_after` the seconds that the server asks clients to
    wait. `detail` is the server's own message: it may be logged, but is never sent to clients.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind = "status",
        status: int | None = None,
        retry_after: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.retry_after, self.detail = kind, status, retry_after, detail

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed later."""
        if self.kind == "status":
            return self.status is not None and self.status >= 500 and self.status != 501
        return self.kind in ("connect", "rate")

    @property
    def answer(self) -> object:
        """The error as the server describes it: the field `error` of its JSON, otherwise the whole text."""
        try:
            body = parse(self.detail.encode())
        except DataError:
            return self.detail
        return body.get("error", body) if isinstance(body, dict) else self.detail


@dataclass(frozen=True)
class CallLimits:
    """Seconds for connecting, between two reads, and for a call with its retries; the most bytes of a
    response, and the number of retries. With `busy_again` a call is also retried after a 429.

    The first retry comes after `pause` seconds, each further one after twice as many, randomly reduced by up
    to a half. How many choices a server returns in one call is remembered for `most_kept` seconds.
    """

    connect: float = 5.0
    read: float = 120.0
    total: float = 300.0
    response_bytes: int = 4 * 2**20
    retries: int = 2
    busy_again: bool = True
    pause: float = 0.5
    most_kept: float = 300.0


class Client:
    """One server; `async with` opens its connections and closes them.

    At most `concurrency` calls run at a time. A `deadline` is a time of `time.monotonic()`; without one a
    call may take `limits.total` seconds from its start. Cancelling a task that waits for a response closes
    its connection. `most_choices` is how many choices one call returns, if that is known.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None = None,
        limits: CallLimits | None = None,
        concurrency: int = 16,
        most_choices: int | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise UsageError(f"concurrency must be a whole number from 1, got {concurrency!r}.")
        self.base_url, self._key = checked_url(base_url), checked_key(key)
        self.limits = limits or CallLimits()
        timeout = httpx.Timeout(self.limits.read, connect=self.limits.connect, pool=None)
        self._extensions = {"timeout": timeout.as_dict()}
        self._headers = {"accept": JSON, "accept-encoding": "identity", "user-agent": USER_AGENT}
        if self._key is not None:
            self._headers["authorization"] = f"Bearer {self._key}"
        self._default_most, self._most_choices = most_choices, dict[tuple[object, ...], tuple[int, float]]()
        self.concurrency, self._transport = concurrency, transport
        # a call takes one; None: not opened yet
        self._connections: asyncio.LifoQueue[httpx.AsyncBaseTransport | None]
        self._tls: ssl.SSLContext

    async def __aenter__(self) -> Client:
        self._tls = httpx.create_ssl_context(trust_env=False)
        self._connections = asyncio.LifoQueue()
        for _ in range(self.concurrency):
            self._connections.put_nowait(self._transport)
        return self

    async def __aexit__(self, *raised: object) -> None:
        while not self._connections.empty():
            if (connection := self._connections.get_nowait()) is not None:
                await connection.aclose()

    def _open(self) -> httpx.AsyncBaseTransport:
        """A new connection.

        Only a transport: an httpx client would add redirects, cookies and proxies. Each has one connection:
        with n connections in one pool, httpcore checks up to n * n of them for every call.
        """
        limits = httpx.Limits(keepalive_expiry=KEPT)
        return httpx.AsyncHTTPTransport(trust_env=False, verify=self._tls, limits=limits)

    def most_choices(self, kind: tuple[object, ...]) -> int | None:
        """How many choices a call of this kind returns, if that is known or one recently returned fewer than
        it asked for."""
        most, until = self._most_choices.get(kind, (None, math.inf))
        return most if most is not None and time.monotonic() < until else self._default_most

    def remember_most(self, kind: tuple[object, ...], most: int) -> None:
        self._most_choices[kind] = most, time.monotonic() + self.limits.most_kept

    async def room(self) -> None:
        """Wait until a call could start at once."""
        await asyncio.sleep(0)  # lets the calls start that are waiting
        self._connections.put_nowait(await self._connections.get())

    async def models(self) -> list[str]:
        answer = await self._repeat("GET", "/models", None, None)
        try:
            return [model.id for model in convert(answer, ModelList).data]
        except DataError as error:
            raise self._malformed("does not list its models", detail=str(error)) from None

    async def call(
        self, path: str, body: Mapping[str, Any], *, deadline: float | None = None
    ) -> dict[str, Any]:
        """The response to one POST; `path` follows the base URL, as "/chat/completions".

        The call is retried only if there was no response or the server is busy or broken (429, unless the
        limits say otherwise, or 5xx), after a random pause or the one that the server asks for, if the
        deadline allows it.
        """
        return await self._repeat("POST", path, body, deadline)

    async def _repeat(
        self, method: str, path: str, body: Mapping[str, Any] | None, deadline: float | None
    ) -> dict[str, Any]:
        """Call when a connection is free. It is kept during pauses, so a busy server gets fewer calls."""
        try:
            with anyio.fail_after(None if deadline is None else deadline - time.monotonic()):
                connection = await self._connections.get()
        except TimeoutError:
            raise self._late() from None
        try:
            connection = connection or self._open()
            until = min(time.monotonic() + self.limits.total, math.inf if deadline is None else deadline)
            request = self._request(method, path, body)
            repetition = 0
            while True:
                try:
                    return await self._send(connection, request, until)
                except UpstreamError as error:
                    pause = _pause(self.limits.pause, repetition, error.retry_after)
                    again = error.transient and (error.kind != "rate" or self.limits.busy_again)
                    if not again or repetition >= self.limits.retries or time.monotonic() + pause >= until:
                        raise
                await asyncio.sleep(pause)
                repetition += 1
        finally:
            self._connections.put_nowait(connection)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Request:
        url = parse_url(f"{self.base_url}/{path.lstrip('/')}")
        if body is None:
            return httpx.Request(method, url, headers=self._headers, extensions=self._extensions)
        headers, content = {**self._headers, "content-type": JSON}, msgspec.json.encode(body)
        return httpx.Request(method, url, headers=headers, content=content, extensions=self._extensions)

    async def _send(
        self, connection: httpx.AsyncBaseTransport, request: httpx.Request, until: float
    ) -> dict[str, Any]:
        try:
            with anyio.fail_after(until - time.monotonic()):
                response = await connection.handle_async_request(request)
                try:
                    return await self._answer(response)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout):
            raise self._late() from None
        except (httpx.HTTPError, UnicodeError) as error:  # UnicodeError: an invalid host name
            raise UpstreamError(
                f"cannot reach {self.base_url}: {str(error) or type(error).__name__}.",
                kind="connect",
                detail=repr(error),
            ) from error

    async def _answer(self, response: httpx.Response) -> dict[str, Any]:
        """The JSON object of a response; raises the error that it stands for."""
        if response.status_code != 200:
            raise self._refusal(response, await _beginning(response))
        if response.headers.get("content-encoding", "identity") != "identity":
            raise self._malformed("sent a compressed response, which was not requested")
        content, most = bytearray(), self.limits.response_bytes
        try:
            async for chunk in response.aiter_raw():  # counted as it arrives
                content += chunk
                if len(content) > most:
                    raise self._malformed(f"sent a response of more than {most:,} bytes", "too_large")
            # Parsing blocks the event loop, so long answers are parsed in a thread.
            body, long = bytes(content), len(content) > LONG
            answer = await anyio.to_thread.run_sync(parse, body) if long else parse(body)
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            what = "closed the connection before the response was complete"
            raise self._malformed(what, "not_json", repr(error)) from error
        except DataError as error:
            detail = f"{response.headers.get('content-type', '')}: {error.problem}: {content[:200]!r}"
            raise self._malformed("sent a response that is not JSON", "not_json", detail) from None
        if not isinstance(answer, dict):
            raise self._malformed("sent JSON that is not an object")
        return answer

    def _late(self) -> UpstreamError:
        return UpstreamError(f"{self.base_url} did not answer in time.", kind="timeout")

    def _malformed(self, what: str, kind: ErrorKind = "shape", detail: str = "") -> UpstreamError:
        return UpstreamError(f"{self.base_url} {what}.", kind=kind, status=200, detail=detail)

    def _refusal(self, response: httpx.Response, content: bytes) -> UpstreamError:
        """The error that a status other than 200 stands for."""
        status, headers = response.status_code, response.headers
        if 300 <= status < 400:
            return UpstreamError(
                f"{self.base_url} answered with a redirect ({status}), which is not followed; "
                f"if it is correct, use the address it leads to.",
                kind="redirect",
                status=status,
                detail=headers.get("location", "")[:200],
            )
        detail = content.decode("utf-8", "replace")
        if self._key is not None:
            detail = detail.replace(self._key, "***")
        phrase = f"{status} {httpx.codes.get_reason_phrase(status)}".rstrip()
        advice = f": {ADVICE[status]}" if status in ADVICE else ""
        return UpstreamError(
            f"{self.base_url} answered {phrase}{advice}.",
            kind="rate" if status == 429 else "status",
            status=status,
            retry_after=retry_seconds(headers.get("retry-after", "")),
            detail=detail,
        )


def checked_url(url: str) -> str:
    """Check a base URL and remove a slash at its end.

    >>> checked_url("http://127.0.0.1:8000/v1/")
    'http://127.0.0.1:8000/v1'
    """
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        parts = httpx.URL()
    if not parts.host or parts.scheme not in ("http", "https") or not url.isprintable() or " " in url:
        shown = url.rpartition("@")[2][:200]  # without a login
        raise UsageError(f"the base URL must look like http://127.0.0.1:8000/v1, got {shown!r}.")
    if parts.userinfo:
        raise UsageError(
            "the base URL contains a user name or password; keys come from the environment or a file."
        )
    if parts.query or parts.fragment:
        shown = url.partition("?")[0]
        raise UsageError(f"the base URL must end with its path, got {shown!r} with more after it.")
    return url.rstrip("/")


def checked_key(key: str | None) -> str | None:
    """Check that a header can carry the key; the error does not show it."""
    if key is not None and (not key or not key.isascii() or not key.isprintable() or " " in key):
        raise UsageError("the API key is empty or contains spaces, line ends or letters beyond ASCII.")
    return key


async def _beginning(response: httpx.Response) -> bytes:
    """The first bytes of an error's body, as far as they arrive."""
    content = bytearray()
    try:
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > ERROR_BYTES:
                break
    except (httpx.RemoteProtocolError, httpx.ReadError):
        pass
    return bytes(content[:ERROR_BYTES])


def retry_seconds(value: str) -> float | None:
    """The seconds from now in a Retry-After header, which is a number or a date."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError, OSError):  # a date out of range
            return None
    return seconds if 0 <= seconds < math.inf else None


def _pause(first: float, repetition: int, wanted: float | None) -> float:
    """Seconds to wait: random, so that calls that failed together are not repeated together."""
    longest = min(LONGEST_PAUSE, first * 2.0**repetition)
    return max(longest * random.uniform(0.5, 1.0), wanted or 0.0)
