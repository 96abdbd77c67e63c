"""Going on with the output of a run that stopped, and stopping so that one can go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rangevote.cli.output import ClosedPipe, Interrupted, ResultsAndBallots, Sink
from rangevote.errors import RangevoteError, SetupError

if TYPE_CHECKING:
    from rangevote.cli.progress import Bar
    from rangevote.formats.reader import Entry


def skip_done(entries: Iterator[Entry], sink: Sink, *, text: bool) -> Iterator[Entry]:
    """The entries that an earlier run has not yet answered; its last answer must fit."""
    entry = None
    for number in range(sink.done):
        entry = next(entries, None)
        if entry is None:
            raise input_too_short(sink, number)
    if entry is not None:
        check_last(entry, sink, text=text)
    return entries


def input_too_short(sink: Sink, number: int) -> SetupError:
    return SetupError(
        f"cannot resume: the output has {sink.done} lines, the input only {number}; it changed. "
        f"Use --force to start again."
    )


def check_last(entry: Entry, sink: Sink, *, text: bool) -> None:
    """The last line that an earlier run wrote must be the answer to this entry."""
    if entry.ballot is None or text:
        return
    import msgspec

    try:
        written = msgspec.json.decode(sink.last, type=dict[str, Any]).get("id")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise SetupError(
            f"cannot resume: line {sink.done} of the output is no result of an election; the file was "
            f"changed. Use --force to start again."
        ) from None
    if written != entry.ballot.id:
        raise SetupError(
            f"cannot resume: line {sink.done} of the output has id {written!r}, the input "
            f"{entry.ballot.id!r}; the input changed. Use --force to start again."
        )


@contextmanager
def keeping_results(sink: Sink | ResultsAndBallots, bar: Bar) -> Iterator[None]:
    """Whatever ends the run inside, its results are kept, and the message says how to go on."""
    try:
        yield
    except ClosedPipe:
        raise
    except KeyboardInterrupt:
        bar.close()
        raise Interrupted(f"interrupted. {sink.close()}".rstrip()) from None
    except RangevoteError as error:
        bar.close()
        hint = sink.close()
        raise type(error)(f"{error}\n{hint}" if hint else str(error)) from error
    finally:
        bar.close()
