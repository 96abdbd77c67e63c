"""Texts made comparable before the election: Unicode normal forms, and merging of equal texts."""

from __future__ import annotations

import math
import unicodedata

import msgspec
import numpy as np

from rangevote.election.weights import repeated
from rangevote.errors import DataError
from rangevote.hypothesis import LOGPROB_SLACK, Hypotheses, Hypothesis


def prepare(hypotheses: Hypotheses, normalize: str | None, merge: bool) -> Hypotheses:
    """The same list with normalised texts and, with `merge`, masses gathered at the first of equals."""
    if not normalize and not merge:
        return hypotheses
    rows = list(hypotheses)
    if normalize:
        rows = [_normalised(row, normalize) for row in rows]
    if merge:
        for indices, part in hypotheses.by_member():  # equal texts of two members are two voters
            merged = _merged([rows[i] for i in indices], set(repeated(part)), part.role)
            for i, row in zip(indices, merged, strict=True):
                rows[i] = row
    return Hypotheses.of(rows, role=hypotheses.role)


def _normalised(row: Hypothesis, form: str) -> Hypothesis:
    if row.text is None:
        return row
    return msgspec.structs.replace(row, text=unicodedata.normalize(form, row.text))  # type: ignore[arg-type]


def _merged(rows: list[Hypothesis], duplicates: set[int], role: str) -> list[Hypothesis]:
    """The first of equal texts gets the log of their summed probabilities, the others -inf.

    Exact duplicates are one sequence: they add nothing (`weights.repeated`), and the first of a text that is
    none gets the sum. All stay in the list, so that indices keep their meaning.
    """
    groups: dict[object, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.content if row.text is not None else tuple(row.content), []).append(i)
    merged = list(rows)
    for members in groups.values():
        counting = [i for i in members if i not in duplicates]
        logprobs = [logprob for i in counting if (logprob := rows[i].logprob) is not None]
        if len(members) == 1 or not counting or len(logprobs) < len(counting):
            continue
        total = float(np.logaddexp.reduce(sorted(logprobs)))
        if total > LOGPROB_SLACK:
            raise DataError(
                f"the probabilities of this text sum to {math.exp(total):.4g}; more than 1 cannot be merged.",
                field=f"{role}[{counting[0]}].logprob",
            )
        for i in members:
            logprob = min(total, 0.0) if i == counting[0] else -math.inf
            merged[i] = msgspec.structs.replace(rows[i], logprob=logprob)
    return merged
