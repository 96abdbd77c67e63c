"""What a model is to answer: lines of text, JSON lines with a chosen field, batches of requests, or images.

Each input is a `ModelInput`: an `Entry` whose ballot has no candidates yet, and the content for the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rangevote.errors import DataError, SetupError, UsageError, choose, nearest
from rangevote.formats.jsonl import convert, decode_text, parse
from rangevote.formats.layouts import with_carry
from rangevote.formats.reader import Entry, Reading, ReadOptions
from rangevote.formats.stream import MAX_LINE_BYTES, Closing, Stream, open_stream
from rangevote.hypothesis import Ballot
from rangevote.text import IMAGE_ENDINGS

#: Endings of the files that are read as JSON, one object a line; all others are lines of text.
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
#: Where a JSON line has its input unless an option names it: the first of these that is there.
FIELDS = ("text", "prompt", "source", "messages", "input")
IMAGE_FIELDS = ("image", "file", "path", *FIELDS)


class ModelInput(Entry, frozen=True):
    """One input: `content` is what the model takes, `ballot` has its id, source and references."""

    content: Any = None


class Inputs(Closing, Iterator[Entry]):
    """The inputs of a file or folder in order, each a `ModelInput` or an error; `total` is their number if
    known."""

    def __init__(self, entries: Iterator[Entry], total: int | None) -> None:
        self.total, self._entries = total, entries

    def __next__(self) -> Entry:
        return next(self._entries)

    def close(self) -> None:
        if isinstance(self._entries, Reading):
            self._entries.close()


def read_inputs(
    source: str,
    *,
    format: str | None = None,
    field: str | None = None,
    images: bool = False,
    carry: Sequence[str] = (),
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Inputs:
    """Open a file, '-' or a folder of images; `images`: the model reads images, so inputs are their paths.

    `format` is "text" or "jsonl", else as the file's name says; `field` is where JSON lines have the input,
    `carry` names further fields that go into results.
    """
    if format is not None:
        choose("input format", format, FORMATS)
    if source != "-" and Path(source).is_dir():
        return _folder(Path(source), images)
    if images and source.lower().endswith(IMAGE_ENDINGS):
        return _files([Path(source)])
    format = format or format_of(source)
    if field is not None and format == "text":
        raise UsageError(
            f"--field {field} is for JSON lines, but {source} is read as lines of text; if it has JSON, use "
            f"--format jsonl."
        )
    stream = open_stream(source)
    find = partial(_beside, Path() if source == "-" else Path(source).parent) if images else None
    make = partial(FORMATS[format], field=field, find=find, carry=ReadOptions(carry=tuple(carry)))
    rows = _records(stream, max_line_bytes, make)
    reading = Reading(stream, rows, format, unique_ids=format == "jsonl")
    return Inputs(reading, count(source, format))


def format_of(source: str) -> str:
    """The format that a file's name tells.

    >>> format_of("prompts.jsonl.gz"), format_of("prompts.txt"), format_of("-")
    ('jsonl', 'text', 'text')
    """
    plain = source.lower().removesuffix(".gz").removesuffix(".zst")
    return "jsonl" if plain.endswith(JSON_ENDINGS) else "text"


def count(source: str, format: str) -> int | None:
    """How many inputs a file has, for the progress bar; None for a pipe, and where it cannot be read."""
    if not Path(source).is_file():
        return None
    try:
        with open_stream(source) as stream:
            lines = stream.lines_or_errors()
            if format == "text":
                return sum(1 for _ in lines)
            return sum(isinstance(line, DataError) or bool(line.strip()) for line in lines)
    except (DataError, SetupError):
        return None  # reported when reading comes to it


#: Makes a usable path of one that stands in a file; None: inputs are not images.
Find = Callable[[str], str] | None


def _records(
    stream: Stream, limit: int, make: Callable[[int, str, bytes], ModelInput | None]
) -> Iterator[Entry]:
    """An entry for each line; a bad one becomes an error and reading goes on."""
    for number, line in enumerate(stream.lines_or_errors(limit), 1):
        where = f"{stream.name}:{number}"
        entry: Entry | None
        try:
            if isinstance(line, DataError):
                raise line
            entry = make(number, where, line)
        except DataError as error:
            entry = Entry(where, error=error.at(where))
        if entry is not None:
            yield entry


def text_line(
    number: int, where: str, line: bytes, *, field: str | None, find: Find, carry: ReadOptions
) -> ModelInput:
    """A line is an input, an empty one too: line n of the output answers line n, and n is its id."""
    text = decode_text(line)
    content = text if find is None else find(text)
    blank = Ballot((), id=number, source=text)
    return ModelInput(where, with_carry(blank, None, carry), content=content)


def json_line(
    number: int, where: str, line: bytes, *, field: str | None, find: Find, carry: ReadOptions
) -> ModelInput | None:
    """A line that is not blank is an object with the input in one of its fields."""
    if not line or line.isspace():
        return None
    value = parse(line)
    if not isinstance(value, dict):
        hint = "; jq -c '.[]' makes lines of an array" if isinstance(value, list) else ""
        raise DataError(f'expected an object such as {{"id": "42", "text": "..."}}{hint}')
    value = _unwrapped(value)
    row = convert(value, InputFields)
    field = _field(value, field, FIELDS if find is None else IMAGE_FIELDS)
    content = _content(value[field], field)
    source = content if isinstance(content, str) else None
    blank = with_carry(Ballot((), id=row.id, source=source, references=_references(row)), value, carry)
    return ModelInput(where, blank, content=content if find is None or source is None else find(source))


#: name -> what makes an input of a line
FORMATS: dict[str, Callable[..., ModelInput | None]] = {"text": text_line, "jsonl": json_line}


class InputFields(msgspec.Struct):
    """What is carried through."""

    id: str | int | None = None
    references: list[str] | None = None
    reference: str | list[str] | None = None


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """A line of a batch for OpenAI or `vllm run_batch` as the plain line that it stands for.

    Of its request only the input is taken: model, `n` and the like are options of the command.

    >>> _unwrapped({"custom_id": "r1", "url": "/v1/completions", "body": {"model": "m", "prompt": "hi"}})
    {'id': 'r1', 'prompt': 'hi'}
    """
    body = value.get("body")
    if "custom_id" not in value or not isinstance(body, dict):
        return value
    return {"id": value["custom_id"], **{name: body[name] for name in FIELDS if name in body}}


def _field(value: dict[str, Any], wanted: str | None, usual: tuple[str, ...]) -> str:
    """The name of the field with the input."""
    there = [name for name in value if value[name] is not None]
    if wanted is not None and wanted not in there:
        raise DataError(
            f"has no field {wanted!r}, which --field asks for.{nearest(wanted, there)} It has: "
            f"{', '.join(there) or 'nothing'}"
        )
    name = wanted or next((name for name in usual if name in there), None)
    if name is None:
        raise DataError(
            f"has none of the fields {', '.join(usual)}; name the field of the input with --field "
            f"(it has: {', '.join(there) or 'nothing'})"
        )
    return name


def _content(value: Any, field: str) -> str | list[Any]:
    """A text, token ids, or a conversation."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and (all(type(item) is int for item in value) or all(map(_is_message, value))):
        return value
    raise DataError(
        "expected a text, a list of token ids, or a list of messages with role and content", field=field
    )


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("role"), str) and "content" in item


def _references(row: InputFields) -> list[str]:
    if row.references is not None and row.reference is not None:
        raise DataError("has both references and reference; give one of them")
    if isinstance(row.reference, str):
        return [row.reference]
    return row.references or row.reference or []


def _beside(folder: Path, path: str) -> str:
    """A path as it stands, or seen from the file that it stands in."""
    for file in (Path(path), folder / path):
        if path and file.is_file():
            return os.fspath(file)
    raise DataError(f"there is no image file {path!r}")


def _folder(folder: Path, images: bool) -> Inputs:
    """The images of a folder, by their names."""
    if not images:
        raise UsageError(
            f"{folder} is a folder, but the model reads text; give a file with one input a line, or with "
            f"JSON lines."
        )
    files = sorted(file for file in folder.iterdir() if file.name.lower().endswith(IMAGE_ENDINGS))
    if not files:
        raise SetupError(f"no images in the folder {folder}; looked for {', '.join(IMAGE_ENDINGS)}.")
    return _files(files)


def _files(files: Sequence[Path]) -> Inputs:
    """Images, whose names are their ids."""
    for file in files:
        if not file.is_file():
            raise SetupError(f"cannot read {file}: there is no such file.")
    paths = [os.fspath(file) for file in files]
    blanks = [Ballot((), id=file.name, source=path) for file, path in zip(files, paths, strict=True)]
    entries = (ModelInput(path, blank, content=path) for path, blank in zip(paths, blanks, strict=True))
    return Inputs(entries, len(paths))
