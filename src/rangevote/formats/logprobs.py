"""Scores of foreign formats to log-probabilities: natural-log sums over all tokens.

A score may be in another base, negated, or divided by a power of its length, or no log-probability at all.
Where a file does not say, an option has to; nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from rangevote.errors import DataError, UsageError
from rangevote.formats.reader import LOG_BASES, NORMALISATIONS, ReadOptions
from rangevote.hypothesis import Hypothesis, check_logprob


@dataclass(frozen=True)
class Scale:
    """log P = factor * score * length ** alpha; or, with `softmax`, log softmax(factor * score).

    If the normalisation is not known, `alpha` is None, and scores raise the message `unsettled`.
    `words`: texts are the model's tokens, joined by spaces, so words give the length. `complete`: scores
    count the end of the sequence, so the probabilities of a ballot add up to at most 1.
    """

    factor: float = 1.0
    alpha: float | None = 0.0
    softmax: bool = False
    words: bool = False
    complete: bool = True
    unsettled: str = ""

    def apply(self, hypotheses: Sequence[Hypothesis], role: str = "candidates") -> list[Hypothesis]:
        """Hypotheses with log-probabilities in place of their scores."""
        scored = {i: self.factor * one.logprob for i, one in enumerate(hypotheses) if one.logprob is not None}
        if scored and self.alpha is None:
            raise UsageError(self.unsettled)
        if self.softmax:
            scored = dict(zip(scored, _log_softmax(list(scored.values())), strict=True))
        elif self.alpha:
            scored = {i: score * self._divisor(hypotheses[i], i, role) for i, score in scored.items()}
        result = list(hypotheses)
        for i, score in scored.items():
            result[i] = msgspec.structs.replace(hypotheses[i], logprob=checked(score, i, role))
        return result

    def _divisor(self, hypothesis: Hypothesis, index: int, role: str) -> float:
        """What the score was divided by: a power of the length, which counts the end of the sequence."""
        if self.words and hypothesis.text is not None:
            length = len(hypothesis.text.split()) + 1
        elif hypothesis.tokens is not None:
            length = len(hypothesis.tokens) + hypothesis.finished
        else:
            raise DataError(
                "has no token ids, so its length in tokens is not known; a length-normalised "
                "score cannot be turned into a sum",
                field=f"{role}[{index}].tokens",
            )
        try:
            return float(length ** (self.alpha or 0.0))
        except OverflowError:
            problem = f"a length of {length:,} to the power {self.alpha:g} (--length-normalised) is beyond"
            raise DataError(f"{problem} all numbers", field=role) from None


AS_IS = Scale()


def scale_of(
    options: ReadOptions,
    *,
    base: str = "e",
    alpha: float | None = 0.0,
    sign: int = 1,
    words: bool = False,
    unsettled: str = "",
) -> Scale | None:
    """The scale of the format, unless options say otherwise; None: ignore the scores."""
    if options.score_scale == "count":
        return None
    sign = options.sign or sign
    if options.score_scale is not None:
        return Scale(sign * float(options.score_scale), softmax=True)
    power = options.normalisation
    if power is not None:
        alpha = NORMALISATIONS[power] if isinstance(power, str) else float(power)
    return Scale(sign * LOG_BASES[options.log_base or base], alpha, words=words, unsettled=unsettled)


def ballot_scale(options: ReadOptions) -> Scale | None:
    """The scale of log-probabilities in ballots; None: ignore them."""
    if options.sign == -1 and options.score_scale != "count":
        format = options.format or "jsonl"
        raise UsageError(f"--sign - does not apply to the format {format!r}: a logprob is never positive.")
    return scale_of(options) if options.score_options else AS_IS


def fixed_scale(options: ReadOptions, *, complete: bool = True) -> Scale | None:
    """The scale of a format whose scores have one meaning: options may only ignore them."""
    for option, value in options.score_options.items():
        if value != "count":
            raise UsageError(
                f"{option} does not apply to the format {options.format!r}, whose scores "
                f"have one meaning only; leave it out, or pass --score-scale count to ignore the scores."
            )
    if options.score_scale is not None:
        return None
    return AS_IS if complete else Scale(complete=False)


def checked(logprob: float, index: int, role: str = "candidates") -> float:
    """A valid log-probability; the error of another number names the options that may help."""
    try:
        return check_logprob(logprob, f"{role}[{index}].logprob")
    except DataError as error:
        hint = "Scores that are costs need --sign -, scores of another kind --score-scale."
        raise DataError(f"{error.problem} {hint}", field=error.field) from None


def number(text: bytes, what: str) -> float:
    """A number as programs print it; spellings that only Python has (1_000) are refused."""
    try:
        if b"_" in text:
            raise ValueError
        value = float(text)
    except ValueError:
        excerpt = text[:40].decode("utf-8", "replace")
        raise DataError(f"{what}: expected a number, got {excerpt!r}") from None
    if math.isnan(value):
        raise DataError(f"{what}: NaN is not a score")
    return value


def total(values: Iterable[float]) -> float:
    """The sum, rounded once; infinite on overflow, NaN if both infinities are in it."""
    numbers = list(values)
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return sum(numbers)


def _log_softmax(values: list[float]) -> list[float]:
    top = max(values, default=0.0)
    if any(map(math.isnan, values)):
        raise DataError("scores cannot be weighed: one of them is NaN")
    if math.isinf(top):
        raise DataError(f"scores cannot be weighed: the highest is {top!r}")
    rest = math.log(sum(math.exp(value - top) for value in values)) if values else 0.0
    return [min(value - top - rest, 0.0) for value in values]
