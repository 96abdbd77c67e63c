"""What was proposed, how probable it is, and who may vote.

A `Hypothesis` is one output of a model, a `Ballot` one election's worth of them: both frozen, both
read straight from JSON. `Hypotheses` holds many of them as columns, which is what the measures
work on: an election of 100 plain strings never builds 100 objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

import msgspec
import numpy as np

from rangevote.columns import LOGPROB_SLACK as LOGPROB_SLACK
from rangevote.columns import Array as Array
from rangevote.columns import check_contents, check_kinds, logprobs_of, present, weights_of
from rangevote.errors import DataError, UsageError


class Hypothesis(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One sequence a model proposed: text, token ids, or both.

    `logprob` is the natural log of P(sequence), summed over all tokens including the end of the
    sequence; never averaged. `state` is the mean of the decoder's states, `finished` tells whether
    the model ended the sequence itself, `sampled` whether it was drawn at random (then
    multiplicity, not probability, is its weight), `weight` its importance weight where it was drawn
    without replacement, `ranked_by` what the search ordered it by where that is not `logprob`: normalised,
    penalised or perturbed.
    """

    text: str | None = None
    tokens: Sequence[int] | None = None
    logprob: float | None = None
    state: Sequence[float] | None = None
    finished: bool = True
    sampled: bool = False
    weight: float | None = None
    ranked_by: float | None = None

    @property
    def content(self) -> str | Sequence[int]:
        """The text where there is one, else the token ids."""
        if self.text is not None:
            return self.text
        return () if self.tokens is None else self.tokens


class Ballot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One election: who can be elected, and who votes (`voters=None`: the candidates do)."""

    candidates: Sequence[Hypothesis]
    voters: Sequence[Hypothesis] | None = None
    id: str | int | None = None
    source: str | None = None
    references: Sequence[str] = ()


class Hypotheses(Sequence[Hypothesis]):
    """Hypotheses as columns, checked once: the form in which measures take them.

    Every column is as long as the list, or None where no hypothesis has the field; inside `tokens`
    single entries may be None. `logprobs` is a float64 array in which an unknown value is NaN;
    `complete` tells that there is none.
    """

    __slots__ = (
        "_rows",
        "complete",
        "logprobs",
        "role",
        "sampled",
        "states",
        "texts",
        "tokens",
        "weights",
    )

    def __init__(
        self,
        texts: list[str] | None,
        tokens: list[Sequence[int] | None] | None = None,
        logprobs: Array | None = None,
        states: list[Sequence[float] | None] | None = None,
        weights: Array | None = None,
        sampled: bool = False,
        rows: Sequence[Hypothesis] | None = None,
        role: str = "candidates",
        complete: bool | None = None,
    ) -> None:
        self.texts, self.tokens, self.logprobs, self.states = texts, tokens, logprobs, states
        self.weights, self.sampled, self._rows, self.role = weights, sampled, rows, role
        if complete is None:
            complete = logprobs is not None and not bool(np.isnan(logprobs).any())
        self.complete = complete

    @classmethod
    def of(
        cls,
        items: Hypotheses | Iterable[Hypothesis | str | Sequence[int]],
        logprobs: Iterable[float | None] | None = None,
        *,
        role: str = "candidates",
    ) -> Hypotheses:
        """Columns of strings, token-id lists or `Hypothesis` objects; every value is checked.

        `role` is the name that error messages use. `logprobs` gives the log-probabilities of items
        that do not carry their own.
        """
        if isinstance(items, Hypotheses):
            if logprobs is not None:
                raise UsageError(f"the {role} are checked already and bring their own log-probabilities.")
            return items
        if isinstance(items, (str, bytes)):
            raise UsageError(
                f"{role} is one {type(items).__name__}, not a list: pass a list of texts, "
                f"token-id lists or Hypothesis objects."
            )
        if isinstance(items, Mapping) and logprobs is None:  # whose values would be lost
            raise UsageError(
                f"{role} is a {type(items).__name__}, not a list: pass a list of texts, and what is known of "
                f"them as logprobs=."
            )
        if not isinstance(items, Iterable):
            raise UsageError(f"{role} must be a list, got {type(items).__name__}.")
        listed = list(items)
        kinds = set(map(type, listed))
        if kinds == {str}:
            column, complete = logprobs_of(logprobs, len(listed), role)
            return cls(listed, logprobs=column, role=role, complete=complete)  # type: ignore[arg-type]
        rows = listed if kinds == {Hypothesis} else [_row(item, i, role) for i, item in enumerate(listed)]
        return cls._from_rows(rows, logprobs, role)  # type: ignore[arg-type]

    @classmethod
    def _from_rows(
        cls, rows: list[Hypothesis], logprobs: Iterable[float | None] | None, role: str
    ) -> Hypotheses:
        texts, tokens = present([row.text for row in rows]), present([row.tokens for row in rows])
        own, weights = present([row.logprob for row in rows]), present([row.weight for row in rows])
        check_kinds(texts, tokens, role)
        if texts is None or None in texts:
            check_contents(texts, tokens, role, len(rows))
            texts = None
        if logprobs is not None:
            if own is not None:
                raise UsageError(
                    f"log-probabilities of the {role} are given twice: in the Hypothesis objects "
                    f"and as an argument. Give them once."
                )
            own = list(logprobs)
        column, complete = logprobs_of(own, len(rows), role)
        return cls(
            texts,
            tokens,
            column,
            present([row.state for row in rows]),
            None if weights is None else weights_of(weights, role),
            True in [row.sampled for row in rows],
            rows,
            role,
            complete,
        )

    def __len__(self) -> int:
        return len(self.texts if self.texts is not None else self.tokens or ())

    @overload
    def __getitem__(self, index: int) -> Hypothesis: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hypothesis]: ...
    def __getitem__(self, index: int | slice) -> Hypothesis | Sequence[Hypothesis]:
        if self._rows is not None:
            return self._rows[index]
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        assert self.texts is not None  # without rows there are only texts
        return Hypothesis(text=self.texts[index], logprob=self.logprob(index))

    def __iter__(self) -> Iterator[Hypothesis]:
        return iter(self._rows) if self._rows is not None else (self[i] for i in range(len(self)))

    def logprob(self, index: int) -> float | None:
        """The log-probability of one hypothesis, None where it is not known."""
        if self.logprobs is None or math.isnan(self.logprobs[index]):
            return None
        return float(self.logprobs[index])

    def content(self, index: int) -> str | Sequence[int]:
        """The text of one hypothesis where there is one, else its token ids."""
        return self.texts[index] if self.texts is not None else self[index].content

    def only(self, index: int) -> Hypotheses:
        """The list that holds this one hypothesis, with the same columns."""
        one = slice(index, index + 1)
        return Hypotheses(
            None if self.texts is None else self.texts[one],
            None if self.tokens is None else self.tokens[one],
            None if self.logprobs is None else self.logprobs[one],
            None if self.states is None else self.states[one],
            None if self.weights is None else self.weights[one],
            self.sampled,
            [self[index]],
            self.role,
        )


def _row(item: object, index: int, role: str) -> Hypothesis:
    """One item of a user's list as a Hypothesis."""
    if isinstance(item, Hypothesis):
        return item
    if isinstance(item, str):
        return Hypothesis(text=str(item))  # numpy's strings too
    if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype.kind in "iu":
        return Hypothesis(tokens=tuple(item.tolist()))
    if isinstance(item, (list, tuple)) and all(
        isinstance(token, (int, np.integer)) and not isinstance(token, bool) for token in item
    ):
        return Hypothesis(tokens=tuple(map(int, item)))
    raise DataError(
        f"expected a text, a list of token ids or a Hypothesis, got {type(item).__name__}.",
        field=f"{role}[{index}]",
    )
