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
from collections.abc import Iterator

import numpy as np

from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.rules import order
from rangevote.election.settings import Settings
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Array, Ballot
from rangevote.similarity import PRESETS, get_similarity
from rangevote.similarity.base import Measure
from rangevote.web.page_data import CUT, Json, chosen_tokenisation, finite, readable

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


def stability(result: Result) -> Json:
    """Who would have won without each voter: score(c) less P(v) sim(v, c), the other weights summing to 1.

    Voters that count nothing are passed over: without them nothing changes.
    """
    voting = [int(v) for v in np.argsort(-result.weights, kind="stable") if result.weights[v] > 0]
    tried = voting[: max(1, PAIRS // len(result.candidates))]
    if len(voting) < 2:
        why = "nobody voted." if not voting else "there is one voter; without it nobody votes."
        return {"voters": len(voting), "tried": 0, "same": 0, "changes": [], "why": why}
    grades = result.similarity.matrix(result.candidates, result.voters.pick(tried))  # (tried, candidates)
    group_of = {index: group.candidates for group in result.groups for index in group.candidates}
    changes, same, smallest = [], 0, np.inf
    for row, voter in enumerate(tried):
        weight = float(result.weights[voter])
        left = _without(result, voter, grades[row])
        winner = int(order(left, result.candidates)[0])
        margin = _margin(left, group_of[winner])
        if winner == result.leader:
            same, smallest = same + 1, min(smallest, margin)
        else:
            changes.append({"voter": voter, "weight": weight, "winner": winner, "margin": finite(margin)})
    return {
        "voters": len(voting),
        "tried": len(tried),
        "same": same,
        "changes": changes[:CHANGES],
        "smallest_margin": finite(float(smallest)),
        "why": None,
    }


def _without(result: Result, voter: int, grades: Array) -> Array:
    """The scores when one voter, of whom `grades` are, stays away; shape (candidates,).

    Rounded far below a near-tie, so that what is 0 without the voter is 0 and the tie order decides.
    """
    weight = float(result.weights[voter])
    own = np.zeros(len(grades)) if result.likelihood is None else result.likelihood
    if weight <= 0.5:
        given = weight * (grades + np.maximum(own, -sys.float_info.max))  # own likelihood stays
        left = (result.scores - given) / (1.0 - weight)
    else:  # little is left, and a difference would have few right digits: count the others anew
        others = [int(v) for v in np.flatnonzero(result.weights) if v != voter]
        masses = result.weights[others]
        voters = result.voters.pick(others)
        left = result.similarity.tally(result.candidates, voters, masses / math.fsum(masses.tolist())) + own
    rounded: Array = np.round(left, 12) + 0.0  # no -0
    return rounded


def _margin(scores: Array, group: tuple[int, ...]) -> float:
    """How far the group's score is above the best of the others; infinite where there are none."""
    return float(scores[group[0]]) - float(np.delete(scores, group).max(initial=-np.inf))
