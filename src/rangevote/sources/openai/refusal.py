"""Why a server gave no answer: one error of a few kinds; its message holds neither keys nor what was said."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Literal

import httpx

from rangevote.errors import SetupError

Reason = Literal["connect", "timeout", "status", "rate", "redirect", "not_json", "too_large", "shape"]
#: What mends the more common refusals.
ADVICE = {
    401: "it wants another API key",
    403: "the API key does not allow this",
    404: "it does not know the path or the model; a base URL mostly ends in /v1",
    413: "the request is too large for it",
}


class UpstreamError(SetupError):
    """A server did not answer as asked.

    `status` is the HTTP status where there was one, `retry_after` the seconds for which it asks to be left
    alone. `detail` is what it said, for a log: never to be shown to somebody else's client.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Reason = "status",
        status: int | None = None,
        retry_after: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.kind, self.status, self.retry_after, self.detail = kind, status, retry_after, detail

    @property
    def transient(self) -> bool:
        """Whether the same call may work a little later."""
        if self.kind == "status":
            return self.status is not None and self.status >= 500 and self.status != 501
        return self.kind in ("connect", "rate")


def not_ok(
    server: str, status: int, headers: Mapping[str, str], content: bytes, key: str | None
) -> UpstreamError:
    """The error that a status other than 200 stands for."""
    detail = content.decode("utf-8", "replace")
    if key is not None:
        detail = detail.replace(key, "***")
    if 300 <= status < 400:
        return UpstreamError(
            f"{server} answered with a redirect ({status}), which is not followed; if it is meant, give the "
            f"address it leads to.",
            kind="redirect",
            status=status,
            detail=headers.get("location", "")[:200],
        )
    advice = f": {ADVICE[status]}" if status in ADVICE else ""
    return UpstreamError(
        f"{server} answered {status}{_phrase(status)}{advice}.",
        kind="rate" if status == 429 else "status",
        status=status,
        retry_after=seconds_of(headers.get("retry-after", "")),
        detail=detail,
    )


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def unreachable(server: str, error: Exception) -> UpstreamError:
    """The error that failing to connect, to send or to read stands for."""
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return late(server)
    return UpstreamError(
        f"cannot reach {server}: {str(error) or type(error).__name__}.", kind="connect", detail=repr(error)
    )


def late(server: str) -> UpstreamError:
    """The error of a call that took too long."""
    return UpstreamError(f"{server} did not answer in time.", kind="timeout")


def seconds_of(value: str) -> float | None:
    """What Retry-After says, as seconds from now: a number of them, or a date."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError, OSError):  # years that no clock has
            return None
    return seconds if 0 <= seconds < math.inf else None
