"""Ballots as Parquet, one a row: the columns are the fields of the ballot file.

    id: string or integer      source: string      references: list<string>
    candidates: list<struct<text: string, logprob: double, tokens: list<int64>, state: list<double>,
                            finished: bool, sampled: bool, weight: double, ranked_by: double>>
    voters: the same; null: the candidates vote

Fields that are absent or null are not known; a list of plain strings will do, and `hypotheses` is read as
`candidates`. Rows are taken column by column; whenever that is not sure, the careful reading of the ballot
file decides and names the fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rangevote.errors import DataError, UsageError, need
from rangevote.formats.careful import BALLOT_FIELDS, ballot_of, check_states, note_unknown
from rangevote.formats.jsonl import rescaled_ballot
from rangevote.formats.mass import doubt_mass
from rangevote.formats.parquet_columns import Lists, lists_of, plain_column
from rangevote.formats.reader import Entry, ReadOptions
from rangevote.formats.score import Scale, scale_of
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that are turned into ballots at a time, and bytes of a column that are read at a time.
ROWS, BUFFER = 256, 2**20
_AS_IS = Scale(1.0)


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry a row, in file order."""
    first = 1
    for batch in record_batches(stream, options):
        yield from entries_of(batch, stream.name, range(first, first + len(batch)), options)
        first += len(batch)


def record_batches(
    stream: Stream, options: ReadOptions, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file or of some of its row groups, a few at a time: a group need not fit into memory."""
    pq = need("pyarrow.parquet", "parquet", "reading Parquet files")
    try:
        file = pq.ParquetFile(stream.random_access(), buffer_size=BUFFER, pre_buffer=False)
        columns, total = ballot_columns(file.schema_arrow.names, options), file.metadata.num_rows
        done = 0
        for batch in file.iter_batches(ROWS, groups, columns, use_threads=False):
            yield batch
            done += len(batch)
            stream.position = (stream.size or 0) * done // max(total, 1)  # a damaged file may say 0
    except (OSError, ValueError) as error:  # pyarrow's own are of these kinds
        if isinstance(error, DataError):
            raise
        problem = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"is no Parquet file that can be read: {problem}", where=stream.name) from error


def ballot_columns(names: Sequence[str], options: ReadOptions) -> list[str]:
    """Those columns that a ballot has; the others are told of once."""
    if not {"candidates", "hypotheses"} & set(names):
        raise DataError(
            f"has no column 'candidates'; its columns are {', '.join(map(repr, names)) or 'none'}"
        )
    note_unknown(names, BALLOT_FIELDS, "", options)
    return [name for name in BALLOT_FIELDS if name in names]


def entries_of(
    batch: pa.RecordBatch, name: str, numbers: Sequence[int], options: ReadOptions
) -> Iterator[Entry]:
    """The entries of rows that stand at `numbers` in the file `name`."""
    if options.sign == -1:
        raise UsageError("--sign - does not apply to the format 'parquet': a logprob is never positive.")
    scale = scale_of(options)
    try:
        quick = Quick.of(batch, options)
    except UnicodeDecodeError:  # in some row: the careful reading says in which
        quick = None
    for i, number in enumerate(numbers):
        where = f"{name}:{number}"
        try:
            ballot = (quick and quick.ballot(i)) or carefully(batch, i, options)
            if scale != _AS_IS:
                ballot = rescaled_ballot(ballot, scale, options)
            elif not (quick and quick.mass(i) < 1):
                doubt_mass(ballot, options)
            yield Entry(where, ballot)
        except DataError as error:
            yield Entry(where, error=error.at(where))


class Quick:
    """The columns of a batch as Python lists, if they are all of the kinds that are expected."""

    def __init__(self, candidates: Lists, voters: Lists | None, fields: list[list[Any]]) -> None:
        self._candidates, self._voters = candidates, voters
        self._ids, self._sources, self._references = fields

    @classmethod
    def of(cls, batch: pa.RecordBatch, options: ReadOptions) -> Quick | None:
        """The columns, or None if one of them is of another kind."""
        names = batch.schema.names
        if "candidates" in names and "hypotheses" in names:
            return None
        role = "candidates" if "candidates" in names else "hypotheses"
        candidates = lists_of(batch.column(role), role, options)
        voters = lists_of(batch.column("voters"), "voters", options) if "voters" in names else None
        fields = [plain_column(batch, name) for name in ("id", "source", "references")]
        if candidates is None or (voters is None and "voters" in names) or None in fields:
            return None
        return cls(candidates, voters, fields)  # type: ignore[arg-type]

    def ballot(self, row: int) -> Ballot | None:
        """The ballot of a row about which there is no doubt, else None."""
        candidates = self._candidates.row(row)
        voters = self._voters.row(row) if self._voters is not None else None
        if candidates is None or self._candidates.doubtful(row):
            return None
        if self._voters is not None and self._voters.doubtful(row):
            return None
        ballot = Ballot(candidates, voters, self._ids[row], self._sources[row], self._references[row] or ())
        if self._candidates.stated or (self._voters is not None and self._voters.stated):
            check_states(ballot)
        return ballot

    def mass(self, row: int) -> float:
        """The larger sum of P."""
        own = self._candidates.mass(row)
        return own if self._voters is None else max(own, self._voters.mass(row))


def carefully(batch: pa.RecordBatch, row: int, options: ReadOptions) -> Ballot:
    """The ballot of one row, checked field by field as one of the ballot file is."""
    try:
        found = batch.slice(row, 1).to_pylist()[0]
    except UnicodeDecodeError as error:
        raise DataError(f"holds a text that is not UTF-8 ({error.reason})") from None
    return ballot_of(_known(found, deep=True), options)


def _known(value: dict[str, Any], *, deep: bool = False) -> dict[str, Any]:
    """The fields that are not null, which is how Parquet says that there is none."""
    found = {name: inner for name, inner in value.items() if inner is not None}
    for role in ("candidates", "hypotheses", "voters") if deep else ():
        if isinstance(found.get(role), list):
            found[role] = [_known(item) if isinstance(item, dict) else item for item in found[role]]
    return found
