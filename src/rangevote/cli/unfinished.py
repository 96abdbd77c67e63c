"""What a run that ends early leaves behind, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rangevote.cli.interrupts import Interrupts
from rangevote.cli.output import ClosedPipe
from rangevote.cli.progress import Bar
from rangevote.errors import RangevoteError


class Place(Protocol):
    """Where a run writes."""

    def abandon(self) -> str: ...


class Interrupted(RangevoteError):
    """Ctrl-C."""

    exit_code = 130


@contextmanager
def unfinished(place: Place, bar: Bar) -> Iterator[Interrupts]:
    """Inside, Ctrl-C waits for the end of a line; whatever ends the run, its results are kept and it is said
    how to go on."""
    try:
        with Interrupts() as interrupts:
            yield interrupts
    except ClosedPipe:
        raise
    except KeyboardInterrupt:
        bar.close()
        raise Interrupted(f"interrupted. {place.abandon()}".rstrip()) from None
    except RangevoteError as error:
        bar.close()
        hint = place.abandon()
        raise type(error)(f"{error}\n{hint}" if hint else str(error)) from error
    finally:
        bar.close()
