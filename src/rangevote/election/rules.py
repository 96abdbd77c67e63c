"""Election rules: from one election to scores and winners.

A rule is a function and one line in `RULES`. Range voting is the paper's; `reweighted` elects several;
`most_likely` and `length_normalised` are the baselines that choose from the same list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rangevote.errors import DataError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Poll, Similarity, open_poll


@dataclass
class Contest:
    """Candidates, and who votes on them by which measure; without voters where the rule needs none."""

    candidates: Hypotheses
    voters: Hypotheses | None = None
    weights: Array = field(default_factory=lambda: np.zeros(0))  # (voters,), summing to 1
    similarity: Similarity | None = None
    poll: Poll | None = None  # with all voters in it; opened when votes are first counted

    def tally(self, weights: Array) -> Array:
        """score(c) under these weights of the voters, shape (candidates,)."""
        if self.poll is None:
            assert self.similarity is not None
            assert self.voters is not None
            self.poll = open_poll(self.similarity, self.candidates)
            self.poll.add(self.voters)
        return self.poll.tally(weights)

    def grades_for(self, index: int) -> Array:
        """What each voter thinks of one candidate, shape (voters,)."""
        assert self.similarity is not None
        assert self.voters is not None
        return self.similarity.matrix(self.candidates.only(index), self.voters)[:, 0]


class RuleOutcome(NamedTuple):
    """Scores of all candidates, and who was elected, in order."""

    scores: Array  # (candidates,)
    elected: tuple[int, ...]


def order(scores: Array, candidates: Hypotheses) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Indices, best first: higher score, then higher own log-probability, then first in the list."""
    if candidates.logprobs is None:
        return np.argsort(-scores, kind="stable")
    own = np.where(np.isnan(candidates.logprobs), np.inf, -candidates.logprobs)
    return np.asarray(np.lexsort((own, -scores)))


def leaders(scores: Array, candidates: Hypotheses, number: int) -> tuple[int, ...]:
    """The first `number` of `order`; a single clear winner needs no sorting."""
    if number == 1:
        listed = scores.tolist()
        best = max(listed)
        if listed.count(best) == 1:
            return (listed.index(best),)
    return tuple(order(scores, candidates)[:number].tolist())


def range_voting(contest: Contest, winners: int) -> RuleOutcome:
    """score(c) = sum of P(v) sim(v, c), the highest wins (equation 1); several: the highest ones."""
    scores = contest.tally(contest.weights)
    return RuleOutcome(scores, leaders(scores, contest.candidates, winners))


def reweighted(contest: Contest, winners: int) -> RuleOutcome:
    """Range voting in rounds (Smith 2005): after each winner, voter v counts
    P(v) / (1 + sum of its grades for the winners), so that the next winner speaks for others.

    The scores are those of the first round. A negative grade (cosines) counts as 0 here.
    """
    scores = contest.tally(contest.weights)
    elected = [*leaders(scores, contest.candidates, 1)]
    given = np.zeros_like(contest.weights)  # (voters,): grades for the winners so far
    while len(elected) < min(winners, len(contest.candidates)):
        given += np.maximum(contest.grades_for(elected[-1]), 0.0)
        left = contest.tally(contest.weights / (1.0 + given))  # (candidates,)
        left[elected] = -np.inf
        elected += leaders(left, contest.candidates, 1)
    return RuleOutcome(scores, tuple(elected))


def most_likely(contest: Contest, winners: int) -> RuleOutcome:
    """The candidate with the highest log-probability: what beam search returns."""
    scores = _logprobs(contest.candidates, "most_likely")
    return RuleOutcome(scores, leaders(scores, contest.candidates, winners))


def length_normalised(contest: Contest, winners: int) -> RuleOutcome:
    """log P(c) / length: tokens (words where only text is known), and the end where the model ended it."""
    candidates = contest.candidates
    tokens = candidates.tokens or [None]
    lengths = [len(ids) for ids in tokens if ids is not None]
    if len(lengths) < len(candidates):  # not all have token ids
        lengths = [len(text.split()) for text in candidates.texts or ()]
    ends = [candidate.finished for candidate in candidates]
    scores = _logprobs(candidates, "length_normalised") / np.maximum(np.add(lengths, ends), 1.0)
    return RuleOutcome(scores, leaders(scores, contest.candidates, winners))


Rule = Callable[[Contest, int], RuleOutcome]

RULES: dict[str, Rule] = {
    "range": range_voting,
    "reweighted": reweighted,
    "most_likely": most_likely,
    "length_normalised": length_normalised,
}
#: Rules in which nobody votes.
WITHOUT_VOTERS = frozenset({"most_likely", "length_normalised"})


def _logprobs(candidates: Hypotheses, rule: str) -> Array:
    if candidates.logprobs is None or not candidates.complete:
        raise DataError(f"are not all known, which rule={rule!r} needs.", field="candidates[].logprob")
    return candidates.logprobs.copy()
