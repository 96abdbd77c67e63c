"""The operations over vocabularies in numpy: plain, and what the torch ones are tested against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rangevote.decoding.arrays import Array, Arrays, Floats, Integers, Mask, Picks, Truncation, by_contest


class NumpyArrays(Arrays):
    """For models that answer in numpy."""

    def best(self, scores: Array, base: Floats, bounds: Integers, n: int) -> Picks:
        """See `Arrays.best`."""

        def one(first: int, last: int) -> Picks:
            totals = (scores[first:last] + base[first:last, None]).ravel()  # (rows * vocabulary,)
            index = _largest(totals, min(n, totals.size))
            index = index[totals[index] != -np.inf]
            rows, tokens = np.divmod(index, scores.shape[1])
            return Picks(rows + first, tokens, totals[index].astype(np.float64))

        return by_contest(bounds, one)

    def top(self, scores: Array, n: int) -> tuple[Integers, Floats]:
        """See `Arrays.top`."""
        tokens = np.stack([_largest(row, min(n, row.size)) for row in scores])
        return tokens, np.take_along_axis(scores, tokens, axis=1).astype(np.float64)

    def at(self, scores: Array, rows: Integers, tokens: Integers) -> Floats:
        """See `Arrays.at`."""
        return np.asarray(scores[rows, tokens], dtype=np.float64)

    def unsound(self, scores: Array) -> Mask:
        """See `Arrays.unsound`."""
        return np.asarray(np.isnan(scores).any(axis=1))

    def forbid(self, scores: Array, rows: Integers, tokens: Integers) -> None:
        """See `Arrays.forbid`."""
        scores[rows, tokens] = -np.inf

    def draw(self, scores: Array, uniforms: Floats, truncation: Truncation) -> Integers:
        """See `Arrays.draw`."""
        with np.errstate(invalid="ignore"):
            below = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
            masses = truncated(np.exp(below / truncation.temperature), truncation)
        sums = masses.cumsum(axis=1)  # (rows, vocabulary)
        total = sums[:, -1]
        above = sums > (uniforms * total)[:, None]  # a token without mass is never the first above
        return np.where(total > 0, above.argmax(axis=1), -1)

    def perturb(
        self, scores: Array, exponentials: Array, proposal: Floats, perturbed: Floats
    ) -> tuple[Array, Array]:
        """See `Arrays.perturb`."""
        total = np.logaddexp.reduce(scores, axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            children = np.where(np.isneginf(scores), -np.inf, scores - total + proposal[:, None])
            gumbels = children - np.log(exponentials)
            largest = gumbels.max(axis=1, keepdims=True)
            gap = np.maximum(largest - gumbels, 0.0)
            v = perturbed[:, None] - gumbels + np.log(-np.expm1(-gap))
            values = perturbed[:, None] - np.maximum(v, 0.0) - np.log1p(np.exp(-np.abs(v)))
        values = np.where(gap == 0, perturbed[:, None], values)
        return children, np.where(np.isneginf(children), -np.inf, values)

    def zeros(self, like: Array) -> Array:
        """See `Arrays.zeros`."""
        return np.zeros(like.shape, dtype=np.float32)

    def take(self, array: Array, rows: Integers) -> Array:
        """See `Arrays.take`."""
        return array[rows]

    def numpy(self, array: Array) -> NDArray[Any]:
        """See `Arrays.numpy`."""
        return np.asarray(array)


def _largest(values: Floats, n: int) -> Integers:
    """Places of the n largest values, largest first, equal ones in their order; NaN counts as largest."""
    if n < values.size:
        edge = np.partition(values, values.size - n)[values.size - n]
        if np.isnan(edge):
            places = np.flatnonzero(np.isnan(values))
        else:  # all above the n-th largest, and the first of those equal to it
            above = np.flatnonzero((values > edge) | np.isnan(values))
            places = np.concatenate([above, np.flatnonzero(values == edge)[: n - len(above)]])
        places = np.sort(places)
    else:
        places = np.arange(values.size)
    return places[np.argsort(-values[places], kind="stable")][:n]


def truncated(masses: Floats, truncation: Truncation) -> Floats:
    """The masses (rows, vocabulary) with 0 where a token may not be drawn; the best always stays."""
    shares = masses / masses.sum(axis=1, keepdims=True)
    best = shares.max(axis=1, keepdims=True)
    keep = np.ones_like(shares, dtype=bool)
    if truncation.top_k is not None:
        keep &= shares >= np.sort(shares, axis=1)[:, -min(truncation.top_k, shares.shape[1])][:, None]
    if truncation.top_p is not None:
        shares = np.where(keep, shares, 0.0)
        shares /= shares.sum(axis=1, keepdims=True)
        falling = np.sort(shares, axis=1)[:, ::-1]
        before = falling.cumsum(axis=1) - falling  # mass of the better ones
        last = (before < truncation.top_p).sum(axis=1) - 1
        keep &= shares >= np.take_along_axis(falling, np.maximum(last, 0)[:, None], axis=1)
    if truncation.min_p is not None:
        keep &= shares >= truncation.min_p * best
    if truncation.epsilon is not None:
        keep &= shares >= truncation.epsilon
    return np.asarray(np.where(keep | (shares == shares.max(axis=1, keepdims=True)), masses, 0.0))
