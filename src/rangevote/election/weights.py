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


def probability(voters: Hypotheses, temperature: float) -> list[float]:
    """P(v)^(1/T), where each distinct sequence votes once."""
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
    masses = list(map(math.exp, ((logprobs - largest) / temperature).tolist()))
    for index in repeated(voters):
        masses[index] = 0.0
    return masses


def repeated(voters: Hypotheses) -> list[int]:
    """Voters that are exact duplicates of an earlier one: the same tokens; or, where only text is
    known, the same text and log-probability."""
    if voters.tokens is not None and None not in voters.tokens:
        keys: Sequence[object] = [tuple(ids) for ids in voters.tokens if ids is not None]
    else:
        texts = voters.texts or []
        if len(set(texts)) == len(texts):
            return []
        logprobs = [] if voters.logprobs is None else voters.logprobs.tolist()
        keys = list(zip(texts, logprobs, strict=True))
    if len(set(keys)) == len(keys):
        return []
    seen: set[object] = set()
    return [i for i, key in enumerate(keys) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def count(voters: Hypotheses, temperature: float) -> list[float]:
    """Every voter the same; right for samples, which come as often as they are probable."""
    return [1.0] * len(voters)


def importance(voters: Hypotheses, temperature: float) -> list[float]:
    """The voters' own weights, for samples drawn without replacement (stochastic beam search)."""
    if voters.weights is None:
        raise DataError(
            "is not known, which weights='importance' needs (field `weight` of each voter).",
            field=f"{voters.role}[0].weight",
        )
    weights: list[float] = voters.weights.tolist()
    return weights


WEIGHTS = {"probability": probability, "count": count, "importance": importance}


def weigh(voters: Hypotheses, weights: str | Sequence[float] | None, temperature: float) -> tuple[str, Array]:
    """The name of the weighting for the signature, and one weight for each voter, summing to 1."""
    if weights is None or isinstance(weights, str):
        name = weights or default_weights(voters)
        masses = choose("weights", name, WEIGHTS)(voters, temperature)
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
    masses = [float(weight) for weight in weights]
    if len(masses) != len(voters):
        raise UsageError(f"{len(voters)} voters but {len(masses)} weights; give exactly one for each.")
    for i, mass in enumerate(masses):
        if not math.isfinite(mass) or mass < 0:
            raise DataError(f"{mass!r} is not a weight; weights are finite and >= 0.", field=f"weights[{i}]")
    largest = max(masses, default=0.0)
    return [mass / largest for mass in masses] if largest > 0 else masses
