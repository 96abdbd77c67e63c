"""The outputs of all shards as one, if all are there, whole, of one input and made with the same options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec
import numpy as np

from rangevote.errors import DataError, SetupError, need
from rangevote.formats.reader import SeenIds
from rangevote.formats.results import id_of, table_schema, write_groups
from rangevote.scale.lines import Shape
from rangevote.scale.shard import ShardNotes

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of tables that are put together at a time.
ROWS = 2**13


class Piece(NamedTuple):
    """One shard's output, and the notes beside it."""

    path: Path
    notes: ShardNotes


def gather(paths: Sequence[Path]) -> list[Piece]:
    """The shards in their order; raises if they are not all of one run, once each."""
    pieces = [Piece(path, ShardNotes.read(path)) for path in paths]
    if not pieces:
        raise DataError("there are no shards to merge.")
    first = pieces[0]
    for piece in pieces[1:]:
        _refuse_another_run(first, piece)
    found: dict[int, Piece] = {}
    for piece in pieces:
        other = found.setdefault(piece.notes.shard, piece)
        if other is not piece:
            raise DataError(f"shard {piece.notes.shard} is there twice: {other.path} and {piece.path}.")
    missing = first.notes.of - sum(1 <= number <= first.notes.of for number in found)
    if missing:  # perhaps millions, if the notes were damaged: only the first ones are looked for
        some = islice((number for number in range(1, first.notes.of + 1) if number not in found), 20)
        named = ", ".join(map(str, some)) + (", ..." if missing > 20 else "")
        raise DataError(f"{missing} of {first.notes.of} shards are missing: {named}.")
    ballots = sum(piece.notes.ballots for piece in pieces)
    if ballots != first.notes.total:
        raise DataError(f"the shards have {ballots} results for {first.notes.total} ballots.")
    if len({is_table(piece.path) for piece in pieces}) > 1:
        raise DataError("some shards are Parquet and some are not; make them all alike.")
    return [found[number] for number in sorted(found)]


def _refuse_another_run(first: Piece, piece: Piece) -> None:
    ours, theirs = first.notes, piece.notes
    if theirs.fingerprint != ours.fingerprint:
        names = sorted({*ours.options, *theirs.options})
        changed = [n for n in names if ours.options.get(n) != theirs.options.get(n)]
        told = "; ".join(f"{n} {ours.options.get(n)!r} and {theirs.options.get(n)!r}" for n in changed)
        raise SetupError(
            f"the fingerprint differs between {first.path} and {piece.path}: they were made with different "
            f"options ({told or 'notes edited'}). Make one of them again."
        )
    if theirs.of != ours.of:
        raise DataError(f"{first.path} is one of {ours.of} shards, {piece.path} one of {theirs.of}.")
    if (theirs.total, theirs.digest) != (ours.total, ours.digest):
        raise DataError(
            f"{first.path} and {piece.path} are of different inputs ({ours.total} and {theirs.total} "
            f"ballots, check sums {ours.digest:08x} and {theirs.digest:08x}). Make one of them again."
        )


def is_table(path: Path) -> bool:
    """Whether a file is Parquet."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def merged_lines(pieces: Sequence[Piece], seen: SeenIds | None) -> Iterator[bytes]:
    """The lines of all shards in the order of the ballots; raises at the end if one is not whole."""
    text = pieces[0].notes.options.get("text") == "True"
    with ExitStack() as files:
        turns = [Counted(files.enter_context(piece.path.open("rb")), piece) for piece in pieces]
        for number in range(pieces[0].notes.total):
            turn = turns[number % len(turns)]
            line = turn.line()
            if seen is not None and not text:
                _check_id(seen, turn.id_of(line))
            yield line
        for turn in turns:
            turn.check_end()


class Counted:
    """The lines of one shard, with the digest of what was read."""

    def __init__(self, file: BinaryIO, piece: Piece) -> None:
        self._file, self._piece, self._digest = file, piece, hashlib.sha256()

    def line(self) -> bytes:
        """The next line, which must be there and be whole."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise damaged(self._piece)
        self._digest.update(line)
        return line

    def id_of(self, line: bytes) -> str | int | None:
        """The id of a result, which a line must be."""
        try:
            return id_of(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise damaged(self._piece) from None

    def check_end(self) -> None:
        """Nothing more is there, and all was as it was written."""
        if self._file.read(1) or self._digest.hexdigest() != self._piece.notes.sha256:
            raise damaged(self._piece)


def damaged(piece: Piece) -> DataError:
    """What is said of an output that is not as it was written."""
    return DataError(
        f"{piece.path} is not as it was written ({piece.notes.ballots} results, SHA-256 "
        f"{piece.notes.sha256[:16]}...); it was changed or cut off. Make shard {piece.notes.shard} again."
    )


def write_merged_table(pieces: Sequence[Piece], file: Any, seen: SeenIds | None) -> None:
    """The rows of all shards in the order of the ballots, as Parquet."""
    for piece in pieces:
        if sha256(piece.path) != piece.notes.sha256:
            raise damaged(piece)
    schema = _schema(pieces)
    write_groups(_merged_rows(pieces, schema, seen), file, schema)


def _merged_rows(pieces: Sequence[Piece], schema: pa.Schema, seen: SeenIds | None) -> Iterator[pa.Table]:
    pa = need("pyarrow", "parquet", "merging Parquet files")
    pq = need("pyarrow.parquet", "parquet", "merging Parquet files")
    each = max(1, ROWS // len(pieces))
    with ExitStack() as files:
        opened = [files.enter_context(pq.ParquetFile(piece.path)) for piece in pieces]
        sources = [_of_size(file, each, schema) for file in opened]
        while True:
            tables = [next(source, schema.empty_table()) for source in sources]
            whole = pa.concat_tables(tables).take(_turns([len(table) for table in tables]))
            if not len(whole):
                return
            if seen is not None:
                for id in whole.column("id").to_pylist():
                    _check_id(seen, id)
            yield whole


def _of_size(file: Any, size: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables of just so many rows, but for the last one; ids in the type of the whole."""
    pa = need("pyarrow", "parquet", "merging Parquet files")
    waiting = schema.empty_table()
    for batch in file.iter_batches(size):
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch]).cast(schema)])
        while len(waiting) >= size:
            yield waiting.slice(0, size)
            waiting = waiting.slice(size)
    if len(waiting):
        yield waiting


def _turns(lengths: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where in tables on end the rows stand if the tables take turns."""
    starts = np.cumsum([0, *lengths[:-1]])
    order = [(row, table) for table, length in enumerate(lengths) for row in range(length)]
    return np.array([starts[table] + row for row, table in sorted(order)], np.int64)


def _schema(pieces: Sequence[Piece]) -> pa.Schema:
    """The columns of all shards; ids that are texts in one shard and numbers in another are texts."""
    pa = need("pyarrow", "parquet", "merging Parquet files")
    pq = need("pyarrow.parquet", "parquet", "merging Parquet files")
    schemas = []
    for piece in pieces:
        try:
            schemas.append(pq.read_schema(piece.path))
        except pa.ArrowException as error:
            raise DataError(
                f"{piece.path} cannot be read as Parquet, as {pieces[0].path} is: {error}"
            ) from None
    named = {schema.field("id").type for schema, piece in zip(schemas, pieces, strict=True) if _named(piece)}
    shape = Shape(False, "scores" in schemas[0].names, "explanation" in schemas[0].names, False)
    return table_schema(shape, int if named == {pa.int64()} else str)


def _named(piece: Piece) -> bool:
    """Whether any result of the shard has an id."""
    pq = need("pyarrow.parquet", "parquet", "merging Parquet files")
    with pq.ParquetFile(piece.path) as file:
        return any(len(batch) > batch.column(0).null_count for batch in file.iter_batches(columns=["id"]))


def _check_id(seen: SeenIds, id: str | int | None) -> None:
    if id is not None and not seen.add(id):
        raise DataError(
            f"the id {id!r} is there twice, so that results could not be told apart; mend the input, or use "
            f"--trust-ids to keep both."
        )


def sha256(path: Path) -> str:
    """The digest of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()
