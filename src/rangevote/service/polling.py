"""The election of one request, while samples for it come in.

Who stands for election is fixed first: beams, or the first samples. The samples after that are independent of
who stands, and only these are what `Electorate.decided` looks at; so its promise holds: a winner is called
certain and is not the one that endless sampling would elect with probability at most 1 - confidence. All
samples vote in the election that is answered with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from rangevote.election.electorate import Electorate
from rangevote.election.settings import Settings
from rangevote.errors import DataError
from rangevote.generation.adaptive import FIRST_ROUND
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.service.outcome import Outcome, count_votes
from rangevote.service.problem import Problem
from rangevote.service.request import Order
from rangevote.service.sampled import Sampled
from rangevote.similarity.ngram import Ngrams

#: Characters that are counted in less time than it takes to wake a thread for them.
FEW = 16 * 2**10


class Polling:
    """Samples in rounds, and the election among them or among `beams`."""

    def __init__(self, order: Order, sampled: Sampled, beams: Sampled | None) -> None:
        self._order, self._sampled, self._beams = order, sampled, beams
        self._settings: Settings = order.options.settings(order.n)
        self._adaptive = order.options.adaptive is not None and order.n == 1

    def rounds(self) -> Iterator[range]:
        """The samples of each round: all at once, or few first and then ever more; none if beams vote."""
        most = 0 if self._order.options.voters == "candidates" else self._order.options.samples
        start, stop = 0, self._standing if self._adaptive else most
        while start < most:
            yield range(start, min(stop, most))
            start, stop = stop, 2 * stop

    @property
    def _standing(self) -> int:
        """How many samples stand for election, where not all do; with beams, the first round."""
        candidates = self._order.options.candidates
        return candidates if isinstance(candidates, int) else FIRST_ROUND

    def check_quorum(self) -> None:
        """Whether enough can vote."""
        beams_vote = self._beams is not None and self._order.options.voters == "candidates"
        voting = self._beams if beams_vote and self._beams is not None else self._sampled
        voting.check_quorum(self._order.options.min_votes)

    @property
    def quick(self) -> bool:
        """Whether the votes can be counted at once, in a fraction of a millisecond."""
        measure = self._settings.measure
        linear = isinstance(measure, Ngrams) and measure.tokenize == "words" and len(measure.orders) <= 4
        return linear and self._settings.rule == "range" and self._size <= FEW

    @property
    def _size(self) -> int:
        return self._sampled.size + (0 if self._beams is None else self._beams.size)

    def check_size(self, most: int) -> None:
        """Whether every pair of so many characters can be compared, where the measure does that."""
        linear = getattr(self._settings.measure, "linear", False)
        if not linear and self._size > most:
            raise Problem(
                400,
                "the samples are too long for a similarity that compares every pair; choose overlap_2 or "
                "another that counts n-grams",
                code="too_long",
                param="rangevote.similarity",
            )

    def decided(self) -> bool:
        """Whether those who vote after the candidates were fixed have decided, and all together agree."""
        confidence, ballot = self._order.options.adaptive, self._ballot()
        assert confidence is not None
        later = self._sampled.hypotheses()
        if self._beams is None:
            later = later[self._standing :]
        try:
            fresh = Electorate(ballot.candidates, settings=self._settings.replace(weights="count"))
            if later:
                fresh.add(later)
            if not fresh.decided(confidence):
                return False
            leader = fresh.result().winner if later else None
        except DataError:  # what cannot be voted on in this way is told when all samples are there
            return False
        return leader is None or leader == count_votes(ballot, self._settings).winner

    def outcome(self, certain: bool) -> Outcome:
        """The election of all samples."""
        ballot, began = self._ballot(), time.monotonic()
        result = count_votes(ballot, self._settings)
        seconds = time.monotonic() - began
        sampled, beams = self._sampled, self._beams
        standing = sampled.usable if beams is None else beams.usable
        return Outcome(
            ballot,
            result,
            self._settings,
            sampled.usage if beams is None else sampled.usage + beams.usage,
            sampled.asked,
            {name: count for name, count in sampled.counts.items() if count},
            self._order.options.samples - sampled.asked if certain else 0,
            certain,
            [choice.finish_reason or "stop" for choice in standing[: len(ballot.candidates)]],
            seconds,
        )

    def _ballot(self) -> Ballot:
        samples = self._sampled.hypotheses()
        if self._beams is not None:
            return Ballot(self._beams.hypotheses(sampled=False), samples or None)
        standing: list[Hypothesis] = samples
        if self._order.options.candidates is not None or self._adaptive:
            standing = samples[: self._standing]
        return Ballot(standing, None if len(standing) == len(samples) else samples)
