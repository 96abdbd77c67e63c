"""Beam search, and length normalisation during the search.

At every step the k best among the finished hypotheses and all extensions of the live ones are kept
(section 3.1 of the paper); a finished one stays for as long as it is among the k best, and the
search ends when nothing is alive.

Transformers' `generate` has another rule: k hypotheses stay alive whatever has finished, and finished
ones are collected beside them if they were among the k best when they ended, until no live one can
improve on the worst of k. `finish="transformers"` is that, with `length_penalty` and `early_stopping` as
there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import numpy as np

from rangevote.decoding.arrays import Array, Floats, Integers, Mask, best_extensions, best_tokens, values_at
from rangevote.decoding.base import Done, Extensions, Live, Search, SearchState, Task, number, option
from rangevote.errors import UsageError, choose


@dataclass(frozen=True)
class Beam(Search):
    """Beam search for the k most likely sequences; greedy search is k = 1.

    `finish` is "compete" (finished hypotheses compete by log-probability) or "transformers" (see the
    module), for which `length_penalty` and `early_stopping` mean what they mean there.
    """

    k: int
    _: KW_ONLY
    finish: str = option("compete", lambda value: bool(choose("finish", value, FINISH)), "a name")
    length_penalty: float = number(0.0, math.isfinite, "a number")
    early_stopping: bool | str = option(
        False, lambda value: isinstance(value, bool) or value == "never", "True, False or 'never'"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.finish == "compete" and (self.length_penalty or self.early_stopping):
            raise UsageError(
                "Beam: length_penalty and early_stopping belong to finish='transformers'; for length "
                "normalisation during the search use LengthNormalised."
            )

    def begin(self, task: Task) -> SearchState:
        return BeamState(self, task, self.k)


@dataclass(frozen=True)
class LengthNormalised(Search):
    """Beam search by log P(y) / |y|^alpha, while searching as well as at the end.

    `form="length"` divides by |y|^alpha, `form="wu"` by ((5 + |y|) / 6)^alpha (Wu et al. 2016, equation
    14). The length counts the end of the sequence. Longer hypotheses gain on shorter ones only where a
    finished one competes with them: all live ones have the same length.
    """

    k: int
    _: KW_ONLY
    alpha: float = number(1.0, math.isfinite, "a number")
    form: str = option(
        "length", lambda value: bool(choose("form of length normalisation", value, FORMS)), "a name"
    )

    def begin(self, task: Task) -> SearchState:
        return LengthNormalisedState(self, task, self.k)


#: form -> what a log-probability is divided by, to the power of alpha
FORMS: dict[str, Callable[[int], float]] = {
    "length": lambda length: length,
    "wu": lambda length: (5.0 + length) / 6.0,
}


class BeamState(SearchState):
    """Contests of k hypotheses each; an input is one contest, or has one for each of several `groups`."""

    def __init__(
        self, search: Search, task: Task, k: int, groups: int = 1, score: Floats | None = None
    ) -> None:
        owner = np.repeat(task.wanted, groups)
        mark = np.tile(np.arange(groups), len(task.wanted))
        super().__init__(search, task, Live.first(owner, mark, score))
        self.k, self.groups = k, groups
        # of each contest, best first
        self.finished: list[list[Done]] = [[] for _ in range(len(task.numbers) * groups)]
        self._settle = FINISH[getattr(search, "finish", "compete")]

    def worth(self, scores: Floats, length: int) -> Floats:
        """What hypotheses of this length compete by, a rising function of their scores."""
        return scores

    def contests(self) -> Integers:
        """The contest of every live row."""
        return self.live.owner * self.groups + self.live.mark

    def bounds(self) -> Integers:
        """Where the rows of each contest begin, and the end of the last."""
        return np.array([0, *(last for _, last in runs(self.contests()))])

    def pick(self, log_probs: Array, ranking: Array) -> Extensions:
        return self.settle(self.extend(log_probs, ranking))

    def extend(self, log_probs: Array, ranking: Array) -> Extensions:
        """The best extensions of every contest, best first."""
        # with transformers' rule k must be left when others end
        factor = max(2, 1 + len(self.task.ends)) if self._settle is as_transformers else 1
        rows, tokens, _ = best_extensions(ranking, self.live.score, self.bounds(), self.k * factor)
        return self.ordered(self.extended(log_probs, ranking, rows, tokens))

    def children(self, log_probs: Array, ranking: Array, n: int) -> Extensions:
        """The n best extensions of every row, row by row, best first."""
        tokens = best_tokens(ranking, n)  # (rows, n)
        rows = np.repeat(np.arange(len(tokens)), tokens.shape[1])
        return self.extended(log_probs, ranking, rows, tokens.ravel())

    def extended(self, log_probs: Array, ranking: Array, rows: Integers, tokens: Integers) -> Extensions:
        """Rows with these tokens; sums are kept in float64, whatever the model computes in."""
        live = self.live
        gains = values_at(log_probs, rows, tokens)
        ranks = gains if ranking is log_probs else values_at(ranking, rows, tokens)
        return Extensions(
            rows, tokens, live.logprob[rows] + gains, live.score[rows] + ranks, live.proposal[rows] + ranks
        )

    def ordered(self, extensions: Extensions) -> Extensions:
        """By contest, then best first."""
        contests = self.contests()[extensions.parent]
        return extensions[np.lexsort((-extensions.score, contests))]

    def settle(self, extensions: Extensions) -> Extensions:
        """Close what ends among the kept ones, return what goes on."""
        contests, stopping = self.contests()[extensions.parent], self.ending(extensions)
        going = []
        for first, last in runs(contests):
            part = slice(first, last)
            going.append(first + self._settle(self, int(contests[first]), extensions[part], stopping[part]))
        return extensions[np.concatenate(going)] if going else extensions

    def results(self) -> list[list[Done]]:
        """The finished hypotheses of each input, best first."""
        finished: list[list[Done]] = [[] for _ in self.task.numbers]
        for contest, done in enumerate(self.finished):
            finished[contest // self.groups] += done
        return finished


class LengthNormalisedState(BeamState):
    """Competes by normalised log-probability."""

    search: LengthNormalised

    def worth(self, scores: Floats, length: int) -> Floats:
        """log P / |y|^alpha, or Wu et al.'s form."""
        return np.asarray(scores / FORMS[self.search.form](length) ** self.search.alpha)


def compete(state: BeamState, contest: int, extensions: Extensions, stopping: Mask) -> Integers:
    """The k best of the finished and the new; of equals the finished, then the first."""
    finished = state.finished[contest]
    worth = state.worth(extensions.score, state.live.length + 1)
    values = np.concatenate([[done.score for done in finished], worth])
    best = np.sort(np.argsort(-values, kind="stable")[: state.k])
    new = best[best >= len(finished)] - len(finished)
    ended = new[stopping[new]]
    stay = [finished[i] for i in best[best < len(finished)]]
    state.finished[contest] = best_first(stay + state.close(extensions[ended], worth[ended]))
    return new[~stopping[new]]


def as_transformers(state: BeamState, contest: int, extensions: Extensions, stopping: Mask) -> Integers:
    """Transformers' rule: collect what ended among the k best, go on with the k best that did not."""
    search, length = state.search, state.live.length + 1
    assert isinstance(search, Beam)
    k, early, penalty = state.k, search.early_stopping, search.length_penalty
    ended = np.flatnonzero(stopping[:k])
    closed = state.close(extensions[ended], extensions.score[ended] / length**penalty)
    state.finished[contest] = pool = best_first(state.finished[contest] + closed)[:k]
    going = np.flatnonzero(~stopping)[:k]
    if len(pool) == k and len(going):
        most = int(state.task.limits[contest // state.groups])
        longest = most if early == "never" and penalty > 0 else length
        if early is True or extensions.score[going[0]] / longest**penalty <= pool[-1].score:
            return going[:0]
    return going


#: name -> how a contest is settled: which extensions go on, after closing those that end
FINISH: dict[str, Callable[[BeamState, int, Extensions, Mask], Integers]] = {
    "compete": compete,
    "transformers": as_transformers,
}


def best_first(done: list[Done]) -> list[Done]:
    """By score; equals keep their order."""
    return sorted(done, key=lambda one: -one.score)


def runs(numbers: Integers) -> list[tuple[int, int]]:
    """Where runs of equal numbers begin and end."""
    if not len(numbers):
        return []
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return list(pairwise(edges))
