"""Output of fairseq-generate and fairseq-interactive with --nbest N.

    S-7<TAB>source         H-7<TAB>-0.2639<TAB>hypothesis in subwords
    T-7<TAB>reference      D-7<TAB>-0.2639<TAB>detokenised hypothesis
                           P-7<TAB>-0.2926 -0.7546 -0.0085 0.0000

Samples come in the order of their batches, and users sort and filter the lines; so a sample is
complete only at the end of the file. Held in memory until then: the texts of the whole file and one
score for each hypothesis. Ballots come out by ascending id, which is the order of the corpus.

What scores mean: P- has the log of P of every token with the end of the sequence, in base 2 (before
2020: natural), so log P = ln 2 * their sum. H- is usually divided by the length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from rangevote.errors import DataError
from rangevote.formats.jsonl import decode_text
from rangevote.formats.logprobs import Scale, accept, number, scale_of, scored_ballot, total
from rangevote.formats.reader import LOG_BASES, Entry, ReadOptions, entry_at
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot

LINE = re.compile(rb"([STHDP])-(\d{1,18})(?:\t(.*))?", re.DOTALL)
_BASE = "2"


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
        scored = self.detokenised or self.subwords
        sizes = {"H-": len(self.subwords), "D-": len(self.detokenised), "P-": len(self.totals)}
        if any(size not in (0, len(scored)) for size in sizes.values()):
            shown = ", ".join(f"{size} {kind}" for kind, size in sizes.items())
            raise DataError(f"lines of sample {id} do not match: {shown}")
        logprobs = self._logprobs([score for score, _ in scored], options)
        ballot = scored_ballot([text for _, text in scored], logprobs, id)
        ballot = msgspec.structs.replace(ballot, source=self.source, references=self.references or ())
        return accept(ballot, options)

    def _logprobs(self, scores: list[float], options: ReadOptions) -> list[float | None]:
        if not scores or options.score_scale == "count":
            return [None] * len(scores)
        if self.totals and options.score_scale is None:
            scale = Scale((options.sign or 1) * LOG_BASES[options.log_base or _BASE])
            return [*scale.logprobs(self.totals, [1] * len(scores))]
        scale_ = scale_of(options, base=_BASE, alpha=None, unsettled=_unsettled(self.where))
        assert scale_ is not None  # "count" was dealt with above
        return [*scale_.logprobs(scores, self._lengths(scale_, len(scores)))]

    def _lengths(self, scale: Scale, size: int) -> list[int]:
        if not scale.alpha:
            return [1] * size
        if not self.subwords:
            raise DataError("has no H- lines, so lengths in tokens are not known")
        return [len(text.split()) + 1 for _, text in self.subwords]


def reader(stream: Stream, options: ReadOptions) -> Iterator[Entry]:
    """One entry for each sample, by ascending id; other lines (the log, A-, W-) are passed over."""
    samples: dict[int, FairseqSample] = {}
    for count, line in enumerate(stream.lines(options.max_line_bytes), 1):
        match = LINE.fullmatch(line)
        if match is None:
            continue
        id = int(match[2])
        sample = samples.get(id)
        if sample is None:
            sample = samples[id] = FairseqSample(f"{stream.name}:{count}")
        try:
            sample.add(match[1], match[3] or b"")
        except DataError as error:
            sample.error = sample.error or error.at(f"{stream.name}:{count}")
    for id in sorted(samples):
        yield _entry(samples.pop(id), id, options)


def _entry(sample: FairseqSample, id: int, options: ReadOptions) -> Entry:
    if sample.error is not None:
        return Entry(sample.error.where, error=sample.error)
    return entry_at(sample.where, lambda: sample.ballot(id, options))


def _unsettled(where: str) -> str:
    return (
        f"{where}: there are no P- lines, and whether H- scores are sums or means depends on how the "
        f"file was made. Pass --normalisation length (fairseq's default; H- lines must show subwords, "
        f"so not with --remove-bpe) or --normalisation none (made with --unnormalized), with "
        f"--log-base e for files from before 2020; or --score-scale count to ignore the scores."
    )
