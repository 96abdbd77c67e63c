"""Ballots as Parquet, one per row: the columns are the fields of the ballot file.

    id: string or integer      source: string      references: list<string>
    candidates: list<struct<text: string, logprob: double, tokens: list<int64>, state: list<double>,
                            finished: bool, sampled: bool, weight: double, ranked_by: double,
                            member: string, tool_calls: list<struct<name: string, arguments: string>>,
                            token_logprobs: list<double>, scores: map<string, double>>>
    voters: the same; null: the candidates vote

Fields that are absent or null are not known; lists of plain strings are read too, and `hypotheses` is read as
`candidates`. A row means what a line of the ballot file with the same fields means (`formats/jsonl.py`).
Columns without any of these names are records of another layout (`formats/layouts.py`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from rangevote.errors import DataError, need
from rangevote.formats.jsonl import (
    BALLOT_FIELDS,
    ballot_of,
    line_for,
    listed,
    report_unknown,
)
from rangevote.formats.layouts import Located, steps, with_carry
from rangevote.formats.logprobs import ballot_scale
from rangevote.formats.reader import Chunk, Entry, ReadOptions
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.text import Stream

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that are turned into ballots at a time, and bytes of a column that are read at a time.
ROWS, BUFFER = 256, 2**20
#: Bytes of a file whose columns are read whole.
SMALL = 2**25
#: Hypotheses in a row group that is written, about: small ones need little memory and can be shared out among
#: workers, but each column of each takes its time.
GROUP = 2**16


def ballot_batches(stream: Stream, options: ReadOptions) -> Iterator[Chunk] | None:
    """The rows of a file of ballots, in chunks; None where the columns have another layout."""
    with _reported(stream):
        names = _open(stream).schema_arrow.names
    if options.layout or not {"candidates", "hypotheses"} & set(names):
        return None
    return _chunks(stream, options)


def _chunks(stream: Stream, options: ReadOptions) -> Iterator[Chunk]:
    first = 1
    for batch in record_batches(stream, options):
        yield Chunk(stream.name, first, batch)
        first += len(batch)


def row_records(stream: Stream, options: ReadOptions) -> Iterator[Located]:
    """The rows of a file in another layout."""
    numbers = count(1)
    for batch in record_batches(stream, options, ballots=False):
        for row in _rows(batch):
            where = f"{stream.name}:{next(numbers)}"
            yield Located(where, {}, row) if isinstance(row, DataError) else Located(where, row)


def _open(stream: Stream) -> Any:
    pq = need("pyarrow.parquet", "parquet", "reading Parquet files")
    # reading with a buffer makes room for what a page claims to hold, up to 2 GB in a damaged file
    buffer = 0 if (stream.size or 0) <= SMALL else BUFFER
    return pq.ParquetFile(stream.random_access(), buffer_size=buffer, pre_buffer=False)


@contextmanager
def _reported(stream: Stream) -> Iterator[None]:
    """Turn faults of pyarrow into errors that name the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's own are of these kinds
        if isinstance(error, DataError):
            raise
        problem = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"is not a Parquet file that can be read: {problem}", where=stream.name) from error


def record_batches(stream: Stream, options: ReadOptions, *, ballots: bool = True) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a few at a time, since a row group may not fit into memory. For `ballots`, only
    the columns that ballots have are read."""
    with _reported(stream):
        file, done = _open(stream), 0
        columns = _ballot_columns(file.schema_arrow.names, options) if ballots else None
        total = file.metadata.num_rows
        for batch in file.iter_batches(ROWS, None, columns, use_threads=False):
            yield batch
            done += len(batch)
            stream.position = (stream.size or 0) * done // max(total, 1)  # a damaged file may say 0


def _ballot_columns(names: Sequence[str], options: ReadOptions) -> list[str]:
    """The columns that a ballot has or carries; others are reported once."""
    paths = options.carried.values()
    readable = {*BALLOT_FIELDS, *paths, *(str(steps(path)[0]) for path in paths)}
    report_unknown((name for name in names if name not in readable), BALLOT_FIELDS, "", options)
    return [name for name in names if name in readable]


def entries_of(batch: pa.RecordBatch, name: str, first: int, options: ReadOptions) -> Iterator[Entry]:
    """The entries of rows of the file `name`; `first` is the number of the first row."""
    scale = ballot_scale(replace(options, format="parquet"))
    for number, row in enumerate(_rows(batch), first):
        where = f"{name}:{number}"
        try:
            if isinstance(row, DataError):
                raise row
            ballot = ballot_of(row, options, scale)
            yield Entry(where, with_carry(ballot, row, options) if options.carry else ballot)
        except DataError as error:
            yield Entry(where, error=error.at(where))


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any] | DataError]:
    """The rows as JSON would have them."""
    types = need("pyarrow.types", "parquet", "reading Parquet files")
    number = batch.schema.get_field_index("id")
    if number >= 0 and types.is_temporal(batch.schema.types[number]):
        batch = batch.set_column(number, "id", batch.column(number).cast("string"))
    try:
        return _objects(batch.to_struct_array())
    except UnicodeDecodeError as error:
        if len(batch) > 1:  # in some row
            return [row for i in range(len(batch)) for row in _rows(batch.slice(i, 1))]
        return [DataError(f"has a text that is not UTF-8 ({error.reason})")]


def _objects(structs: pa.StructArray) -> list[Any]:
    """Dictionaries without the fields that are null: in Parquet, those are absent."""
    fields = zip(structs.type, structs.flatten(), strict=True)
    columns = {field.name: column for field, column in fields if column.null_count < len(column)}
    pairs = [zip(repeat(name), _values(column)) for name, column in columns.items()]
    rows = zip(*pairs, strict=True) if pairs else repeat((), len(structs))
    if any(column.null_count for column in columns.values()):
        return [{name: value for name, value in row if value is not None} for row in rows]
    return list(map(dict, rows))


def _values(column: pa.Array) -> list[Any]:
    """What is in a column, several times as fast as by `to_pylist` alone."""
    pa = need("pyarrow", "parquet", "reading Parquet files")
    if isinstance(column, pa.StructArray):
        known = column.is_valid().to_pylist()
        return [item if given else None for item, given in zip(_objects(column), known, strict=True)]
    if isinstance(column, pa.MapArray):
        return [None if pairs is None else dict(pairs) for pairs in column.to_pylist()]
    if isinstance(column, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        items = iter(_values(column.flatten()))
        sizes = need("pyarrow.compute", "parquet", "reading Parquet files").list_value_length(column)
        return [None if size is None else list(islice(items, size)) for size in sizes.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def write_rows(ballots: Iterable[Ballot], format: str = "parquet") -> Iterator[bytes]:
    """The bytes of a file with a row for each ballot: those of each group of rows, then those of the footer.

    The first group decides whether ids are texts or numbers, since a column has one type.
    """
    pa = need("pyarrow", "parquet", "writing Parquet files")
    pq = need("pyarrow.parquet", "parquet", "writing Parquet files")
    groups, buffer = _groups(_checked(ballots, format)), Buffer()
    first = next(groups, [])
    schema = ballot_schema(next((type(ballot.id) for ballot in first if ballot.id is not None), str))
    # few texts come twice in a group, so dictionaries make files larger and slower to read; zstd would save a
    # quarter, and to undo it costs a twentieth of the time that elections take
    with pq.ParquetWriter(buffer, schema, compression="lz4", use_dictionary=False) as writer:
        for group in chain([first], groups):
            try:
                table = pa.Table.from_pylist(list(map(_plain, group)), schema)
            except (pa.ArrowInvalid, OverflowError) as error:
                raise DataError(f"cannot be written as Parquet: {error}") from None
            writer.write_table(table, row_group_size=GROUP)
            yield buffer.take()
    yield buffer.take()


def _checked(ballots: Iterable[Ballot], format: str) -> Iterator[Ballot]:
    """The ballots, whose ids must be of one type."""
    kind: type | None = None
    for ballot in ballots:
        line_for(ballot, format, voters=True)
        if ballot.id is not None:
            kind = kind or type(ballot.id)
            if type(ballot.id) is not kind:
                expected = "a number" if kind is int else "a text"
                problem = f"{ballot.id!r} is not {expected}, unlike earlier ids"
                raise DataError(f"{problem}; a column of Parquet has one type", field="id")
        yield ballot


def _groups(ballots: Iterable[Ballot]) -> Iterator[list[Ballot]]:
    """Lists of ballots with about `GROUP` hypotheses."""
    group, size = list[Ballot](), 0
    for ballot in ballots:
        group.append(ballot)
        size += len(ballot.candidates) + len(ballot.voters or ())
        if size >= GROUP or len(group) == GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


class Buffer(io.BytesIO):
    """A file that keeps written bytes until they are taken."""

    _taken = 0

    def tell(self) -> int:
        return self._taken + super().tell()

    def take(self) -> bytes:
        """The bytes written since the last call."""
        content = self.getvalue()
        self._taken += len(content)
        self.seek(0)
        self.truncate()
        return content


def ballot_schema(id: type) -> pa.Schema:
    """The columns of a file of ballots."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    kinds = {
        "text": pa.string(),
        "member": pa.string(),
        "tokens": pa.list_(pa.int64()),
        "state": pa.list_(pa.float64()),
        "token_logprobs": pa.list_(pa.float64()),
        "scores": pa.map_(pa.string(), pa.float64()),
        "tool_calls": pa.list_(pa.struct([("name", pa.string()), ("arguments", pa.string())])),
        "finished": pa.bool_(),
        "sampled": pa.bool_(),
    }
    names = Hypothesis.__struct_fields__
    hypotheses = pa.list_(pa.struct([(name, kinds.get(name, pa.float64())) for name in names]))
    return pa.schema(
        [
            ("id", pa.int64() if id is int else pa.string()),
            ("source", pa.string()),
            ("references", pa.list_(pa.string())),
            ("candidates", hypotheses),
            ("voters", hypotheses),
        ]
    )


def _plain(ballot: Ballot) -> dict[str, Any]:
    """The ballot as a row; values that are not known are null."""
    plain: dict[str, Any] = {"references": [], **msgspec.to_builtins(ballot, enc_hook=listed)}
    for row in [*plain["candidates"], *plain.get("voters", ())]:
        if "scores" in row:
            row["scores"] = list(row["scores"].items())
        for call in row.get("tool_calls", ()):
            arguments = call.get("arguments", "{}")
            call["arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return plain
