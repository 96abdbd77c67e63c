"""Inputs of one JSON object a line: the loop that all their readers share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from rangevote.errors import DataError
from rangevote.formats.entry import Entry
from rangevote.formats.exact import parse
from rangevote.formats.options import ReadOptions
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot

T = TypeVar("T")
_PATH = re.compile(r" - at `\$\.?(.*)`$")


Decode = Callable[[bytes], Ballot]


def each_row(stream: Stream, options: ReadOptions, decode: Decode) -> Iterator[Entry]:
    """One entry for each line that is not blank; a bad one becomes an error and reading goes on."""
    name = stream.name
    for number, line in enumerate(stream.lines_or_errors(options.max_line_bytes), 1):
        if not blank(line):
            yield row(f"{name}:{number}", line, decode, stream.torn)


def blank(line: bytes | DataError) -> bool:
    """Whether a line holds nothing."""
    return not isinstance(line, DataError) and (not line or line.isspace())


def row(where: str, line: bytes | DataError, decode: Decode, torn: bool) -> Entry:
    """The entry of one line; `torn`: it is the last one and has no line end."""
    if isinstance(line, DataError):
        return Entry(where, error=line.at(where))
    try:
        return Entry(where, decode(line))
    except DataError as error:
        return Entry(where, error=_placed(error, where, torn))


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


def _placed(error: DataError, where: str, torn: bool) -> DataError:
    """The error with its place; a last line without line end may be half a line."""
    if torn and error.problem.startswith("not valid JSON"):
        hint = "; the last line has no line end: the file may be cut off"
        return DataError(error.problem + hint, field=error.field, where=where)
    return error.at(where)
