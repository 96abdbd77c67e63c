"""Ballots to Parquet, a row group at a time: what `read_parquet` reads back as the same ballots."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rangevote.errors import DataError, need
from rangevote.formats.parquet_columns import ORDER
from rangevote.formats.write import write_ballot
from rangevote.hypothesis import Ballot, Hypothesis

if TYPE_CHECKING:
    import pyarrow as pa

#: Ballots in a row group: small ones can be shared out among workers, and little memory is needed.
GROUP = 1024


class ParquetBallots:
    """Takes ballots and gives the bytes of the file as they arise, the last of them at `finish`.

    The first ballot that has an id decides whether ids are texts or numbers, since a column holds one kind.
    """

    def __init__(self) -> None:
        self._pq = need("pyarrow.parquet", "parquet", "writing Parquet files")
        self._bytes = Passing()
        self._waiting: list[Ballot] = []
        self._writer: Any = None
        self._kind: type | None = None

    def __call__(self, ballot: Ballot) -> bytes:
        """Take a ballot; what of the file is ready, mostly nothing."""
        write_ballot(ballot)  # what the ballot file refuses is refused here too
        if ballot.id is not None:
            self._kind = self._kind or type(ballot.id)
            if type(ballot.id) is not self._kind:
                raise DataError(
                    f"{ballot.id!r} is not {'a number' if self._kind is int else 'a text'} as the ids before "
                    f"it; a column of Parquet holds one kind",
                    field="id",
                )
        self._waiting.append(ballot)
        if len(self._waiting) == GROUP:
            self._write_group()
        return self._bytes.take()

    def finish(self) -> bytes:
        """The rest of the file."""
        if self._waiting or self._writer is None:
            self._write_group()
        self._writer.close()
        return self._bytes.take()

    def _write_group(self) -> None:
        if self._writer is None:
            schema = ballot_schema(self._kind or str)
            self._writer = self._pq.ParquetWriter(self._bytes, schema, compression="zstd")
        rows = [_plain(ballot) for ballot in self._waiting]
        pa = need("pyarrow", "parquet", "writing Parquet files")
        try:
            table = pa.Table.from_pylist(rows, self._writer.schema)
        except (pa.ArrowInvalid, OverflowError) as error:
            raise DataError(f"cannot be written as Parquet: {error}") from None
        self._writer.write_table(table, row_group_size=GROUP)
        self._waiting = []


class Passing(io.RawIOBase):
    """A file that keeps what is written only until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Keep some bytes."""
        self._parts.append(bytes(data))
        self._size += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        """How many bytes were written."""
        return self._size

    def take(self) -> bytes:
        """What was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def write_parquet(path: str | os.PathLike[str], ballots: Iterable[Ballot]) -> None:
    """Write ballots to a file, which gets its name when it is complete."""
    whole, draft = Path(path), Path(f"{os.fspath(path)}.tmp")
    write = ParquetBallots()
    try:
        with draft.open("wb") as file:
            for ballot in ballots:
                file.write(write(ballot))
            file.write(write.finish())
        os.replace(draft, whole)
    finally:
        draft.unlink(missing_ok=True)


def ballot_schema(id: type) -> pa.Schema:
    """The columns of a file of ballots."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    kinds = {
        "text": pa.string(),
        "tokens": pa.list_(pa.int64()),
        "state": pa.list_(pa.float64()),
        "finished": pa.bool_(),
        "sampled": pa.bool_(),
    }
    hypotheses = pa.list_(pa.struct([(name, kinds.get(name, pa.float64())) for name in ORDER]))
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
    return [{name: _listed(getattr(h, name)) for name in ORDER} for h in hypotheses]


def _listed(value: Any) -> Any:
    """Token ids and states as lists, whatever sequence they are."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return [item.item() if hasattr(item, "item") else item for item in value]
