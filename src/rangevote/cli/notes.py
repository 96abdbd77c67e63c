"""Notes and warnings on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import click

from rangevote.errors import UsageError

#: Different warnings that are printed before the rest is only hinted at.
MOST_WARNINGS = 20


class Notes:
    """Tells a user things once; the library's warnings come here too."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._told = quiet, set[str]()
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: self.warn(str(message))

    def tell(self, message: str) -> None:
        """Print a note unless asked to be quiet."""
        if not self._quiet:
            click.echo(f"rangevote: {message}", err=True)

    def warn(self, message: str) -> None:
        """Print a warning, once; after many different ones, only that there are more."""
        if message in self._told or len(self._told) > MOST_WARNINGS:
            return
        self._told.add(message)
        more = len(self._told) > MOST_WARNINGS
        self.tell("more warnings are not shown." if more else f"warning: {message}")


def check_input(source: str, what: str = "ballots") -> None:
    """Refuse to wait for a person to type a ballot file."""
    if source == "-" and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(f"no input: give a file, or pipe {what} in.", click.get_current_context())


def check_inputs(files: Sequence[str]) -> None:
    """Refuse to read standard input twice, or from a person."""
    if files.count("-") > 1:
        raise UsageError("'-' (standard input) can be read once; name files for the others.")
    for path in files:
        check_input(path)
