"""Beams that are made to differ: Li and Jurafsky's sibling penalty, and Vijayakumar et al.'s groups.

Penalties change what the search ranks by; a hypothesis' log-probability stays the model's own.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from rangevote.decoding.arrays import Array, Floats, Integers
from rangevote.decoding.base import Done, Extensions, Search, SearchState, Task, number, whole
from rangevote.decoding.beam import BeamState
from rangevote.errors import UsageError


@dataclass(frozen=True)
class DiverseDecoding(Search):
    """Beam search that subtracts `gamma` from an extension for each better one of the same parent.

    Li and Jurafsky (2016), also Li, Monroe and Jurafsky (2016, "A Simple, Fast Diverse Decoding
    Algorithm"): so the beam does not fill with children of one hypothesis. Ranks are counted from 0 here and
    from 1 there, so that finished hypotheses, which pay nothing, compete on equal terms. The penalty counts
    in the step in which it arises and is then forgotten.
    """

    k: int
    _: KW_ONLY
    gamma: float = number(0.5, lambda gamma: 0 <= gamma < np.inf, "a number from 0")

    def begin(self, task: Task) -> SearchState:
        return DiverseDecodingState(self, task, self.k)


@dataclass(frozen=True)
class DiverseBeam(Search):
    """Diverse beam search (Vijayakumar et al. 2018): k hypotheses in `groups`, searched one after another.

    At each step a group takes `penalty` from every token for each hypothesis of the earlier groups that
    chose it at this step (Hamming diversity), ended ones included. Every group has its own finished
    hypotheses; they come back together, most likely first.
    """

    k: int
    _: KW_ONLY
    groups: int = whole(2, 1)
    penalty: float = number(0.5, lambda penalty: 0 <= penalty < np.inf, "a number from 0")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k % self.groups:
            raise UsageError(
                f"DiverseBeam: k={self.k} hypotheses do not divide into groups={self.groups} equal groups."
            )

    def begin(self, task: Task) -> SearchState:
        return DiverseBeamState(self, task, self.k // self.groups, self.groups)


class DiverseDecodingState(BeamState):
    """Ranks the children of each parent before they compete."""

    search: DiverseDecoding

    def extend(self, log_probs: Array, ranking: Array) -> Extensions:
        """The k best children of every row, penalised by rank; more of one parent cannot win."""
        children = self.children(log_probs, ranking, self.k)
        ranks = np.arange(len(children)) % (len(children) // len(self.live))
        return self.ordered(replace(children, score=children.score - self.search.gamma * ranks)).possible()

    def settle(self, extensions: Extensions) -> Extensions:
        """Rows that go on lose this step's penalty."""
        going = super().settle(extensions)
        return replace(going, score=going.proposal)

    def close(self, extensions: Extensions, worth: Floats) -> list[Done]:
        return super().close(extensions, extensions.proposal)


class DiverseBeamState(BeamState):
    """One contest for each group of each input, settled in the order of the groups."""

    search: DiverseBeam

    def pick(self, log_probs: Array, ranking: Array) -> Extensions:
        """Settle group by group; what a group chose is penalised for the next."""
        # Earlier groups chose k minus a group's size tokens at most, so a group's best are among the k best.
        children = self.children(log_probs, ranking, self.search.k)
        self._vocabulary = int(ranking.shape[1])
        names = self._names(children)
        group = self.live.mark[children.parent]
        self._chosen: list[Integers] = [np.zeros(0, dtype=np.int64)]  # names that earlier groups took
        going = []
        for turn in range(self.groups):
            members = group == turn
            penalty = self.search.penalty * occurrences(names[members], np.concatenate(self._chosen))
            penalised = replace(children[members], score=children.score[members] - penalty)
            going.append(self.settle(self.ordered(penalised).possible()))
            self._chosen.append(self._names(going[-1]))
        return self.ordered(Extensions.joined(going))

    def _names(self, extensions: Extensions) -> Integers:
        """Input and token as one number."""
        return self.live.owner[extensions.parent] * self._vocabulary + extensions.token

    def close(self, extensions: Extensions, worth: Floats) -> list[Done]:
        """Hypotheses that end count as chosen."""
        self._chosen.append(self._names(extensions))
        return super().close(extensions, worth)

    def results(self) -> list[list[Done]]:
        """Most likely first: scores of different groups include different penalties."""
        return [sorted(done, key=lambda one: -one.logprob) for done in super().results()]


def occurrences(names: Integers, among: Integers) -> Integers:
    """How often each name is among the others."""
    distinct, counts = np.unique(among, return_counts=True)
    if not len(distinct):
        return np.zeros(len(names), dtype=np.int64)
    index = np.minimum(np.searchsorted(distinct, names), len(distinct) - 1)
    return np.where(distinct[index] == names, counts[index], 0)
