"""Lines of JSON as objects of a known shape."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from rangevote.errors import DataError
from rangevote.formats.exact import parse

T = TypeVar("T")
_PATH = re.compile(r" - at `\$\.?(.*)`$")


def shaped(line: bytes, kind: type[T]) -> T:
    """A line as an object of `kind`; fields that `kind` does not have are passed over."""
    try:
        return msgspec.convert(parse(line), kind)
    except msgspec.ValidationError as error:
        raise misshapen(error) from None


def ended(reason: str | None) -> bool:
    """Whether the model ended the sequence itself, by a server's `finish_reason`."""
    return reason not in ("length", "abort")


def misshapen(error: msgspec.ValidationError) -> DataError:
    """What does not fit, with the place in our notation: `outputs[0].text`."""
    message = str(error)
    found = _PATH.search(message)
    problem = _PATH.sub("", message).replace("`", "")
    return DataError(problem[:1].lower() + problem[1:], field=found[1] if found else "")
