"""states: cosine of the hypotheses' averaged decoder states (the paper's lstm_states, transformer_states).

Linear, since a sum of cosines is one inner product:  score(c) = < sum of P(v) v/|v| , c/|c| >.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rangevote.errors import DataError, warn
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel.plain import counted, unit_bits
from rangevote.similarity.base import Measure, check_pairs, refuse_argument
from rangevote.similarity.tokens import Tokenise

#: Hypotheses, and the number of dimensions where it is known -> unit vectors, (hypotheses, dim).
ReadVectors = Callable[[Hypotheses, int | None], Array]


class States(Measure):
    """Cosine of the averaged state vectors."""

    name = "states"
    lowest = -1.0
    linear = True

    def poll(self, candidates: Hypotheses) -> StatePoll:
        """Open an election among these candidates."""
        return StatePoll(candidates)


class StatePoll:
    """Unit vectors of the candidates, and of the voters so far; `read` tells where they come from."""

    def __init__(self, candidates: Hypotheses, read: ReadVectors | None = None) -> None:
        self._read = read or unit_vectors
        self._candidates = self._read(candidates, None)  # (candidates, dim)
        self._batches: list[Array] = []

    def add(self, voters: Hypotheses) -> None:
        """Take more voters in."""
        self._batches.append(self._read(voters, self._candidates.shape[1]))

    def _voters(self) -> Array:
        if len(self._batches) != 1:
            self._batches = [np.concatenate([self._candidates[:0], *self._batches])]
        return self._batches[0]  # (voters, dim)

    def tally(self, weights: Array) -> Array:
        """score(c), shape (candidates,); both sums are counted in units of 2^-60."""
        bits = unit_bits(weights.tolist())
        sums = counted(weights[:, None] * self._voters(), bits, axis=0)  # (dim,)
        return counted(sums[None, :] * self._candidates, bits, axis=1)  # (candidates,)

    def matrix(self) -> Array:
        """sim(v, c), shape (voters, candidates)."""
        check_pairs(len(self._voters()), len(self._candidates), matrix=True)
        # not BLAS: its rounding depends on where a row stands
        grades = np.einsum("vd,cd->vc", self._voters(), self._candidates, optimize=False)
        return np.asarray(np.clip(grades, -1.0, 1.0))


def unit_vectors(hypotheses: Hypotheses, dimension: int | None) -> Array:
    """State vectors divided by their length, shape (hypotheses, dim); a zero vector stays zero."""
    states = hypotheses.states
    if states is None:
        if not len(hypotheses):
            return np.zeros((0, dimension or 0))
        raise DataError("have no state vectors, which the measure 'states' needs.", field=hypotheses.role)
    for i, state in enumerate(states):
        where = f"{hypotheses.role}[{i}].state"
        if state is None:
            raise DataError("is missing, which the measure 'states' needs.", field=where)
        dimension = len(state) if dimension is None else dimension
        if len(state) != dimension:
            raise DataError(f"has {len(state)} numbers, others have {dimension}.", field=where)
    vectors = _numbers(states, hypotheses.role)
    zero = np.flatnonzero(~vectors.any(axis=1))
    if len(zero):
        warn(f"{hypotheses.role}[{zero[0]}].state is a zero vector; its cosine with everything counts as 0.")
    return of_length_one(vectors)


def of_length_one(vectors: Array) -> Array:
    """Every row divided by its length, shape (rows, dim); a row of zeros stays as it is."""
    largest = np.abs(vectors).max(axis=1, initial=0.0)[:, None]  # divide first: squares may overflow
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt(np.square(scaled).sum(axis=1))[:, None]
    result: Array = scaled / np.where(lengths > 0, lengths, 1.0)
    return result


def _numbers(states: list[Any], role: str) -> Array:
    try:
        vectors = np.array(states, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"must hold numbers only ({error}).", field=f"{role}[].state") from None
    wrong = ~np.isfinite(vectors)
    if wrong.any():
        i, j = (int(n) for n in np.argwhere(wrong)[0])
        raise DataError(f"{float(vectors[i, j])!r} is not a finite number.", field=f"{role}[{i}].state[{j}]")
    return vectors


def states(argument: str, tokenize: Tokenise) -> States:
    """Cosine of the averaged decoder states."""
    refuse_argument("states", argument)
    return States()
