"""Outputs, references and sources from files, brought into step.

    outputs      text, or {"id", "winner"} as `rangevote vote` and `generate` write it, or {"id", "text"}
    references   text files, one for each reference; or {"id", "references", "source"}, as ballots have them
    sources      text, or {"id", "source"}

Where every line of two files has an id they go together by it, else by their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import UNSET

from rangevote.errors import DataError, UsageError
from rangevote.evaluation.corpus import Id
from rangevote.evaluation.files import Record, Records, read_records
from rangevote.formats import read
from rangevote.formats.stream import Source
from rangevote.hypothesis import Ballot

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Listed(Generic[T_co]):
    """Values in file order, with their places ("file:12"), and ids where every line has one."""

    name: str
    values: Sequence[T_co]
    places: Sequence[str]
    ids: Sequence[Id] | None = None


@dataclass(frozen=True)
class Outputs(Listed[str]):
    """One system's outputs; `signatures` tell how they were elected, where the file says so."""

    signatures: frozenset[str] = frozenset()


def read_outputs(source: Source, *, plain: bool = False) -> Outputs:
    """One output a line; an election without candidates counts as an empty one."""
    records = read_records(source, "outputs", plain=plain)
    listed = _listed(records, output_of)
    signed = {record.fields.signature for record in records.lines if record.fields}
    signatures = frozenset(text for text in signed if text is not None)
    return Outputs(listed.name, listed.values, listed.places, listed.ids, signatures)


def read_references(
    sources: Sequence[Source], *, plain: bool = False
) -> tuple[Listed[list[str]], Listed[str] | None]:
    """The references of each item; and the sources, where these travel along with all of them."""
    files = [read_records(source, "references", plain=plain) for source in sources]
    first = files[0]
    references = _listed(first, references_of)
    if len(files) == 1:
        along = first.json and all(record.fields and record.fields.source for record in first.lines)
        return references, _listed(first, source_of) if along else None
    if any(file.json for file in files):
        raise UsageError(
            "several files of references must be plain text, with one reference a line each; JSON lines "
            "hold all references of an item in one file."
        )
    columns = [_listed(file, references_of) for file in files]
    for column in columns[1:]:
        check_number(column, references)
    rows = zip(*(column.values for column in columns), strict=True)
    joined = [[text for texts in row for text in texts] for row in rows]
    return Listed(first.name, joined, references.places), None


def read_sources(source: Source, *, plain: bool = False) -> Listed[str]:
    """One source a line."""
    return _listed(read_records(source, "sources", plain=plain), source_of)


def in_step(listed: Listed[T], order: Listed[object]) -> list[T]:
    """The values of `listed` in the order of `order`: by id where both have ids, else by place."""
    if listed.ids is None or order.ids is None:
        check_number(listed, order)
        return list(listed.values)
    found = dict(zip(listed.ids, listed.values, strict=True))
    _check_ids(order, found.keys(), listed.name)
    _check_ids(listed, set(order.ids), order.name)
    return [found[id] for id in order.ids]


def check_number(one: Listed[object], other: Listed[object]) -> None:
    """Refuse files of different length that have no ids to go by."""
    if len(one.values) != len(other.values):
        raise DataError(
            f"{one.name} has {len(one.values):,} lines and {other.name} {len(other.values):,}; without ids "
            f"in both, line n of one belongs to line n of the other."
        )


def _check_ids(listed: Listed[object], known: Set[Id], other: str) -> None:
    for id, place in zip(listed.ids or (), listed.places, strict=True):
        if id not in known:
            raise DataError(f"{other} has nothing for {id!r}.", field="id", where=place)


def _listed(records: Records, value_of: Callable[[Record], T]) -> Listed[T]:
    values = []
    for record in records.lines:
        try:
            values.append(value_of(record))
        except DataError as error:
            raise error.at(record.place) from None
    return Listed(records.name, values, [record.place for record in records.lines], records.ids())


def output_of(record: Record) -> str:
    """The text of a line of outputs."""
    fields = record.fields
    if fields is None:
        return record.text
    if isinstance(fields.winner, list):
        raise DataError("holds token ids, while texts are compared; decode them first.", field="winner")
    if fields.winner is not UNSET:
        return fields.winner or ""
    if fields.error is not None:
        raise DataError(f"there is no winner, for the ballot was bad ({fields.error}); mend or drop it.")
    if fields.text is not UNSET:
        return fields.text
    if fields.candidates is not UNSET or fields.hypotheses is not UNSET:
        raise DataError("is a ballot and not an output; elect a winner first, with: rangevote vote FILE")
    raise DataError('expected an output: {"id": ..., "winner": "..."} or {"id": ..., "text": "..."}')


def references_of(record: Record) -> list[str]:
    """The references in a line."""
    if record.fields is None:
        return [record.text]
    found = record.fields.references
    if not found and not isinstance(found, str):
        raise DataError(f"there are none for the id {record.fields.id!r}.", field="references")
    return [found] if isinstance(found, str) else found


def source_of(record: Record) -> str:
    """The source in a line."""
    if record.fields is None:
        return record.text
    if record.fields.source is None:
        raise DataError(f"there is none for the id {record.fields.id!r}.", field="source")
    return record.fields.source


def read_beam(source: Source) -> Listed[Ballot]:
    """Ballots of any n-best format, as files of outputs are read."""
    with read(source) as entries:
        listed = list(entries)
    ballots = [entry.get() for entry in listed]
    if not ballots:
        raise DataError("is empty: there are no ballots in it.", where=str(source))
    ids = [ballot.id for ballot in ballots if ballot.id is not None]  # the reader lets none be there twice
    whole = ids if len(ids) == len(ballots) else None
    return Listed(str(source), ballots, [entry.where for entry in listed], whole)
