"""Types of the compiled kernels (sources in `kernels/`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
#: `rangevote.election.result` says what is in it.
Answer = tuple[int, float, float | None, bool, bool, bytes]

def softmax(logprobs: Array, temperature: float, again: Sequence[int]) -> Array: ...

#: Texts, log-probabilities, token ids, members, which are finished (None: all), whether all were sampled, and
#: the sum of the probabilities.
UsualColumns = tuple[
    tuple[str, ...],
    tuple[float, ...] | None,
    tuple[Sequence[int], ...] | None,
    tuple[str, ...] | None,
    tuple[bool, ...] | None,
    bool,
    float,
]

def usual_columns(rows: list[Any]) -> UsualColumns | None: ...

class Election:
    def __init__(
        self,
        unit: str,
        orders: Sequence[int],
        bag: bool,
        short: bool,
        formula: str,
        parameter: float,
        weights: str,
        temperature: float,
        temperature_given: bool,
        likelihood: float,
    ) -> None: ...
    def many(self, ballots: Sequence[tuple[Any, Any, Any]]) -> list[Answer | None]: ...

class Index:
    def __init__(
        self, sequences: Sequence[Any], unit: str, orders: Sequence[int], bag: bool, short: bool
    ) -> None: ...
    @property
    def voters(self) -> int: ...
    def add(self, sequences: Sequence[Any]) -> None: ...
    def tally(
        self, weights: Array, parameter: float, self_voting: bool, formula: str = "family"
    ) -> Array: ...
    def grades(self, parameter: float, self_voting: bool, formula: str = "family") -> Array: ...
