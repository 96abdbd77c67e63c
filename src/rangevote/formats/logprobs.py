"""Scores of foreign formats to log-probabilities: natural-log sums over all tokens.

A score may be in another base, negated, or divided by a power of its length; some are no
log-probability at all. What a file leaves open is settled by an option, never by a guess. Probabilities that
add up to more than 1 are none, which is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rangevote.errors import DataError, UsageError
from rangevote.formats.reader import LOG_BASES, NORMALISATIONS, ReadOptions
from rangevote.hypothesis import Ballot, Hypothesis, check, check_logprob

#: Rounding in files of few digits may make probabilities add up to this much more than 1.
MASS_SLACK = 1e-3


@dataclass(frozen=True)
class Scale:
    """log P = factor * score * length ** alpha; or, with `softmax`, log softmax(factor * score)."""

    factor: float
    alpha: float = 0.0
    softmax: bool = False

    def logprobs(self, scores: Sequence[float], lengths: Sequence[int]) -> list[float]:
        """The log-probabilities of one ballot's scores; lengths count the end of the sequence."""
        if self.softmax:
            return _log_softmax([self.factor * score for score in scores])
        return [
            checked(self.factor * score * self._stretch(length, i) if self.alpha else self.factor * score, i)
            for i, (score, length) in enumerate(zip(scores, lengths, strict=True))
        ]

    def _stretch(self, length: int, index: int) -> float:
        """What a score was divided by."""
        try:
            return float(length**self.alpha)
        except OverflowError:
            raise DataError(
                f"a length of {length:,} to the power {self.alpha:g} (--normalisation) is beyond all numbers",
                field=f"candidates[{index}]",
            ) from None


def scale_of(
    options: ReadOptions, *, base: str = "e", alpha: float | None = 0.0, sign: int = 1, unsettled: str = ""
) -> Scale | None:
    """How this file's scores are meant: the format's own way, and the options over it.

    None means that scores are to be ignored. Where the format leaves the normalisation open
    (`alpha=None`), the message `unsettled` is raised unless an option settles it.
    """
    if options.score_scale == "count":
        return None
    sign = options.sign or sign
    if options.score_scale is not None:
        return Scale(sign * float(options.score_scale), softmax=True)
    if options.normalisation is not None:
        given = options.normalisation
        alpha = NORMALISATIONS[given] if isinstance(given, str) else float(given)
    if alpha is None:
        raise UsageError(unsettled)
    return Scale(sign * LOG_BASES[options.log_base or base], alpha)


def settled(options: ReadOptions, format: str) -> bool:
    """Whether to read the scores of a format that leaves nothing open for options to settle."""
    given = {
        "--log-base": options.log_base,
        "--normalisation": options.normalisation,
        "--sign": options.sign,
        "--score-scale": None if options.score_scale == "count" else options.score_scale,
    }
    for option, value in given.items():
        if value is not None:
            raise UsageError(
                f"{option} does not apply to the format {format!r}, whose scores have one meaning "
                f"only; leave it out, or pass --score-scale count to ignore the scores."
            )
    return options.score_scale != "count"


def checked(logprob: float, index: int, role: str = "candidates") -> float:
    """A log-probability that can be one; if a score makes none, options may tell what it is."""
    try:
        return check_logprob(logprob, f"{role}[{index}].logprob")
    except DataError as error:
        hint = "Scores that are costs need --sign -, scores of another kind --score-scale."
        raise DataError(f"{error.problem} {hint}", field=error.field) from None


def number(text: bytes, what: str) -> float:
    """A number as programs print it; what Python alone allows (1_000) is refused."""
    try:
        if b"_" in text:
            raise ValueError
        value = float(text)
    except ValueError:
        shown = text[:40].decode("utf-8", "replace")
        raise DataError(f"{what}: expected a number, got {shown!r}") from None
    if math.isnan(value):
        raise DataError(f"{what}: NaN is not a score")
    return value


def total(values: Iterable[float]) -> float:
    """The sum, rounded once; infinite where it is beyond all numbers, NaN of both infinities."""
    listed = list(values)
    try:
        return math.fsum(listed)
    except (OverflowError, ValueError):
        return sum(listed)


def _log_softmax(values: list[float]) -> list[float]:
    top = max(values, default=0.0)
    if any(map(math.isnan, values)):
        raise DataError("scores cannot be weighed: one of them is NaN")
    if math.isinf(top):
        raise DataError(f"scores cannot be weighed: the highest is {top!r}")
    rest = math.log(sum(math.exp(value - top) for value in values)) if values else 0.0
    return [min(value - top - rest, 0.0) for value in values]


def scored_ballot(texts: Sequence[str], logprobs: Sequence[float | None], id: str | int | None) -> Ballot:
    return Ballot([Hypothesis(text, logprob=p) for text, p in zip(texts, logprobs, strict=True)], id=id)


def accept(ballot: Ballot, options: ReadOptions, role: str = "candidates") -> Ballot:
    """The ballot, if all its values are valid; `role` is what its file calls the candidates.

    Probabilities of distinct sequences that exceed 1 together are reported.
    """
    check(ballot, role)
    for role, hypotheses in (("candidates", ballot.candidates), ("voters", ballot.voters or ())):
        logprobs = [h.logprob for h in hypotheses if h.logprob is not None]
        if sum(map(math.exp, logprobs)) <= 1:  # a bound: equal sequences are all in it
            continue
        mass = _mass(hypotheses)
        if mass > 1 + MASS_SLACK:
            options.report(
                f"log-probabilities look length-normalised, or are not natural logs: those of distinct "
                f"sequences add up to P = {mass:.4g}. Give sums of natural logs over all tokens, or "
                f"say what they are with --log-base and --normalisation",
                field=role,
                key=("mass", role),
            )
    return ballot


def _mass(hypotheses: Sequence[Hypothesis]) -> float:
    """Sum of P over distinct sequences; of equal ones the most likely counts.

    Samples of one text differ in the last digits of their log-probability where they were computed
    in different batches, so (text, logprob) would count them twice.
    """
    best: dict[object, float] = {}
    for hypothesis in hypotheses:
        if hypothesis.logprob is not None:
            tokens = hypothesis.tokens
            key = hypothesis.text if tokens is None else tuple(tokens)
            best[key] = max(best.get(key, -math.inf), hypothesis.logprob)
    return math.fsum(map(math.exp, best.values()))
