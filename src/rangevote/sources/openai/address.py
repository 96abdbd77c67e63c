"""Where a server is and what it is shown: checked before anything is sent."""

from __future__ import annotations

from urllib.parse import urlsplit

from rangevote.errors import UsageError


def checked_url(url: str) -> str:
    """A base URL as paths are put behind it: no slash at its end.

    >>> checked_url("http://127.0.0.1:8000/v1/")
    'http://127.0.0.1:8000/v1'
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or not url.isprintable() or " " in url:
        raise UsageError(f"the base URL must be as http://127.0.0.1:8000/v1, got {_without_login(url)!r}.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the base URL holds a user name or password; keys come from the environment or a file."
        )
    if parts.query or parts.fragment:
        raise UsageError(
            f"the base URL must end with its path, got {url.partition('?')[0]!r} with more behind it."
        )
    return url.rstrip("/")


def checked_key(key: str | None) -> str | None:
    """A key as it goes into a header; it is not shown when it cannot."""
    if key is None:
        return None
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("the API key is empty or holds spaces, line ends or letters beyond ASCII.")
    return key


def _without_login(url: str) -> str:
    """What may be shown of a URL that is not understood."""
    return url.rpartition("@")[2][:200]
