"""Which format is this? Told by the first bytes, never by the name of the file alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from rangevote.errors import UsageError
from rangevote.formats.stream import PARQUET, Stream

#: How far to look; a first line may be long, and a log may come first.
LOOK = 2**20

#: A key of the outermost object, and the format that has it; the first that matches decides.
_BY_KEY = {
    "candidates": "jsonl",
    "hypotheses": "jsonl",
    "outputs": "vllm",
    "translations": "sockeye",
    "translation": "sockeye",
    "custom_id": "openai",
    "response": "openai",
    "choices": "openai",
}
# An unescaped quote before the colon ends a key, so a text that quotes JSON does not match.
_KEY = re.compile(rb'"(' + "|".join(_BY_KEY).encode() + rb')"\s*:')
_PIPELINE = re.compile(rb'"(generated|translation|summary)_text"\s*:')
_MOSES = re.compile(rb"\S+\s+\|\|\|")
_FAIRSEQ = re.compile(rb"^[STHDP]-\d{1,18}(?:\t.*)?\r?$", re.MULTILINE)
_outer_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def detect(stream: Stream, formats: Iterable[str]) -> str | None:
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
    if first[:1] in (b"{", b"[") and first not in (b"{", b"["):
        return "jsonl"  # it is JSON: the reader will say what is wrong with it
    raise UsageError(_cannot_tell(stream.name, first, formats))


def format_of(head: bytes, *, whole: bool = True) -> str | None:
    """The format of a text that begins with `head`, None if that does not tell. `whole`: there is no more."""
    if head.startswith(PARQUET):
        return "parquet"
    text = head.lstrip()
    if text.startswith(b"{"):
        return _format_of_object(text, whole)
    if text.startswith(b"["):
        return "pipeline" if _PIPELINE.search(text) else None
    if _MOSES.match(text):
        return "moses"
    return "fairseq" if _FAIRSEQ.search(text) else None  # a log may come before


def _format_of_object(text: bytes, whole: bool) -> str | None:
    """By the outermost keys of the first line where it is whole, else by the first key that tells."""
    line, newline, _ = text.partition(b"\n")
    if newline:
        try:
            keys = _outer_keys(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        else:
            return next((name for key, name in _BY_KEY.items() if key in keys), "jsonl")
    elif not whole:
        return None
    match = _KEY.search(line)
    return _BY_KEY[match[1].decode()] if match else None


def _cannot_tell(name: str, first: bytes, formats: Iterable[str]) -> str:
    shown = first[:60].decode("utf-8", "replace")
    hint = "If it is flat text with N lines a source, pass --format mbrs --per-source N."
    if first == b"{":
        hint = "If it is JSON over several lines, make each object one line: jq -c . FILE"
    elif first == b"[":
        hint = "If it is a JSON array, make each element one line: jq -c '.[]' FILE"
    return (
        f"cannot tell the format of {name}, which begins {shown!r}; name it with --format "
        f"({', '.join(formats)}). {hint}"
    )
