"""N-best lists as lines of text: Moses, Marian and cdec; fairseq; and mbrs' flat text.

Moses, Marian, cdec: `id ||| text ||| features ||| score`, the lines of one id one after the other.

    0 ||| Das ist gut . ||| F0= -2.41205 ||| -0.48241

Marian may put an alignment (`0-0 1-1`, or soft: `0.6,0.4 0.1,0.9`; empty where nothing is aligned) and
`WordScores= ...` before the features, Moses a segmentation and an alignment after the score. A text may
contain `|||`, so fields are split from both ends. Marian's feature `F0` is the natural log of P, summed;
an ensemble has `F0`, `F1`, ..., whose mean is read: the log of the geometric mean of the members' P. The last
field is divided by a length in Marian; in Moses and cdec it is a weighted sum of arbitrary scale, so the user
has to say how to use it.

fairseq-generate and fairseq-interactive with --nbest N:

    S-7<TAB>source         H-7<TAB>-0.2639<TAB>hypothesis in subwords
    T-7<TAB>reference      D-7<TAB>-0.2639<TAB>detokenised hypothesis
                           P-7<TAB>-0.2926 -0.7546 -0.0085 0.0000

Samples come in the order of their batches, and users sort and filter the lines, so a sample is complete only
at the end of the file: the texts of the whole file and one score per hypothesis are held in memory. Ballots
come out by ascending id, which is the order of the corpus. P- has the log of P of every token with the end of
the sequence, in base 2 (before 2020: natural). H- is usually divided by the length.

mbrs: N lines for each source, and a second file with one natural log of P per line. Every line is a
hypothesis, also an empty one; an id is the number of the source, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple

import msgspec

from rangevote.errors import DataError, UsageError
from rangevote.formats.jsonl import accept, decode_text, line_for
from rangevote.formats.logprobs import Scale, number, scale_of, scored_ballot, total
from rangevote.formats.reader import LOG_BASES, Entry, ReadOptions, entry_at
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.text import Stream, open_stream

#: A function from a ballot to the bytes of its lines.
Writer = Callable[[Ballot], bytes]

BAR = "|||"
_NUMBER = r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?|nan)"
_SCORE = re.compile(rf"\s*{_NUMBER}\s*", re.IGNORECASE)
_FEATURES = re.compile(rf"\s*(?:(?:\S+=(?:{_NUMBER})?|{_NUMBER})\s+)*", re.IGNORECASE)
_LINK = r"\d+-\d+(?:=\d+-\d+)?"
_ALIGNMENT = re.compile(rf"(?:\s*{_LINK}(?:\s+{_LINK})*)?\s*")
_SHARE = r"\d(?:\.\d*)?(?:e-\d+)?"
_SHARES = rf"(?:{_SHARE}(?:,{_SHARE})+|1)"  # those of one target word, which add up to 1
_SOFT_ALIGNMENT = re.compile(rf"\s*{_SHARES}(?:\s+{_SHARES})*\s*")
_MARIAN = re.compile(r"F(\d+)=\s*([^\s=]+)(?:\s+|$)")
_ID = re.compile(r"0|[1-9][0-9]{0,17}")
FAIRSEQ_LINE = re.compile(rb"([STHDP])-(\d{1,18})(?:\t(.*))?", re.DOTALL)
_FAIRSEQ_BASE = "2"


# Moses, Marian, cdec


class NbestLine(NamedTuple):
    """One line; missing fields are empty."""

    text: str
    features: str
    score: str


@dataclass
class LineGroup:
    """The lines of one id; a bad line invalidates the ballot, which would lack a candidate."""

    where: str
    id: str | None
    rows: list[NbestLine] = field(default_factory=list)
    error: DataError | None = None

    def entry(self, scale: Scale | None, options: ReadOptions) -> Entry:
        id = int(self.id) if self.id is not None and _ID.fullmatch(self.id) else self.id
        return entry_at(self.where, self._ballot, id, scale, options, id=id)

    def _ballot(self, id: str | int | None, scale: Scale | None, options: ReadOptions) -> Ballot:
        if self.error is not None:
            raise self.error
        logprobs = _moses_logprobs(self.rows, scale)
        return accept(scored_ballot([row.text for row in self.rows], logprobs, id), options)


def read_moses(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each run of lines with the same id; one list is in memory at a time."""
    scale = scale_of(options)
    group: LineGroup | None = None
    for line_number, line in enumerate(stream.lines(options.max_line_bytes), 1):
        if not line or line.isspace():
            continue
        where, name, row, error = f"{stream.name}:{line_number}", None, None, None
        try:
            head, bar, rest = decode_text(line).partition(BAR)
            if not bar or len(head.split()) != 1:
                raise DataError("expected 'id ||| text ||| features ||| score'")
            name = head.strip()
            row = moses_row(rest, scored=scale is not None)
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


def moses_row(rest: str, *, scored: bool = True) -> NbestLine:
    """The rest of a line after its id, split from the end: alignments, score, features, text."""
    columns = rest.split(BAR)
    for extra in range(3):  # Moses adds up to two fields after the score
        if extra and not _ALIGNMENT.fullmatch(columns.pop()):
            break
        if len(columns) < 3:
            break
        if _SCORE.fullmatch(columns[-1]) and _FEATURES.fullmatch(columns[-2] + " "):
            *text, features, score = columns
            if len(text) > 1 and text[-1].lstrip().startswith("WordScores="):
                text.pop()
            if len(text) > 1 and (_ALIGNMENT.fullmatch(text[-1]) or _SOFT_ALIGNMENT.fullmatch(text[-1])):
                text.pop()
            return NbestLine(BAR.join(text).strip(), features, score)
    if scored:
        raise DataError("expected 'id ||| text ||| features ||| score'")
    return NbestLine(rest.strip(), "", "")


def _moses_logprobs(rows: list[NbestLine], scale: Scale | None) -> list[float | None]:
    if scale is None:
        return [None] * len(rows)
    if scale.softmax:
        scores = [number(row.score.encode(), "score") for row in rows]
    else:
        scores = [_marian_logprob(row) for row in rows]
    return [*scale.logprobs(scores, [len(row.text.split()) + 1 for row in rows])]


def _marian_logprob(row: NbestLine) -> float:
    """The mean over the members of an ensemble: the log of the geometric mean of their probabilities."""
    members = _MARIAN.findall(row.features)
    named = "".join(match[0] for match in _MARIAN.finditer(row.features)) == row.features.lstrip()
    if not named or [int(member) for member, _ in members] != list(range(len(members) or 1)):
        raise UsageError(
            f"the features {row.features.strip()[:60]!r} are not Marian's F0 (F1, ...), so the "
            f"score is a weighted sum of arbitrary scale, not a log-probability. Pass --score-scale X "
            f"to weigh candidates by softmax(X * score), or --score-scale count to count each once."
        )
    return sum(number(value.encode(), f"F{member}") for member, value in members) / len(members)


# fairseq


@dataclass
class FairseqSample:
    """The lines of one id; the n-th H, D and P line belong together."""

    where: str
    source: str | None = None
    references: list[str] = field(default_factory=list)
    subwords: list[tuple[float, str]] = field(default_factory=list)
    detokenised: list[tuple[float, str]] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)
    error: DataError | None = None

    def add(self, kind: bytes, content: bytes) -> None:
        if kind == b"S":
            self.source = decode_text(content)
        elif kind == b"T":
            self.references.append(decode_text(content))
        elif kind == b"P":
            self.totals.append(total(number(p, "P-") for p in content.split()))
        else:
            score, _, text = content.partition(b"\t")
            line = number(score, f"{kind.decode()}-"), decode_text(text)
            (self.subwords if kind == b"H" else self.detokenised).append(line)

    def ballot(self, id: int, options: ReadOptions) -> Ballot:
        if self.error is not None:
            raise self.error
        hypotheses = self.detokenised or self.subwords
        sizes = {"H-": len(self.subwords), "D-": len(self.detokenised), "P-": len(self.totals)}
        if any(size not in (0, len(hypotheses)) for size in sizes.values()):
            shown = ", ".join(f"{size} {kind}" for kind, size in sizes.items())
            raise DataError(f"lines of sample {id} do not match: {shown}")
        logprobs = self._logprobs([score for score, _ in hypotheses], options)
        ballot = scored_ballot([text for _, text in hypotheses], logprobs, id)
        ballot = msgspec.structs.replace(ballot, source=self.source, references=self.references or ())
        return accept(ballot, options)

    def _logprobs(self, scores: list[float], options: ReadOptions) -> list[float | None]:
        if not scores or options.score_scale == "count":
            return [None] * len(scores)
        if self.totals and options.score_scale is None:
            scale = Scale((options.sign or 1) * LOG_BASES[options.log_base or _FAIRSEQ_BASE])
            return [*scale.logprobs(self.totals)]
        unsettled = (
            "there are no P- lines, and whether H- scores are sums or means depends on how "
            "the file was made. Pass --length-normalised length (fairseq's default; H- lines must show "
            "subwords, so not with --remove-bpe) or --length-normalised none (made with --unnormalized), "
            "with --log-base e for files from before 2020; or --score-scale count to ignore the scores."
        )
        by_options = scale_of(options, base=_FAIRSEQ_BASE, alpha=None, unsettled=unsettled)
        assert by_options is not None  # "count" was dealt with above
        if by_options.alpha and not self.subwords:
            raise DataError("has no H- lines, so lengths in tokens are not known")
        lengths = [len(text.split()) + 1 for _, text in self.subwords or self.detokenised]
        return [*by_options.logprobs(scores, lengths)]


def read_fairseq(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each sample, by ascending id; other lines (the log, A-, W-) are passed over."""
    samples: dict[int, FairseqSample] = {}
    for line_number, line in enumerate(stream.lines(options.max_line_bytes), 1):
        match = FAIRSEQ_LINE.fullmatch(line)
        if match is None:
            continue
        where = f"{stream.name}:{line_number}"
        sample = samples.setdefault(int(match[2]), FairseqSample(where))
        try:
            sample.add(match[1], match[3] or b"")
        except DataError as error:
            sample.error = sample.error or error.at(where)
    for id in sorted(samples):
        sample = samples.pop(id)
        yield entry_at(sample.where, sample.ballot, id, options, id=id)


# mbrs


def read_mbrs(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each N lines; one list is in memory at a time."""
    if options.per_source is None:
        raise UsageError("the format 'mbrs' needs --per-source N: how many lines each source has.")
    return _mbrs_entries(stream, options.per_source, options, scale_of(options))


def _mbrs_entries(stream: Stream, size: int, options: ReadOptions, scale: Scale | None) -> Iterator[Entry]:
    with ExitStack() as opened:
        scores = None
        if options.logprobs is not None and scale is not None:
            scores = opened.enter_context(open_stream(options.logprobs))
        lines = stream.lines(options.max_line_bytes)
        values = scores.lines(options.max_line_bytes) if scores is not None else iter(())

        def ballot(source: int, texts: list[bytes], logprobs: list[bytes]) -> Ballot:
            if len(texts) < size:
                raise DataError(f"source {source} has {len(texts)} lines where --per-source says {size}")
            decoded = [decode_text(line) for line in texts]
            if scale is None or scores is None:
                return scored_ballot(decoded, [None] * size, source)
            if len(logprobs) < size:
                raise DataError(f"source {source} has {len(logprobs)} log-probabilities in {scores.name}")
            first = source * size + 1
            read = [number(value.strip(), f"{scores.name}:{first + i}") for i, value in enumerate(logprobs)]
            scaled = scale.logprobs(read, [len(text.split()) + 1 for text in decoded])
            return accept(scored_ballot(decoded, scaled, source), options)

        for source in count():
            texts = list(islice(lines, size))
            logprobs = list(islice(values, len(texts)))
            if not any(texts) and len(texts) < size:
                break  # the end, or blank lines there
            yield entry_at(f"{stream.name}:{source * size + 1}", ballot, source, texts, logprobs, id=source)
        if scores is not None and any(value.strip() for value in values):
            problem = f"there are more lines in {scores.name} than in {stream.name}"
            yield Entry(scores.name, error=DataError(problem, where=scores.name))


# Writing


def moses_writer() -> Writer:
    """Marian's `id ||| text ||| F0= logprob ||| logprob`; ballots without an id are numbered."""
    numbers = count()

    def write(ballot: Ballot) -> bytes:
        number = next(numbers)
        name = str(number if ballot.id is None else ballot.id)
        if len(name.split()) != 1 or BAR in name:
            raise DataError(f"{name!r} cannot be an id in the format 'moses'", field="id")
        line_for(ballot, "moses")
        return b"".join(_moses_line(name, h, i) for i, h in enumerate(ballot.candidates))

    return write


def flat_writer(format: str) -> Writer:
    """mbrs: one text per line, or one log-probability, equally many for each ballot."""
    size: int | None = None

    def line_of(hypothesis: Hypothesis, index: int) -> str:
        if format == "mbrs":
            return _one_line(hypothesis, index, format)
        return repr(_known_logprob(hypothesis, index, format))

    def write(ballot: Ballot) -> bytes:
        nonlocal size
        line_for(ballot, format)
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
    return float(hypothesis.logprob)


def _one_line(hypothesis: Hypothesis, index: int, format: str) -> str:
    text = None if hypothesis.tool_calls else hypothesis.text
    if text is None:
        raise DataError(f"has no text, which the format {format!r} needs", field=f"candidates[{index}].text")
    if "\n" in text or text.endswith("\r"):
        raise DataError(
            f"contains a line end, which the format {format!r} cannot", field=f"candidates[{index}].text"
        )
    return text
