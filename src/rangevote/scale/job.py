"""What is done with a chunk of ballots, wherever: in this process, in another, on another machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rangevote.election.settings import Settings
from rangevote.errors import UsageError
from rangevote.formats import Entry, ReadOptions
from rangevote.formats.reader import SeenIds, repeated
from rangevote.scale.chunks import Chunk
from rangevote.scale.lines import Line, Shape, error_line, line_of


class Outcome(NamedTuple):
    """One line of output, and the ballot's id where there is one."""

    line: Line
    id: str | int | None


class Done(NamedTuple):
    """The outcomes of a chunk, in its order, and the warnings that were given on the way."""

    outcomes: list[Outcome]
    warnings: list[str]


@dataclass(frozen=True)
class Job:
    """How ballots are read, elected and written; can be sent to another process."""

    settings: Settings
    shape: Shape
    reading: ReadOptions

    def __call__(self, chunk: Chunk) -> Done:
        """Hold the elections of a chunk."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            outcomes = [self.outcome(entry) for entry in chunk.entries(self.reading)]
        messages = [str(w.message) for w in told if issubclass(w.category, UserWarning)]
        return Done(outcomes, list(dict.fromkeys(messages)))

    def outcome(self, entry: Entry) -> Outcome:
        """Hold one election."""
        return Outcome(
            line_of(entry, self.settings, self.shape), None if entry.ballot is None else entry.ballot.id
        )

    def lines(self, chunk: Chunk, done: Done, seen: SeenIds | None) -> Iterator[Line]:
        """The lines of a chunk in which a ballot whose id was `seen` before has become an error."""
        for place, (line, id) in enumerate(done.outcomes):
            if seen is None or id is None or seen.add(id):
                yield line
            else:
                where = chunk.where(place)
                yield error_line(Entry(where), repeated(id, where), self.shape)


def check_sendable(job: Job) -> None:
    """Refuse what cannot be sent to another process, before any is started."""
    import pickle

    try:
        pickle.dumps(job)
    except Exception as error:  # pickle raises what the objects raise
        raise UsageError(f"these options cannot be used by several processes: {error}") from None
