"""Columns of Arrow to Python lists, many rows at a time.

A list of structs becomes `Hypothesis` objects straight from its columns: a row of ten candidates costs a few
microseconds instead of a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from rangevote.errors import need
from rangevote.formats.careful import HYPOTHESIS_FIELDS, note_unknown
from rangevote.formats.reader import ReadOptions
from rangevote.hypothesis import LOGPROB_SLACK, Array, Hypothesis

if TYPE_CHECKING:
    import pyarrow as pa

#: The order in which a Hypothesis takes its fields, and what an absent one is.
ORDER = ("text", "tokens", "logprob", "state", "finished", "sampled", "weight", "ranked_by")
ABSENT: dict[str, Any] = {"finished": True, "sampled": False}


class Lists:
    """The hypotheses of every row: `row(i)` is None where the list is null."""

    def __init__(self, column: pa.Array, rows: list[Hypothesis], fields: dict[str, pa.Array]) -> None:
        lengths = np.asarray(_compute().fill_null(_compute().list_value_length(column), 0))  # (rows,)
        self._ends = np.cumsum(lengths).tolist()
        self._null = column.is_null().to_pylist() if column.null_count else None
        self._rows, self.stated = rows, "state" in fields
        logprobs = _numbers(fields.get("logprob"))  # (hypotheses,), NaN where not known
        with np.errstate(over="ignore"):
            self._masses = None if logprobs is None else np.nan_to_num(np.exp(logprobs))
        self._doubts = _doubts(len(rows), fields, logprobs)

    def _span(self, row: int) -> slice:
        return slice(self._ends[row - 1] if row else 0, self._ends[row])

    def row(self, row: int) -> list[Hypothesis] | None:
        """The hypotheses of a row."""
        return None if self._null is not None and self._null[row] else self._rows[self._span(row)]

    def doubtful(self, row: int) -> bool:
        """Whether something in the row must be looked at with care."""
        return self._doubts is not None and bool(self._doubts[self._span(row)].any())

    def mass(self, row: int) -> float:
        """The sum of P, give or take rounding."""
        return 0.0 if self._masses is None else float(self._masses[self._span(row)].sum()) + 1e-9


def lists_of(column: pa.Array, role: str, options: ReadOptions) -> Lists | None:
    """The column's hypotheses; None if it is not of a kind that is expected."""
    pa = need("pyarrow", "parquet", "reading Parquet files")
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return None
    values = column.flatten()
    if values.null_count:
        return None
    if _is_text(values.type):
        return Lists(column, list(map(Hypothesis, values.to_pylist())), {"text": values})
    if not pa.types.is_struct(values.type):
        return None
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    fields = {
        name: field
        for name, field in zip(names, values.flatten(), strict=True)
        if field.null_count < len(field)
    }
    note_unknown(names, HYPOTHESIS_FIELDS, f"{role}[].", options)
    if "prob" in fields or len(set(names)) < len(names):
        return None
    fields = {name: field for name, field in fields.items() if name in ORDER}
    if not all(_expected(name, field.type) for name, field in fields.items()):
        return None
    made = map(Hypothesis, *(_listed(name, fields.get(name)) for name in ORDER))
    # without any field there is no end to the repeated defaults
    return Lists(column, [h for h, _ in zip(made, range(len(values)), strict=False)], fields)


def plain_column(batch: pa.RecordBatch, name: str) -> list[Any] | None:
    """The values of `id`, `source` or `references`; None if they are of another kind."""
    pa = need("pyarrow", "parquet", "reading Parquet files")
    if name not in batch.schema.names:
        return [None] * len(batch)
    column = batch.column(name)
    kind = column.type
    if pa.types.is_null(kind):
        return [None] * len(batch)
    if name == "references":
        listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if not (listed and _is_text(kind.value_type) and not column.flatten().null_count):
            return None
    elif not (_is_text(kind) or (name == "id" and pa.types.is_integer(kind))):
        return None
    values: list[Any] = column.to_pylist()
    return values


def _expected(name: str, kind: pa.DataType) -> bool:
    """Whether a field of hypotheses has the type it should have."""
    types = need("pyarrow", "parquet", "reading Parquet files").types
    if name == "text":
        return _is_text(kind)
    if name in ("finished", "sampled"):
        return bool(types.is_boolean(kind))
    if name in ("tokens", "state"):
        if not (types.is_list(kind) or types.is_large_list(kind)):
            return False
        inner = kind.value_type
        return bool(types.is_integer(inner) or (name == "state" and types.is_floating(inner)))
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _is_text(kind: pa.DataType) -> bool:
    types = need("pyarrow", "parquet", "reading Parquet files").types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _listed(name: str, field: pa.Array | None) -> Iterable[Any]:
    """The values of a field, one for each hypothesis; defaults where it is not known."""
    if field is None:
        return repeat(ABSENT.get(name))
    if name in ABSENT and field.null_count:
        field = field.fill_null(ABSENT[name])
    if name in ("logprob", "weight", "ranked_by"):
        field = field.cast("float64")
    values: list[Any] = field.to_pylist()
    return values


def _numbers(field: pa.Array | None) -> Array | None:
    """A field of numbers as an array, NaN where it is null."""
    return None if field is None else np.asarray(field.cast("float64").to_numpy(zero_copy_only=False))


def _doubts(count: int, fields: dict[str, pa.Array], logprobs: Array | None) -> Array | None:
    """Which hypotheses may be wrong, None if none is: shape (hypotheses,)."""
    doubts = np.zeros(count, bool)
    text, tokens = fields.get("text"), fields.get("tokens")
    if text is None or text.null_count:
        silent = np.ones(count, bool) if text is None else np.asarray(text.is_null())
        doubts |= silent & (np.ones(count, bool) if tokens is None else np.asarray(tokens.is_null()))
    if logprobs is not None:
        doubts |= logprobs > LOGPROB_SLACK
        if np.isnan(logprobs).any():  # null is not known, NaN is wrong
            doubts |= np.isnan(logprobs) & np.asarray(fields["logprob"].is_valid())
    weights = _numbers(fields.get("weight"))
    if weights is not None:
        known = np.asarray(fields["weight"].is_valid())
        doubts |= known & ~((weights >= 0) & np.isfinite(weights))
    ranks = _numbers(fields.get("ranked_by"))
    if ranks is not None:
        doubts |= np.asarray(fields["ranked_by"].is_valid()) & ~np.isfinite(ranks)
    for name in ("tokens", "state"):
        if name in fields:
            doubts |= _has_bad_numbers(fields[name])
    return doubts if doubts.any() else None


def _has_bad_numbers(field: pa.Array) -> Array:
    """Which lists hold a null, NaN or infinity."""
    bad = np.zeros(len(field), bool)
    inner = field.flatten()
    if not inner.null_count and bool(np.isfinite(inner.to_numpy(zero_copy_only=False)).all()):
        return bad
    lengths = np.asarray(_compute().fill_null(_compute().list_value_length(field), 0))
    owners = np.repeat(np.arange(len(field)), lengths)
    wrong = ~np.isfinite(np.asarray(inner.cast("float64").to_numpy(zero_copy_only=False)))
    bad[owners[wrong]] = True
    return bad


def _compute() -> Any:
    return need("pyarrow.compute", "parquet", "reading Parquet files")
