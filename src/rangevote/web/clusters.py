"""How robust a winner is: under other measures, with other lists, and without single voters, as plain data.

`winners` is {name, candidates, voters, measures: [...]}, with {measure, winner, text, score, margin,
near_tie, signature} for each measure, or {measure, why} where it cannot be counted here.

`stability` is {voters, tried, same, changes: [{voter, weight, winner, margin}], smallest_margin, why}: each
of the `tried` weightiest voters was left out once, and in `same` of these elections the winner stayed;
`smallest_margin` is its smallest one in them. `why` says why none was tried, or is null.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.rules import order
from rangevote.election.settings import Settings
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Array, Ballot
from rangevote.similarity import PRESETS, get_similarity
from rangevote.similarity.base import Measure
from rangevote.text import finite
from rangevote.web.api import CUT, Json, chosen_tokenisation, readable

#: The measures that are shown side by side, the paper's first.
MEASURES = (
    "overlap_1",
    "overlap_2",
    "precision_1",
    "precision_2",
    "overlap_1-4",
    "blend",
    "bleu_4",
    "smoothed_bleu_4",
    "chrf",
    "states",
)
#: Rules in which nobody votes, beside them.
BASELINES = ("most_likely", "length_normalised")
#: Pairs that a page waits for: what takes longer belongs on the command line.
PAIRS = 4_000_000
#: Left-out voters whose new winner is listed.
CHANGES = 100


def winners(ballot: Ballot | None, name: str, settings: Settings) -> Json:
    """The winner of one ballot under every measure; without a ballot there is none under any."""
    if ballot is None:
        why = f"the list {name} has no such ballot."
        rows = [{"measure": named, "why": why} for named, _ in variants(settings)]
        return {"name": name, "candidates": 0, "voters": 0, "measures": rows}
    voters = ballot.candidates if ballot.voters is None else ballot.voters
    pairs = len(voters) * len(ballot.candidates)
    return {
        "name": name,
        "candidates": len(ballot.candidates),
        "voters": len(voters),
        "measures": [_row(named, under, ballot, pairs) for named, under in variants(settings)],
    }


def variants(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Each measure by name, with everything else that was given for the page's own election; a preset has
    its own temperature if none was given. Under BLEU and the like this is minimum Bayes risk decoding."""
    tokenize = chosen_tokenisation(settings.measure)
    voting = settings.replace(rule="range", winners=1)
    for name in MEASURES:
        preset = name if name in PRESETS else None
        yield name, voting.replace(similarity=get_similarity(name, tokenize), preset=preset)
    for rule in BASELINES:
        yield rule, voting.replace(rule=rule, temperature=None, likelihood=None)


def _row(name: str, settings: Settings, ballot: Ballot, pairs: int) -> Json:
    measure = settings.measure
    linear = settings.rule in BASELINES or (isinstance(measure, Measure) and measure.linear)
    if not linear and pairs > PAIRS:
        why = f"{pairs:,} pairs are more than a page waits for; use rangevote vote."
        return {"measure": name, "why": why}
    try:
        result = elect_ballot(ballot, settings)
    except RangevoteError as error:
        return {"measure": name, "why": str(error)}
    return {
        "measure": name,
        "winner": result.leader,
        "text": readable(result.candidates, result.leader)[:CUT],
        "score": finite(result.score),
        "margin": finite(result.margin),
        "near_tie": result.near_tie,
        "signature": result.signature,
    }


class Recounts(NamedTuple):
    """The elections in which one voter each stays away."""

    voters: int  # that count; without the others nothing changes
    tried: list[int]  # the weightiest
    scores: Array  # (tried, candidates)
    winners: Array  # (tried,)


def recounts(result: Result, matrix: Array | None = None) -> Recounts:
    """Who would have won without each voter: score(c) less P(v) sim(v, c), the other weights summing to 1.

    `matrix` are the grades of all voters, where they are at hand.
    """
    voting = [int(v) for v in np.argsort(-result.weights, kind="stable") if result.weights[v] > 0]
    tried = voting[: max(1, PAIRS // len(result.candidates))] if len(voting) > 1 else []
    if not tried:
        return Recounts(len(voting), [], np.zeros((0, len(result.candidates))), np.zeros(0, dtype=np.int64))
    if matrix is None:
        grades = result.similarity.matrix(result.candidates, result.voters.pick(tried))
    else:
        grades = matrix[tried]  # (tried, candidates)
    left = _without(result, tried, grades)
    places = np.empty(len(result.candidates))  # among candidates of equal scores
    places[order(np.zeros(len(places)), result.candidates)] = np.arange(len(places))
    best = left.max(axis=1, keepdims=True)
    return Recounts(len(voting), tried, left, np.where(left == best, places, np.inf).argmin(axis=1))


def stability(result: Result, matrix: Array | None = None) -> Json:
    """How often the winner stays without a single voter, and who wins else."""
    voters, tried, left, winners = recounts(result, matrix)
    if not tried:
        why = "there is one voter; without it nobody votes." if voters else "nobody voted."
        none: Json = {"tried": 0, "same": 0, "changes": [], "smallest_margin": None}
        return {"voters": voters, **none, "why": why}
    best = left.max(axis=1)
    margins = best - _best_of_others(left, winners, result)
    same = winners == result.leader
    changes = [
        {
            "voter": tried[row],
            "weight": float(result.weights[tried[row]]),
            "winner": int(winners[row]),
            "margin": finite(float(margins[row])),
        }
        for row in np.flatnonzero(~same)[:CHANGES].tolist()
    ]
    return {
        "voters": voters,
        "tried": len(tried),
        "same": int(same.sum()),
        "changes": changes,
        "smallest_margin": finite(float(margins[same].min(initial=np.inf))),
        "why": None,
    }


def _without(result: Result, tried: Sequence[int], grades: Array) -> Array:
    """The scores when one of `tried`, whose `grades` are a row, stays away; shape (tried, candidates).

    Rounded far below a near-tie, so that what is 0 without the voter is 0 and the tie order decides.
    """
    weights = result.weights[tried][:, None]
    own = np.zeros(grades.shape[1]) if result.likelihood is None else result.likelihood
    with np.errstate(divide="ignore", invalid="ignore"):
        given = weights * (grades + np.maximum(own, -sys.float_info.max))  # own likelihood stays
        left: Array = (result.scores - given) / (1.0 - weights)
    for row in np.flatnonzero(
        weights > 0.5
    ).tolist():  # a difference would have few right digits: count the others
        others = [int(v) for v in np.flatnonzero(result.weights) if v != tried[row]]
        masses = result.weights[others] / math.fsum(result.weights[others].tolist())
        left[row] = result.similarity.tally(result.candidates, result.voters.pick(others), masses) + own
    return np.round(left, 12) + 0.0  # no -0


def _best_of_others(left: Array, winners: Array, result: Result) -> Array:
    """The best score of another group than the winner's, -inf where there is none; shape (tried,)."""
    group = np.empty(len(result.candidates), dtype=np.int64)
    for number, members in enumerate(result.groups):
        group[list(members.candidates)] = number
    others = np.where(group[None, :] == group[winners][:, None], -np.inf, left)
    return np.asarray(others.max(axis=1))
