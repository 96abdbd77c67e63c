"""Files to ballots and back: `read` opens a path or '-' and yields an `Entry` for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module

from rangevote.errors import choose
from rangevote.formats.reader import FORMATS, Entry, ReadOptions, read
from rangevote.hypothesis import Ballot

__all__ = ["FORMATS", "WRITERS", "Entry", "ReadOptions", "read", "writer"]

#: The function of each format that is written, in its module: from ballots and the name of the format to the
#: bytes of a file. What a format cannot express is refused rather than lost.
WRITERS = {
    "jsonl": "jsonl:write_ballots",
    "csv": "csv_tsv:write_samples",
    "tsv": "csv_tsv:write_samples",
    "moses": "nbest:write_moses",
    "parquet": "parquet:write_rows",
}


def writer(format: str) -> Callable[[Iterable[Ballot]], Iterator[bytes]]:
    """The function from ballots to the bytes of a file, in pieces. It takes one ballot at a time, so an error
    is about the last one taken."""
    module, _, name = choose("output format", format, WRITERS).partition(":")
    return partial(getattr(import_module(f"rangevote.formats.{module}"), name), format=format)
