"""The columns of a list of hypotheses, checked: what cannot be voted on is named by its place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rangevote.errors import DataError, UsageError
from rangevote.kernel import logprob_column

#: A log-probability may exceed 0 by this much, since sums of float32 logits do.
LOGPROB_SLACK = 1e-6

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def present(column: list[Any]) -> list[Any] | None:
    """The column, or None where it holds nothing but None."""
    try:
        return None if column.count(None) == len(column) else column
    except ValueError:  # an array in it, which has no single answer to `== None`
        return column


def check_kinds(texts: list[Any] | None, tokens: list[Any] | None, role: str) -> None:
    """Texts are strings, token ids are whole numbers."""
    if texts is not None and not set(map(type, texts)) <= {str, type(None)}:
        for i, text in enumerate(texts):
            if not isinstance(text, (str, type(None))):
                raise DataError(f"expected a text, got {type(text).__name__}.", field=f"{role}[{i}].text")
    for i, ids in enumerate(tokens or ()):
        if ids is not None and not (isinstance(ids, (tuple, list)) and set(map(type, ids)) <= {int}):
            _check_tokens(ids, f"{role}[{i}].tokens")


def _check_tokens(ids: Any, field: str) -> None:
    """Arrays and other sequences of whole numbers will do; texts, floats and truth values will not."""
    listed = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
        raise DataError(f"expected a list of token ids, got {type(ids).__name__}.", field=field)
    for token in listed:
        if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
            raise DataError(f"expected whole numbers, got {type(token).__name__} {token!r}.", field=field)


def check_contents(texts: list[Any] | None, tokens: list[Any] | None, role: str, size: int) -> None:
    """Every hypothesis needs a text, or else every one needs token ids."""
    for i in range(size):
        if (texts is None or texts[i] is None) and (tokens is None or tokens[i] is None):
            raise DataError("has neither text nor tokens; give at least one.", field=f"{role}[{i}]")
    if texts is not None and tokens is not None and any(ids is None for ids in tokens):
        i = texts.index(None)
        raise DataError(
            "has no text while others have no token ids; give all of them texts, or all of them tokens.",
            field=f"{role}[{i}]",
        )


def logprobs_of(values: Iterable[float | None] | None, size: int, role: str) -> tuple[Array | None, bool]:
    """Log-probabilities as float64, unknown ones as NaN, and whether all are known; anything impossible
    is named and refused."""
    if values is None:
        return None, False
    listed = values.tolist() if hasattr(values, "tolist") else values  # numpy, torch
    if not isinstance(listed, Iterable):
        raise UsageError(f"the log-probabilities of the {role} must be a list, got {listed!r}.")
    listed = list(listed)
    if len(listed) != size:
        raise UsageError(f"{size} {role} but {len(listed)} log-probabilities; give exactly one for each.")
    column = logprob_column(listed)
    if column is not None:
        return column, True
    # something is unknown, of another type, or wrong
    checked = np.array([_logprob(value, i, role) for i, value in enumerate(listed)], dtype=np.float64)
    return checked, not bool(np.isnan(checked).any())


def _logprob(value: object, index: int, role: str) -> float:
    """One log-probability, checked; None becomes NaN (not known)."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise DataError(
            f"expected a number, got {type(value).__name__} {value!r}.", field=f"{role}[{index}].logprob"
        )
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number) or number > LOGPROB_SLACK:
        raise DataError(
            f"{number!r} is not a log-probability; it must be a number from -inf to 0 (natural log of "
            f"P, summed over all tokens).",
            field=f"{role}[{index}].logprob",
        )
    return min(number, 0.0)


def weights_of(weights: Sequence[float | None], role: str) -> Array:
    for i, weight in enumerate(weights):
        if weight is None or not math.isfinite(weight) or weight < 0:
            raise DataError(
                f"{weight!r} is not an importance weight; every one must be a finite number >= 0.",
                field=f"{role}[{i}].weight",
            )
    return np.array(weights, dtype=np.float64)
