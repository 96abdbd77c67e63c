"""How much each voter counts: by probability, by multiplicity, or by importance weight.

Weights are normalised to sum to 1, with sums that are counted or exact (`math.fsum`), so that no weight
depends on the order of the voters. The members of a panel are weighed one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from rangevote.election.panel import Shares, panel_of
from rangevote.errors import DataError, UsageError, choose
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel import distinct, softmax


def default_weights(voters: Hypotheses) -> str:
    """One rule everywhere: importance where every voter has such a weight; count for samples and
    where a log-probability is not known; else probability."""
    if voters.weights is not None:
        return "importance"
    return "probability" if voters.complete and not voters.sampled else "count"


def probability(voters: Hypotheses, temperature: float, given: Hypotheses) -> Array:
    """P(v)^(1/T), where each distinct sequence votes once: distinct as they were given."""
    logprobs = voters.known_logprobs("weights='probability'", "use weights='count'")
    return softmax(logprobs, temperature, repeated(given))


def repeated(voters: Hypotheses) -> list[int]:
    """Voters that are exact duplicates of an earlier one: the same tokens; or, where only text is
    known, the same text and log-probability."""
    tokens, texts = voters.tokens, voters.texts
    keys: Iterable[tuple[int, object]]
    if tokens is not None:
        keys = ((i, _identity(voters, i) if ids is None else tuple(ids)) for i, ids in enumerate(tokens))
    elif not voters.complete or voters.logprobs is None:
        keys = ((i, _identity(voters, i)) for i in range(len(voters)))
    elif distinct(voters.logprobs):
        return []  # the usual case: numbers are quicker to compare than texts
    else:
        shared = _sharing(voters.logprobs)
        keys = ((i, (texts[i], voters.logprobs[i])) for i in shared) if texts is not None else ()
    seen: set[object] = set()
    return [i for i, key in keys if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def _identity(voters: Hypotheses, index: int) -> tuple[object, object]:
    return voters.content(index), voters.logprob(index)


def _sharing(numbers: Array) -> list[int]:
    """The indices of numbers that occur more than once."""
    ordered = np.sort(numbers)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    indices: list[int] = np.flatnonzero(np.isin(numbers, twice)).tolist()
    return indices


def equal(voters: Hypotheses, temperature: float, given: Hypotheses) -> Array:
    """Every voter the same; right for samples, which come as often as they are probable."""
    return np.full(len(voters), 1.0 / len(voters))


def importance(voters: Hypotheses, temperature: float, given: Hypotheses) -> Array:
    """The voters' own weights, for samples drawn without replacement (stochastic beam search)."""
    if voters.weights is None:
        raise DataError(
            "is not known, which weights='importance' needs (field `weight` of each voter).",
            field=f"{voters.role}[0].weight",
        )
    return _normalised(voters.weights.tolist())


WEIGHTS = {"probability": probability, "count": equal, "importance": importance}


def weigh(
    voters: Hypotheses,
    weights: str | Sequence[float] | None,
    temperature: float,
    given: Hypotheses,
    shares: Shares | None = None,
) -> tuple[str, Array]:
    """The name of the weighting for the signature, and one weight for each voter, summing to 1.

    `given` are the same voters before their texts were normalised or merged, `shares` those of a panel's
    members; where these are weighed differently, the name has all, in the order of the members.
    """
    panel = panel_of(voters, shares)
    if panel is None:
        return _weigh(voters, weights, temperature, given)
    if not (weights is None or isinstance(weights, str)):
        _given(voters, weights)  # one for each voter
    names, column = [], np.zeros(len(voters))
    for (indices, own), (_, own_given) in zip(voters.by_member(), given.by_member(), strict=True):
        some = weights if weights is None or isinstance(weights, str) else [weights[i] for i in indices]
        name, part = _weigh(own, some, temperature, own_given)
        names.append(name)
        column[indices] = panel.shares[voters.members[indices[0]]] * part  # type: ignore[index]
    return names[0] if len(set(names)) == 1 else ",".join(names), column


def _weigh(
    voters: Hypotheses, weights: str | Sequence[float] | None, temperature: float, given: Hypotheses
) -> tuple[str, Array]:
    if weights is None or isinstance(weights, str):
        name = weights or default_weights(voters)
        shares = choose("weights", name, WEIGHTS)(voters, temperature, given)
    else:
        name, shares = "given", _given(voters, weights)
    if not any(shares.tolist()):  # of ten numbers a fifth of the time that numpy's own takes
        raise DataError(
            "all voters have weight 0 (every probability is 0), so nobody votes; use weights='count'.",
            field=voters.role,
        )
    return name, shares


def _given(voters: Hypotheses, weights: Sequence[float]) -> Array:
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
    return _normalised(masses)


def _number(weight: object, index: int) -> float:
    if isinstance(weight, (str, bytes)) or not hasattr(weight, "__float__"):
        raise DataError(f"{weight!r} is not a number.", field=f"weights[{index}]")
    return float(weight)


def _normalised(masses: list[float]) -> Array:
    """Divided by their sum; by the largest first, so that the sum neither overflows nor vanishes."""
    largest = max(masses, default=0.0)
    if not largest > 0:
        return np.zeros(len(masses))
    scaled = [mass / largest for mass in masses]
    return np.array(scaled, dtype=np.float64) / math.fsum(scaled)
