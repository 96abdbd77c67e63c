"""Which format is this? Told by the first bytes, never by the name of the file alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import NoneType
from typing import TYPE_CHECKING, Any

from rangevote.errors import DataError, UsageError
from rangevote.formats.stream import PARQUET, Stream

if TYPE_CHECKING:
    from rangevote.formats.reader import ReadOptions

#: How far to look; a first line may be long, and a log may come first.
LOOK = 2**20

# Keys of formats that a first line may be too long to be read whole.
_KEY = re.compile(
    rb'"(candidates|hypotheses|translations|custom_id|response|choices)"\s*:|"outputs"\s*:\s*(\[\s*")?'
)
_BY_KEY = {"translations": "sockeye", "custom_id": "openai", "response": "openai", "choices": "openai"}
_MOSES = re.compile(rb"\S+\s+\|\|\|")
_FAIRSEQ = re.compile(rb"^[STHDP]-\d{1,18}(?:\t.*)?\r?$", re.MULTILINE)


def detect(stream: Stream, formats: Iterable[str], options: ReadOptions) -> str | None:
    """The name of the stream's format, one of `formats`; None if there is nothing to read."""
    size, head = 1, b""
    while True:
        size = max(size, 2 * len(head))
        head = stream.peek(size)
        whole = len(head) < size or len(head) >= LOOK
        format = format_of(head, whole=whole)
        if format is not None:
            return format
        if whole:
            break
    first = head.lstrip().partition(b"\n")[0].rstrip()
    if not first:
        return None
    if first[:1] == b"{" and first != b"{":
        return "jsonl"  # it is JSON: the reader will say what is wrong with it
    from rangevote.formats.csv_tsv import looks_delimited

    table = looks_delimited(first, stream.name, {options.field, options.group_by, options.text_field})
    if table is None:
        raise UsageError(_cannot_tell(stream.name, first, formats))
    return table


def format_of(head: bytes, *, whole: bool = True) -> str | None:
    """The format of a text that begins with `head`, None if that does not tell. `whole`: there is no more."""
    if head.startswith(PARQUET):
        return "parquet"
    text = head.lstrip()
    if text.startswith(b"{"):
        return _format_of_object(text, whole)
    if text.startswith(b"["):
        return _format_of_array(text, whole)
    if _MOSES.match(text):
        return "moses"
    return "fairseq" if _FAIRSEQ.search(text) else None  # a log may come before


def _format_of_object(text: bytes, whole: bool) -> str | None:
    """By the outermost fields of the first line where it is whole, else by the first key that tells."""
    line, newline, _ = text.partition(b"\n")
    if not newline and not whole:
        return None
    record = _fields(line)
    if record is not None:
        return _format_of_fields(record)
    match = _KEY.search(line)  # an unescaped quote before the colon: a text that quotes JSON does not match
    if match is None:
        return None
    if match[1] is None:
        return "jsonl" if match[2] else "vllm"
    return _BY_KEY.get(match[1].decode(), "jsonl")


def _format_of_fields(record: dict[str, Any]) -> str:
    """The format of JSON lines that has such records; those of no other are `jsonl`."""
    if "candidates" in record or "hypotheses" in record:
        return "jsonl"
    if "outputs" in record and not _has_texts(record["outputs"]):
        return "vllm"
    if "translations" in record or {"translation", "sentence_id"} <= set(record):
        return "sockeye"
    answered = isinstance(record.get("response", ""), (dict, NoneType))
    if not _has_texts(record.get("choices", "")) or answered or {"custom_id", "error"} <= set(record):
        return "openai"
    return "jsonl"


def _has_texts(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and any(isinstance(item, str) for item in value)
    )


def _format_of_array(text: bytes, whole: bool) -> str | None:
    """An array of records or lists is a document; one of anything else is taken for a line that should not be
    one."""
    inner = text[1:].lstrip()[:1]
    if not inner and not whole:
        return None
    return "json" if inner in (b"{", b"[", b"]") else "jsonl"


def json_layout(stream: Stream, options: ReadOptions) -> ReadOptions:
    """The options with the layout of JSON lines, where their first record is no ballot."""
    head = stream.peek(1)
    while (
        b"\n" not in head.lstrip()
        and len(head) <= options.max_line_bytes
        and len(more := stream.peek(2 * len(head))) > len(head)
    ):
        head = more
    first = _fields(head.lstrip().partition(b"\n")[0])
    if first is None or (not options.layout and {"candidates", "hypotheses"} & set(first)):
        return options
    from rangevote.formats.layouts import recognise

    layout = recognise([first], options)
    if layout is not None and layout.group_by != options.group_by:  # what repeats is seen in more of them
        records = map(_fields, stream.peek(LOOK).split(b"\n"))
        layout = recognise([record for record in records if record is not None], options)
    return layout or options


def _fields(line: bytes) -> dict[str, Any] | None:
    from rangevote.formats.jsonl import parse

    try:
        record = parse(line)
    except DataError:
        return None
    return record if isinstance(record, dict) else None


def _cannot_tell(name: str, first: bytes, formats: Iterable[str]) -> str:
    shown = first[:60].decode("utf-8", "replace")
    hint = (
        "If it is flat text with N lines a source, pass --format mbrs --per-source N; if it is CSV or TSV, "
        "name a column with --group-by or --field."
    )
    if first == b"{":
        hint = "If it is JSON over several lines, make each object one line: jq -c . FILE"
    return (
        f"cannot tell the format of {name}, which begins {shown!r}; name it with --format "
        f"({', '.join(formats)}). {hint}"
    )
