"""Errors and warnings. A message says what was given, what is allowed, and what to do.

The tree (exit code of the command line in brackets):

    RangevoteError
    ├── UsageError      [2]  a name, option or argument that is not allowed    (also a ValueError)
    │   └── UnknownName      a name that no table has; the nearest is suggested
    ├── DataError       [3]  a ballot that cannot be voted on                  (also a ValueError)
    └── SetupError      [5]  files, memory, disk, packages
        └── MissingExtra     an optional package is not installed              (also an ImportError)

and `RangevoteWarning` for what does not stop an election.
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import ClassVar, TypeVar

T = TypeVar("T")


class RangevoteWarning(UserWarning):
    """Something the user should know that does not stop the election."""


_silent = ContextVar("silent", default=False)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence `warn` in this thread, which `warnings.catch_warnings` would do in all."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def warn(message: str) -> None:
    """Warn the user of something that does not stop the election, at the line that called this package."""
    if _silent.get():
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rangevote":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RangevoteWarning, stacklevel=level)


class RangevoteError(Exception):
    """Everything this package raises on purpose."""

    exit_code: ClassVar[int] = 1


class UsageError(RangevoteError, ValueError):
    """An argument or option that is not allowed."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that no table has."""


class DataError(RangevoteError, ValueError):
    """A ballot that cannot be voted on.

    `field` names the value inside the ballot (`candidates[3].logprob`), `where` the file and line, which
    readers add with `at`.
    """

    exit_code = 3

    def __init__(self, problem: str, *, field: str = "", where: str = "") -> None:
        self.problem, self.field, self.where = problem, field, where
        super().__init__(": ".join(part for part in (where, field, problem) if part))

    def at(self, where: str) -> DataError:
        """The same problem, at this file and line."""
        return type(self)(self.problem, field=self.field, where=where)

    def placed(self, where: str) -> DataError:
        """The same where it was raised, or here if that is not known."""
        return self if self.where else self.at(where)


class SetupError(RangevoteError):
    """Files, memory, disk or packages are not as needed."""

    exit_code = 5


class MissingExtra(SetupError, ImportError):
    """An optional package is needed and not installed."""


def shown(value: object) -> str:
    """A value as messages show it: its repr, cut off where it is long.

    >>> shown("overlap")
    "'overlap'"
    """
    try:
        text = repr(value)
    except ValueError:  # Python prints no whole number of more than 4,300 digits
        return "a number of very many digits"
    return text if len(text) <= 200 else f"{text[:200]}..."


def nearest(name: str, names: Iterable[str]) -> str:
    """A sentence ' Did you mean ...?' with the nearest known name, whatever its case, or nothing."""
    by_lower = {spelling.lower(): spelling for spelling in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def respelled(name: str, names: Iterable[str]) -> str:
    """The one of `names` that differs in case, hyphens, underscores and spaces only, or the name itself.

    >>> respelled("BLEU-4", ["bleu", "bleu_4"]), respelled("meteor", ["bleu"])
    ('bleu_4', 'meteor')
    """

    def squeezed(name: str) -> str:
        return re.sub("[-_ ]", "", name.lower())

    return {squeezed(spelling): spelling for spelling in names}.get(squeezed(name), name)


def choose(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Look `name` up in a stage's table, or raise with its names."""
    if isinstance(name, str) and name in table:
        return table[name]
    near = nearest(name, table) if isinstance(name, str) else ""
    raise UnknownName(f"unknown {kind} {name!r}.{near} Choose from: {', '.join(sorted(table))}.")


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional `module`, or raise with the `pip install` that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        if missing == "rangevote":  # a mistake in this package, which no install mends
            raise
        raise MissingExtra(
            f"{purpose} needs the package {missing!r}, which is not installed. "
            f'Install it with: pip install "rangevote[{extra}]"'
        ) from error
