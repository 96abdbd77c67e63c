"""Elections of one ballot under many settings.

Weights are made once for each temperature, and n-grams are counted once for all settings that count the same
ones. Every winner is the one that `elect` elects with those options.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from rangevote.election.normalize import prepare
from rangevote.election.rules import RULES, Contest, leaders
from rangevote.election.weights import weigh
from rangevote.errors import DataError
from rangevote.hypothesis import Array, Ballot, Hypotheses
from rangevote.similarity import get_similarity
from rangevote.similarity.base import Poll, Similarity, open_poll
from rangevote.similarity.ngram import IndexMeasure, IndexPoll
from rangevote.tuning.grid import Setting

#: Instead of an index, where nobody votes and log-probabilities, which would decide, are not known.
UNKNOWN = -1


@dataclass(frozen=True)
class Office:
    """Holds the elections; the options are those that all settings share."""

    settings: Sequence[Setting]
    weights: str | None = None
    normalize: str | None = None
    merge: bool = False

    def winners(self, ballot: Ballot) -> list[int]:
        """The index of the winner under each setting; UNKNOWN where a rule lacks log-probabilities."""
        given = Hypotheses.of(ballot.candidates)
        if not len(given):
            raise DataError("there are no candidates, so nobody can be elected.", field="candidates")
        slate = prepare(given, self.normalize, self.merge)
        roll, voters = slate, given
        if ballot.voters is not None:
            voters = Hypotheses.of(ballot.voters, role="voters")
            roll = prepare(voters, self.normalize, self.merge)
        count = Count(slate, roll, lambda temperature: weigh(roll, self.weights, temperature, voters)[1])
        return [count.winner(setting) for setting in self.settings]


class Count:
    """One ballot: what several settings need is made when the first of them asks."""

    def __init__(self, slate: Hypotheses, roll: Hypotheses, weigh: Callable[[float], Array]) -> None:
        self._slate, self._roll, self._weigh = slate, roll, weigh
        self._weights: dict[float, Array] = {}
        self._polls: dict[Hashable, Poll] = {}

    def winner(self, setting: Setting) -> int:
        """The index of the winner, or UNKNOWN."""
        if not setting.voted:
            if not self._slate.complete:
                return UNKNOWN
            return RULES[setting.rule](Contest(self._slate), 1).elected[0]
        weights = self._weights.get(setting.temperature)
        if weights is None:
            weights = self._weights[setting.temperature] = self._weigh(setting.temperature)
        return leaders(self.poll(setting).tally(weights), self._slate, 1)[0]

    def poll(self, setting: Setting) -> Poll:
        """The poll of a setting's measure, with all voters in it."""
        measure = get_similarity(setting.similarity, setting.tokenize)
        key = measure.features if isinstance(measure, IndexMeasure) else measure.name
        poll = self._polls.get(key)
        if poll is None:
            poll = self._polls[key] = self._opened(measure)
        if isinstance(measure, IndexMeasure) and isinstance(poll, IndexPoll):
            return poll.under(measure)
        return poll

    def _opened(self, measure: Similarity) -> Poll:
        poll = open_poll(measure, self._slate)
        poll.add(self._roll)
        return poll
