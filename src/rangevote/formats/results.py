"""Results as Parquet: the fields of the result lines as columns.

    id, winner, winner_tokens (where candidates have no text), index, score, margin, signature,
    near_tie, no_support, error; and as asked for: winners, scores, explanation (as JSON)

Results are written as lines first, which can be resumed, and made into a table when all are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from rangevote.errors import need

if TYPE_CHECKING:
    import pyarrow as pa

#: Results in a row group.
GROUP = 2**14


class Shape(Protocol):
    """What a result line holds beside the winner."""

    @property
    def scores(self) -> bool: ...
    @property
    def explain(self) -> bool: ...


class _Named(msgspec.Struct):
    id: str | int | None = None


_named = msgspec.json.Decoder(_Named).decode
decoded = msgspec.json.Decoder().decode


def id_of(line: bytes) -> str | int | None:
    """The id in a result line."""
    return _named(line).id


def kind_of_ids(lines: Iterable[bytes]) -> type | None:
    """int or str if all ids are, None without any; ids of both kinds become texts."""
    kinds = {_kind(id) for id in map(id_of, lines)} - {None}
    return str if len(kinds) > 1 else next(iter(kinds), None)


def _kind(id: str | int | None) -> type | None:
    """What a column must hold for this id; numbers that no column of integers can hold are texts."""
    if isinstance(id, int) and not -(2**63) <= id < 2**63:
        return str
    return None if id is None else type(id)


def table_schema(shape: Shape, ids: type | None) -> pa.Schema:
    """The columns of results of this shape."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    columns = [
        ("id", pa.int64() if ids is int else pa.string()),
        ("winner", pa.string()),
        ("winner_tokens", pa.list_(pa.int64())),
        ("index", pa.int64()),
        ("score", pa.float64()),
        ("margin", pa.float64()),
        ("signature", pa.string()),
        ("near_tie", pa.bool_()),
        ("no_support", pa.bool_()),
        ("error", pa.string()),
        ("winners", pa.list_(pa.struct([("index", pa.int64()), ("winner", pa.string())]))),
    ]
    if shape.scores:
        columns.append(("scores", pa.list_(pa.float64())))
    if shape.explain:
        columns.append(("explanation", pa.string()))
    return pa.schema(columns)


def write_table(lines: Iterable[bytes], file: Any, shape: Shape, ids: type | None) -> None:
    """Write result lines as a table to a path or an open file."""
    schema = table_schema(shape, ids)
    pa = need("pyarrow", "parquet", "writing Parquet files")
    groups = (pa.Table.from_pylist(rows, schema) for rows in _grouped(lines, ids))
    write_groups(groups, file, schema)


def write_groups(tables: Iterable[pa.Table], file: Any, schema: pa.Schema) -> None:
    """Write tables as row groups of one size, so that equal results give equal bytes however they come."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    pq = need("pyarrow.parquet", "parquet", "writing Parquet files")
    waiting = schema.empty_table()
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in tables:
            waiting = pa.concat_tables([waiting, table])
            while len(waiting) >= GROUP:
                writer.write_table(waiting.slice(0, GROUP).combine_chunks(), row_group_size=GROUP)
                waiting = waiting.slice(GROUP)
        if len(waiting):
            writer.write_table(waiting.combine_chunks(), row_group_size=GROUP)


def _grouped(lines: Iterable[bytes], ids: type | None) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        rows.append(row_of(decoded(line), ids))
        if len(rows) == GROUP:
            yield rows
            rows = []
    if rows:
        yield rows


def row_of(result: dict[str, Any], ids: type | None) -> dict[str, Any]:
    """A result line's object as a row: token ids in a column of their own, flags true or false."""
    if ids is str and result.get("id") is not None:
        result["id"] = str(result["id"])
    if isinstance(result.get("winner"), list):
        result["winner_tokens"], result["winner"] = result["winner"], None
    elected = "error" not in result and result.get("index") is not None
    for flag in ("near_tie", "no_support"):
        result[flag] = bool(result.get(flag)) if elected else None
    for other in result.get("winners") or ():
        if isinstance(other["winner"], list):
            other["winner"] = " ".join(map(str, other["winner"]))
    if "explanation" in result:
        result["explanation"] = msgspec.json.encode(result["explanation"]).decode()
    return result
