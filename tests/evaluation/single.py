"""A system by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rangevote.evaluation.evaluate import Comparison, compare


def evaluate(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]] | None = None,
    sources: Sequence[str] | None = None,
    **options: Any,
) -> Comparison:
    """The scores of one system."""
    return compare({"outputs": outputs}, references, sources, **options)
