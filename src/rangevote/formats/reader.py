"""Reading files: the options, detection of the format, and the ballots one by one.

A format is a row of `FORMATS`. It is detected by the first bytes of the file, never by its name alone.
"""

from __future__ import annotations

import importlib
import math
import os
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from itertools import islice
from types import NoneType
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from rangevote.entry_points import load_plugin, plugins
from rangevote.errors import DataError, UsageError, choose, nearest, warn
from rangevote.hypothesis import Ballot
from rangevote.text import (
    MAX_LINE_BYTES,
    PARQUET,
    Closing,
    Source,
    Stream,
    line_too_long,
    open_stream,
)

#: Formats of records, which may have layouts of their own.
RECORDS = ("jsonl", "json", "csv", "tsv", "parquet")
#: ln(base) of the logarithms that scores come in.
LOG_BASES = {"e": 1.0, "2": math.log(2), "10": math.log(10)}
#: The power of the length (in tokens, with the end of the sequence) that scores were divided by.
NORMALISATIONS = {"none": 0.0, "length": 1.0}
#: Hashes of ids that are kept in a set before they are sorted into the array.
RECENT_IDS = 2**18

#: Bytes that are searched for the format; a first line may be long, and a log may come first.
LOOK = 2**20


#: Turns a line into a ballot, or None if the line is to be skipped.
Decode = Callable[[bytes], Ballot | None]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading; None means the default of the format.

    `log_base`, `normalisation` and `sign` say how to turn the file's scores into natural-log sums:
    sign * score * ln(base) * length ** alpha, where alpha is 0 for "none", 1 for "length", or given
    as a number. `score_scale` is for scores that are not log-probabilities: candidates are weighted
    by softmax(scale * score); "count" ignores the scores. `per_source` and `logprobs` belong to the
    format mbrs: lines per source, and the file of log-probabilities. `strict` turns warnings into errors;
    otherwise each warning is passed to `warn` once. `unique_ids` refuses a second ballot with the same id.

    `field`, `group_by`, `text_field` and `logprob_field` name the fields of records that are not ballots
    (`rangevote.formats.layouts`). `carry` names fields of the input that ballots keep, such as "prompt" or,
    under another name, "answer=gold". `ignore_field` names fields that look like scores but are not.
    `columns` is a pattern of columns with one candidate each, such as "output_*". `score_field` names numbers
    of a candidate that may count beside the votes, such as reward. `filter` is the filter of an lm-eval log
    whose records are read; by default the first.
    """

    format: str | None = None
    field: str | None = None
    group_by: str | None = None
    text_field: str | None = None
    logprob_field: str | None = None
    score_field: Sequence[str] = ()
    ignore_field: Sequence[str] = ()
    columns: str | None = None
    filter: str | None = None
    carry: Sequence[str] = ()
    log_base: str | None = None
    normalisation: str | float | None = None
    sign: Literal[1, -1] | None = None
    score_scale: float | Literal["count"] | None = None
    per_source: int | None = None
    logprobs: str | os.PathLike[str] | None = None
    strict: bool = False
    unique_ids: bool = True
    max_line_bytes: int = MAX_LINE_BYTES
    warn: Callable[[str], None] = warn
    warned: set[Hashable] = dataclass_field(repr=False, compare=False, default_factory=set)

    def __post_init__(self) -> None:
        if self.log_base is not None:
            choose("log base", self.log_base, LOG_BASES)
        if isinstance(self.normalisation, str):
            choose("normalisation", self.normalisation, NORMALISATIONS)
        elif self.normalisation is not None and not 0 <= self.normalisation < math.inf:
            raise UsageError(f"--length-normalised is {self.normalisation!r}; a power must be 0 or more.")
        if self.sign not in (None, 1, -1):
            raise UsageError(f"--sign is {self.sign!r}; it must be 1 or -1.")
        for option, value in (("per-source", self.per_source), ("max-line-bytes", self.max_line_bytes)):
            if value is not None and value < 1:
                raise UsageError(f"--{option} is {value}; it must be 1 or more.")
        scale = self.score_scale
        if scale not in (None, "count") and (isinstance(scale, str) or not 0 < scale < math.inf):
            raise UsageError(
                f"--score-scale is {scale!r}; it must be a number above 0, or 'count' to ignore the scores."
            )

    @property
    def carried(self) -> dict[str, str]:
        """The fields that ballots keep: name in the ballot -> path in the input."""
        return dict(carried_name(text) for text in self.carry)

    @property
    def score_options(self) -> dict[str, object]:
        """The options about the meaning of scores that are set."""
        options = {
            "--log-base": self.log_base,
            "--length-normalised": self.normalisation,
            "--sign": self.sign,
            "--score-scale": self.score_scale,
        }
        return {name: value for name, value in options.items() if value is not None}

    @property
    def layout(self) -> bool:
        """Whether an option describes the layout of records."""
        return any((self.field, self.group_by, self.text_field, self.logprob_field, self.columns))

    def report(self, message: str, *, key: Hashable, field: str = "") -> None:
        """Warn once per `key`; with `strict`, refuse the ballot instead."""
        if self.strict:
            raise DataError(message, field=field)
        if key not in self.warned:
            self.warned.add(key)
            self.warn(f"{field}: {message}" if field else message)


def carried_name(text: str) -> tuple[str, str]:
    """The name and the path of a carried field.

    >>> carried_name("meta.topic"), carried_name("answer=gold")
    (('meta.topic', 'meta.topic'), ('gold', 'answer'))
    """
    path, _, name = text.partition("=")
    return name or path, path


class Entry(msgspec.Struct, frozen=True):
    """What was read at `where` ("file.jsonl:12"): exactly one of `ballot` and `error` is set.

    Readers go on after a bad record, so the caller decides whether to stop or to skip it. `id` is that of a
    bad ballot, as far as it can be read.
    """

    where: str
    ballot: Ballot | None = None
    error: DataError | None = None
    id: str | int | None = None

    def get(self) -> Ballot:
        """The ballot, or its error raised."""
        if self.ballot is not None:
            return self.ballot
        assert self.error is not None  # a reader sets one of the two
        raise self.error


def entry_at(where: str, make: Callable[..., Ballot], *args: Any, id: str | int | None = None) -> Entry:
    """The entry of the ballot that `make` returns, or of the error that it raises, which gets the `id`."""
    try:
        return Entry(where, make(*args))
    except DataError as error:
        error = error.placed(where)
        return Entry(error.where, error=error, id=id)
    except UsageError as error:  # what only an option can settle
        raise UsageError(f"{where}: {error}") from None


#: The function of each format, in its module. `decoder(options)` returns the function from a line to its
#: ballot. Of records, the function yields each with its place (`Located`); of the other formats, entries.
FORMATS = {
    "jsonl": "jsonl:decoder",  # ballots or other records as JSON, one per line
    "json": "layouts:array_records",  # one JSON array, also saved Hugging Face pipeline output
    "csv": "csv_tsv:table_records",  # one sample per row
    "tsv": "csv_tsv:table_records",
    "parquet": "parquet:row_records",  # ballots or other records as Parquet, one per row
    "moses": "nbest:read_moses",  # Moses, Marian and cdec n-best lists (|||)
    "fairseq": "nbest:read_fairseq",  # fairseq-generate output (S- T- H- D- P-)
    "sockeye": "layouts:decoder",  # Sockeye n-best JSON, one sentence per line
    "mbrs": "nbest:read_mbrs",  # flat text with N lines per source
    "vllm": "layouts:decoder",  # dumped vLLM outputs, one request per line
    "openai": "layouts:decoder",  # OpenAI or vLLM batch output, one request per line
}


def format_function(format: str, kind: Literal["decoder", "reader"]) -> Callable[..., Any] | None:
    """The function that decodes a line or reads a file of a format; None where it has one of the other kind.

    Packages that a format needs are loaded here. Formats of other packages are objects with either name.
    """
    if format not in FORMATS and ":" not in format:
        function: Callable[..., Any] | None = getattr(load_plugin("formats", format), kind, None)
        return function
    module, name = FORMATS.get(format, format).split(":")
    if (name == "decoder") != (kind == "decoder"):
        return None
    function = getattr(importlib.import_module(f"rangevote.formats.{module}"), name)
    return function


def read(source: Source | Stream, options: ReadOptions | None = None) -> Reading:
    """Open `source` (a path, '-', a binary file, a `Stream`) and read its ballots.

    >>> import io
    >>> for entry in read(io.BytesIO(b'{"id": 1, "candidates": ["a b", "a c"]}')):
    ...     print(entry.where, entry.get().candidates[1].text)
    input:1 a c
    """
    options = options or ReadOptions()
    stream, format, options = open_format(source, options)
    chunks = read_chunks(stream, format, options, most=1)
    entries = (entry for chunk in chunks for entry in chunk_entries(chunk, format, options))
    return Reading(stream, entries, format, options.unique_ids)


def read_ballots(source: Source, **options: Any) -> Iterator[Ballot]:
    """Read the ballots of a file in any supported format and layout: `rangevote.read`.

    `source` is a path, '-' or a binary file; the options are those of `ReadOptions`, such as
    `field="outputs"`, `group_by="prompt_id"`, `carry=["prompt"]`. A ballot that cannot be read raises a
    DataError that names file, line and field.

    >>> import io
    >>> file = io.BytesIO(b'{"task_id": 7, "completion": "a b"}\\n{"task_id": 7, "completion": "a c"}')
    >>> [(ballot.id, [c.text for c in ballot.candidates]) for ballot in read_ballots(file)]
    [(7, ['a b', 'a c'])]
    """
    for option in ("carry", "ignore_field"):
        if not isinstance(options.get(option, ()), (list, tuple)):
            raise UsageError(f"{option} is {options[option]!r}; give a list of names.")
    names = [name for name in ReadOptions.__dataclass_fields__ if name != "warned"]
    for name in options:
        if name not in names:
            raise UsageError(f"read has no option {name!r}.{nearest(name, names)}")
    options.setdefault("warn", lambda message: warn(_in_python(message)))
    with naming_python_options():
        return _ballots(read(source, ReadOptions(**options)))


def _ballots(reading: Reading) -> Iterator[Ballot]:
    with reading, naming_python_options():
        for entry in reading:
            yield entry.get()


@contextmanager
def naming_python_options() -> Iterator[None]:
    """Errors raised inside name options as Python spells them, not as the command does."""
    try:
        yield
    except DataError as error:
        raise DataError(_in_python(error.problem), field=error.field, where=error.where) from None
    except UsageError as error:
        raise type(error)(_in_python(str(error))) from None


def _in_python(message: str) -> str:
    """A message in which options of the command are spelled as in Python.

    >>> _in_python("pass --logprob-field p, --length-normalised length or --sign -.")
    "pass logprob_field p, normalisation='length' or sign=-1."
    """

    def spelled(match: re.Match[str]) -> str:
        names = {"length-normalised": "normalisation", "score-weights": "scores"}
        name = names.get(match[1], match[1].replace("-", "_"))
        return name if match[2] is None else f"{name}={-1 if match[2] == '-' else repr(match[2])}"

    return re.sub(r"--([a-z]+(?:-[a-z]+)*)(?: (count|length|none|e|mbrs|-)(?!\w))?", spelled, message)


def open_format(source: Source | Stream, options: ReadOptions) -> tuple[Stream, str | None, ReadOptions]:
    """Open the input. Returns it, its format (None if it is empty), and the options, with the layout of
    records that are not ballots."""
    if options.format is not None:
        choose("format", options.format, {**plugins("formats"), **FORMATS})
    stream = source if isinstance(source, Stream) else open_stream(source)
    try:
        format = options.format or ("mbrs" if options.per_source is not None else None)
        record = first_record(stream, options.max_line_bytes) if format in (None, "jsonl") else None
        format = format or detect(stream, record, options)
        if options.layout and format in ("openai", "sockeye", "vllm") and options.format is None:
            format = "jsonl"  # with the layout that was asked for
        if format == "jsonl" and record is not None and (options.layout or not JSON_LINES["jsonl"](record)):
            options = _with_layout(stream, record, options)
        elif options.layout and format is not None and format not in RECORDS:
            raise UsageError(
                f"--field, --group-by, --text-field, --logprob-field and --columns are for records "
                f"({', '.join(RECORDS)}), not for the format {format!r}."
            )
        return stream, format, options
    except BaseException:
        stream.close()
        raise


def read_entries(stream: Stream, format: str, options: ReadOptions) -> Iterator[Entry]:
    """The entries of a format whose ballots are not single lines."""
    from rangevote.formats.layouts import line_records, read_records, with_carry

    options = replace(options, format=format)
    read_file: Any = line_records if format == "jsonl" else format_function(format, "reader")
    if format in RECORDS:
        yield from read_records(read_file(stream, options), options)
        return
    for entry in read_file(stream, options):
        if entry.ballot is not None and options.carry:  # source and references, without records
            entry = entry_at(entry.where, with_carry, entry.ballot, None, options)
        yield entry


def decoder_of(format: str, options: ReadOptions) -> Decode | None:
    """The function that turns a line of the format into its ballot with carried fields; None if ballots are
    not single lines."""
    if format == "jsonl" and options.group_by is not None:
        return None
    name = "layouts:decoder" if format == "jsonl" and options.layout else FORMATS.get(format, format)
    decoder = format_function(name, "decoder")
    if decoder is None:
        return None
    decode: Decode = decoder(replace(options, format=format))
    if not options.carry or name == "layouts:decoder":
        return decode
    from rangevote.formats.jsonl import parse
    from rangevote.formats.layouts import with_carry

    def decode_and_carry(line: bytes) -> Ballot | None:
        ballot = decode(line)
        return ballot and with_carry(ballot, parse(line), options)

    return decode_and_carry


class Reading(Closing, Iterator[Entry]):
    """The entries of one input in file order; `format` is the name it was read by, `total` their number if
    that is known.

    A fault that ends the reading (a damaged end of a compressed file) is the last entry. Use it in a
    `with` statement, or read it to its end: both close the file.
    """

    def __init__(
        self,
        stream: Stream,
        entries: Iterator[Entry],
        format: str | None,
        unique_ids: bool,
        total: int | None = None,
    ) -> None:
        self.format, self.total, self._stream, self._entries = format, total, stream, entries
        self._ids = SeenIds() if unique_ids else None

    @property
    def position(self) -> int:
        return self._stream.position

    @property
    def size(self) -> int | None:
        return self._stream.size

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
        id = None if entry.ballot is None else entry.ballot.id
        if self._ids is None or id is None or self._ids.add(id):
            return entry
        return Entry(entry.where, error=repeated(id, entry.where), id=id)

    def close(self) -> None:
        entries, self._entries = self._entries, iter(())
        if isinstance(entries, Generator):
            entries.close()
        self._stream.close()


class SeenIds:
    """The ids so far, in about 8 bytes each: 64-bit hashes, the latest in a set, the others sorted."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._sorted = memoryview(np.empty(0, np.int64))  # type: ignore[arg-type]

    def add(self, id: str | int) -> bool:
        """Add an id; returns whether it is new. 1 and "1" are different ids."""
        digest, known, recent = hash(repr(id)), self._sorted, self._recent
        if digest in recent:
            return False
        if len(known) and (index := bisect_left(known, digest)) < len(known) and known[index] == digest:
            return False
        recent.add(digest)
        if len(recent) >= RECENT_IDS:
            merged = np.concatenate([np.asarray(known), np.fromiter(recent, np.int64, len(recent))])
            merged.sort()
            self._sorted = memoryview(merged)  # type: ignore[arg-type]
            recent.clear()
        return True


def repeated(id: str | int, where: str) -> DataError:
    """The error for an id that an earlier ballot has: their results could not be told apart."""
    return DataError(
        f"the id {id!r} was used before; ids must differ, or be left out", field="id", where=where
    )


# Lines


class Chunk(NamedTuple):
    """Records of an input that are decoded together, here or in another process: lines as bytes, rows of
    Parquet (a `pyarrow.RecordBatch`), or entries where only decoding tells the records apart."""

    name: str
    first: int  # the number of the first line or row
    records: Any
    torn: bool = False  # the last line has no line end


def read_chunks(stream: Stream, format: str | None, options: ReadOptions, most: int) -> Iterator[Chunk]:
    """The input in chunks, of entries `most` at a time; a fault that ends the reading is the last record."""
    try:
        if format == "parquet":
            from rangevote.formats.parquet import ballot_batches

            if (batches := ballot_batches(stream, options)) is not None:
                yield from batches
                return
        if format is None:
            deque(stream.chunks(), maxlen=0)  # raises what was met while looking for the format
        elif decoder_of(format, options) is not None:
            yield from line_chunks(stream, options)
        else:
            yield from entry_chunks(read_entries(stream, format, options), most)
    except DataError as error:
        error = error.placed(stream.name)
        yield Chunk(stream.name, 0, [Entry(error.where, error=error)])


def entry_chunks(entries: Iterable[Entry], most: int) -> Iterator[Chunk]:
    left = iter(entries)
    while some := list(islice(left, most)):
        yield Chunk("", 0, some)


def chunk_entries(chunk: Chunk, format: str | None, options: ReadOptions) -> Iterator[Entry]:
    """Decode a chunk."""
    if isinstance(chunk.records, list):
        return iter(chunk.records)
    if isinstance(chunk.records, bytes):
        decode = None if format is None else decoder_of(format, options)
        assert decode is not None  # the records are lines
        return line_entries(chunk, decode, options.max_line_bytes)
    from rangevote.formats.parquet import entries_of

    return entries_of(chunk.records, chunk.name, chunk.first, options)


def line_chunks(stream: Stream, options: ReadOptions) -> Iterator[Chunk]:
    """Blocks of lines as they are read from the file."""
    number = 1
    for block in stream.blocks(options.max_line_bytes):
        if isinstance(block, DataError):
            where = f"{stream.name}:{number}"
            yield Chunk(stream.name, number, [Entry(where, error=block.at(where))])
            number += 1
        else:
            yield Chunk(stream.name, number, block, torn=not block.endswith(b"\n"))
            number += block.count(b"\n")


def line_entries(chunk: Chunk, decode: Decode, limit: int) -> Iterator[Entry]:
    for number, line in enumerate(chunk.records.split(b"\n"), chunk.first):
        if not line or line.isspace():
            continue
        where = f"{chunk.name}:{number}"
        try:
            if len(line) > limit:
                raise line_too_long(limit)
            ballot = decode(line.removesuffix(b"\r"))
            if ballot is not None:
                yield Entry(where, ballot)
        except DataError as error:
            if chunk.torn and error.problem.startswith("not valid JSON"):
                hint = "; the last line has no line end: the file may be cut off"
                error = DataError(error.problem + hint, field=error.field)
            yield Entry(where, error=error.at(where), id=_id_of(line))
        except UsageError as error:  # what only an option can settle
            raise UsageError(f"{where}: {error}") from None


def _id_of(line: bytes) -> str | int | None:
    """The id of an invalid line, if it is an object with an id."""
    from rangevote.formats.layouts import IDS

    record = _object(line) or {}
    return next((record[name] for name in ("custom_id", *IDS) if type(record.get(name)) in (str, int)), None)


# Which format


def _is_openai(record: Record) -> bool:
    return (
        isinstance(record.get("response", ""), (dict, NoneType))
        or record.get("object") == "response"
        or not _has_texts(record.get("choices", ""))
        or {"custom_id", "error"} <= set(record)
    )


def _has_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and str in map(type, value))


#: Tests of the first record for the formats of JSON lines; a record that passes none is `jsonl`.
JSON_LINES: dict[str, Callable[[Record], bool]] = {
    "jsonl": lambda record: "candidates" in record or "hypotheses" in record,
    "vllm": lambda record: "outputs" in record and not _has_texts(record["outputs"]),
    "sockeye": lambda record: "translations" in record or {"translation", "sentence_id"} <= set(record),
    "openai": _is_openai,
}
#: How files of text formats begin. An array of records, lists or texts is a document; an array of anything
#: else is read as an invalid JSON line. A log may come before the lines of fairseq.
TEXTS: dict[str, re.Pattern[bytes]] = {
    "json": re.compile(rb'\A\[\s*[\[{\]"]'),
    "jsonl": re.compile(rb'\A(?:\[\s*[^\s\[{\]"]|\{[ \t]*\S)'),
    "moses": re.compile(rb"\A\S+\s+\|\|\|"),
    "fairseq": re.compile(rb"^[STHDP]-\d{1,18}(?:\t.*)?\r?$", re.MULTILINE),
}


def detect(stream: Stream, record: Record | None, options: ReadOptions) -> str | None:
    """The format of the stream, or None if it is empty; `record` is its first line if that is JSON."""
    if record is not None:
        return next((format for format, test in JSON_LINES.items() if test(record)), "jsonl")
    if stream.peek(4).startswith(PARQUET):
        return "parquet"
    from rangevote.formats.csv_tsv import looks_delimited

    named = (options.field, options.group_by, options.text_field, options.columns)
    columns = {name for name in named if name is not None}
    for head in _growing(stream, LOOK):
        text = head.lstrip()
        for format, pattern in TEXTS.items():
            if pattern.search(text):
                return format
        first, newline, _ = text.partition(b"\n")
        if newline and (table := looks_delimited(first.rstrip(), stream.name, columns)):
            return table
    if not text:
        return None
    first = first.rstrip()
    if table := looks_delimited(first, stream.name, columns):
        return table
    if first == b"{":
        hint = "If it is JSON over several lines, make each object one line: jq -c . FILE"
    else:
        hint = (
            "If it is flat text with N lines per source, pass --format mbrs --per-source N; if it is CSV or "
            "TSV, name a column with --group-by or --field, or columns of one candidate each with --columns."
        )
    raise UsageError(
        f"cannot tell the format of {stream.name}, which begins {first[:60].decode('utf-8', 'replace')!r}; "
        f"name it with --format ({', '.join(FORMATS)}). {hint}"
    )


def first_record(stream: Stream, limit: int) -> Record | None:
    """The JSON object in the first line that is not blank, however long that is; None if there is none."""
    for head in _growing(stream, limit):
        text = head.lstrip()
        if text[:1] not in (b"", b"{") or b"\n" in text:
            break
    return _object(text.partition(b"\n")[0])


def _growing(stream: Stream, most: int) -> Iterator[bytes]:
    """The start of the input, more and more of it, but as little as possible: it may be a pipe."""
    size, head = 1, stream.peek(1)
    yield head
    while size <= len(head) < most:
        size = 2 * len(head)
        head = stream.peek(size)
        yield head


def _object(line: bytes) -> Record | None:
    from rangevote.formats.jsonl import parse

    try:
        record = parse(line) if line.startswith(b"{") else None
    except DataError:
        return None
    return record if isinstance(record, dict) else None


def _with_layout(stream: Stream, first: Record, options: ReadOptions) -> ReadOptions:
    """The options with the layout of JSON lines that are not ballots."""
    from rangevote.formats.layouts import recognise

    layout = recognise([first], options)
    if layout is not None and (layout.group_by != options.group_by or options.filter):
        # what repeats, and which filters there are, is seen in more of them
        records = map(_object, stream.peek(LOOK).split(b"\n"))
        layout = recognise([record for record in records if record is not None], options)
    return layout or options
