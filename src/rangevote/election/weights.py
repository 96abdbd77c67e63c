"""How much each voter counts: by probability, by multiplicity, or by importance weight.

Weights are normalised to sum to 1. Sums use `math.fsum`, which is exact, so no weight depends on the
order of the voters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rangevote.errors import DataError, UsageError, choose
from rangevote.hypothesis import Array, Hypotheses


def default_weights(voters: Hypotheses) -> str:
    """One rule everywhere: importance where every voter has such a weight; count for samples and
    where a log-probability is not known; else probability."""
    if voters.weights is not None:
        return "importance"
    return "probability" if voters.complete and not voters.sampled else "count"


def probability(voters: Hypotheses, temperature: float, given: Hypotheses) -> list[float]:
    """P(v)^(1/T), where each distinct sequence votes once: distinct as they were given."""
    logprobs = voters.logprobs
    if logprobs is None or not voters.complete:
        index = 0 if logprobs is None else int(np.flatnonzero(np.isnan(logprobs))[0])
        raise DataError(
            "is not known, which weights='probability' needs; give it, or use weights='count'.",
            field=f"{voters.role}[{index}].logprob",
        )
    largest = float(logprobs.max(initial=-math.inf))
    if largest == -math.inf:
        return [0.0] * len(voters)
    # math.exp, not numpy's: one value for one number, on every machine of a kind and in any place
    with np.errstate(over="ignore"):  # near temperature 0 the exponent is minus infinity, and P is 0
        masses = list(map(math.exp, ((logprobs - largest) / temperature).tolist()))
    for index in repeated(given):
        masses[index] = 0.0
    return masses


def repeated(voters: Hypotheses) -> list[int]:
    """Voters that are exact duplicates of an earlier one: the same tokens; or, where only text is
    known, the same text and log-probability."""
    logprobs = [] if voters.logprobs is None else voters.logprobs.tolist()
    keys: list[object]
    if voters.tokens is None:
        if len(set(logprobs)) == len(logprobs):  # the usual case, and numbers are quicker to hash than texts
            return []
        keys = list(zip(voters.texts or (), logprobs, strict=True))
    else:
        texts = voters.texts or [""] * len(voters)
        keys = [
            (text, logprob) if ids is None else tuple(ids)
            for text, logprob, ids in zip(texts, logprobs, voters.tokens, strict=True)
        ]
    if len(set(keys)) == len(keys):
        return []
    seen: set[object] = set()
    return [i for i, key in enumerate(keys) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def count(voters: Hypotheses, temperature: float, given: Hypotheses) -> list[float]:
    """Every voter the same; right for samples, which come as often as they are probable."""
    return [1.0] * len(voters)


def importance(voters: Hypotheses, temperature: float, given: Hypotheses) -> list[float]:
    """The voters' own weights, for samples drawn without replacement (stochastic beam search)."""
    if voters.weights is None:
        raise DataError(
            "is not known, which weights='importance' needs (field `weight` of each voter).",
            field=f"{voters.role}[0].weight",
        )
    return _scaled(voters.weights.tolist())


WEIGHTS = {"probability": probability, "count": count, "importance": importance}


def weigh(
    voters: Hypotheses, weights: str | Sequence[float] | None, temperature: float, given: Hypotheses
) -> tuple[str, Array]:
    """The name of the weighting for the signature, and one weight for each voter, summing to 1.

    `given` are the same voters before their texts were normalised or merged.
    """
    if weights is None or isinstance(weights, str):
        name = weights or default_weights(voters)
        masses = choose("weights", name, WEIGHTS)(voters, temperature, given)
    else:
        name, masses = "given", _given(voters, weights)
    total = math.fsum(masses)
    if len(voters) and not total > 0:
        raise DataError(
            "all voters have weight 0 (every probability is 0), so nobody votes; use weights='count'.",
            field=voters.role,
        )
    return name, np.array(masses, dtype=np.float64) / (total or 1.0)


def _given(voters: Hypotheses, weights: Sequence[float]) -> list[float]:
    try:
        masses = [_number(weight, i) for i, weight in enumerate(weights)]
    except TypeError:
        raise UsageError(
            f"weights must be {', '.join(sorted(WEIGHTS))}, or one number for each voter; got {weights!r}."
        ) from None
    if len(masses) != len(voters):
        raise UsageError(f"{len(voters)} voters but {len(masses)} weights; give exactly one for each.")
    for i, mass in enumerate(masses):
        if not math.isfinite(mass) or mass < 0:
            raise DataError(f"{mass!r} is not a weight; weights are finite and >= 0.", field=f"weights[{i}]")
    return _scaled(masses)


def _number(weight: object, index: int) -> float:
    if isinstance(weight, (str, bytes)) or not hasattr(weight, "__float__"):
        raise DataError(f"{weight!r} is not a number.", field=f"weights[{index}]")
    return float(weight)


def _scaled(masses: list[float]) -> list[float]:
    """Divided by the largest, so that sums neither overflow nor vanish."""
    largest = max(masses, default=0.0)
    return [mass / largest for mass in masses] if largest > 0 else masses
