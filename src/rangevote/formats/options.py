"""What the reader of a file must be told, because the file cannot say it."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Literal

from rangevote.errors import DataError, UsageError, choose
from rangevote.formats.compression import MAX_EXPANSION
from rangevote.formats.lines import MAX_LINE_BYTES

#: ln(base) of the logarithms that scores come in.
LOG_BASES = {"e": 1.0, "2": math.log(2), "10": math.log(10)}
#: The power of the length (in tokens, with the end of the sequence) that scores were divided by.
NORMALISATIONS = {"none": 0.0, "length": 1.0}


def _python_warning(message: str) -> None:
    warnings.warn(message, stacklevel=2)


@dataclass(frozen=True)
class ReadOptions:
    """How to read; None means: as the format itself has it.

    `log_base`, `normalisation` and `sign` tell how to turn the file's scores into natural-log sums:
    sign * score * ln(base) * length ** alpha, where alpha is 0 for "none", 1 for "length", or given
    as a number. `score_scale` is for scores that are no log-probabilities: candidates are weighed
    by softmax(scale * score); "count" ignores the scores. `per_source` and `logprobs` belong to the
    format mbrs: lines per source, and the file of log-probabilities. `strict` makes errors of
    warnings, of which `warn` is told each once. `unique_ids` keeps every id in memory to refuse the
    second ballot of the same id.
    """

    format: str | None = None
    log_base: str | None = None
    normalisation: str | float | None = None
    sign: Literal[1, -1] | None = None
    score_scale: float | Literal["count"] | None = None
    per_source: int | None = None
    logprobs: str | os.PathLike[str] | None = None
    strict: bool = False
    unique_ids: bool = True
    max_line_bytes: int = MAX_LINE_BYTES
    max_expansion: float = MAX_EXPANSION
    warn: Callable[[str], None] = _python_warning
    _told: set[Hashable] = field(init=False, repr=False, compare=False, default_factory=set)

    def __post_init__(self) -> None:
        if self.log_base is not None:
            choose("log base", self.log_base, LOG_BASES)
        if isinstance(self.normalisation, str):
            choose("normalisation", self.normalisation, NORMALISATIONS)
        elif self.normalisation is not None and not 0 <= self.normalisation < math.inf:
            raise UsageError(f"--normalisation is {self.normalisation!r}; a power must be 0 or more.")
        if self.sign not in (None, 1, -1):
            raise UsageError(f"--sign is {self.sign!r}; it must be 1 or -1.")
        if self.per_source is not None and self.per_source < 1:
            raise UsageError(f"--per-source is {self.per_source}; it must be 1 or more.")
        if self.max_line_bytes < 1:
            raise UsageError(f"--max-line-bytes is {self.max_line_bytes}; it must be 1 or more.")
        self._check_scale()

    def _check_scale(self) -> None:
        scale = self.score_scale
        if scale is None or scale == "count":
            return
        if isinstance(scale, str) or not 0 < scale < math.inf:
            raise UsageError(
                f"--score-scale is {scale!r}; it must be a number above 0, or 'count' to ignore the scores."
            )

    def told(self, key: Hashable) -> bool:
        """Whether a doubt about `key` need not be put into words again."""
        return key in self._told and not self.strict

    def doubt(self, message: str, *, key: Hashable, field: str = "") -> None:
        """Warn of `message` the first time that `key` is met; where strict, refuse the ballot."""
        if self.strict:
            raise DataError(message, field=field)
        if key not in self._told:
            self._told.add(key)
            self.warn(f"{field}: {message}" if field else message)
