"""Results of elections as lines of JSON or text, and as tables: Parquet, CSV and TSV.

Tables have the fields of the lines as columns:

    id, winner, winner_tokens (where candidates have no text), index, score, margin, signature,
    near_tie, no_support, no_winner, error, winners; where answers are compared: answer, votes (as JSON),
    abstained, entropy; of a panel: member, members, left_out; as asked for: scores, explanation (as JSON),
    and the fields that are carried

Preference pairs, for training as TRL has it, are lines with id, prompt, chosen, rejected, margin.
Results are written as lines first, which can be resumed, and made into a table when all are there; all but
Parquet can be written to a pipe too, line by line.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rangevote.election.result import Result
from rangevote.errors import DataError, RangevoteError, need
from rangevote.formats.csv_tsv import delimited_line
from rangevote.formats.reader import Entry, carried_name
from rangevote.hypothesis import Ballot

if TYPE_CHECKING:
    import pyarrow as pa

#: The fields every result has.
FIELDS = ("id", "winner", "index", "score", "margin", "signature")
#: Rows in a row group of a table.
GROUP = 2**14


class ResultShape(NamedTuple):
    """What is written of a result; `text`: the winning text alone, `pair`: the winner and the last. `carry`
    names fields of the ballots."""

    text: bool = False
    scores: bool = False
    explain: bool = False
    pair: bool = False
    carry: tuple[str, ...] = ()

    @property
    def carried(self) -> list[str]:
        return [carried_name(text)[0] for text in self.carry]


class Facts(NamedTuple):
    """What the end of a run counts of a ballot: whether it has one candidate, or several that are all equal;
    whether another candidate than the most likely won (None: not known); whether nobody was elected. Of a
    panel: the members that won, all that voted and those without outputs, and whether the winner is the only
    output of a member with half of the vote or more, though others said something else."""

    single: bool
    all_equal: bool
    changed: bool | None
    no_winner: bool
    members: tuple[str, ...] = ()
    voted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    alone: bool = False


class ResultLine(NamedTuple):
    """One line of output, the place of its ballot and that ballot's id, the error that it stands for where
    there was one, and the facts to count; None: an election among different candidates with a winner."""

    content: bytes
    where: str = ""
    id: str | int | None = None
    error: RangevoteError | None = None
    facts: Facts | None = None


_encode = msgspec.json.Encoder().encode


def result_line(
    ballot: Ballot,
    result: Result,
    shape: ResultShape,
    more: Mapping[str, Any] | None = None,
    where: str = "",
    compare: bool = False,
) -> ResultLine:
    """The line of one election, with `more` fields; `compare` the winner with the most likely candidate."""
    if shape.text:
        content = str(result).replace("\r\n", " ").replace("\n", " ").replace("\r", " ").encode()
    elif shape.pair:
        content = _encode(preference(ballot, result))
    else:
        fields = result_fields(ballot, result, shape)
        content = _encode({**fields, **more} if more else fields)
    usual = result.margin is not None and result.elected and result.panel is None and not compare
    facts = None if usual and result.candidates.members is None else _facts(ballot, result, compare)
    return ResultLine(content + b"\n", where, ballot.id, None, facts)


def _facts(ballot: Ballot, result: Result, compare: bool) -> Facts:
    members, panel = result.members, result.panel
    others = ballot.candidates[1:] if result.margin is None and not members else []
    facts = Facts(
        single=len(ballot.candidates) == 1,
        all_equal=bool(others) and all(one.content == ballot.candidates[0].content for one in others),
        changed=is_changed(ballot, result) if compare else None,
        no_winner=result.no_winner is not None,
        members=members,
    )
    if panel is None:
        return facts
    share = panel.shares.get(result.member or "", 0.0)
    alone = 0.5 <= share < 1 and len(members) == 1
    alone = alone and [voter.member for voter in result.voters].count(result.member) == 1
    return facts._replace(voted=tuple(panel.shares), left_out=panel.left_out, alone=alone)


def empty_line(entry: Entry, ballot: Ballot, shape: ResultShape) -> ResultLine:
    """The line of a ballot without candidates, where that is allowed."""
    fields = dict.fromkeys(FIELDS) | {"id": ballot.id} | ballot.carry
    return ResultLine(b"\n" if shape.text else _encode(fields) + b"\n", entry.where, ballot.id)


def error_line(entry: Entry, error: DataError, shape: ResultShape) -> ResultLine:
    """The line of a bad ballot, so that lines match ballots."""
    placed = error.placed(entry.where)
    id, carry = (None, {}) if entry.ballot is None else (entry.ballot.id, entry.ballot.carry)
    fields = {"id": entry.id if entry.ballot is None else id, "error": str(placed)} | carry
    return ResultLine(b"\n" if shape.text else _encode(fields) + b"\n", entry.where, id, placed)


def result_fields(ballot: Ballot, result: Result, shape: ResultShape) -> dict[str, Any]:
    fields = {"id": ballot.id, **result.to_dict(scores=shape.scores, explain=shape.explain)}
    return fields | ballot.carry if ballot.carry else fields


def preference(ballot: Ballot, result: Result) -> dict[str, Any]:
    """The winner over the candidate with the lowest score; `margin` is how much lower. `chosen` is null where
    all scores are equal or nobody was elected, so that nothing is preferred."""
    if ballot.source is None:
        raise DataError("is not given, but a preference pair needs it as its prompt.", field="source")
    finite = [index for index in result.ranking if math.isfinite(result.scores[index])]
    last = finite[-1] if finite else result.leader
    margin = float(result.scores[result.leader] - result.scores[last])
    if not margin > 0 or not result.elected:
        return {"id": ballot.id, "chosen": None}
    texts = [result.candidates[index].text for index in (result.leader, last)]
    if None in texts:
        raise DataError("has no text, which a preference pair needs.", field=f"candidates[{result.leader}]")
    return {
        "id": ballot.id,
        "prompt": ballot.source,
        "chosen": texts[0],
        "rejected": texts[1],
        "margin": margin,
        **ballot.carry,
    }


class _Pair(msgspec.Struct):
    chosen: str | None = None


_pair_of = msgspec.json.Decoder(_Pair).decode


def is_pair(line: bytes) -> bool:
    """Whether a line has a preference, rather than none or an error."""
    return _pair_of(line).chosen is not None


# Tables


#: Columns, and what is in them; those of scores and explanations are there if they are asked for.
COLUMNS = {
    "id": "text",
    "winner": "text",
    "winner_tokens": "integers",
    "index": "integer",
    "score": "number",
    "margin": "number",
    "signature": "text",
    "near_tie": "truth",
    "no_support": "truth",
    "no_winner": "text",
    "answer": "text",
    "votes": "text",
    "abstained": "integer",
    "entropy": "number",
    "member": "text",
    "members": "texts",
    "merged": "text",
    "left_out": "texts",
    "error": "text",
    "winners": "winners",
    "scores": "numbers",
    "explanation": "text",
}


def columns_of(shape: ResultShape) -> dict[str, str]:
    """The columns of a table of results, and their types; "any": as in the results."""
    left_out = {
        name for name, asked in (("scores", shape.scores), ("explanation", shape.explain)) if not asked
    }
    own = {name: kind for name, kind in COLUMNS.items() if name not in left_out}
    return own | dict.fromkeys(shape.carried, "any")


def table_schema(shape: ResultShape, kinds: Mapping[str, str]) -> pa.Schema:
    """The columns as a Parquet schema; `kinds` has the types that depend on the results."""
    pa = need("pyarrow", "parquet", "writing Parquet files")
    types = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    types |= {f"{kind}s": pa.list_(type) for kind, type in types.items()}
    types["winners"] = pa.list_(pa.struct([("index", pa.int64()), ("winner", pa.string())]))
    return pa.schema([(name, types[kind]) for name, kind in (columns_of(shape) | dict(kinds)).items()])


def table_row(fields: dict[str, Any]) -> dict[str, Any]:
    """A result's fields as a row: token ids in a column of their own, flags true or false."""
    row = dict(fields)
    if isinstance(row.get("winner"), list):
        row["winner_tokens"], row["winner"] = row["winner"], None
    elected = row.get("signature") is not None
    for flag in ("near_tie", "no_support"):
        row[flag] = bool(row.get(flag)) if elected else None
    for other in row.get("winners") or ():
        if isinstance(other["winner"], list):
            other["winner"] = " ".join(map(str, other["winner"]))
    for name in ("explanation", "votes", "merged"):
        if name in row:
            row[name] = _encode(row[name]).decode()
    return row


def is_changed(ballot: Ballot, result: Result) -> bool | None:
    """Whether a candidate other than the most likely won; None if that is not known."""
    logprobs = [candidate.logprob for candidate in ballot.candidates if candidate.logprob is not None]
    if result.index is None or len(logprobs) < len(ballot.candidates):
        return None
    return logprobs[result.index] < max(logprobs)


class ResultRows:
    """Lines of results in, rows of CSV or TSV out, the names of the columns before the first; or lines of a
    table for the screen; or of lines with preferences those that have one."""

    def __init__(self, format: str, shape: ResultShape) -> None:
        self._format, self._names = format, list(columns_of(shape))
        self._header = b"" if format == "preferences" else delimited_line(self._names, format)
        self._panel: bool | None = None

    def __call__(self, line: bytes) -> bytes:
        if self._format == "preferences":
            return line if is_pair(line) else b""
        if self._format == "screen":
            return self._on_screen(msgspec.json.decode(line))
        row = table_row(msgspec.json.decode(line))
        return self.finish() + delimited_line((row.get(name) for name in self._names), self._format)

    def _on_screen(self, fields: dict[str, Any]) -> bytes:
        """A line for the screen, with members if the first result has one."""
        if self._panel is None:
            self._panel = "member" in fields
            self._header = _screen_line("id", "margin", "winner", "member" if self._panel else None)
        margin = "" if fields.get("margin") is None else f"{fields['margin']:.4f}"
        shown = next((fields[n] for n in ("error", "winner", "no_winner") if fields.get(n) is not None), "")
        members = ",".join(fields.get("members") or [fields.get("member") or ""])
        return self.finish() + _screen_line(fields["id"], margin, shown, members if self._panel else None)

    def finish(self) -> bytes:
        """The header, if no row has been written yet."""
        header, self._header = self._header, b""
        return header


def _screen_line(id: object, margin: str, text: object, members: str | None) -> bytes:
    """A line that fits into the width of the terminal."""
    whose = "" if members is None else f"{members:<12.12}  "
    line = f"{'' if id is None else id!s:<16.16} {margin:>7}  {whose}{' '.join(str(text).split())}"
    width = shutil.get_terminal_size().columns
    return (line if len(line) <= width else f"{line[: width - 3]}...").encode() + b"\n"


def write_table(lines: Path, table: Path, format: str, shape: ResultShape) -> None:
    """Write a file of result lines as Parquet, CSV, TSV or preference pairs."""
    if format != "parquet":
        rows = ResultRows(format, shape)
        with lines.open("rb") as file, table.open("wb") as out:
            out.writelines(map(rows, file))
            out.write(rows.finish())
        return
    pa = need("pyarrow", "parquet", "writing Parquet files")
    pq = need("pyarrow.parquet", "parquet", "writing Parquet files")
    with lines.open("rb") as file:
        kinds = _kinds(file, ("id", *shape.carried))
    schema = table_schema(shape, kinds)
    with lines.open("rb") as file, pq.ParquetWriter(table, schema, compression="zstd") as writer:
        for rows_of_group in _row_groups(file, kinds):
            writer.write_table(pa.Table.from_pylist(rows_of_group, schema), row_group_size=GROUP)


def _row_groups(lines: Iterable[bytes], kinds: Mapping[str, str]) -> Iterator[list[dict[str, Any]]]:
    left = iter(lines)
    while rows := [table_row(msgspec.json.decode(line)) for line in islice(left, GROUP)]:
        for name in (name for name, kind in kinds.items() if kind == "text"):
            for row in rows:
                if not isinstance(row.get(name), (str, NoneType)):
                    row[name] = _encode(row[name]).decode()
        yield rows


def _kinds(lines: Iterable[bytes], names: Sequence[str]) -> dict[str, str]:
    """The types of columns: integers, numbers or truth values if all values are, otherwise texts or JSON."""
    seen: dict[str, set[str]] = {name: set() for name in names}
    for line in lines:
        fields = msgspec.json.decode(line)
        for name in names:
            if (value := fields.get(name)) is not None:
                large = type(value) is int and not -(2**63) <= value < 2**63
                seen[name].add("text" if large else _KINDS.get(type(value), "text"))
    return {
        name: "number" if kinds == {"integer", "number"} else kinds.pop() if len(kinds) == 1 else "text"
        for name, kinds in seen.items()
    }


_KINDS: dict[type, str] = {bool: "truth", int: "integer", float: "number"}
