"""Election rules: from one election to scores and winners.

A rule is a function and one line in `RULES`. Range voting is the paper's; `reweighted` elects several;
`cluster` the best of the largest group; `merge` composes JSON of fields that won elections of their own;
`most_likely` and `length_normalised` are the baselines that choose from the same list.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rangevote.election.merge import ABSENT, Merged, Merging
from rangevote.errors import DataError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Measure, Poll, number_text, rounded, same_content

#: More than all rounding of a score, and how many candidates have their grades looked at one by one.
ROUNDING, FEW = 2.0**-40, 100


@dataclass
class Contest:
    """Candidates, and who votes on them by which measure; without voters where the rule needs none."""

    candidates: Hypotheses
    voters: Hypotheses | None = None
    weights: Array = field(default_factory=lambda: np.zeros(0))  # (voters,), summing to 1
    similarity: Measure | None = None
    poll: Poll | None = None  # with all voters in it; opened when votes are first counted
    evidence: Array | None = None  # (candidates,), the part of each score that no voter gives
    merging: Merging | None = None  # how rule="merge" merges
    votes: Array | None = None  # (candidates,), those that were counted first, under all weights

    def scores(self, weights: Array, part: float = 1.0) -> Array:
        """score(c) = sum of weight * sim(v, c) + part * evidence(c), each rounded, shape (candidates,)."""
        votes = rounded(self.tally(weights))
        if self.votes is None:
            self.votes = votes
        return votes if self.evidence is None else votes + rounded(part * self.evidence)

    @property
    def no_support(self) -> bool:
        """Whether no voter supports any candidate but itself."""
        if self.votes is None:  # nobody voted
            return False
        votes = np.where(np.isfinite(self.votes), self.votes, 0.0)
        if self.voters is not self.candidates or len(votes) == 1:
            return not bool(votes.any())
        if (votes > self.weights + ROUNDING).any():  # a text gives itself at most its own weight
            return False
        if len(votes) > FEW:
            return True
        others = self.grades() * (1.0 - np.eye(len(votes)))
        return not bool((others[self.weights > 0] > 0).any())

    def tally(self, weights: Array) -> Array:
        """The votes under these weights of the voters, shape (candidates,)."""
        return self._opened().tally(weights)

    def grades(self) -> Array:
        """What each voter thinks of each candidate, shape (voters, candidates)."""
        return self._opened().matrix()

    def _opened(self) -> Poll:
        if self.poll is None:
            assert self.similarity is not None
            assert self.voters is not None
            self.poll = self.similarity.poll(self.candidates)
            self.poll.add(self.voters)
        return self.poll

    def grades_for(self, index: int) -> Array:
        """What each voter thinks of one candidate, shape (voters,)."""
        assert self.similarity is not None
        assert self.voters is not None
        return self.similarity.matrix(self.candidates.only(index), self.voters)[:, 0]


def evidence(candidates: Hypotheses, likelihood: float, scores: Mapping[str, float] | None) -> Array | None:
    """What is added to the votes for each candidate, shape (candidates,): x log P(c) / |c| for
    `likelihood=x`, and x times the standardised score for each of `scores`; None where only votes count."""
    terms = [own_likelihood(candidates, likelihood)] if likelihood else []
    terms += [rounded(x * standardised(candidates, name)) for name, x in (scores or {}).items() if x]
    return sum(terms[1:], terms[0]) if terms else None


def standardised(candidates: Hypotheses, name: str) -> Array:
    """The candidates' scores of this name, with mean 0 and standard deviation 1 within the ballot; 0 where
    all are equal. Shape (candidates,)."""
    column = [(row.scores or {}).get(name) for row in candidates]
    if None in column:
        raise DataError(
            f"has no score {name!r}, and scores={{{name!r}: ...}} needs one of every candidate. Give each "
            f'candidate "scores": {{"{name}": 0.7}}, or name the field of the file (--score-field).',
            field=f"{candidates.role}[{column.index(None)}].scores",
        )
    halves = [float(number) / 2 for number in column]  # type: ignore[arg-type]  # differences stay finite
    low, high = min(halves), max(halves)
    if low == high:
        return np.zeros(len(halves))
    units = [(half - low) / (high - low) for half in halves]
    mean = math.fsum(units) / len(units)
    deviation = math.sqrt(math.fsum((unit - mean) ** 2 for unit in units) / len(units))
    return (np.array(units) - mean) / deviation


def own_likelihood(candidates: Hypotheses, factor: float) -> Array:
    """factor * log P(c) / |c|: how well its very wording is put, by the model's own judgement.

    |c| counts what log P is a sum over (`Hypotheses.lengths`). Shape (candidates,); -inf where P is 0.
    """
    needed_by = f"likelihood={number_text(factor)}"
    logprobs = candidates.known_logprobs(needed_by, "leave likelihood out")
    with np.errstate(over="ignore"):  # beyond all floats: -inf, as P = 0
        return rounded(factor * (logprobs / candidates.lengths()))


class RuleOutcome(NamedTuple):
    """Scores of all candidates, and who was elected, in order; the voters' weights, if others than given;
    what was merged, or why nobody was elected."""

    scores: Array  # (candidates,)
    elected: tuple[int, ...]
    weights: Array | None = None  # (voters,)
    merged: Merged | None = None
    no_winner: str | None = None


def ranked(scores: Array, candidates: Hypotheses) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Indices, best first: higher score, then higher own log-probability, then first in the list."""
    if candidates.logprobs is None:
        return np.argsort(-scores, kind="stable")
    unlikely = np.where(np.isnan(candidates.logprobs), np.inf, -candidates.logprobs)
    return np.asarray(np.lexsort((unlikely, -scores)))


def leader(scores: Array, candidates: Hypotheses) -> int:
    """The first of `ranked`; a clear one needs no sorting."""
    numbers = scores.tolist()
    best = max(numbers)
    return numbers.index(best) if numbers.count(best) == 1 else int(ranked(scores, candidates)[0])


def group_keys(contest: Contest, scores: Array) -> list[Hashable]:
    """One key for each candidate, the same for those that the measure cannot tell apart.

    Where voters alone gave the scores these are equal, so that only what is equal has to be compared.
    """
    candidates, similarity = contest.candidates, contest.similarity
    if similarity is None:
        return same_content(candidates)
    if contest.evidence is not None:
        return similarity.keys(candidates)
    numbers = scores.tolist()
    counts = Counter(numbers)
    tied = [i for i, score in enumerate(numbers) if counts[score] > 1]
    keys: list[Hashable] = list(range(len(numbers)))
    for i, key in zip(tied, similarity.keys(candidates.pick(tied)) if tied else (), strict=True):
        keys[i] = (numbers[i], key)
    return keys


def leaders(contest: Contest, scores: Array, number: int) -> tuple[int, ...]:
    """The first `number` of `ranked` that are of different groups."""
    if number == 1:
        return (leader(scores, contest.candidates),)
    keys = group_keys(contest, scores)
    first: dict[Hashable, int] = {}
    for i in ranked(scores, contest.candidates).tolist():
        first.setdefault(keys[i], i)
    return tuple(first.values())[:number]


def range_voting(contest: Contest, winners: int) -> RuleOutcome:
    """score(c) = sum of P(v) sim(v, c), the highest wins (equation 1); several: of different groups.

    The candidate's own `evidence` is added: its likelihood or scores.
    """
    scores = contest.scores(contest.weights)
    return RuleOutcome(scores, leaders(contest, scores, winners))


def reweighted(contest: Contest, winners: int) -> RuleOutcome:
    """Range voting in rounds (Smith 2005): after each winner, voter v counts
    P(v) / (1 + sum of its grades for the winners), so that the next winner speaks for others.

    Every winner is of another group. The scores are those of the first round. A negative grade (cosines)
    counts as 0 here. A candidate's own evidence shrinks with the sum of the voters' weights: votes and
    evidence stand in the same proportion in each round.
    """
    scores = contest.scores(contest.weights)
    elected = [leader(scores, contest.candidates)]
    keys = group_keys(contest, scores) if winners > 1 else []
    support = np.zeros_like(contest.weights)  # (voters,): grades for the winners so far
    while len(elected) < min(winners, len(set(keys))):
        support += np.maximum(contest.grades_for(elected[-1]), 0.0)
        weights = contest.weights / (1.0 + support)
        left = contest.scores(weights, math.fsum(weights.tolist()))  # (candidates,)
        represented = {keys[i] for i in elected}
        others = [i for i, key in enumerate(keys) if key not in represented]
        elected.append(others[leader(left[others], contest.candidates.pick(others))])
    return RuleOutcome(scores, tuple(elected))


def cluster(contest: Contest, winners: int) -> RuleOutcome:
    """The best of the largest group: for texts that say several things, of which none is a compromise.

    Around every candidate are the voters at least `cutoff` similar to it, the heaviest such group is the
    largest, and its voters alone elect: score(c) = sum of P(v) sim(v, c) over them. Further winners come from
    the largest groups of the voters that are left.
    """
    grades, weights = contest.grades(), contest.weights
    near = grades > 0.0  # (voters, candidates)
    first: RuleOutcome | None = None
    elected: list[int] = []
    assert contest.similarity is not None
    keys = contest.similarity.keys(contest.candidates)
    while len(elected) < min(winners, len(set(keys))):
        support = contest.scores(weights)
        sizes = np.array([math.fsum(weights[column].tolist()) for column in near.T])  # (candidates,)
        heaviest = np.where(sizes == sizes.max(), support, -np.inf)
        group = np.where(near[:, leader(heaviest, contest.candidates)], weights, 0.0)  # (voters,)
        scores = contest.scores(group if group.any() else weights)
        first = first or RuleOutcome(scores, (), group if group.any() else weights)
        represented = {keys[i] for i in elected}
        free = np.where([key in represented for key in keys], -np.inf, scores)
        elected.append(leader(free, contest.candidates))
        weights = np.where(group > 0.0, 0.0, weights)
        if not weights.any():  # all are represented: the others by their support in the first group
            weights = contest.weights
    assert first is not None
    return first._replace(elected=tuple(elected))


def merge(contest: Contest, winners: int) -> RuleOutcome:
    """JSON of which every field won an election of its own (`rangevote.election.merge`).

    Candidates are graded by the values that they share with the voters: a score says how well a candidate
    does as a whole. The one that says the same as the merged object is elected, otherwise the best.
    """
    assert contest.merging is not None
    assert contest.voters is not None
    candidates = contest.merging.read(contest.candidates)
    voters = None if contest.voters is contest.candidates else contest.merging.read(contest.voters)
    speaking = [value is not ABSENT for value in (candidates if voters is None else voters)]
    weights = np.where(speaking, contest.weights, 0.0)
    merged = contest.merging.merge(candidates, voters, contest.weights)
    if isinstance(merged, str):
        return RuleOutcome(contest.scores(weights), (), weights, no_winner=merged)
    scores = np.where([value is not ABSENT for value in candidates], contest.scores(weights), -np.inf)
    index = leader(scores, contest.candidates) if merged.equal is None else merged.equal
    return RuleOutcome(scores, (index,), weights, merged)


def most_likely(contest: Contest, winners: int) -> RuleOutcome:
    """The candidate with the highest log-probability: what beam search returns."""
    scores = _logprobs(contest.candidates, "most_likely").copy()
    return RuleOutcome(scores, leaders(contest, scores, winners))


def length_normalised(contest: Contest, winners: int) -> RuleOutcome:
    """log P(c) / |c|, where |c| is `Hypotheses.lengths`."""
    candidates = contest.candidates
    scores = _logprobs(candidates, "length_normalised") / candidates.lengths()
    return RuleOutcome(scores, leaders(contest, scores, winners))


Rule = Callable[[Contest, int], RuleOutcome]

RULES: dict[str, Rule] = {
    "range": range_voting,
    "reweighted": reweighted,
    "cluster": cluster,
    "merge": merge,
    "most_likely": most_likely,
    "length_normalised": length_normalised,
}
#: Rules in which nobody votes.
WITHOUT_VOTERS = frozenset({"most_likely", "length_normalised"})
#: Rules of which a sample of the voters tells nothing certain.
NOT_ADAPTIVE = WITHOUT_VOTERS | {"cluster", "merge"}


def _logprobs(candidates: Hypotheses, rule: str) -> Array:
    return candidates.known_logprobs(f"rule={rule!r}", "let voters decide with rule='range'")
