"""Types of the compiled kernels (sources in `kernels/`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
#: `rangevote.election.result` says what is in it.
Answer = tuple[int, float | None, bool, bytes]

def distinct(values: Array) -> bool: ...
def logprob_column(values: list[Any]) -> Array | None: ...
def softmax(logprobs: Array, temperature: float, again: Sequence[int]) -> Array: ...

#: Lines or rows, lines of results, ids, unusual ballots and where they stand, most candidates.
Block = tuple[int, bytes, list[str | int | None], dict[int, tuple[int, int, int]], int]

class Election:
    def __init__(
        self,
        row: type,
        unread: Sequence[str],
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
    def one(self, candidates: Any, logprobs: Any, voters: Any, voter_logprobs: Any) -> Answer | None: ...
    def many(self, ballots: list[tuple[Any, Any]]) -> list[tuple[Answer, Sequence[Any]] | None]: ...
    def lines(
        self,
        block: bytes,
        text: bool,
        scores: bool,
        by_probability: Sequence[str],
        by_count: Sequence[str],
        most_pairs: int,
    ) -> Block: ...
    def rows(
        self,
        ids: list[str | int | None],
        list_ends: Any,
        text_ends: Any,
        texts: Any,
        logprobs: Array | None,
        text: bool,
        scores: bool,
        by_probability: Sequence[str],
        by_count: Sequence[str],
        most_pairs: int,
    ) -> Block: ...

class Index:
    def __init__(
        self, sequences: Sequence[Any], unit: str, orders: Sequence[int], bag: bool, short: bool
    ) -> None: ...
    @property
    def voters(self) -> int: ...
    def add(self, sequences: Sequence[Any]) -> None: ...
    def tally(self, weights: Array, a: float, own: bool) -> Array: ...
    def grades(self, a: float, own: bool) -> Array: ...
    def bleu_tally(self, weights: Array, smooth: bool, own: bool) -> Array: ...
    def bleu_grades(self, smooth: bool, own: bool) -> Array: ...
    def chrf_tally(self, weights: Array, beta: float, own: bool) -> Array: ...
    def chrf_grades(self, beta: float, own: bool) -> Array: ...
