"""Ballots as Parquet, one a row: the columns are the fields of the ballot file.

    id: string or integer      source: string      references: list<string>
    candidates: list<struct<text: string, logprob: double, tokens: list<int64>, state: list<double>,
                            finished: bool, sampled: bool, weight: double, ranked_by: double,
                            member: string, tool_calls: list<struct<name: string, arguments: string>>,
                            token_logprobs: list<double>>>
    voters: the same; null: the candidates vote

Fields that are absent or null are not known; a list of plain strings will do, and `hypotheses` is read as
`candidates`. Columns of the usual types become `Hypothesis` objects many rows at a time: a row of ten
candidates costs a few microseconds instead of a hundred. Others are converted row by row, as a line of the
ballot file is. Columns without any of these names are records of another layout (`formats/layouts.py`).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, count, islice, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rangevote.errors import DataError, need
from rangevote.formats.ballot_writer import refuse_others, write_ballot
from rangevote.formats.jsonl import (
    BALLOT_FIELDS,
    HYPOTHESIS_FIELDS,
    ROLES,
    ballot_of,
    report_unknown,
)
from rangevote.formats.layouts import read_records, recognise, steps, unknown_layout, with_carry
from rangevote.formats.logprobs import accept, ballot_scale
from rangevote.formats.reader import Entry, ReadOptions
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot, Hypothesis, ToolCall

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that are turned into ballots at a time, and bytes of a column that are read at a time.
ROWS, BUFFER = 256, 2**20
#: Hypotheses that the kernels take at a time, about: more need memory, and fewer are slow to read.
VALUES = 2**15
#: Hypotheses in a row group that is written, about: small ones need little memory and can be shared out among
#: workers, but each column of each takes its time.
GROUP = 2**16
#: The types that fields have, if the file is a usual one.
_USUAL = {
    "id": ("text", "integer"),
    "source": ("text",),
    "references": ("list of text",),
    "text": ("text",),
    "tokens": ("list of integer",),
    "logprob": ("number", "integer"),
    "state": ("list of number", "list of integer"),
    "finished": ("boolean",),
    "sampled": ("boolean",),
    "weight": ("number", "integer"),
    "ranked_by": ("number", "integer"),
    "member": ("text",),
    "tool_calls": (),
    "token_logprobs": ("list of number",),
}
_DEFAULTS: dict[str, Any] = {"finished": True, "sampled": False}


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """The ballots in file order: one a row, unless the columns have another layout."""
    if not has_ballots(stream, options):
        yield from _other_layout(stream, options)
        return
    first = 1
    for batch in record_batches(stream, options):
        yield from entries_of(batch, stream.name, range(first, first + len(batch)), options)
        first += len(batch)


def has_ballots(stream: Stream, options: ReadOptions) -> bool:
    """Whether the columns are the fields of a ballot, which the options do not tell to be elsewhere."""
    with _reported(stream):
        names = _open(stream).schema_arrow.names
    return not options.layout and bool({"candidates", "hypotheses"} & set(names))


def _other_layout(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    numbers = count(1)
    rows = (
        (f"{stream.name}:{next(numbers)}", _row(batch, i))
        for batch in record_batches(stream, options, ballots=False)
        for i in range(len(batch))
    )
    head = list(islice(rows, ROWS))
    layout = recognise([row for _, row in head], options)
    if layout is None:
        raise unknown_layout(head[0][1])
    yield from read_records(chain(head, rows), layout)


def _open(stream: Stream) -> Any:
    pq = need("pyarrow.parquet", "parquet", "reading Parquet files")
    return pq.ParquetFile(stream.random_access(), buffer_size=BUFFER, pre_buffer=False)


@contextmanager
def _reported(stream: Stream) -> Iterator[None]:
    """Faults of pyarrow as errors of the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # pyarrow's own are of these kinds
        if isinstance(error, DataError):
            raise
        problem = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"is no Parquet file that can be read: {problem}", where=stream.name) from error


def record_batches(
    stream: Stream, options: ReadOptions, *, ballots: bool = True, many: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a few or as `many` at a time as suit the kernels: a row group need not fit into
    memory. Of `ballots` only the columns that such have."""
    with _reported(stream):
        file, done = _open(stream), 0
        columns = _ballot_columns(file.schema_arrow.names, options) if ballots else None
        total = file.metadata.num_rows
        rows = _many_rows(file, columns) if many else ROWS
        for batch in file.iter_batches(rows, None, columns, use_threads=False):
            yield batch
            done += len(batch)
            stream.position = (stream.size or 0) * done // max(total, 1)  # a damaged file may say 0


def _many_rows(file: Any, columns: list[str] | None) -> int:
    """Rows with about `VALUES` hypotheses, if the first ones are like the others. (They are read for that: of
    damaged files the metadata of columns end the process.)"""
    first = next(file.iter_batches(16, None, columns, use_threads=False), None)
    if first is None:
        return ROWS
    lists = [column for column in first.columns if _kind(column.type).startswith("list")]
    most = max((len(column.flatten()) for column in lists), default=0)
    return max(1, VALUES * len(first) // max(most, len(first), 1))


def _ballot_columns(names: Sequence[str], options: ReadOptions) -> list[str]:
    """Those columns that a ballot has or carries; the others are reported once."""
    paths = options.carried.values()
    wanted = {*BALLOT_FIELDS, *paths, *(str(steps(path)[0]) for path in paths)}
    report_unknown((name for name in names if name not in wanted), BALLOT_FIELDS, "", options)
    return [name for name in names if name in wanted]


def entries_of(
    batch: pa.RecordBatch, name: str, numbers: Sequence[int], options: ReadOptions
) -> Iterator[Entry]:
    """The entries of rows that stand at `numbers` in the file `name`."""
    role = "candidates" if "candidates" in batch.schema.names else "hypotheses"
    scale = ballot_scale(options)
    try:
        ballots = _by_columns(batch, options)
    except UnicodeDecodeError:  # in some row, which is named below
        ballots = None
    for i, number in enumerate(numbers):
        where = f"{name}:{number}"
        try:
            ballot = None if ballots is None else ballots[i]
            if ballot is None:
                ballot = ballot_of(_row(batch, i), options, scale)
            else:
                ballot = accept(ballot, options, role, scale)
            if options.carry:
                ballot = with_carry(ballot, _row(batch, i), options)
            yield Entry(where, ballot)
        except DataError as error:
            yield Entry(where, error=error.at(where))


class PlainColumns(NamedTuple):
    """Ballots that have texts, perhaps log-probabilities and ids, and nothing else that matters: where the
    candidates of each ballot end among all, and where the bytes of each text end."""

    ids: list[str | int | None]
    list_ends: Any
    text_ends: Any
    texts: Any
    logprobs: Any | None


def plain_columns(batch: pa.RecordBatch) -> PlainColumns | None:
    """The columns of a batch as the kernels take them; None if anything else is in it, or of another type."""
    pa = need("pyarrow", "parquet", "reading Parquet files")
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    listed = columns.pop("candidates", None)
    id = columns.pop("id", None)
    if "voters" in columns and columns.pop("voters").null_count < len(batch):
        return None
    if listed is None or not columns.keys() <= {"source", "references"} or not pa.types.is_list(listed.type):
        return None
    fields = {"text": listed.values}
    if pa.types.is_struct(listed.type.value_type):
        inner = listed.type.value_type
        names = [inner.field(i).name for i in range(inner.num_fields)]
        fields = dict(zip(names, listed.values.flatten(), strict=True))
        if len(fields) < len(names):
            return None
    text, logprob = fields.pop("text", None), fields.pop("logprob", None)
    if logprob is not None and logprob.null_count == len(logprob):
        logprob = None
    if (
        text is None
        or not pa.types.is_string(text.type)
        or not (logprob is None or (pa.types.is_float64(logprob.type) and not logprob.null_count))
        or listed.null_count
        or listed.values.null_count
        or text.null_count
        or not all(_says_nothing(name, field) for name, field in fields.items())
        or not all(_is_usual(name, column) for name, column in columns.items())
    ):
        return None
    try:
        batch.validate()
        for column in columns.values():  # the kernels look into the candidates themselves
            column.validate(full=True)
        ids = [None] * len(batch) if id is None else id.to_pylist()
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if not {type(one) for one in ids} <= {str, int, type(None)}:
        return None
    _, ends, data = text.buffers()
    return PlainColumns(
        ids,
        listed.offsets.to_numpy(),
        np.frombuffer(ends, np.int32, len(text) + 1, 4 * text.offset) if len(text) else np.zeros(1, np.int32),
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8),
        None if logprob is None else logprob.to_numpy(),
    )


def _says_nothing(name: str, field: pa.Array) -> bool:
    """Whether a field of the hypotheses has its default throughout."""
    if field.null_count == len(field):
        return name in Hypothesis.__struct_fields__
    default = _DEFAULTS.get(name)
    return (
        default is not None and _is_usual(name, field) and set(field.unique().to_pylist()) <= {default, None}
    )


def _row(batch: pa.RecordBatch, index: int) -> dict[str, Any]:
    """One row with the fields that are not null, which is how Parquet says that there is none."""
    try:
        row = _known(batch.slice(index, 1).to_pylist()[0])
    except UnicodeDecodeError as error:
        raise DataError(f"has a text that is not UTF-8 ({error.reason})") from None
    for role in ROLES:
        if isinstance(row.get(role), list):
            row[role] = [_known(item) if isinstance(item, dict) else item for item in row[role]]
    return row


def _known(value: dict[str, Any]) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if inner is not None}


def _by_columns(batch: pa.RecordBatch, options: ReadOptions) -> list[Ballot | None] | None:
    """The ballots of a batch, None for a row without candidates; None if a column has an unusual type."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if "candidates" in columns and "hypotheses" in columns:
        return None
    lists: dict[str, list[Any]] = {}
    for role in ROLES:
        if role in columns:
            made = _hypotheses(columns[role], role, options)
            if made is None:
                return None
            lists[role] = made
    plain = {name: columns[name] for name in ("id", "source", "references") if name in columns}
    if not all(_is_usual(name, column) for name, column in plain.items()):
        return None
    fields = [
        plain[name].to_pylist() if name in plain else [None] * len(batch)
        for name in ("id", "source", "references")
    ]
    candidates = lists["candidates" if "candidates" in lists else "hypotheses"]
    voters = lists.get("voters", [None] * len(batch))
    return [
        None if listed is None else Ballot(listed, voting, id, source, references or ())
        for listed, voting, id, source, references in zip(candidates, voters, *fields, strict=True)
    ]


def _hypotheses(column: pa.Array, role: str, options: ReadOptions) -> list[list[Hypothesis] | None] | None:
    """The hypotheses of every row, None where the list is null; None if the column has an unusual type."""
    kind = _kind(column.type)
    if kind not in ("list of text", "list of struct"):
        return None
    values = column.flatten()
    if values.null_count:
        return None
    if kind == "list of text":
        made: list[Hypothesis] | None = list(map(Hypothesis, values.to_pylist()))
    else:
        made = _from_structs(values, role, options)
    if made is None:
        return None
    compute = need("pyarrow.compute", "parquet", "reading Parquet files")
    lengths = compute.list_value_length(column).to_pylist()
    ends = pairwise(accumulate((length or 0 for length in lengths), initial=0))
    return [
        None if length is None else made[start:end]
        for length, (start, end) in zip(lengths, ends, strict=True)
    ]


def _from_structs(values: pa.Array, role: str, options: ReadOptions) -> list[Hypothesis] | None:
    """The hypotheses of an array of structs; None if a field has an unusual type."""
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    report_unknown(names, HYPOTHESIS_FIELDS, f"{role}[].", options)
    columns = dict(zip(names, values.flatten(), strict=True))
    if len(columns) < len(names) or ("prob" in columns and columns["prob"].null_count < len(values)):
        return None
    fields = Hypothesis.__struct_fields__
    if not all(_is_usual(name, columns[name]) for name in fields if name in columns):
        return None
    listed = (_listed(name, columns.get(name)) for name in fields)
    return list(islice(map(Hypothesis, *listed), len(values)))  # without any field the defaults never end


def _is_usual(name: str, column: pa.Array) -> bool:
    """Whether a field has a type that it should have, and lists no null inside."""
    kind = _kind(column.type)
    if kind == "null" or column.null_count == len(column):
        return True
    return kind in _USUAL[name] and not (kind.startswith("list") and column.flatten().null_count)


def _kind(type: pa.DataType) -> str:
    types = need("pyarrow", "parquet", "reading Parquet files").types
    if types.is_list(type) or types.is_large_list(type):
        return f"list of {_kind(type.value_type)}"
    tests = {
        "text": types.is_string(type) or types.is_large_string(type),
        "integer": types.is_integer(type),
        "number": types.is_floating(type),
        "boolean": types.is_boolean(type),
        "struct": types.is_struct(type),
        "null": types.is_null(type),
    }
    return next((name for name, passed in tests.items() if passed), "other")


def _listed(name: str, field: pa.Array | None) -> Iterable[Any]:
    """The values of a field, one for each hypothesis; defaults where it is not known."""
    default = _DEFAULTS.get(name)
    if field is None or field.null_count == len(field):
        return repeat(default)
    if default is not None and field.null_count:
        field = field.fill_null(default)
    if name in ("logprob", "weight", "ranked_by"):
        field = field.cast("float64")
    values: list[Any] = field.to_pylist()
    return values


class ParquetWriter:
    """Takes ballots and gives the bytes of the file as they arise, the last of them at `finish`.

    The first ballot that has an id decides whether ids are texts or numbers, since a column has one kind.
    """

    def __init__(self) -> None:
        self._pq = need("pyarrow.parquet", "parquet", "writing Parquet files")
        self._buffer = Buffer()
        self._waiting: list[Ballot] = []
        self._hypotheses = 0  # of those that wait
        self._writer: Any = None
        self._id_type: type | None = None

    def __call__(self, ballot: Ballot) -> bytes:
        """Take a ballot; what of the file is ready, mostly nothing."""
        write_ballot(ballot)  # what the ballot file refuses is refused here too
        refuse_others(ballot, "parquet", voters=True)
        if ballot.id is not None:
            self._id_type = self._id_type or type(ballot.id)
            if type(ballot.id) is not self._id_type:
                kind = "a number" if self._id_type is int else "a text"
                raise DataError(
                    f"{ballot.id!r} is not {kind} as the ids before it; a column of Parquet has one kind",
                    field="id",
                )
        self._waiting.append(ballot)
        self._hypotheses += len(ballot.candidates) + len(ballot.voters or ())
        if self._hypotheses >= GROUP or len(self._waiting) == GROUP:
            self._write_group()
        return self._buffer.take()

    def finish(self) -> bytes:
        """The rest of the file."""
        if self._waiting or self._writer is None:
            self._write_group()
        self._writer.close()
        return self._buffer.take()

    def _write_group(self) -> None:
        pa = need("pyarrow", "parquet", "writing Parquet files")
        if self._writer is None:
            schema = ballot_schema(self._id_type or str)
            # few texts come twice in a group, so dictionaries make files larger and slower to read; zstd
            # would save a quarter, and to undo it costs a twentieth of the time that elections take
            self._writer = self._pq.ParquetWriter(
                self._buffer, schema, compression="lz4", use_dictionary=False
            )
        try:
            table = pa.Table.from_pylist(list(map(_plain, self._waiting)), self._writer.schema)
        except (pa.ArrowInvalid, OverflowError) as error:
            raise DataError(f"cannot be written as Parquet: {error}") from None
        self._writer.write_table(table, row_group_size=GROUP)
        self._waiting, self._hypotheses = [], 0


def write_parquet(path: str | os.PathLike[str], ballots: Iterable[Ballot]) -> None:
    """Write ballots to a file."""
    write = ParquetWriter()
    with Path(path).open("wb") as file:
        for ballot in ballots:
            file.write(write(ballot))
        file.write(write.finish())


class Buffer(io.RawIOBase):
    """A file that keeps what is written only until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        """What was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def ballot_schema(id: type) -> pa.Schema:
    """The columns of a file of ballots."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    kinds = {
        "text": pa.string(),
        "member": pa.string(),
        "tokens": pa.list_(pa.int64()),
        "state": pa.list_(pa.float64()),
        "token_logprobs": pa.list_(pa.float64()),
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
    return {
        "id": ballot.id,
        "source": ballot.source,
        "references": list(ballot.references),
        "candidates": _rows(ballot.candidates),
        "voters": None if ballot.voters is None else _rows(ballot.voters),
    }


def _rows(hypotheses: Sequence[Hypothesis]) -> list[dict[str, Any]]:
    names = Hypothesis.__struct_fields__
    return [{name: _as_list(getattr(h, name)) for name in names} for h in hypotheses]


def _as_list(value: Any) -> Any:
    """Token ids and states as lists, whatever sequence they are."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return [_item(item) for item in value]


def _item(item: Any) -> Any:
    if isinstance(item, ToolCall):
        given = item.arguments
        return {"name": item.name, "arguments": given if isinstance(given, str) else json.dumps(given)}
    return item.item() if hasattr(item, "item") else item
