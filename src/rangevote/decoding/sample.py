"""Sampling: one token after the other is drawn from the model's distribution, or from a part of it.

The log-probability of a sample is the model's own, whatever it was drawn from. Samples come with their
multiplicity: as voters each counts once (`weights="count"`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from rangevote.decoding.arrays import Array, Truncation, draw_tokens, values_at
from rangevote.decoding.base import (
    Done,
    Extensions,
    Live,
    Search,
    SearchState,
    Task,
    number,
    random_generator,
    whole,
)
from rangevote.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Sampling(Search):
    """What all samplings have: `temperature` divides the log-probabilities, `seed` fixes every draw."""

    temperature: float = number(1.0, lambda value: 0 < value < np.inf, "a number above 0")
    seed: int = whole(0, 0)

    #: How to cut off the tail, and the option that says how much.
    _cut: ClassVar[tuple[str, str] | None] = None

    def truncation(self) -> Truncation:
        """Which tokens may be drawn."""
        if self._cut is None:
            return Truncation(self.temperature)
        return Truncation(self.temperature, self._cut[0], getattr(self, self._cut[1]))

    def begin(self, task: Task) -> SearchState:
        return SampleState(self, task)


@dataclass(frozen=True)
class Sample(Sampling):
    """n ancestral samples: each token is drawn from the model's own distribution."""

    n: int


@dataclass(frozen=True)
class TopK(Sampling):
    """n samples, each token from the `top` most probable ones (Fan et al. 2018), including ties."""

    n: int
    _: KW_ONLY
    top: int = whole(10, 1)
    _cut = "top_k", "top"


@dataclass(frozen=True)
class Nucleus(Sampling):
    """n samples, each token from the fewest that have a total probability of p (Holtzman et al. 2020)."""

    n: int
    _: KW_ONLY
    p: float = number(0.9, lambda p: 0 < p <= 1, "a share above 0 and up to 1")
    _cut = "top_p", "p"


@dataclass(frozen=True)
class Epsilon(Sampling):
    """n samples, each token with a probability of at least epsilon, or the best (Hewitt et al. 2022)."""

    n: int
    _: KW_ONLY
    epsilon: float = number(0.02, lambda epsilon: 0 <= epsilon < 1, "a probability below 1")
    _cut = "epsilon", "epsilon"


@dataclass(frozen=True)
class MinP(Sampling):
    """n samples, each token at least p times as probable as the best (Nguyen et al. 2024)."""

    n: int
    _: KW_ONLY
    p: float = number(0.1, lambda p: 0 <= p <= 1, "a share from 0 to 1")
    _cut = "min_p", "p"


class SampleState(SearchState):
    """Every row is one sample; rows end one by one."""

    def __init__(self, search: Sampling, task: Task) -> None:
        owner = np.repeat(task.wanted, len(task.draws))
        mark = np.tile(np.array(task.draws, dtype=np.int64), len(task.wanted))
        super().__init__(search, task, Live.first(owner, mark))
        self._truncation = search.truncation()
        self._generators = {
            (i, draw): random_generator(search.seed, task.stream, task.numbers[i], draw)
            for i in task.wanted.tolist()
            for draw in task.draws
        }
        self._done: list[list[Done]] = [[] for _ in task.numbers]

    def pick(self, log_probs: Array, ranking: Array) -> Extensions:
        """Draw one token for every row."""
        live, rows = self.live, np.arange(len(self.live))
        uniforms = [
            self._generators[key].random()
            for key in zip(live.owner.tolist(), live.mark.tolist(), strict=True)
        ]
        tokens = draw_tokens(ranking, np.array(uniforms), self._truncation)
        if (tokens < 0).any():
            input = self.task.numbers[int(live.owner[tokens < 0][0])]
            raise DataError(
                f"nothing can be drawn after {live.length} tokens: all are forbidden.",
                field=f"inputs[{input}]",
            )
        logprob = live.logprob + values_at(log_probs, rows, tokens)
        drawn = Extensions(rows, tokens, logprob, logprob, live.proposal)
        stopping = self.ending(drawn)
        for done in self.close(drawn[stopping], logprob[stopping]):
            self._done[done.owner].append(done)
        return drawn[~stopping]

    def results(self) -> list[list[Done]]:
        """Most likely first, equals in the order they were drawn."""
        return [sorted(done, key=lambda one: (-one.logprob, one.mark)) for done in self._done]
