"""Parquet: damaged files, and whole ones with rows of any shape."""

from __future__ import annotations

import io
from typing import Any

from fuzz.formats import checked, entries, plain
from rangevote.errors import DataError
from rangevote.formats.jsonl import parse
from rangevote.formats.parquet import ParquetWriter


def files(data: bytes) -> None:
    """A file as it comes."""
    checked(data, "parquet")


def rows(data: bytes) -> None:
    """A line of JSON is a row: what Arrow can hold is read as it would be in the ballot file, or refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    listed = [parse(line) for line in data.split(b"\n") if line.strip()]
    try:
        table = pa.Table.from_pylist([row for row in listed if isinstance(row, dict)])
        file = io.BytesIO()
        pq.write_table(table, file)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError, KeyError):
        return  # no table
    checked(file.getvalue(), "parquet")


def written(data: bytes) -> None:
    """Ballots of the ballot file come back from Parquet as they were."""
    listed = checked(data, "jsonl")
    write = ParquetWriter()
    try:
        content = b"".join(map(write, listed)) + write.finish()
    except DataError:  # ids of two kinds, or numbers that no column holds
        return
    again = [entry.get() for entry in entries(io.BytesIO(content), "parquet")]
    assert list(map(_comparable, again)) == list(map(_comparable, listed)), "another ballot in Parquet"


def _comparable(ballot: Any) -> str:
    return repr(plain(ballot))
