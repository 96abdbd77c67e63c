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

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, groupby, islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from rangevote.errors import DataError, UsageError
from rangevote.formats.jsonl import accept, decode_text, line_for
from rangevote.formats.logprobs import Scale, number, scale_of, total
from rangevote.formats.reader import Entry, ReadOptions, entry_at
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.text import BOM, Stream, open_stream

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


# Moses, Marian, cdec


class MosesRow(NamedTuple):
    """One line after its id; missing fields are empty."""

    text: str
    features: str
    score: str


def read_moses(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each run of lines with the same id; one list is in memory at a time."""
    scale, name = scale_of(options, words=True), None

    def id_of(numbered: tuple[int, bytes]) -> str | None:
        """The id of a line; a line without an id belongs to the list before it."""
        nonlocal name
        head, bar, _ = numbered[1].removeprefix(BOM).partition(BAR.encode())
        name = head.strip().decode(errors="replace") if bar and len(head.split()) == 1 else name
        return name

    lines = enumerate(stream.lines(options.max_line_bytes), 1)
    for key, group in groupby((line for line in lines if line[1].strip()), key=id_of):
        id = int(key) if key is not None and _ID.fullmatch(key) else key
        numbered = list(group)
        where = f"{stream.name}:{numbered[0][0]}"
        yield entry_at(where, _moses_ballot, id, stream.name, numbered, scale, options, id=id)


def _moses_ballot(
    id: str | int | None,
    name: str,
    numbered: Sequence[tuple[int, bytes]],
    scale: Scale | None,
    options: ReadOptions,
) -> Ballot:
    """The ballot of its lines in the file `name`; a bad line invalidates it, as it would lack a candidate."""
    candidates = []
    for line_number, line in numbered:
        try:
            head, bar, rest = decode_text(line).partition(BAR)
            if not bar or len(head.split()) != 1:
                raise _not_moses()
            row = moses_row(rest, scored=scale is not None)
            logprob = None if scale is None else _score(row, scale)
        except DataError as error:
            raise error.at(f"{name}:{line_number}") from None
        candidates.append(Hypothesis(row.text, logprob=logprob))
    return accept(Ballot(candidates, id=id), options, scale=scale)


def _not_moses() -> DataError:
    return DataError("expected 'id ||| text ||| features ||| score'")


def moses_row(rest: str, *, scored: bool = True) -> MosesRow:
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
            return MosesRow(BAR.join(text).strip(), features, score)
    if scored:
        raise _not_moses()
    return MosesRow(rest.strip(), "", "")


def _score(row: MosesRow, scale: Scale) -> float:
    """The score to weigh by, or Marian's log-probability: the mean over the members of an ensemble, which is
    the log of the geometric mean of their probabilities."""
    if scale.softmax:
        return number(row.score.encode(), "score")
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

_FAIRSEQ_SCORES = (
    "there are no P- lines, and whether H- scores are sums or means depends on how the file was made. Pass "
    "--length-normalised length (fairseq's default; H- lines must show subwords, so not with --remove-bpe) "
    "or --length-normalised none (made with --unnormalized), with --log-base e for files from before 2020; "
    "or --score-scale count to ignore the scores."
)


@dataclass
class FairseqSample:
    """The lines of one id by their kind; the n-th H, D and P line belong together."""

    where: str
    lines: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    error: DataError | None = None

    def add(self, kind: str, content: bytes) -> None:
        value: Any
        if kind in "ST":
            value = decode_text(content)
        elif kind == "P":
            value = total(number(p, "P-") for p in content.split())
        else:
            score, _, text = content.partition(b"\t")
            value = number(score, f"{kind}-"), decode_text(text)
        self.lines[kind].append(value)

    def ballot(self, id: int, options: ReadOptions) -> Ballot:
        if self.error is not None:
            raise self.error
        subwords, detokenised, totals = (self.lines[kind] for kind in "HDP")
        hypotheses = detokenised or subwords
        if any(len(self.lines[kind]) not in (0, len(hypotheses)) for kind in "HDP"):
            counts = ", ".join(f"{len(self.lines[kind])} {kind}-" for kind in "HDP")
            raise DataError(f"lines of sample {id} do not match: {counts}")
        scale = scale_of(options, base="2", alpha=None, words=True, unsettled=_FAIRSEQ_SCORES)
        scores = [None if scale is None else score for score, _ in hypotheses]
        if scale is not None and totals and not scale.softmax:
            scale, scores = dataclasses.replace(scale, alpha=0.0), totals
        elif scale is not None and scale.alpha and hypotheses and not subwords:
            raise DataError("has no H- lines, so lengths in tokens are not known")
        units = [text for _, text in subwords or detokenised]
        candidates = [Hypothesis(unit, logprob=score) for unit, score in zip(units, scores, strict=True)]
        if scale is not None:
            candidates = scale.apply(candidates)
        candidates = [replace(one, text=text) for one, (_, text) in zip(candidates, hypotheses, strict=True)]
        source = self.lines["S"][-1] if self.lines["S"] else None
        return accept(Ballot(candidates, None, id, source, self.lines["T"] or ()), options)


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
            sample.add(match[1].decode(), match[3] or b"")
        except DataError as error:
            sample.error = sample.error or error.at(where)
    for id in sorted(samples):
        sample = samples.pop(id)
        yield entry_at(sample.where, sample.ballot, id, options, id=id)


# mbrs


def read_mbrs(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each N lines; one list is in memory at a time."""
    size, scale = options.per_source, scale_of(options, words=True)
    if size is None:
        raise UsageError("the format 'mbrs' needs --per-source N: how many lines each source has.")
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
            read: Sequence[float | None] = [None] * size
            if scores is not None:
                if len(logprobs) < size:
                    raise DataError(f"source {source} has {len(logprobs)} log-probabilities in {scores.name}")
                first = source * size + 1
                read = [number(p.strip(), f"{scores.name}:{first + i}") for i, p in enumerate(logprobs)]
            candidates = [Hypothesis(text, logprob=p) for text, p in zip(decoded, read, strict=True)]
            return accept(Ballot(candidates, id=source), options, scale=scale)

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


def write_moses(ballots: Iterable[Ballot], format: str = "moses") -> Iterator[bytes]:
    """Marian's `id ||| text ||| F0= logprob ||| logprob`; ballots without an id are numbered."""
    for index, ballot in enumerate(ballots):
        name = str(index if ballot.id is None else ballot.id)
        if len(name.split()) != 1 or BAR in name:
            raise DataError(f"{name!r} cannot be an id in the format {format!r}", field="id")
        line_for(ballot, format)
        lines = (_moses_line(name, h, f"candidates[{i}]") for i, h in enumerate(ballot.candidates))
        yield "".join(lines).encode()


def _moses_line(name: str, hypothesis: Hypothesis, field: str) -> str:
    text = None if hypothesis.tool_calls else hypothesis.text
    if text is None:
        raise DataError("has no text, which the format 'moses' needs", field=f"{field}.text")
    if "\n" in text or text.endswith("\r"):
        raise DataError("contains a line end, which the format 'moses' cannot hold", field=f"{field}.text")
    if BAR in text:
        raise DataError(f"contains {BAR!r}, which separates fields there", field=f"{field}.text")
    if hypothesis.sampled or hypothesis.weight is not None:
        raise DataError(
            "is a sample or has a weight, while the format 'moses' has probabilities only; keep it in the "
            "format 'jsonl'",
            field=field,
        )
    if hypothesis.logprob is None:
        problem = "has no log-probability, which the format 'moses' needs"
        raise DataError(problem, field=f"{field}.logprob")
    score = repr(float(hypothesis.logprob))
    return f"{name} {BAR} {text} {BAR} F0= {score} {BAR} {score}\n"
