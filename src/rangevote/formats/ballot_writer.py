"""Ballots to lines of bytes; what a format cannot express is refused rather than lost.

Each function makes a writer, since some formats number their ballots or need them all of one size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, cast

import msgspec
import numpy as np

from rangevote.errors import DataError, choose
from rangevote.formats.nbest import BAR
from rangevote.hypothesis import Ballot, Hypothesis, check, check_logprob

Writer = Callable[[Ballot], bytes]


def writer(format: str) -> Writer:
    """A function that turns each ballot into the bytes of its line or lines; `ending` gives the last ones."""
    return choose("output format", format, WRITERS)()


def ending(write: Writer) -> bytes:
    """What a file needs after its last ballot: Parquet's footer; of lines, nothing."""
    finish = getattr(write, "finish", None)
    return b"" if finish is None else cast(bytes, finish())


def write_ballot(ballot: Ballot) -> bytes:
    """One line with its line end; P = 0 is written as `"prob": 0`, since JSON has no -Infinity."""
    check(ballot)
    try:
        infinite = any(h.logprob == -math.inf for h in [*ballot.candidates, *(ballot.voters or ())])
        if infinite or ballot.carry:
            return json.dumps(_as_record(ballot), ensure_ascii=False).encode() + b"\n"
        return msgspec.json.encode(ballot, enc_hook=listed) + b"\n"
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise DataError(
            f"a text contains a lone surrogate (U+{half:04X}), which is not a valid character"
        ) from None


def moses_writer() -> Writer:
    """Marian's `id ||| text ||| F0= logprob ||| logprob`; ballots without an id are numbered."""
    numbers = count()

    def write(ballot: Ballot) -> bytes:
        number = next(numbers)
        name = str(number if ballot.id is None else ballot.id)
        if len(name.split()) != 1 or BAR in name:
            raise DataError(f"{name!r} cannot be an id in the format 'moses'", field="id")
        refuse_others(ballot, "moses")
        return b"".join(_moses_line(name, h, i) for i, h in enumerate(ballot.candidates))

    return write


def _parquet_writer() -> Writer:
    from rangevote.formats.parquet import ParquetWriter

    return ParquetWriter()


def _delimited_writer(format: str) -> Writer:
    from rangevote.formats.csv_tsv import DelimitedWriter

    return DelimitedWriter(format)


#: What makes the writer of a format, which may number its ballots; pyarrow is loaded on use. mbrs has one
#: text per line, equally many for each ballot, and a second file with one log-probability per line.
WRITERS: dict[str, Callable[[], Writer]] = {
    "jsonl": lambda: write_ballot,
    "csv": partial(_delimited_writer, "csv"),
    "tsv": partial(_delimited_writer, "tsv"),
    "moses": moses_writer,
    "mbrs": lambda: _flat("mbrs", lambda h, i: _one_line(h, i, "mbrs")),
    "mbrs-logprobs": lambda: _flat("mbrs-logprobs", lambda h, i: repr(_known_logprob(h, i, "mbrs-logprobs"))),
    "parquet": _parquet_writer,
}


def _flat(format: str, line_of: Callable[[Hypothesis, int], str]) -> Writer:
    size: int | None = None

    def write(ballot: Ballot) -> bytes:
        nonlocal size
        refuse_others(ballot, format)
        lines = [line_of(h, i) for i, h in enumerate(ballot.candidates)]
        size = len(lines) if size is None else size
        if len(lines) != size:
            raise DataError(
                f"has {len(lines)} candidates where the first ballot has {size}; the format "
                f"{format!r} needs equally many",
                field="candidates",
            )
        return "".join(f"{line}\n" for line in lines).encode()

    return write


def _moses_line(name: str, hypothesis: Hypothesis, index: int) -> bytes:
    text = _one_line(hypothesis, index, "moses")
    if BAR in text:
        raise DataError(f"contains {BAR!r}, which separates fields there", field=f"candidates[{index}].text")
    if hypothesis.sampled or hypothesis.weight is not None:
        raise DataError(
            "is a sample or has a weight, while the format 'moses' has probabilities only; keep it "
            "in the format 'jsonl'",
            field=f"candidates[{index}]",
        )
    score = repr(_known_logprob(hypothesis, index, "moses"))
    return f"{name} {BAR} {text} {BAR} F0= {score} {BAR} {score}\n".encode()


def _known_logprob(hypothesis: Hypothesis, index: int, format: str) -> float:
    if hypothesis.logprob is None:
        raise DataError(
            f"has no log-probability, which the format {format!r} needs", field=f"candidates[{index}].logprob"
        )
    return float(check_logprob(hypothesis.logprob, f"candidates[{index}].logprob"))


def _one_line(hypothesis: Hypothesis, index: int, format: str) -> str:
    text = None if hypothesis.tool_calls else hypothesis.text
    if text is None:
        raise DataError(f"has no text, which the format {format!r} needs", field=f"candidates[{index}].text")
    if "\n" in text or text.endswith("\r"):
        raise DataError(
            f"contains a line end, which the format {format!r} cannot", field=f"candidates[{index}].text"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            "contains a lone surrogate, which is not a valid character", field=f"candidates[{index}].text"
        ) from None
    return text


def refuse_others(ballot: Ballot, format: str, voters: bool = False) -> None:
    """Refuse what a format has no place for: carried fields, and voters unless it can have `voters`."""
    if ballot.voters is not None and not voters:
        raise DataError(f"the format {format!r} cannot have voters beside candidates", field="voters")
    if ballot.carry:
        raise DataError(f"the format {format!r} cannot have other fields than a ballot's", field="carry")


def listed(value: Any) -> Any:
    """Arrays of numpy and sequences of our own as lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"cannot write a {type(value).__name__}")


def _as_record(ballot: Ballot) -> Any:
    """What is carried stands beside the other fields; a probability of 0 has no logarithm in JSON."""
    plain = msgspec.to_builtins(ballot, enc_hook=listed)
    for name, value in plain.pop("carry", {}).items():
        plain.setdefault(name, value)
    for hypothesis in [*plain["candidates"], *plain.get("voters", ())]:
        if hypothesis.get("logprob") == -math.inf:
            del hypothesis["logprob"]
            hypothesis["prob"] = 0
    return plain
