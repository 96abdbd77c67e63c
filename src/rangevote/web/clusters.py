"""How firm a winner is: similar candidates, grades, and the winners under other settings."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.rules import ranked
from rangevote.election.settings import Settings
from rangevote.election.weights import WEIGHTS
from rangevote.errors import RangevoteError, UsageError, need, without_warnings
from rangevote.hypothesis import Array, Ballot
from rangevote.similarity import PRESETS
from rangevote.text import finite
from rangevote.web.api import (
    CUT,
    DIGITS,
    Change,
    Cluster,
    ElectedBallot,
    Grades,
    MeasureWinner,
    MeasureWinners,
    Order,
    Stability,
    readable,
    voter_order,
)

#: The measures that are shown side by side, the paper's first.
MEASURES = (
    *("overlap_1", "overlap_2", "precision_1", "precision_2", "overlap_1-4", "blend", "bleu_4"),
    *("smoothed_bleu_4", "chrf", "states"),
)
#: Rules without voters, shown beside them.
BASELINES = ("most_likely", "length_normalised")
#: Pairs of voter and candidate that a page waits for.
PAIRS = 4_000_000
#: Rows and columns of grades that are shown.
GRADED = 100
#: The share of recounts without one voter from which on a winner is called firm.
FIRM = 0.9
#: Left-out voters whose new winner is listed.
CHANGES = 100
#: Clusters that get a name, and the words of a name and of a text that is read for it.
NAMED, LONGEST, READ = 8, 5, 300


class WhatIf(msgspec.Struct, frozen=True):
    """The settings that the reader of the page has changed; None: not changed.

    `voters="candidates"`: they vote instead of the voters given. `without`: this voter is left out. Only
    measures that the page offers can be named, since others may load models.
    """

    similarity: Literal[MEASURES] | None = None  # type: ignore[valid-type]
    temperature: Annotated[float, Meta(ge=0.01, le=100)] | None = None
    likelihood: Annotated[float, Meta(ge=0, le=100)] | None = None
    weights: Literal[tuple(WEIGHTS)] | None = None  # type: ignore[valid-type]
    voters: Literal["candidates"] | None = None
    without: Annotated[int, Meta(ge=0, lt=10**9)] | None = None

    def apply(self, ballot: Ballot, settings: Settings) -> tuple[Ballot, Settings]:
        """The ballot and the settings of the other election."""
        changed: dict[str, Any] = {}
        if self.similarity is not None:
            preset = self.similarity if self.similarity in PRESETS else None
            changed = {"similarity": self.similarity, "preset": preset}
        for name in ("temperature", "likelihood", "weights"):
            if getattr(self, name) is not None:
                changed[name] = getattr(self, name)
        if self.weights not in (None, "probability"):
            changed["temperature"] = None  # it applies to probabilities
        voters = None if self.voters is not None else ballot.voters
        if self.without is not None:
            electors = ballot.candidates if voters is None else voters
            if self.without >= len(electors) or len(electors) < 2:
                raise UsageError(f"there is no voter {self.without} to leave out of {len(electors):,}.")
            voters = [voter for v, voter in enumerate(electors) if v != self.without]
        return msgspec.structs.replace(ballot, voters=voters), settings.replace(**changed)


def grades(elected: ElectedBallot) -> Grades:
    """How each voter grades each candidate: the first `GRADED` of both, rows are voters."""
    result = elected.result
    rows, columns = voter_order(result)[:GRADED], list(result.ranking[:GRADED])
    if not rows:
        return Grades([], columns, [], [], Order([], []))
    same, few = result.voters is result.candidates, result.candidates.pick(columns)
    matrix = elected.grades(rows, columns)
    alike = matrix if same else result.similarity.matrix(few, few)
    groups, by_candidate = clusters((alike + alike.T) / 2)
    words = [readable(few, i).split()[:READ] for i in range(len(few))]
    listing = [Cluster(one.name, [columns[member] for member in one.members]) for one in named(groups, words)]
    by_voter = by_candidate
    if not same:  # beside the cluster that they support most
        place = np.argsort(by_candidate)
        by_voter = np.argsort(place[matrix.argmax(axis=1)], kind="stable").tolist()
    return Grades(rows, columns, np.round(matrix, DIGITS).tolist(), listing, Order(by_voter, by_candidate))


def clusters(alike: Array) -> tuple[list[list[int]], list[int]]:
    """Clusters by average linkage of `alike` (n, n), symmetric; and an order that keeps clusters together.

    Candidates are joined while they are more alike than the mean pair by over a standard deviation.
    """
    n = len(alike)
    if n < 2:
        return [list(range(n))], list(range(n))
    hierarchy = need("scipy.cluster.hierarchy", "web", "clusters of candidates")
    pairs = alike[np.triu_indices(n, 1)]
    joins = hierarchy.linkage(pairs.max() - pairs, "average")
    usual = pairs.max() - pairs.mean() - pairs.std()
    numbers = hierarchy.fcluster(joins, np.nextafter(usual, -np.inf), "distance")
    groups = [np.flatnonzero(numbers == number).tolist() for number in range(1, numbers.max() + 1)]
    return groups, hierarchy.leaves_list(joins).tolist()


def named(groups: Sequence[Sequence[int]], words: Sequence[Sequence[str]]) -> list[Cluster]:
    """Clusters of several members, largest first, each with the passage that sets it apart.

    That is the passage that most of its members and few others have, longer ones before shorter.
    """
    passages = [
        {tuple(one[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(one) - n + 1)}
        for one in words
    ]
    total = Counter(passage for one in passages for passage in one)
    result = []
    for members in sorted((list(one) for one in groups if len(one) > 1), key=len, reverse=True)[:NAMED]:
        inside = Counter(passage for index in members for passage in passages[index])
        apart = {
            passage: (count / len(members) - total[passage] / len(words)) * count * len(passage) ** 0.5
            for passage, count in inside.items()
        }
        best: tuple[str, ...] = max(apart, key=lambda passage: (apart[passage], passage), default=())
        result.append(Cluster(" ".join(best), members))
    return result


def winners(ballot: Ballot | None, name: str, settings: Settings) -> MeasureWinners:
    """The winner of one ballot under every measure; without a ballot there is none under any."""
    if ballot is None:
        why = f"the list {name} has no such ballot."
        return MeasureWinners(0, [MeasureWinner(named, why) for named, _ in variants(settings)])
    voters = ballot.candidates if ballot.voters is None else ballot.voters
    rows = [_measure_winner(named, under, ballot, len(voters)) for named, under in variants(settings)]
    return MeasureWinners(len(ballot.candidates), rows)


def variants(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Each measure by name, with everything else as in the page's own election; a preset has its own
    temperature if none was given. Under BLEU and the like this is minimum Bayes risk decoding."""
    voting = settings.replace(rule="range", winners=1)
    for name in MEASURES:
        yield name, voting.replace(similarity=name, preset=name if name in PRESETS else None)
    for rule in BASELINES:
        yield rule, voting.replace(rule=rule, temperature=None, likelihood=None)


def _measure_winner(name: str, settings: Settings, ballot: Ballot, voters: int) -> MeasureWinner:
    measure, pairs = settings.measure, voters * len(ballot.candidates)
    linear = settings.rule in BASELINES or measure.linear
    if not linear and pairs > PAIRS:
        return MeasureWinner(name, f"{pairs:,} pairs are too many for a page; use rangevote vote.")
    try:
        with without_warnings():
            result = elect_ballot(ballot, settings)
    except RangevoteError as error:
        return MeasureWinner(name, str(error))
    fields = result.fields()
    return MeasureWinner(
        name,
        winner=result.leader,
        text=readable(result.candidates, result.leader)[:CUT],
        **{field: fields[field] for field in ("margin", "near_tie", "signature")},
    )


def stability(elected: ElectedBallot) -> Stability:
    """How often the winner stays without a single voter, and who wins otherwise.

    Without voter v, candidate c has score(c) less P(v) sim(v, c), the other weights summing to 1.
    """
    result = elected.result
    voting = [int(v) for v in np.argsort(-result.weights, kind="stable") if result.weights[v] > 0]
    if why := _why_no_recount(result, len(voting)):
        return Stability(voters=len(voting), why=why)
    tried = voting[: max(1, PAIRS // len(result.candidates))]
    tried_grades = elected.grades(tried, range(len(result.candidates)))  # (tried, candidates)
    left = _without(result, tried, tried_grades)  # (tried, candidates)
    places = np.empty(len(result.candidates))  # among candidates of equal scores
    places[ranked(np.zeros(len(places)), result.candidates)] = np.arange(len(places))
    best = left.max(axis=1, keepdims=True)
    winners = np.where(left == best, places, np.inf).argmin(axis=1)  # (tried,)
    margins = best[:, 0] - _best_of_others(left, winners, result)
    same = winners == result.leader
    needed = _only_speaker(result, voting, tried_grades)
    if needed in tried:
        same[tried.index(needed)] = False
    changes = [
        Change(
            voter=tried[row],
            weight=float(result.weights[tried[row]]),
            winner=None if tried[row] == needed else int(winners[row]),
            margin=None if tried[row] == needed else finite(float(margins[row])),
        )
        for row in np.flatnonzero(~same)[:CHANGES].tolist()
    ]
    return Stability(
        voters=len(voting),
        tried=len(tried),
        same=int(same.sum()),
        firm=bool(same.sum() >= FIRM * len(tried)),
        changes=changes,
        smallest_margin=finite(float(margins[same].min(initial=np.inf))),
    )


def _why_no_recount(result: Result, voting: int) -> str | None:
    if result.no_winner is not None:
        return "there is no winner."
    if result.merged is not None:
        return "each field has its own election; its share says how firm it is."
    if voting < 2:
        return "there is one voter; without it nobody votes." if voting else "nobody voted."
    return None


def _only_speaker(result: Result, voting: Sequence[int], grades: Array) -> int | None:
    """The voter without whom all abstain, so that nobody is elected."""
    if np.count_nonzero(grades.any(axis=1)) > 1:
        return None
    keys = result.similarity.keys(result.voters.pick(voting))
    speakers = [voter for voter, key in zip(voting, keys, strict=True) if key is not None]
    return speakers[0] if len(speakers) == 1 else None


def _without(result: Result, tried: Sequence[int], grades: Array) -> Array:
    """The scores when one of `tried`, whose `grades` are a row, is left out; shape (tried, candidates).

    Rounded far below a near-tie, so that what is 0 without the voter is 0 and the tie order decides.
    """
    weights = result.weights[tried][:, None]
    evidence = np.zeros(grades.shape[1]) if result.evidence is None else result.evidence
    with np.errstate(divide="ignore", invalid="ignore"):
        contributions = weights * (grades + np.maximum(evidence, -sys.float_info.max))  # own likelihood stays
        left: Array = (result.scores - contributions) / (1.0 - weights)
    for row in np.flatnonzero(weights > 0.5).tolist():
        # a difference would have few right digits: count the others
        others = [int(v) for v in np.flatnonzero(result.weights) if v != tried[row]]
        masses = result.weights[others] / math.fsum(result.weights[others].tolist())
        left[row] = result.similarity.tally(result.candidates, result.voters.pick(others), masses) + evidence
    return np.round(left, 12) + 0.0  # no -0


def _best_of_others(left: Array, winners: Array, result: Result) -> Array:
    """The best score of another group than the winner's, -inf where there is none; shape (tried,)."""
    group = np.empty(len(result.candidates), dtype=np.int64)
    for number, members in enumerate(result.groups):
        group[list(members.candidates)] = number
    others = np.where(group[None, :] == group[winners][:, None], -np.inf, left)
    return np.asarray(others.max(axis=1))
