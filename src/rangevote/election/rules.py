"""Election rules: from one election to scores and winners.

A rule is a function and one line in `RULES`. Range voting is the paper's; `reweighted` elects several;
`most_likely` and `length_normalised` are the baselines that choose from the same list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rangevote.errors import DataError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import Poll, Similarity, keys_of, open_poll


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


def leader(scores: Array, candidates: Hypotheses) -> int:
    """The first of `order`; a clear one needs no sorting."""
    listed = scores.tolist()
    best = max(listed)
    return listed.index(best) if listed.count(best) == 1 else int(order(scores, candidates)[0])


def group_keys(contest: Contest, scores: Array) -> list[Hashable]:
    """One key for each candidate, the same for those that the measure cannot tell apart.

    These have equal scores where voters gave them, so that only what is equal has to be compared.
    """
    candidates = contest.candidates
    if contest.voters is None:
        return keys_of(None, candidates)
    listed = scores.tolist()
    times = Counter(listed)
    tied = [i for i, score in enumerate(listed) if times[score] > 1]
    keys: list[Hashable] = list(range(len(listed)))
    for i, key in zip(tied, keys_of(contest.similarity, candidates.pick(tied)) if tied else (), strict=True):
        keys[i] = (listed[i], key)
    return keys


def leaders(contest: Contest, scores: Array, number: int) -> tuple[int, ...]:
    """The first `number` of `order` that are of different groups."""
    if number == 1:
        return (leader(scores, contest.candidates),)
    keys = group_keys(contest, scores)
    first: dict[Hashable, int] = {}
    for i in order(scores, contest.candidates).tolist():
        first.setdefault(keys[i], i)
    return tuple(first.values())[:number]


def range_voting(contest: Contest, winners: int) -> RuleOutcome:
    """score(c) = sum of P(v) sim(v, c), the highest wins (equation 1); several: of different groups."""
    scores = contest.tally(contest.weights)
    return RuleOutcome(scores, leaders(contest, scores, winners))


def reweighted(contest: Contest, winners: int) -> RuleOutcome:
    """Range voting in rounds (Smith 2005): after each winner, voter v counts
    P(v) / (1 + sum of its grades for the winners), so that the next winner speaks for others.

    Every winner is of another group. The scores are those of the first round. A negative grade (cosines)
    counts as 0 here.
    """
    scores = contest.tally(contest.weights)
    elected = [leader(scores, contest.candidates)]
    keys = group_keys(contest, scores) if winners > 1 else []
    given = np.zeros_like(contest.weights)  # (voters,): grades for the winners so far
    while len(elected) < min(winners, len(set(keys))):
        given += np.maximum(contest.grades_for(elected[-1]), 0.0)
        left = contest.tally(contest.weights / (1.0 + given))  # (candidates,)
        represented = {keys[i] for i in elected}
        left[[key in represented for key in keys]] = -np.inf
        elected.append(leader(left, contest.candidates))
    return RuleOutcome(scores, tuple(elected))


def most_likely(contest: Contest, winners: int) -> RuleOutcome:
    """The candidate with the highest log-probability: what beam search returns."""
    scores = _logprobs(contest.candidates, "most_likely")
    return RuleOutcome(scores, leaders(contest, scores, winners))


def length_normalised(contest: Contest, winners: int) -> RuleOutcome:
    """log P(c) / length: tokens (words where only text is known), and the end where the model ended it."""
    candidates = contest.candidates
    tokens = candidates.tokens or [None]
    lengths = [len(ids) for ids in tokens if ids is not None]
    if len(lengths) < len(candidates):  # not all have token ids
        lengths = [len(text.split()) for text in candidates.texts or ()]
    ends = [candidate.finished for candidate in candidates]
    scores = _logprobs(candidates, "length_normalised") / np.maximum(np.add(lengths, ends), 1.0)
    return RuleOutcome(scores, leaders(contest, scores, winners))


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
