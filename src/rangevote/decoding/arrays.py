"""What a search does over whole vocabularies, for numpy arrays and for torch tensors on any device.

Everything as large as (rows, vocabulary) stays where the model put it; what comes back are small numpy arrays
about the chosen tokens. `arrays_of` finds the implementation by the type of the model's log-probs, so that a
numpy model needs no torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Picks:
    """Tokens chosen in rows, with what they were ranked by; three columns of one length."""

    rows: Integers
    tokens: Integers
    values: Floats


@dataclass(frozen=True)
class Truncation:
    """Which tokens may be drawn: log-probs are divided by `temperature`, then the tail is cut off.

    `top_k` keeps the k best; `top_p` the smallest set of the best that holds a mass of p; `min_p` what is
    at least min_p times as probable as the best; `epsilon` what has at least that probability. The best
    token always stays.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    epsilon: float | None = None


class Arrays(ABC):
    """Operations over (rows, vocabulary)."""

    @abstractmethod
    def best(self, scores: Array, base: Floats, bounds: Integers, n: int) -> Picks:
        """The n best extensions of every contest, best first, contests in order.

        `scores` (rows, vocabulary) plus `base` (rows,) is compared among the rows bounds[c]:bounds[c+1]
        of contest c. Impossible extensions (-inf) are left out, NaN comes back for the caller to see.
        """

    @abstractmethod
    def top(self, scores: Array, n: int) -> tuple[Integers, Floats]:
        """The n best tokens of every row, best first: tokens and values, both (rows, n)."""

    @abstractmethod
    def at(self, scores: Array, rows: Integers, tokens: Integers) -> Floats:
        """Single values."""

    @abstractmethod
    def unsound(self, scores: Array) -> Mask:
        """Which rows hold NaN."""

    @abstractmethod
    def forbid(self, scores: Array, rows: Integers, tokens: Integers) -> None:
        """Write -inf to single places, in place."""

    @abstractmethod
    def draw(self, scores: Array, uniforms: Floats, truncation: Truncation) -> Integers:
        """One token a row, by inverting the distribution's sum at the row's number in [0, 1).

        A row in which nothing can be drawn (NaN, or no mass) gives -1.
        """

    @abstractmethod
    def perturb(
        self, scores: Array, exponentials: Array, proposal: Floats, perturbed: Floats
    ) -> tuple[Array, Array]:
        """Children of stochastic beam search: their log-probabilities and their perturbed ones.

        `scores` (rows, vocabulary) are normalised, the parents' `proposal` log-probability (rows,) added;
        Gumbel noise is -log of the `exponentials` (rows, vocabulary), and its maximum in each row is made
        the parent's `perturbed` value (Kool et al. 2019, appendix B.3).
        """

    @abstractmethod
    def zeros(self, like: Array) -> Array:
        """Zeros of the same shape, in float32."""

    @abstractmethod
    def take(self, array: Array, rows: Integers) -> Array:
        """These rows."""

    @abstractmethod
    def numpy(self, array: Array) -> NDArray[Any]:
        """The array in numpy."""


def arrays_of(sample: Array) -> Arrays:
    """The operations for arrays of this kind."""
    if isinstance(sample, np.ndarray):
        from rangevote.decoding.numpy_arrays import NumpyArrays

        return NumpyArrays()
    from rangevote.decoding.torch_arrays import TorchArrays

    return TorchArrays(sample.device)


def sizes(bounds: Integers) -> Integers:
    """Rows of each contest."""
    return np.diff(bounds)


def by_contest(bounds: Integers, one: Callable[[int, int], Picks]) -> Picks:
    """Contests of different sizes, one after the other."""
    found = [one(first, last) for first, last in pairwise(bounds.tolist()) if last > first]
    return Picks(
        np.concatenate([picks.rows for picks in found]),
        np.concatenate([picks.tokens for picks in found]),
        np.concatenate([picks.values for picks in found]),
    )
