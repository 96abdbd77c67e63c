"""What a browser may send, checked field by field; nothing else may be there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rangevote.errors import DataError
from rangevote.formats.exact import parse
from rangevote.study.store import Answer, Refused

#: Milliseconds of a day: nobody looks longer at an item.
_LONGEST = 86_400_000

_KEY = re.compile(r"[A-Za-z0-9_-]{16,64}")
_HANDLE = re.compile(r"[0-9a-f]{32}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _like(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


#: field -> (check, what is allowed)
_UNDO: dict[str, tuple[Callable[[Any], bool], str]] = {
    "item": (_like(_HANDLE), "the id of an item"),
    "key": (_like(_KEY), "16 to 64 letters, digits, '-' or '_'"),
    "time": (_like(_TIME), "a time like 2026-01-31T12:00:00.000Z"),
}
_JUDGEMENT = _UNDO | {
    "value": (_whole(-2, 2), "a whole number from -2 to 2"),
    "duration": (_whole(0, _LONGEST), f"milliseconds, a whole number from 0 to {_LONGEST}"),
    "image_missing": (lambda value: isinstance(value, bool), "true or false"),
}


def judgement_of(body: bytes) -> Answer:
    """A judgement as the page sends it."""
    found = _fields(body, _JUDGEMENT)
    names = ("item", "value", "key", "time", "duration", "image_missing")
    return Answer(*(found[name] for name in names))


def undo_of(body: bytes) -> Answer:
    """The undoing of one."""
    found = _fields(body, _UNDO)
    return Answer(found["item"], None, found["key"], found["time"])


def check_empty(body: bytes) -> None:
    """A message that says all by being sent."""
    _fields(body, {})


def _fields(body: bytes, wanted: Mapping[str, tuple[Callable[[Any], bool], str]]) -> dict[str, Any]:
    try:
        value = parse(body)
    except DataError as error:
        raise Refused(str(error)) from None
    if not isinstance(value, dict):
        raise Refused("expected a JSON object.")
    if value.keys() != wanted.keys():
        raise Refused(f"expected the fields {', '.join(sorted(wanted)) or 'of an empty object'}.")
    for name, (allowed, told) in wanted.items():
        if not allowed(value[name]):
            raise Refused(f"{name}: expected {told}.")
    return value
