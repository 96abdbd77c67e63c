"""Files to ballots and back.

`read` opens a path or '-', tells the format by the first bytes and yields an `Entry` for each record.
A format is a function `(stream, options) -> iterator of entries` and one line in `FORMATS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from rangevote.errors import choose
from rangevote.formats.detect import detect
from rangevote.formats.entry import Entry
from rangevote.formats.options import ReadOptions
from rangevote.formats.pairing import pair
from rangevote.formats.reading import Reading
from rangevote.formats.stream import Source, Stream, open_stream
from rangevote.formats.write import (
    Writer,
    jsonl_writer,
    mbrs_logprobs_writer,
    mbrs_writer,
    moses_writer,
)

__all__ = [
    "FORMATS",
    "WRITERS",
    "Entry",
    "Format",
    "ReadOptions",
    "Reading",
    "Stream",
    "Writer",
    "ending",
    "open_stream",
    "pair",
    "read",
    "writer",
]

Reader = Callable[[Stream, ReadOptions], Iterator[Entry]]


class Format(NamedTuple):
    """One line of the table: what it is, and the reader as "module:name", loaded on use."""

    description: str
    reader: str

    def load(self) -> Reader:
        """The reader itself."""
        module, _, name = self.reader.partition(":")
        return cast(Reader, getattr(importlib.import_module(f"{__name__}.{module}"), name))


FORMATS: dict[str, Format] = {
    "jsonl": Format("ballots as JSON, one a line", "jsonl:read_jsonl"),
    "parquet": Format("ballots as Parquet, one a row", "parquet:read_parquet"),
    "moses": Format("Moses, Marian and cdec n-best lists (|||)", "moses:read_moses"),
    "fairseq": Format("fairseq-generate output (S- T- H- D- P-)", "fairseq:read_fairseq"),
    "sockeye": Format("Sockeye n-best JSON, one a line", "sockeye:read_sockeye"),
    "mbrs": Format("flat text with N lines a source", "mbrs:read_mbrs"),
    "vllm": Format("dumped vLLM outputs, one request a line", "vllm:read_vllm"),
    "openai": Format("OpenAI or vLLM batch output, one request a line", "openai:read_openai"),
    "pipeline": Format("saved Hugging Face pipeline output", "pipeline:read_pipeline"),
}


def parquet_writer() -> Writer:
    """Ballots as Parquet; pyarrow is loaded on use."""
    from rangevote.formats.parquet_write import ParquetBallots

    return ParquetBallots()


WRITERS: dict[str, Callable[[], Writer]] = {
    "jsonl": jsonl_writer,
    "moses": moses_writer,
    "mbrs": mbrs_writer,
    "mbrs-logprobs": mbrs_logprobs_writer,
    "parquet": parquet_writer,
}


def read(source: Source | Stream, options: ReadOptions | None = None) -> Reading:
    """Open `source` (a path, '-', a binary file, a `Stream`) and read its ballots.

    >>> import io
    >>> for entry in read(io.BytesIO(b'{"id": 1, "candidates": ["a b", "a c"]}')):
    ...     print(entry.where, entry.get().candidates[1].text)
    input:1 a c
    """
    options = options or ReadOptions()
    if options.format is not None:
        choose("format", options.format, FORMATS)
    if isinstance(source, Stream):
        stream = source
    else:
        stream = open_stream(source, max_expansion=options.max_expansion)
    try:
        name = options.format or detect(stream, options)
        entries = FORMATS[name].load()(stream, options) if name else iter(())
    except BaseException:
        stream.close()
        raise
    return Reading(stream, entries, name, options.unique_ids)


def writer(format: str) -> Writer:
    """A function that turns each ballot into the bytes of its line or lines; `ending` gives the last ones."""
    return choose("output format", format, WRITERS)()


def ending(write: Writer) -> bytes:
    """What a file needs after its last ballot: Parquet's footer; of lines, nothing."""
    finish = getattr(write, "finish", None)
    return b"" if finish is None else cast(bytes, finish())
