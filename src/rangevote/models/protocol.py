"""The seam between models and searches: P(next token | input, prefix), for many prefixes at once.

A *row* is one prefix of one input. `start` gives one row for each input; a search repeats, drops and
reorders rows with `select`, and extends every row by one token with `step`. Searches know nothing else
about a model, models nothing about searches. `tests/models/contract.py` is this text as tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rangevote.hypothesis import Hypothesis

#: A numpy array, or a torch tensor on any device; all of one model's are of one kind.
Array = Any
Integers = NDArray[np.int64]

State = TypeVar("State")


@dataclass(frozen=True)
class Step(Generic[State]):
    """What a model says about the next token of every row.

    `log_probs` (rows, vocabulary): natural logs that sum to 1 over each row; the caller may write into
    it. `hidden` (rows, dimension): the decoder's last state, from which the next token is predicted; None
    where the model has none. `ranking` (rows, vocabulary): what the search is to rank extensions by where the
    model's own settings bend the probabilities (forbidden words, forced tokens); None: `log_probs`.
    """

    log_probs: Array
    state: State
    hidden: Array | None = None
    ranking: Array | None = None


class LanguageModel(Protocol[State]):
    """P(next token | input, prefix). `Input` is whatever the model takes: a text, token ids, an image.

    There is always an input to read, and a row to extend.

    A state is used once: `step` and `select` may change what they are given. Only a fresh state, from
    `start`, can be selected from several times; so a thousand samples share one reading of the prompt.
    """

    @property
    def ends(self) -> Sequence[int]:
        """The tokens that end a sequence."""

    def start(self, inputs: Sequence[Any]) -> State:
        """Read the inputs, each once; the state has one row for each, in order."""

    def step(self, state: State, tokens: Integers | None) -> Step[State]:
        """Append one token to every row (rows,) and predict the next; None at the first step: nothing yet."""

    def select(self, state: State, rows: Integers) -> State:
        """The state whose row i is row `rows[i]` of the given one: rows repeat, vanish and change places."""

    def room(self, state: State) -> Integers | None:
        """How many tokens may follow each row of a fresh state (rows,); None: any number."""

    def text(self, tokens: Sequence[int]) -> str | None:
        """The tokens (without an end) as text; None where the model knows no text."""

    def source(self, input: Any) -> Sequence[int]:
        """The input in the tokens the model writes, for the copy filter; empty where it is no text."""


@runtime_checkable
class Engine(Protocol):
    """What searches by itself: another library, a server, a program."""

    def hypotheses(self, inputs: Sequence[Any], search: Any) -> Sequence[Sequence[Hypothesis]]:
        """The hypotheses of a search, as `rangevote.Beam(10)`, for each input, in order."""
