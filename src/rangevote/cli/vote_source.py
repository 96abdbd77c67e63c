"""The ballots that `vote` answers: all or a shard, one by one or in chunks, after those already done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rangevote.cli.notes import Notes
from rangevote.cli.output import Sink
from rangevote.cli.results import Results
from rangevote.cli.scaling import Scaling
from rangevote.errors import SetupError

if TYPE_CHECKING:
    from rangevote.cli.progress import Position
    from rangevote.election.settings import Settings
    from rangevote.formats import Entry, Reading, ReadOptions
    from rangevote.scale.chunks import Chunk
    from rangevote.scale.lines import Line, Shape


@dataclass(frozen=True)
class Source:
    """The ballots, and perhaps a second file whose candidates vote."""

    files: ExitStack
    ballots: str
    voters: str | None
    reading: ReadOptions

    def _entries(self) -> tuple[Reading, Iterator[Entry]]:
        """The file that is read, and the entries of both."""
        from rangevote.formats import pair, read

        entries = self.files.enter_context(read(self.ballots, self.reading))
        if self.voters is None:
            return entries, entries
        return entries, pair(entries, self.files.enter_context(read(self.voters, self.reading)))

    def one_by_one(
        self, place: Sink, settings: Settings, shape: Shape, threads: int
    ) -> tuple[Position, Iterator[Line]]:
        """Each ballot answered as it comes, by several threads at most."""
        from rangevote.parallel import map_in_order
        from rangevote.scale.lines import line_of

        stream, entries = self._entries()
        rest = skip_done(entries, place, shape.text)
        return stream, map_in_order(lambda entry: line_of(entry, settings, shape), rest, threads)

    def in_chunks(
        self, place: Sink, settings: Settings, shape: Shape, scaling: Scaling, notes: Notes
    ) -> tuple[Position, Iterator[Line]]:
        """Ballots by the hundred, for several processes or one of several runs."""
        from rangevote.formats.reader import SeenIds
        from rangevote.scale.chunks import entry_chunks, open_chunks
        from rangevote.scale.job import Job, check_sendable
        from rangevote.scale.local import after, elect_chunks
        from rangevote.scale.shard import Share

        stream: Position
        chunks: Iterator[Chunk]
        if self.voters is None:
            stream = opened = self.files.enter_context(open_chunks(self.ballots, self.reading))
            chunks = opened
        else:
            stream, entries = self._entries()
            chunks = entry_chunks(entries)
        if scaling.shard is not None:
            assert isinstance(place, Results)  # what a shard's results go to
            chunks = place.share = Share(chunks, scaling.shard)
        job = Job(settings, shape, self.reading)
        check_sendable(job)
        seen = SeenIds() if self.reading.unique_ids else None
        rest = after(chunks, place.done, job, seen, lambda entry: check_fits(entry, place, shape.text))
        return stream, elect_chunks(rest, job, scaling.workers, seen, notes.warn)


def skip_done(entries: Iterator[Entry], place: Sink, text: bool) -> Iterator[Entry]:
    """The entries that an earlier run has not yet answered; its last answer must fit."""
    entry = None
    for number in range(place.done):
        entry = next(entries, None)
        if entry is None:
            raise SetupError(
                f"cannot resume: the output has {place.done} lines, the input only {number}; it changed. "
                f"Use --force to start again."
            )
    if entry is not None:
        check_fits(entry, place, text)
    return entries


def check_fits(entry: Entry, place: Sink, text: bool) -> None:
    """The last line that an earlier run wrote must be the answer to this entry."""
    if entry.ballot is None or text:
        return
    import msgspec

    try:
        written = msgspec.json.decode(place.last, type=dict[str, Any]).get("id")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise SetupError(
            f"cannot resume: line {place.done} of the output is no result of an election; the file was "
            f"changed. Use --force to start again."
        ) from None
    if written != entry.ballot.id:
        raise SetupError(
            f"cannot resume: line {place.done} of the output has id {written!r}, the input "
            f"{entry.ballot.id!r}; the input changed. Use --force to start again."
        )
