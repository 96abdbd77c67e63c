"""Results of elections as lines of JSON or text, and as Parquet.

Parquet has the fields of the lines as columns:

    id, winner, winner_tokens (where candidates have no text), index, score, margin, signature,
    near_tie, no_support, left_out, error; and as asked for: winners, scores, explanation (as JSON)

Preference pairs, for training as TRL has it, are lines with id, prompt, chosen, rejected, margin.
Results are written as lines first, which can be resumed, and made into a table when all are there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rangevote.election.result import Result
from rangevote.errors import DataError, RangevoteError, need
from rangevote.formats.reader import Entry
from rangevote.hypothesis import Ballot

if TYPE_CHECKING:
    import pyarrow as pa

#: The fields every result has.
FIELDS = ("id", "winner", "index", "score", "margin", "signature")
#: Rows in a row group of a table.
GROUP = 2**14


class ResultShape(NamedTuple):
    """What is written of a result; `text`: the winning text alone, `pair`: the winner and the last."""

    text: bool = False
    scores: bool = False
    explain: bool = False
    pair: bool = False


class ResultLine(NamedTuple):
    """One line of output, and the error that it stands for where there was one."""

    content: bytes
    error: RangevoteError | None = None


_encode = msgspec.json.Encoder().encode


def result_line(ballot: Ballot, result: Result, shape: ResultShape, reasoning: str = "") -> ResultLine:
    """The line of one election; `reasoning` is what a model wrote to itself before the winner."""
    if shape.text:
        text = str(result).replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
        return ResultLine(text.encode() + b"\n")
    if shape.pair:
        return ResultLine(_encode(preference(ballot, result)) + b"\n")
    fields = result_fields(ballot, result, shape) | ({"reasoning": reasoning} if reasoning else {})
    return ResultLine(_encode(fields) + b"\n")


def empty_line(ballot: Ballot, shape: ResultShape) -> ResultLine:
    """The line of a ballot without candidates, where that is allowed."""
    return ResultLine(b"\n" if shape.text else _encode(dict.fromkeys(FIELDS) | {"id": ballot.id}) + b"\n")


def error_line(entry: Entry, error: DataError, shape: ResultShape) -> ResultLine:
    """The line of a bad ballot, so that input and output stay in step."""
    placed = error.placed(entry.where)
    id = entry.ballot.id if entry.ballot else None
    return ResultLine(b"\n" if shape.text else _encode({"id": id, "error": str(placed)}) + b"\n", placed)


def result_fields(ballot: Ballot, result: Result, shape: ResultShape) -> dict[str, Any]:
    values = (ballot.id, result.winner, result.index, _finite(result.score), _finite(result.margin))
    fields: dict[str, Any] = dict(zip(FIELDS, (*values, result.signature), strict=True))
    if len(result.elected) > 1:
        fields["winners"] = [{"index": i, "winner": result.candidates.content(i)} for i in result.elected]
    fields |= {flag: True for flag in ("near_tie", "no_support") if getattr(result, flag)}
    if result.panel is not None and result.panel.left_out:
        fields["left_out"] = list(result.panel.left_out)
    if shape.scores:
        fields["scores"] = [_finite(score) for score in result.scores.tolist()]
    if shape.explain:
        explanation = result.explain()
        fields["explanation"] = {
            "ngrams": None if explanation.ngrams is None else [g._asdict() for g in explanation.ngrams],
            "voters": [_without_none(vote._asdict()) for vote in explanation.voters],
        }
        if explanation.likelihood is not None:
            fields["explanation"]["likelihood"] = _finite(explanation.likelihood)
    return fields


def preference(ballot: Ballot, result: Result) -> dict[str, Any]:
    """The winner over the candidate with the lowest score; `margin` is how much lower. `chosen` is null where
    all scores are equal, so that nothing is preferred."""
    if ballot.source is None:
        raise DataError("is not given, but a preference pair needs it as its prompt.", field="source")
    finite = [index for index in result.ranking if math.isfinite(result.scores[index])]
    last = finite[-1] if finite else result.index
    margin = float(result.scores[result.index] - result.scores[last])
    if not margin > 0:
        return {"id": ballot.id, "chosen": None}
    texts = [result.candidates[index].text for index in (result.index, last)]
    if None in texts:
        raise DataError("has no text, which a preference pair needs.", field=f"candidates[{result.index}]")
    return {
        "id": ballot.id,
        "prompt": ballot.source,
        "chosen": texts[0],
        "rejected": texts[1],
        "margin": margin,
    }


class _Pair(msgspec.Struct):
    chosen: str | None = None


_pair_of = msgspec.json.Decoder(_Pair).decode


def is_pair(line: bytes) -> bool:
    """Whether a line has a preference, rather than none or an error."""
    return _pair_of(line).chosen is not None


def write_pairs(lines: Path, pairs: Path) -> None:
    """Write those lines of a file that have a preference."""
    with lines.open("rb") as source, pairs.open("wb") as target:
        target.writelines(line for line in source if is_pair(line))


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _finite(number: float | None) -> float | None:
    """JSON has no infinity: minus infinity (log of a probability of 0) is written as null."""
    return number if number is not None and math.isfinite(number) else None


# Parquet


def table_schema(shape: ResultShape, ids: type | None) -> pa.Schema:
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
        ("left_out", pa.list_(pa.string())),
        ("error", pa.string()),
        ("winners", pa.list_(pa.struct([("index", pa.int64()), ("winner", pa.string())]))),
    ]
    if shape.scores:
        columns.append(("scores", pa.list_(pa.float64())))
    if shape.explain:
        columns.append(("explanation", pa.string()))
    return pa.schema(columns)


def table_row(fields: dict[str, Any]) -> dict[str, Any]:
    """A result's fields as a row: token ids in a column of their own, flags true or false."""
    row = dict(fields)
    if isinstance(row.get("winner"), list):
        row["winner_tokens"], row["winner"] = row["winner"], None
    elected = "error" not in row and row.get("index") is not None
    for flag in ("near_tie", "no_support"):
        row[flag] = bool(row.get(flag)) if elected else None
    for other in row.get("winners") or ():
        if isinstance(other["winner"], list):
            other["winner"] = " ".join(map(str, other["winner"]))
    if "explanation" in row:
        row["explanation"] = _encode(row["explanation"]).decode()
    return row


def write_table(lines: Path, table: Path, shape: ResultShape) -> None:
    """Write a file of result lines as Parquet."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    pq = need("pyarrow.parquet", "parquet", "writing Parquet files")
    with lines.open("rb") as file:
        ids = _kind_of_ids(file)
    schema = table_schema(shape, ids)
    with lines.open("rb") as file, pq.ParquetWriter(table, schema, compression="zstd") as writer:
        for rows in _row_groups(file, ids):
            writer.write_table(pa.Table.from_pylist(rows, schema), row_group_size=GROUP)


def _row_groups(lines: Iterable[bytes], ids: type | None) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        row = table_row(msgspec.json.decode(line))
        if ids is str and row.get("id") is not None:
            row["id"] = str(row["id"])
        rows.append(row)
        if len(rows) == GROUP:
            yield rows
            rows = []
    if rows:
        yield rows


class _Named(msgspec.Struct):
    id: str | int | None = None


def _kind_of_ids(lines: Iterable[bytes]) -> type | None:
    """int or str if all ids are, None without any; ids of both kinds become texts."""
    decode = msgspec.json.Decoder(_Named).decode
    kinds = {_column_type(decode(line).id) for line in lines} - {None}
    return str if len(kinds) > 1 else next(iter(kinds), None)


def _column_type(id: str | int | None) -> type | None:
    """The type of a column for this id; integers above 64 bits are texts."""
    if isinstance(id, int) and not -(2**63) <= id < 2**63:
        return str
    return None if id is None else type(id)
