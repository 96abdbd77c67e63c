"""How much each voter counts: by probability, by multiplicity, by importance weight, or by confidence.

Weights are normalised to sum to 1, with sums that are counted or exact (`math.fsum`), so that no weight
depends on the order of the voters.

The members of a panel (several models or files) are weighed one by one, by what is known of each alone, and
each has its share of the vote, however many outputs it has:

    score(c) = sum over members m of share(m) * sum over the voters v of m of P_m(v) sim(v, c)

A member without voters is left out, and the others divide its share in proportion to theirs. A member whose
share is 0 stands and does not vote, unless all that are there have none: then they vote with equal shares.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from rangevote.errors import DataError, UsageError, shown, warn
from rangevote.hypothesis import Array, Hypotheses, Hypothesis, is_number
from rangevote.kernel import softmax
from rangevote.similarity.base import number_text

#: Rounding in files of few digits may make probabilities sum to this much more than 1.
MASS_SLACK = 1e-3


def default_weights(voters: Hypotheses) -> str:
    """One rule everywhere: importance where every voter has such a weight; count for samples and
    where a log-probability is not known; otherwise probability."""
    if voters.weights is not None and not np.isnan(voters.weights).any():
        return "importance"
    return "probability" if voters.complete and not voters.sampled else "count"


def probability(voters: Hypotheses, temperature: float, original: Hypotheses) -> Array:
    """P(v)^(1/T), where each distinct sequence votes once: distinct as they were given."""
    logprobs = voters.known_logprobs("weights='probability'", "use weights='count'")
    return softmax(logprobs, temperature, repeated(original))


def repeated(voters: Hypotheses) -> list[int]:
    """Voters that are exact duplicates of an earlier one: the same tokens; or, where only text is
    known, the same text and log-probability."""
    if voters.tokens is None and voters.complete and len(set(voters.numbers or ())) == len(voters):
        return []  # the usual case: numbers are quicker to compare than texts
    tokens = voters.tokens or [None] * len(voters)
    first: dict[object, int] = {}
    for i, ids in enumerate(tokens):
        first.setdefault((voters.content(i), voters.logprob(i)) if ids is None else tuple(ids), i)
    kept = set(first.values())
    return [i for i in range(len(voters)) if i not in kept]


def distinct_mass(hypotheses: Iterable[Hypothesis]) -> float:
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


def equal(voters: Hypotheses, temperature: float, original: Hypotheses) -> Array:
    """Every voter the same; right for samples, which come as often as they are probable."""
    return np.full(len(voters), 1.0 / len(voters))


def importance(voters: Hypotheses, temperature: float, original: Hypotheses) -> Array:
    """The voters' own weights, for samples drawn without replacement (stochastic beam search)."""
    if voters.weights is None or np.isnan(voters.weights).any():
        raise DataError(
            "is missing; weights='importance' needs the field `weight` of every voter.",
            field=f"{voters.role}[0].weight",
        )
    return _normalised(voters.weights.tolist())


def confidence(voters: Hypotheses, temperature: float, original: Hypotheses) -> Array:
    """exp(c / T), where c is the mean log-probability of the voter's tokens, whatever it wrote to itself
    included: samples of which the model is sure count more (self-consistency by confidence)."""
    if any(voter.token_logprobs is None for voter in original):
        totals = original.known_logprobs("weights='confidence'", "token_logprobs, or use weights='count'")
        return softmax(totals / original.lengths(), temperature, [])
    logprobs = _token_logprobs(original, "confidence")
    return _confident([math.fsum(row) / len(row) if row else 0.0 for row in logprobs], temperature)


def lowest_confidence(voters: Hypotheses, temperature: float, original: Hypotheses) -> Array:
    """The same, where c is that of the least confident group of neighbouring tokens."""
    logprobs = _token_logprobs(original, "lowest_confidence")
    return _confident([min(_group_means(row)) for row in logprobs], temperature)


def last_confidence(voters: Hypotheses, temperature: float, original: Hypotheses) -> Array:
    """The same, where c is that of the last group of tokens, with the answer in it."""
    logprobs = _token_logprobs(original, "last_confidence")
    return _confident([_group_means(row)[-1] for row in logprobs], temperature)


def _group_means(logprobs: Sequence[float]) -> list[float]:
    """The mean of each group of neighbouring tokens, in order: a tenth of the tokens, at least 16 (of all
    where there are fewer) and at most 2,048."""
    if not logprobs:
        return [0.0]
    size = min(max(16, len(logprobs) // 10), 2048, len(logprobs))
    sums = np.cumsum([0.0, *logprobs])
    means: list[float] = ((sums[size:] - sums[:-size]) / size).tolist()
    return means


def _confident(confidences: Sequence[float], temperature: float) -> Array:
    return softmax(np.array(confidences, dtype=np.float64), temperature, [])


def _token_logprobs(voters: Hypotheses, scheme: str) -> list[Sequence[float]]:
    """Those of every voter; the first without them is named."""
    for i, voter in enumerate(voters):
        if voter.token_logprobs is None:
            raise DataError(
                f"is missing; weights={scheme!r} needs it for every voter. Give it, or use weights='count'.",
                field=f"{voters.role}[{i}].token_logprobs",
            )
    return [voter.token_logprobs or () for voter in voters]


#: By the confidence of a model in its own samples; off unless asked for.
CONFIDENCE = {
    "confidence": confidence,
    "last_confidence": last_confidence,
    "lowest_confidence": lowest_confidence,
}
WEIGHTS = {"probability": probability, "count": equal, "importance": importance, **CONFIDENCE}


def weigh(
    voters: Hypotheses,
    weights: str | Sequence[float] | None,
    temperature: float,
    original: Hypotheses,
    shares: Shares | str | None = None,
) -> tuple[str, Array]:
    """The name of the weighting for the signature, and one weight for each voter, summing to 1.

    `original` are the same voters before their texts were normalised or merged, `shares` those of a panel's
    members; where these are weighed differently, the name has all, in the order of the members.
    """
    panel = panel_of(voters, shares)
    if panel is None:
        return _weigh(voters, weights, temperature, original)
    names, column = [], np.zeros(len(voters))
    for indices, name, part in weigh_members(voters, weights, temperature, original):
        names.append(name)
        column[indices] = panel.shares[voters.members[indices[0]]] * part  # type: ignore[index]
    return names[0] if len(set(names)) == 1 else ",".join(names), column


def weigh_members(
    voters: Hypotheses, weights: str | Sequence[float] | None, temperature: float, original: Hypotheses
) -> Iterator[tuple[list[int], str, Array]]:
    """The voters of each member, the name of their weighting, and their weights, which sum to 1."""
    if not (weights is None or isinstance(weights, str)):
        _numbers(voters, weights)  # one for each voter
    for (indices, part), (_, original_part) in zip(voters.by_member(), original.by_member(), strict=True):
        scheme = weights if weights is None or isinstance(weights, str) else [weights[i] for i in indices]
        yield indices, *_weigh(part, scheme, temperature, original_part)


def _weigh(
    voters: Hypotheses, weights: str | Sequence[float] | None, temperature: float, original: Hypotheses
) -> tuple[str, Array]:
    if weights is None or isinstance(weights, str):
        name = weights or default_weights(voters)
        shares = WEIGHTS[name](voters, temperature, original)
    else:
        name, shares = "given", _numbers(voters, weights)
    if not any(shares.tolist()):  # of ten numbers a fifth of the time that numpy's own takes
        raise DataError(
            "all voters have weight 0 (every probability is 0), so nobody votes; use weights='count'.",
            field=voters.role,
        )
    return name, shares


def _numbers(voters: Hypotheses, weights: Sequence[float]) -> Array:
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


# Panels


Shares = Mapping[str, float]
#: Shares by the agreement of members over many ballots: `rangevote.election.agreement`.
AGREEMENT: Final = "agreement"
#: In a signature these stand for themselves nowhere else.
_ESCAPES = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%|,="})


class PanelShares(NamedTuple):
    """The members' shares, by name, summing to 1, and those that are left out since they have no voters."""

    shares: dict[str, float]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        """For signatures: `panel:a=0.7,b=0.3`, `panel:a=1|out:b`."""
        shares = (f"{name.translate(_ESCAPES)}={number_text(share)}" for name, share in self.shares.items())
        out = "|out:" + ",".join(name.translate(_ESCAPES) for name in self.left_out) if self.left_out else ""
        return f"panel:{','.join(shares)}{out}"


def check_shares(name: str, shares: Shares | str) -> None:
    """Refuse what cannot be a panel's shares; they need not sum to 1."""
    if shares == AGREEMENT:
        return
    if not isinstance(shares, Mapping) or not shares:
        raise UsageError(
            f"{name} must be a number for each member of the panel, such as {{'a': 0.7, 'b': 0.3}}, or "
            f"{AGREEMENT!r}; got {shown(shares)}."
        )
    for member, share in shares.items():
        if not isinstance(member, str) or not is_number(share) or not 0 <= share <= sys.float_info.max:
            raise UsageError(
                f"the share of {member!r} must be a number from 0, got {shown(share)}; 0 is for a member "
                f"that is not to vote."
            )
    if not any(shares.values()):
        raise UsageError("every member has the share 0, so nobody votes; give one of them a number above 0.")


def warn_of_self_election(panel: PanelShares, candidates: Hypotheses) -> None:
    """Warn of a member whose only candidate the others cannot outvote. (Of two members with equal shares
    neither outvotes the other.)"""
    most = 0.5 if len(panel.shares) > 2 else math.nextafter(0.5, 1.0)
    for name in [name for name, share in panel.shares.items() if share >= most and len(panel.shares) > 1]:
        if (candidates.members or []).count(name) == 1:
            warn(
                f"the member {name!r} has one output and at least half of the shares, so it elects itself: "
                f"the others cannot outvote it. Give it a smaller share, or more outputs."
            )


def panel_of(voters: Hypotheses, shares: Shares | str | None) -> PanelShares | None:
    """The panel that these voters are; None where they belong to no members."""
    if isinstance(shares, str):
        raise UsageError(
            f"shares={shares!r} is found over many ballots, and this is one: use elect_many(ballots, "
            f"shares='agreement', ...), or give rangevote.agreement_shares(ballots, ...).shares."
        )
    if voters.members is None:
        if shares is not None:
            raise UsageError(
                "shares are for a panel; give candidates or voters by member ({'a': [...], 'b': [...]}), "
                "or each of them a member; on the command line, give a file for each member."
            )
        return None
    if shares is None:
        return _equal_shares(frozenset(voters.members))
    present = sorted(set(voters.members))
    for name in present:
        if name not in shares:
            raise DataError(
                f"{name!r} has no share; shares are given for {', '.join(map(repr, shares))}. Give each "
                f"member one, 0 if it is not to vote.",
                field=f"{voters.role}[{voters.members.index(name)}].member",
            )
    largest = max(shares[name] for name in present)  # their sum neither overflows nor vanishes
    scaled = {name: shares[name] / largest if largest else 1.0 for name in present}
    total = math.fsum(scaled.values())
    return PanelShares(
        {name: share / total for name, share in scaled.items()},
        tuple(sorted(name for name in shares if name not in scaled)),
    )


@lru_cache(maxsize=64)
def _equal_shares(members: frozenset[str]) -> PanelShares:
    """Kept for the next ballot, which most often has the same members."""
    return PanelShares(dict.fromkeys(sorted(members), 1.0 / len(members)), ())
