"""Files to ballots and back: `read` opens a path or '-' and yields an `Entry` for each record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, cast

from rangevote.errors import choose
from rangevote.formats.jsonl import write_ballot
from rangevote.formats.nbest import Writer
from rangevote.formats.reader import FORMATS, Entry, Reading, ReadOptions, SeenIds, read, repeated
from rangevote.text import Stream, open_stream

__all__ = [
    "FORMATS",
    "WRITERS",
    "Entry",
    "ReadOptions",
    "Reading",
    "SeenIds",
    "Stream",
    "Writer",
    "ending",
    "open_stream",
    "read",
    "repeated",
    "writer",
]


def _make(path: str, *arguments: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"rangevote.formats.{module}"), name)(*arguments)


#: What makes the writer of a format, since some number their ballots or need them all of one size. What a
#: format cannot express is refused rather than lost.
WRITERS: dict[str, Callable[[], Writer]] = {
    "jsonl": lambda: write_ballot,
    "csv": partial(_make, "csv_tsv:DelimitedWriter", "csv"),
    "tsv": partial(_make, "csv_tsv:DelimitedWriter", "tsv"),
    "moses": partial(_make, "nbest:moses_writer"),
    "mbrs": partial(_make, "nbest:flat_writer", "mbrs"),
    "mbrs-logprobs": partial(_make, "nbest:flat_writer", "mbrs-logprobs"),
    "parquet": partial(_make, "parquet:ParquetWriter"),
}


def writer(format: str) -> Writer:
    """A function that turns each ballot into the bytes of its line or lines; `ending` gives the last ones."""
    return choose("output format", format, WRITERS)()


def ending(write: Writer) -> bytes:
    """What a file needs after its last ballot: Parquet's footer; of lines, nothing."""
    finish = getattr(write, "finish", None)
    return b"" if finish is None else cast(bytes, finish())
