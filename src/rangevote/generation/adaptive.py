"""Voters drawn in rounds, until the election is decided.

`rounds` is the one adaptive loop of the package. A model here runs it for a batch of elections,

    elections = AdaptiveElections([candidates], [settings], confidence=0.99)
    for draws, undecided in elections.rounds(1000):
        for i in undecided:
            elections.add(i, [draw(number) for number in draws])

and `sources/openai/server_election.py` for one election whose candidates are themselves among the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

from rangevote.election.electorate import Electorate
from rangevote.election.settings import Settings
from rangevote.hypothesis import Hypothesis

#: Voters of the first round; every further one doubles their number.
FIRST_ROUND = 16


class AdaptiveElections:
    """Elections among fixed candidates, each with its settings; each gets voters until it is decided.

    `decided` may be asked after every round (`election/electorate.py` says why). Which draws are made for an
    election does not depend on the others. `seconds` is the time spent on voting so far.
    """

    def __init__(
        self, candidates: Sequence[Sequence[Hypothesis]], settings: Sequence[Settings], confidence: float
    ) -> None:
        self.electorates = [
            Electorate(some, settings=own) for some, own in zip(candidates, settings, strict=True)
        ]
        self.voters: list[list[Hypothesis]] = [[] for _ in candidates]
        self.confidence, self.seconds = confidence, 0.0

    def rounds(self, most: int, first: int = FIRST_ROUND) -> Iterator[tuple[range, list[int]]]:
        """The draws of each round, and the numbers of the elections that need them, until all are decided."""
        undecided = list(range(len(self.electorates)))

        def decided() -> bool:
            undecided[:] = [i for i in undecided if not self.decided(i)]
            return not undecided

        for draws in rounds(most, first, decided):
            yield draws, list(undecided)

    def add(self, i: int, voters: Sequence[Hypothesis]) -> None:
        """Let more voters vote in election `i`."""
        began = perf_counter()
        self.voters[i] += voters
        self.electorates[i].add(voters)
        self.seconds += perf_counter() - began

    def decided(self, i: int) -> bool:
        began = perf_counter()
        decided = self.electorates[i].decided(self.confidence)
        self.seconds += perf_counter() - began
        return decided


def rounds(
    most: int, first: int = FIRST_ROUND, decided: Callable[[], bool] = lambda: False
) -> Iterator[range]:
    """The draws of each round: `first`, then as many again as there were, until it is decided or `most` are
    drawn in all.

    >>> list(rounds(50))
    [range(0, 16), range(16, 32), range(32, 50)]
    """
    start, stop = 0, first
    while start < most:
        yield range(start, min(stop, most))
        if stop < most and decided():
            return
        start, stop = stop, 2 * stop
