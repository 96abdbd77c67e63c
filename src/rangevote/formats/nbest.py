"""N-best lists of Moses, Marian and cdec: `id ||| text ||| features ||| score`.

    0 ||| Das ist gut . ||| F0= -2.41205 ||| -0.48241

Lines of one id follow each other. Marian may put an alignment (`0-0 1-1`, or soft: `0.6,0.4 0.1,0.9`; empty
where nothing is aligned) and `WordScores= ...` before the features, Moses a segmentation and an alignment
after the score. A text may have `|||` in it, so fields are split off from both ends.

What scores mean: Marian's only feature `F0` is the natural log of P, summed. The last field is divided
by a length there, and with several features (an ensemble, or Moses and cdec) a weighted sum of
arbitrary scale, which no one but the user can say how to weigh.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rangevote.errors import DataError, UsageError
from rangevote.formats.jsonl import decode_text
from rangevote.formats.logprobs import Scale, accept, number, scale_of, scored_ballot
from rangevote.formats.reader import Entry, ReadOptions, entry_at
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot

BAR = "|||"
_NUMBER = r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?|nan)"
_SCORE = re.compile(rf"\s*{_NUMBER}\s*", re.IGNORECASE)
_FEATURES = re.compile(rf"\s*(?:(?:\S+=(?:{_NUMBER})?|{_NUMBER})\s+)*", re.IGNORECASE)
_LINK = r"\d+-\d+(?:=\d+-\d+)?"
_ALIGNMENT = re.compile(rf"(?:\s*{_LINK}(?:\s+{_LINK})*)?\s*")
_SHARE = r"\d(?:\.\d*)?(?:e-\d+)?"
_SHARES = rf"(?:{_SHARE}(?:,{_SHARE})+|1)"  # those of one target word, which add up to 1
_SOFT_ALIGNMENT = re.compile(rf"\s*{_SHARES}(?:\s+{_SHARES})*\s*")
_MARIAN = re.compile(r"\s*F0=\s*(\S+)\s*")


class NbestLine(NamedTuple):
    """One line: what is missing is empty."""

    text: str
    features: str
    score: str


@dataclass
class LineGroup:
    """The lines of one id; one bad line spoils the list, which would be short of a candidate."""

    where: str
    id: str | None
    rows: list[NbestLine] = field(default_factory=list)
    error: DataError | None = None

    def entry(self, scale: Scale | None, options: ReadOptions) -> Entry:
        if self.error is not None:
            return Entry(self.error.where, error=self.error)
        return entry_at(self.where, lambda: self._ballot(scale, options))

    def _ballot(self, scale: Scale | None, options: ReadOptions) -> Ballot:
        logprobs = _logprobs(self.rows, scale, self.where)
        texts = [row.text for row in self.rows]
        return accept(scored_ballot(texts, logprobs, number_or_name(self.id)), options)


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each run of lines with the same id; one list is in memory at a time."""
    scale = scale_of(options)
    group: LineGroup | None = None
    for count, line in enumerate(stream.lines(options.max_line_bytes), 1):
        if not line or line.isspace():
            continue
        where, name, row, error = f"{stream.name}:{count}", None, None, None
        try:
            name, rest = _split_id(decode_text(line))
            row = row_of(rest, scored=scale is not None)
        except DataError as fault:
            error = fault.at(where)
        if group is None or (name is not None and name != group.id):
            if group is not None:
                yield group.entry(scale, options)
            group = LineGroup(where, name)
        if row is not None:
            group.rows.append(row)
        group.error = group.error or error
    if group is not None:
        yield group.entry(scale, options)


def _split_id(line: str) -> tuple[str, str]:
    head, bar, rest = line.partition(BAR)
    name = head.strip()
    if not bar or not name or len(name.split()) > 1:
        raise DataError("expected 'id ||| text ||| features ||| score'")
    return name, rest


def row_of(rest: str, *, scored: bool = True) -> NbestLine:
    """What follows the id, split from the end: alignments, score, features, and what is left."""
    parts = rest.split(BAR)
    for extra in range(3):  # Moses adds up to two fields after the score
        if extra and not _ALIGNMENT.fullmatch(parts[-extra]):
            break
        columns = parts[: len(parts) - extra]
        if len(columns) < 3:
            break
        if _SCORE.fullmatch(columns[-1]) and _FEATURES.fullmatch(columns[-2] + " "):
            text = _without_marian_columns(columns[:-2])
            return NbestLine(BAR.join(text).strip(), columns[-2], columns[-1])
    if scored:
        raise DataError("expected 'id ||| text ||| features ||| score'")
    return NbestLine(rest.strip(), "", "")


def _without_marian_columns(parts: list[str]) -> list[str]:
    if len(parts) > 1 and parts[-1].lstrip().startswith("WordScores="):
        parts = parts[:-1]
    if len(parts) > 1 and (_ALIGNMENT.fullmatch(parts[-1]) or _SOFT_ALIGNMENT.fullmatch(parts[-1])):
        parts = parts[:-1]
    return parts


def _logprobs(rows: list[NbestLine], scale: Scale | None, where: str) -> list[float | None]:
    if scale is None:
        return [None] * len(rows)
    if scale.softmax:
        scores = [number(row.score.encode(), "score") for row in rows]
    else:
        scores = [_total(row, where) for row in rows]
    lengths = [len(row.text.split()) + 1 if scale.alpha else 1 for row in rows]
    return [*scale.logprobs(scores, lengths)]


def _total(row: NbestLine, where: str) -> float:
    """Marian's log P, its only feature."""
    match = _MARIAN.fullmatch(row.features)
    if match is None:
        raise UsageError(
            f"{where}: the features {row.features.strip()[:60]!r} are not Marian's single F0, so the "
            f"score is a weighted sum of arbitrary scale, not a log-probability. Pass --score-scale X "
            f"to weigh candidates by softmax(X * score), or --score-scale count to count each once."
        )
    return number(match[1].encode(), "F0")


def number_or_name(name: str | None) -> int | str | None:
    """An id as a number where it is written like one, and not longer than programs count."""
    if name is not None and re.fullmatch(r"0|[1-9][0-9]{0,17}", name):
        return int(name)
    return name
