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

from rangevote.errors import DataError
from rangevote.formats.exact import decoded
from rangevote.formats.mass import doubt_mass
from rangevote.formats.reader import LOG_BASES, Entry, ReadOptions
from rangevote.formats.score import Scale, number, scale_of, total
from rangevote.formats.stream import Stream
from rangevote.hypothesis import Ballot, Hypothesis

LINE = re.compile(rb"([STHDP])-(\d{1,18})(?:\t(.*))?", re.DOTALL)
_BASE = "2"


@dataclass
class _Sample:
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
            self.source = decoded(content)
        elif kind == b"T":
            self.references.append(decoded(content))
        elif kind == b"P":
            self.totals.append(total(number(p, "P-") for p in content.split()))
        else:
            score, _, text = content.partition(b"\t")
            scored = number(score, f"{kind.decode()}-"), decoded(text)
            (self.subwords if kind == b"H" else self.detokenised).append(scored)

    def ballot(self, id: int, options: ReadOptions) -> Ballot:
        found = self.detokenised or self.subwords
        sizes = {"H-": len(self.subwords), "D-": len(self.detokenised), "P-": len(self.totals)}
        if any(size not in (0, len(found)) for size in sizes.values()):
            shown = ", ".join(f"{size} {kind}" for kind, size in sizes.items())
            raise DataError(f"lines of sample {id} do not match: {shown}")
        logprobs = self._logprobs([score for score, _ in found], options)
        hypotheses = [
            Hypothesis(text, logprob=logprob) for (_, text), logprob in zip(found, logprobs, strict=True)
        ]
        return Ballot(hypotheses, id=id, source=self.source, references=self.references or ())

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
    samples: dict[int, _Sample] = {}
    for count, line in enumerate(stream.lines(options.max_line_bytes), 1):
        found = LINE.fullmatch(line)
        if found is None:
            continue
        id = int(found[2])
        sample = samples.get(id)
        if sample is None:
            sample = samples[id] = _Sample(f"{stream.name}:{count}")
        try:
            sample.add(found[1], found[3] or b"")
        except DataError as error:
            sample.error = sample.error or error.at(f"{stream.name}:{count}")
    for id in sorted(samples):
        yield _entry(samples.pop(id), id, options)


def _entry(sample: _Sample, id: int, options: ReadOptions) -> Entry:
    if sample.error is not None:
        return Entry(sample.error.where, error=sample.error)
    try:
        ballot = sample.ballot(id, options)
        doubt_mass(ballot, options)
    except DataError as error:
        return Entry(sample.where, error=error.at(sample.where))
    return Entry(sample.where, ballot)


def _unsettled(where: str) -> str:
    return (
        f"{where}: there are no P- lines, and whether H- scores are sums or means depends on how the "
        f"file was made. Pass --normalisation length (fairseq's default; H- lines must show subwords, "
        f"so not with --remove-bpe) or --normalisation none (made with --unnormalized), with "
        f"--log-base e for files from before 2020; or --score-scale count to ignore the scores."
    )
