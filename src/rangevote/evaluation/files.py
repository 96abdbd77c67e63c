"""Files of one text a line, or of one JSON object a line; told apart by their first line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from rangevote.errors import DataError
from rangevote.evaluation.corpus import Id
from rangevote.formats.exact import decoded, parse
from rangevote.formats.rows import shaped
from rangevote.formats.stream import Source, Stream, open_stream


class Fields(msgspec.Struct, gc=False):
    """What is looked for in a line of JSON; other fields are passed over."""

    id: Id | None = None
    winner: str | list[int] | UnsetType | None = UNSET
    text: str | UnsetType = UNSET
    source: str | None = None
    references: list[str] | str | None = None
    signature: str | None = None
    error: str | None = None
    candidates: Any = UNSET
    hypotheses: Any = UNSET


#: A first line with one of these keys is JSON; any other is text, even if it can be read as JSON.
KEYS = frozenset({"winner", "text", "references", "source", "candidates", "hypotheses"})
_KEY = re.compile(rb'"(' + "|".join(KEYS).encode() + rb')"\s*:')


class Record(NamedTuple):
    """One line: its place ("file:12"), and its text or its fields."""

    place: str
    text: str = ""
    fields: Fields | None = None


@dataclass(frozen=True)
class Records:
    """The lines of a file in order; `json` tells which kind they are."""

    name: str
    lines: Sequence[Record]
    json: bool

    def ids(self) -> list[Id] | None:
        """The ids if every line has one; none may be there twice."""
        found = [record.fields.id if record.fields else None for record in self.lines]
        if None in found:
            return None
        first: dict[Id, str] = {}
        for record, id in zip(self.lines, found, strict=True):
            assert id is not None  # looked for above
            if first.setdefault(id, record.place) != record.place:
                problem = f"{id!r} was used before, at {first[id]}; ids must differ, or be left out."
                raise DataError(problem, field="id", where=record.place)
        return list(first)


def read_records(source: Source, what: str, *, plain: bool = False) -> Records:
    """All lines of a path, of '-' or of a binary file; `plain` takes lines of JSON for texts as well.

    `what` is what the file holds, for the error of an empty one.
    """
    with open_stream(source) as stream:
        lines = stream.lines()
        first = next(lines, None)
        if first is None:
            raise DataError(f"is empty: there are no {what} in it.", where=stream.name)
        json = not plain and _is_json(first)
        read = _json_records if json else _text_records
        return Records(stream.name, list(read(stream, chain([first], lines))), json)


def _is_json(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        value = parse(line)
    except DataError:  # damaged JSON is for the reader to complain of
        return _KEY.search(line) is not None
    return not KEYS.isdisjoint(value) or {"id", "error"} <= value.keys()  # a ballot that was skipped


def _text_records(stream: Stream, lines: Iterator[bytes]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        place = f"{stream.name}:{number}"
        try:
            yield Record(place, decoded(line))
        except DataError as error:
            raise error.at(place) from None


def _json_records(stream: Stream, lines: Iterator[bytes]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        place = f"{stream.name}:{number}"
        try:
            yield Record(place, fields=shaped(line, Fields))
        except DataError as error:
            raise error.at(place) from None
