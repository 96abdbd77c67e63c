"""One record of an input: a ballot, or what is wrong with it."""

from __future__ import annotations

import msgspec

from rangevote.errors import DataError
from rangevote.hypothesis import Ballot


class Entry(msgspec.Struct, frozen=True):
    """What was read at `where` ("file.jsonl:12"): exactly one of `ballot` and `error` is set.

    Readers go on after a bad record, so the caller decides whether to stop or to skip it.
    """

    where: str
    ballot: Ballot | None = None
    error: DataError | None = None

    def get(self) -> Ballot:
        """The ballot, or its error raised."""
        if self.ballot is not None:
            return self.ballot
        assert self.error is not None  # a reader sets one of the two
        raise self.error
