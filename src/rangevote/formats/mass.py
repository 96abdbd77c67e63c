"""Do the probabilities of a list add up to more than 1? Then they are none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rangevote.formats.reader import ReadOptions
from rangevote.hypothesis import Ballot, Hypothesis

#: Rounding in files of few digits may exceed 1 by this much.
MASS_SLACK = 1e-3


def doubt_mass(ballot: Ballot, options: ReadOptions) -> None:
    """Warn (or refuse, where strict) if distinct sequences have a probability over 1 together."""
    _doubt("candidates", ballot.candidates, options)
    if ballot.voters is not None:
        _doubt("voters", ballot.voters, options)


def _doubt(role: str, hypotheses: Sequence[Hypothesis], options: ReadOptions) -> None:
    logprobs = [h.logprob for h in hypotheses if h.logprob is not None]
    # cheap bound first: n times the largest is seldom over 1 and settles nearly every real list
    if not logprobs or len(logprobs) * math.exp(min(max(logprobs), 0.0)) <= 1 + MASS_SLACK:
        return
    mass = _mass(hypotheses)
    if mass > 1 + MASS_SLACK:
        options.report(
            f"log-probabilities look length-normalised, or are not natural logs: those of distinct "
            f"sequences add up to P = {mass:.4g}. Give sums of natural logs over all tokens, or "
            f"say what they are with --log-base and --normalisation",
            field=role,
            key=("mass", role),
        )


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
