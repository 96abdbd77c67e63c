"""Stochastic beam search (Kool et al. 2019): k sequences sampled without replacement.

Every sequence gets its log-probability plus Gumbel noise, and the k largest are a sample without
replacement (the Gumbel-top-k trick). The search finds them without knowing the others: a prefix has the
largest perturbed value of its sequences, children are perturbed given that their maximum is their
parent's, and the root's value is itself a Gumbel number (starting from 0, as is often done, biases the
weights). One more than k is searched: with kappa, the (k+1)-th largest value, a sequence is in the sample
with probability q = 1 - exp(-exp(phi - kappa)), so that weight = P / q gives unbiased estimates of sums
over all sequences.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from rangevote.decoding.arrays import Array, best_extensions, perturb, values_at
from rangevote.decoding.base import Done, Extensions, Search, SearchState, Task, random_generator, whole
from rangevote.decoding.beam import BeamState


@dataclass(frozen=True)
class StochasticBeam(Search):
    """k sequences without replacement, with importance weights; `seed` fixes them.

    They come back in the order of their perturbed log-probabilities (`ranked_by`); `weight` is the
    importance weight, by which they vote. If fewer than k + 1 sequences are possible, all are returned, with
    P as the weight. If a filter or the model's settings forbid tokens, P is renormalised over the remaining
    tokens at each step.
    """

    k: int
    _: KW_ONLY
    seed: int = whole(0, 0)

    @property
    def size(self) -> int:
        """k, and the one beyond."""
        return self.k + 1

    def begin(self, task: Task) -> SearchState:
        return StochasticBeamState(self, task)


class StochasticBeamState(BeamState):
    """A beam of k + 1 that ranks by perturbed log-probability; `score` is that, `proposal` phi."""

    def __init__(self, search: StochasticBeam, task: Task) -> None:
        self._generators = [random_generator(search.seed, task.stream, number) for number in task.numbers]
        roots = np.array([-math.log(self._generators[i].standard_exponential()) for i in task.wanted])
        super().__init__(search, task, search.k + 1, score=roots)

    def extend(self, log_probs: Array, ranking: Array) -> Extensions:
        """The best children by perturbed value."""
        live, size = self.live, int(ranking.shape[1])
        noise = np.empty((len(live), size))
        for input in np.unique(live.owner):  # each its own stream, so that batches do not matter
            rows = live.owner == input
            noise[rows] = self._generators[input].standard_exponential((int(rows.sum()), size))
        # In float64: the least float32 number would come once in millions, and carry any token to the top.
        noise = np.maximum(noise, np.finfo(np.float64).tiny)
        tokens, children, perturbed = perturb(ranking, noise, live.proposal, live.score, self.k)
        rows, places, values = best_extensions(perturbed, np.zeros(len(live)), self.bounds(), self.k)
        chosen = tokens[rows, places]
        logprob = live.logprob[rows] + values_at(log_probs, rows, chosen)
        return self.ordered(Extensions(rows, chosen, logprob, values, children[rows, places]))

    def results(self) -> list[list[Done]]:
        """The k with the largest perturbed values; the next one's value is the threshold kappa."""
        wanted = self.k - 1
        results = []
        for finished in super().results():
            kappa = finished[wanted].score if len(finished) > wanted else -math.inf
            results.append([replace(d, weight=importance(d.proposal, kappa)) for d in finished[:wanted]])
        return results


def importance(logprob: float, kappa: float) -> float:
    """P / q, with q = 1 - exp(-x), x = P / exp(kappa), the probability of being above the threshold kappa.

    Samples may be as unlikely as exp(-1000), for there are as many of them: where x is 0, so is q, and their
    ratio 1.
    """
    if kappa == -math.inf:
        return math.exp(logprob)
    x = math.exp(min(logprob - kappa, 700.0))  # beyond that q is 1
    if x > 1:
        return math.exp(logprob) / -math.expm1(-x)
    return math.exp(kappa) * (x / -math.expm1(-x) if x else 1.0)
