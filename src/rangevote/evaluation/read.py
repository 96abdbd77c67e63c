"""Outputs, references and sources from files, brought into the same order.

    outputs      text, or {"id", "winner"} as `rangevote vote` and `generate` write it, or {"id", "text"};
                 also as columns of CSV or TSV
    references   text files, one for each reference; or {"id", "references", "source"}, as ballots have them
    sources      text, or {"id", "source"}

Where every line of two files has an id they go together by it, else line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from rangevote.errors import DataError, UsageError
from rangevote.formats import read
from rangevote.formats.csv_tsv import looks_delimited, read_table
from rangevote.formats.jsonl import decode_as, decode_text, parse
from rangevote.formats.layouts import Located
from rangevote.formats.stream import MAX_LINE_BYTES, Source, open_stream
from rangevote.hypothesis import Ballot

Id = str | int
T = TypeVar("T")
#: Bytes that are looked at to find the names of columns.
HEAD = 2**16
T_co = TypeVar("T_co", covariant=True)


class LineFields(msgspec.Struct, gc=False):
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


@dataclass(frozen=True)
class FileValues(Generic[T_co]):
    """Values in file order with their locations ("file:12"), and ids where every line has one.

    `signatures` tell how outputs were elected, where the file says so. In a `table` all ids are texts.
    """

    name: str
    values: Sequence[T_co]
    where: Sequence[str]
    ids: Sequence[Id] | None = None
    signatures: frozenset[str] = frozenset()
    table: bool = False

    def map(self, value_of: Callable[[T_co], T]) -> FileValues[T]:
        """The same file with other values; where there is none, the error names the line."""
        values = []
        for where, value in zip(self.where, self.values, strict=True):
            try:
                values.append(value_of(value))
            except DataError as error:
                raise error.at(where) from None
        return FileValues(self.name, values, self.where, self.ids, self.signatures, self.table)


def read_outputs(source: Source, *, plain: bool = False) -> FileValues[str]:
    """One output a line; an election without candidates counts as an empty one.

    `plain` takes lines of JSON for texts as well.
    """
    return _read_lines(source, "outputs", plain).map(_output)


def read_references(
    sources: Sequence[Source], *, plain: bool = False
) -> tuple[FileValues[list[str]], FileValues[str] | None]:
    """The references of each item; and the sources, if every line has one."""
    first, *others = files = [_read_lines(source, "references", plain) for source in sources]
    if not others:
        complete = all(isinstance(line, LineFields) and line.source for line in first.values)
        return first.map(_references), first.map(_source) if complete else None
    if any(isinstance(line, LineFields) for file in files for line in file.values):
        raise UsageError(
            "several files of references must be plain text, with one reference a line each; JSON lines "
            "hold all references of an item in one file."
        )
    for file in others:
        _check_lengths(file, first)
    rows = [[str(text) for text in texts] for texts in zip(*(file.values for file in files), strict=True)]
    return FileValues(first.name, rows, first.where), None


def read_sources(source: Source, *, plain: bool = False) -> FileValues[str]:
    """One source a line."""
    return _read_lines(source, "sources", plain).map(_source)


def read_beam(source: Source) -> FileValues[Ballot]:
    """Ballots of any n-best format."""
    with read(source) as entries:
        listed = list(entries)
    ballots = [entry.get() for entry in listed]
    if not ballots:
        raise DataError("is empty: there are no ballots in it.", where=str(source))
    ids = [ballot.id for ballot in ballots if ballot.id is not None]  # the reader refuses repeated ids
    complete = ids if len(ids) == len(ballots) else None
    return FileValues(str(source), ballots, [entry.where for entry in listed], complete)


def align(listing: FileValues[T], order: FileValues[object]) -> list[T]:
    """The values of `listing` in the order of `order`: by id where both have ids, else line by line."""
    if listing.ids is None or order.ids is None:
        _check_lengths(listing, order)
        return list(listing.values)
    if listing.table != order.table:  # in one of them all ids are texts
        listing = replace(listing, ids=[str(id) for id in listing.ids])
        order = replace(order, ids=[str(id) for id in order.ids])
    ids, wanted = listing.ids or (), order.ids or ()
    by_id = dict(zip(ids, listing.values, strict=True))
    _check_ids(order, by_id.keys(), listing.name)
    _check_ids(listing, set(wanted), order.name)
    return [by_id[id] for id in wanted]


def _check_lengths(one: FileValues[object], other: FileValues[object]) -> None:
    if len(one.values) != len(other.values):
        raise DataError(
            f"{one.name} has {len(one.values):,} lines and {other.name} {len(other.values):,}; without ids "
            f"in both, line n of one belongs to line n of the other."
        )


def _check_ids(listing: FileValues[object], known: Set[Id], other: str) -> None:
    for id, where in zip(listing.ids or (), listing.where, strict=True):
        if id not in known:
            raise DataError(f"{other} has nothing for {id!r}.", field="id", where=where)


def _read_lines(source: Source, what: str, plain: bool) -> FileValues[str | LineFields]:
    """All lines of a path, of '-' or of a binary file; the first line tells texts from JSON."""
    with open_stream(source) as stream:
        head = stream.peek(HEAD).partition(b"\n")[0]
        said = b"winner" in head or stream.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
        table = looks_delimited(head, stream.name) if said and not plain and head[:1] != b"{" else None
        if table is not None:
            decoded = list(_table_lines(read_table(stream, table, MAX_LINE_BYTES)))
        else:
            raw = stream.lines()
            first = next(raw, None)
            if first is None:
                raise DataError(f"is empty: there are no {what} in it.", where=stream.name)
            json = not plain and _is_json(first)
            decoded = list(_decode(chain([first], raw), stream.name, json))
    where, lines = [where for where, _ in decoded], [line for _, line in decoded]
    fields = [line for line in lines if isinstance(line, LineFields)]
    signatures = frozenset(line.signature for line in fields if line.signature is not None)
    ids = [line.id for line in fields if line.id is not None]
    if len(ids) < len(lines):
        return FileValues(stream.name, lines, where, None, signatures)
    _check_unique(ids, where)
    return FileValues(stream.name, lines, where, ids, signatures, table is not None)


def _table_lines(records: Iterator[Located]) -> Iterator[tuple[str, str | LineFields]]:
    """Rows with the fields of the same names; that of a bad ballot has an error in place of a winner."""
    for where, record in records:
        if isinstance(record, DataError):
            raise record.at(where)
        known = {name: record[name] for name in LineFields.__struct_fields__ if name in record}
        if not known.get("error"):
            known.pop("error", None)
        else:
            known.pop("winner", None)
        yield where, LineFields(**known)


def _is_json(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        value = parse(line)
    except DataError:  # damaged JSON is reported when it is decoded
        return _KEY.search(line) is not None
    return not KEYS.isdisjoint(value) or {"id", "error"} <= value.keys()  # a ballot that was skipped


def _decode(lines: Iterator[bytes], name: str, json: bool) -> Iterator[tuple[str, str | LineFields]]:
    for number, line in enumerate(lines, 1):
        if json and (not line or line.isspace()):
            continue
        where = f"{name}:{number}"
        try:
            yield where, decode_as(line, LineFields) if json else decode_text(line)
        except DataError as error:
            raise error.at(where) from None


def _check_unique(ids: Sequence[Id], where: Sequence[str]) -> None:
    first: dict[Id, str] = {}
    for id, line in zip(ids, where, strict=True):
        if first.setdefault(id, line) != line:
            problem = f"{id!r} was used before, at {first[id]}; ids must differ, or be left out."
            raise DataError(problem, field="id", where=line)


def _output(line: str | LineFields) -> str:
    if isinstance(line, str):
        return line
    if isinstance(line.winner, list):
        raise DataError("holds token ids, while texts are compared; decode them first.", field="winner")
    if line.winner is not UNSET:
        return line.winner or ""
    if line.error is not None:
        raise DataError(
            f"there is no winner, because the ballot was bad ({line.error}); correct or remove it."
        )
    if line.text is not UNSET:
        return line.text
    if line.candidates is not UNSET or line.hypotheses is not UNSET:
        raise DataError("is a ballot and not an output; elect a winner first, with: rangevote vote FILE")
    raise DataError('expected an output: {"id": ..., "winner": "..."} or {"id": ..., "text": "..."}')


def _references(line: str | LineFields) -> list[str]:
    if isinstance(line, str):
        return [line]
    if isinstance(line.references, str):
        return [line.references]
    if not line.references:
        raise DataError(f"there are none for the id {line.id!r}.", field="references")
    return line.references


def _source(line: str | LineFields) -> str:
    if isinstance(line, str):
        return line
    if line.source is None:
        raise DataError(f"there is none for the id {line.id!r}.", field="source")
    return line.source
