"""Lines of output: what is written of one election."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.errors import DataError, RangevoteError, SetupError
from rangevote.formats import Entry
from rangevote.hypothesis import Ballot

_encode = msgspec.json.Encoder().encode

#: The fields every result has.
FIELDS = ("id", "winner", "index", "score", "margin", "signature")


class Shape(NamedTuple):
    """What a line of output holds."""

    text: bool
    scores: bool
    explain: bool
    allow_empty: bool


class Failed(msgspec.Struct):
    """What of a line tells that it stands for a bad ballot."""

    error: str | None = None


_failed = msgspec.json.Decoder(Failed).decode


class Line(NamedTuple):
    """One line of output, and the error that it stands for where there was one."""

    content: bytes
    error: RangevoteError | None = None


def line_of(entry: Entry, settings: Settings, shape: Shape) -> Line:
    """Hold the election of one entry; an error becomes a line too, so that input and output keep in step."""
    try:
        ballot = entry.get()
        if shape.allow_empty and not ballot.candidates:
            return Line(b"\n" if shape.text else _encode(dict.fromkeys(FIELDS) | {"id": ballot.id}) + b"\n")
        return Line(result_line(ballot, elect_ballot(ballot, settings), shape))
    except DataError as error:
        return error_line(entry, error, shape)
    except MemoryError:
        return Line(b"", SetupError(f"{entry.where}: out of memory."))


def error_line(entry: Entry, error: DataError, shape: Shape) -> Line:
    """The line that stands for what went wrong, with the place where it did."""
    named = error.placed(entry.where)
    known = entry.ballot.id if entry.ballot else None
    return Line(b"\n" if shape.text else _encode({"id": known, "error": str(named)}) + b"\n", named)


def result_line(ballot: Ballot, result: Result, shape: Shape) -> bytes:
    """The line of an election that was held."""
    if shape.text:
        return _one_line(str(result))
    values = (ballot.id, result.winner, result.index, _finite(result.score), _finite(result.margin))
    line: dict[str, Any] = dict(zip(FIELDS, (*values, result.signature), strict=True))
    if len(result.elected) > 1:
        line["winners"] = [{"index": i, "winner": result.candidates.content(i)} for i in result.elected]
    line |= {flag: True for flag in ("near_tie", "no_support") if getattr(result, flag)}
    if shape.scores:
        line["scores"] = [_finite(score) for score in result.scores.tolist()]
    if shape.explain:
        explanation = result.explain()
        line["explanation"] = {
            "ngrams": None if explanation.ngrams is None else [g._asdict() for g in explanation.ngrams],
            "voters": [vote._asdict() for vote in explanation.voters],
        }
    return _encode(line) + b"\n"


def count_errors(lines: Iterable[bytes], shape: Shape) -> tuple[int, int]:
    """How many lines there are, and how many stand for a bad ballot; as texts, an empty line may do so."""
    number = errors = 0
    for line in lines:
        number += 1
        if shape.text:
            errors += line == b"\n"
        elif b'"error":' in line:
            errors += _failed(line).error is not None
    return number, errors


def _one_line(text: str) -> bytes:
    """A text as one line: line ends inside it become spaces."""
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ").encode() + b"\n"


def _finite(number: float | None) -> float | None:
    """JSON has no infinity: minus infinity (log of a probability of 0) is written as null."""
    return number if number is not None and math.isfinite(number) else None
