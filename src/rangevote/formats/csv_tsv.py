"""CSV and TSV, with column names in the first line: one sample per row, or a list as JSON in a cell.

    id,source,text,logprob
    7,What is 6 x 7?,"42",-0.3

Cells are quoted as spreadsheets and pandas do it. Columns named as fields of the ballot file have values of
the same types: numbers, true and false, lists as JSON; an empty cell means that the value is not known. All
other cells are texts. Ballots are written with one sample per row.
"""

from __future__ import annotations

import csv
import fnmatch
import io
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import Any

import msgspec

from rangevote.errors import DataError
from rangevote.formats.jsonl import decode_text, line_for, parse
from rangevote.formats.layouts import IDS, LISTS, SOURCES, TEXTS, Located
from rangevote.formats.logprobs import number
from rangevote.formats.reader import ReadOptions
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.text import Stream

NUMBERS = ("logprob", "prob", "weight", "ranked_by")
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
LISTED = ("tokens", "state", "references", "tool_calls", "token_logprobs", "scores")
NAMES = {"csv": "CSV", "tsv": "TSV"}


def table_records(stream: Stream, options: ReadOptions) -> Iterator[Located]:
    """The rows of a table as records, without empty cells that mean an unknown value;
    `options.format` says which kind of table it is."""
    format = options.format or "csv"
    rows = _rows(stream, options.max_line_bytes, format)
    where, names = next(rows, ("", []))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{NAMES[format]} with two columns {twice!r}", where=where)
    for where, cells in rows:
        yield _record(where, cells, names)


def looks_delimited(first: bytes, name: str, columns: Set[str] = frozenset()) -> str | None:
    """csv or tsv, if the first line has usual column names or all `columns`, or the file's name says so;
    otherwise None."""
    try:
        text = first.decode()
    except UnicodeDecodeError:
        return None
    plain = name.lower().removesuffix(".gz").removesuffix(".zst")
    for format in NAMES:
        try:
            cells = set(next(csv.reader([text], delimiter=_delimiter(text, format)), []))
        except csv.Error:  # a line end in the middle, or a cell without end
            cells = set()
        recognised = cells & {*TEXTS, *LISTS, "winner"} and cells & {*IDS, *SOURCES}
        named = bool(columns) and all(fnmatch.filter(cells, name) for name in columns)
        if plain.endswith(f".{format}") or (len(cells) > 1 and (recognised or named)):
            return format
    return None


def _delimiter(header: str, format: str) -> str:
    """Spreadsheets of some countries use semicolons instead of commas."""
    return "\t" if format == "tsv" else ";" if ";" in header and "," not in header else ","


def _rows(stream: Stream, limit: int, format: str) -> Iterator[tuple[str, list[str]]]:
    """The cells of each non-blank row, the header first, with the place where the row begins."""
    lines = _lines(stream, limit)
    first = next(lines, None)
    if first is None:
        return
    csv.field_size_limit(limit)  # of Python's, for all files
    parsed = csv.reader(chain([first], lines), delimiter=_delimiter(first, format), strict=True)
    begin = 1
    while True:
        try:
            cells = next(parsed, None)
        except csv.Error as error:
            problem = f"cannot be read as {NAMES[format]}: {error} (is a quote missing?)"
            raise DataError(problem, where=f"{stream.name}:{begin}") from None
        if cells is None:
            return
        if cells:
            yield f"{stream.name}:{begin}", cells
        begin = parsed.line_num + 1


def _lines(stream: Stream, limit: int) -> Iterator[str]:
    """Lines with their ends, which a quoted cell keeps."""
    number = 1
    for block in stream.blocks(limit):
        if isinstance(block, DataError):
            raise block.at(f"{stream.name}:{number}")
        for line in io.BytesIO(block):
            try:
                yield decode_text(line)
            except DataError as error:
                raise error.at(f"{stream.name}:{number}") from None
            number += 1


def _record(where: str, cells: Sequence[str], names: Sequence[str]) -> Located:
    record, error = {}, None
    if len(cells) != len(names):
        error = DataError(f"has {len(cells)} cells where the first line names {len(names)} columns")
    for name, cell in zip(names, cells, strict=False):
        try:
            value = _value(name, cell)
        except DataError as fault:
            error = error or fault
        else:
            if value is not None:
                record[name] = value
    return Located(where, record, error)


def _value(name: str, cell: str) -> Any:
    """The value of a cell; None if it is not known."""
    if name in NUMBERS:
        return number(cell.strip().encode(), name) if cell.strip() else None
    if name in ("finished", "sampled"):
        if cell.strip().lower() not in {*TRUTHS, ""}:
            raise DataError(f"expected true or false, got {cell!r}", field=name)
        return TRUTHS.get(cell.strip().lower())
    if name in LISTED:
        if name == "references" and not cell.startswith("["):
            return [cell] if cell else None
        return parse(cell.encode()) if cell else None
    return None if name in ("id", "source", "member") and not cell else cell


# Writing

#: Columns of a file of ballots.
COLUMNS = ("id", "source", "references", *Hypothesis.__struct_fields__)


def delimited_line(cells: Iterable[Any], format: str) -> bytes:
    """One row; true, false and lists are written as JSON, unknown values as empty cells."""
    line = io.StringIO()
    plain = [
        cell if isinstance(cell, str) or cell is None else msgspec.json.encode(cell).decode()
        for cell in cells
    ]
    # which quotes cells with either line end
    csv.writer(line, delimiter=_delimiter("", format)).writerow(plain)
    return line.getvalue().removesuffix("\r\n").encode() + b"\n"


def write_samples(ballots: Iterable[Ballot], format: str) -> Iterator[bytes]:
    """A header, and a row for each candidate; ballots without an id are numbered."""
    yield delimited_line(COLUMNS, format)
    for index, ballot in enumerate(ballots):
        line = line_for(ballot, format)
        if ballot.id == "":
            raise DataError("is empty, so its rows could not be told from others", field="id")
        if not ballot.candidates:
            raise DataError(f"there are no candidates, so {NAMES[format]} would have no row for it")
        fields = {"id": index, **msgspec.json.decode(line)}
        for i, candidate in enumerate(fields["candidates"]):
            if "text" not in candidate:
                problem = f"has no text, which {NAMES[format]} needs"
                raise DataError(problem, field=f"candidates[{i}].text")
            if candidate.pop("prob", None) is not None:
                candidate["logprob"] = "-inf"  # JSON has no such number
            row = {**fields, **candidate}
            yield delimited_line((row.get(name) for name in COLUMNS), format)
