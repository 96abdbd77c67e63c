"""Files to ballots and back: `read` opens a path or '-' and yields an `Entry` for each record."""

from rangevote.formats.ballot_writer import WRITERS, Writer, ending, writer
from rangevote.formats.join_voters import join
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
    "join",
    "open_stream",
    "read",
    "repeated",
    "writer",
]
