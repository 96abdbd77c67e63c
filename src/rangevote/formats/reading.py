"""A file being read: its entries one by one, and how far it has come."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from rangevote.errors import DataError
from rangevote.formats.entry import Entry
from rangevote.formats.ids import Ids
from rangevote.formats.stream import OnStream, Stream


class Reading(OnStream, Iterator[Entry]):
    """The entries of one input in file order; `format` is the name it was read by.

    A fault that ends the reading (a damaged end of a compressed file) is the last entry. Use it in a
    `with` statement, or read it to its end: both let the file go.
    """

    def __init__(
        self, stream: Stream, entries: Iterator[Entry], format: str | None, unique_ids: bool
    ) -> None:
        super().__init__(stream)
        self.format, self._entries = format, entries
        self._ids = Ids() if unique_ids else None

    def __next__(self) -> Entry:
        try:
            entry = next(self._entries)
        except DataError as error:
            self.close()
            error = error.placed(self._stream.name)
            return Entry(error.where, error=error)
        except BaseException:  # the end of the file among them
            self.close()
            raise
        if self._ids is None or entry.ballot is None or entry.ballot.id is None:
            return entry
        if self._ids.add(entry.ballot.id):
            return entry
        return Entry(entry.where, error=repeated(entry.ballot.id, entry.where))

    def close(self) -> None:
        """Let the file go, and whatever the reader holds open beside it."""
        entries, self._entries = self._entries, iter(())
        if isinstance(entries, Generator):
            entries.close()
        super().close()


def repeated(id: str | int, where: str) -> DataError:
    """What is said of a ballot whose id one before it had: their results could not be told apart."""
    return DataError(
        f"the id {id!r} was used before; ids must differ, or be left out", field="id", where=where
    )
