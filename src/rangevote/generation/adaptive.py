"""Voters drawn in rounds, until the election is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

from rangevote.decoding.run import Reading
from rangevote.election.electorate import Electorate
from rangevote.election.settings import Settings
from rangevote.generation.plan import FIRST, Plan
from rangevote.hypothesis import Hypothesis


class Turnout(NamedTuple):
    """Who votes in each election of a batch (None: the candidates), and where they already have, how.

    `voting` are the seconds spent on that so far.
    """

    voters: Sequence[Sequence[Hypothesis] | None]
    electorates: Sequence[Electorate] | None = None
    voting: float = 0.0


def draw_voters(reading: Reading, slates: Sequence[Sequence[Hypothesis]], plan: Plan) -> Turnout:
    """Draw voters for a batch of elections until each is decided, or has all of them.

    Which draws are made does not depend on the batch: an input that is decided gets no more, whatever the
    others need. `decided` may be asked after every round (`election/electorate.py` says why).
    """
    assert plan.voters is not None
    assert plan.confidence is not None
    electorates = [electorate(slate, plan.settings) for slate in slates]
    voters: list[list[Hypothesis]] = [[] for _ in slates]
    open_, voting = list(range(len(slates))), 0.0
    for draws in rounds(plan.voters.size):
        for part in parts(draws, max(1, plan.max_rows // len(open_))):
            for i, drawn in enumerate(reading.draw(part, open_)):
                voters[i] += drawn
        began = perf_counter()
        for i in open_:
            electorates[i].add(voters[i][len(electorates[i]) :])
        open_ = [i for i in open_ if not electorates[i].decided(plan.confidence)]
        voting += perf_counter() - began
        if not open_:
            break
    return Turnout(voters, electorates, voting)


def electorate(candidates: Sequence[Hypothesis], settings: Settings) -> Electorate:
    """An election of these candidates under these settings, still without voters."""
    return Electorate(
        candidates,
        settings.similarity,
        weights=settings.weights,  # type: ignore[arg-type]  # "count" or None, see `Plan`
        temperature=settings.temperature,
        rule=settings.rule_name,
        winners=settings.winners,
        normalize=settings.normalize,
        merge=settings.merge,
    )


def rounds(most: int) -> Iterator[range]:
    """The draws of each round: 16, then as many again as there were, up to `most` in all.

    >>> list(rounds(50))
    [range(0, 16), range(16, 32), range(32, 50)]
    """
    start, stop = 0, FIRST
    while start < most:
        yield range(start, min(stop, most))
        start, stop = stop, 2 * stop


def parts(draws: range, size: int) -> Iterator[range]:
    """The draws in pieces of at most `size`."""
    return (draws[i : i + size] for i in range(0, len(draws), size))
