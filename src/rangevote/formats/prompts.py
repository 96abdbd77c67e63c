"""What a model is to answer: lines of text, JSON lines with a chosen field, batches of requests, or images.

Each input is a `ModelInput`: an `Entry` whose ballot has no candidates yet, and the content for the model.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rangevote.errors import DataError, SetupError, UsageError, choose, nearest
from rangevote.formats.jsonl import convert, decode_text
from rangevote.formats.layouts import Located, line_records, with_carry
from rangevote.formats.reader import Entry, Reading, ReadOptions, Record
from rangevote.hypothesis import Ballot
from rangevote.text import IMAGE_ENDINGS, Stream, open_stream

#: Endings of the files that are read as JSON, one object per line; all others are lines of text.
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
#: Where a JSON line has its input unless an option names it: the first of these that is there.
FIELDS = ("text", "prompt", "source", "messages", "input")
IMAGE_FIELDS = ("image", "file", "path", *FIELDS)


class ModelInput(Entry, frozen=True):
    """One input: `content` is what the model takes, `ballot` has its id, source and references."""

    content: Any = None


def read_inputs(
    source: str,
    *,
    format: str | None = None,
    field: str | None = None,
    images: bool = False,
    carry: Sequence[str] = (),
) -> Reading:
    """Open a file, '-' or a folder of images; `images`: the model reads images, so inputs are their paths.
    Each entry is a `ModelInput` or an error.

    `format` is "text" or "jsonl", by default as the file's name says; `field` is where JSON lines have
    the input, `carry` names further fields that go into results.
    """
    if format is not None:
        choose("input format", format, dict.fromkeys(("text", "jsonl")))
    path = Path(source)
    if source != "-" and path.is_dir():
        if not images:
            raise UsageError(
                f"{source} is a folder, but the model reads text; give a file with one input per line, text "
                f"or JSON."
            )
        files = sorted(file for file in path.iterdir() if file.name.lower().endswith(IMAGE_ENDINGS))
        if not files:
            raise SetupError(f"no images in the folder {source}; looked for {', '.join(IMAGE_ENDINGS)}.")
        return _image_files(files)
    if images and source.lower().endswith(IMAGE_ENDINGS):
        if not path.is_file():
            raise SetupError(f"cannot read {source}: there is no such file.")
        return _image_files([path])
    format = format or format_of(source)
    if field is not None and format == "text":
        raise UsageError(
            f"--field {field} is for JSON lines, but {source} is read as lines of text; if it has JSON, use "
            f"--format jsonl."
        )
    stream = open_stream(source)
    options = ReadOptions(field=field, carry=tuple(carry))
    folder = None if not images else Path() if source == "-" else path.parent
    rows = _entries(stream, options, format, folder)
    return Reading(stream, rows, format, format == "jsonl", count(source, format))


def _image_files(files: Sequence[Path]) -> Reading:
    """Images, whose names are their ids."""
    paths = map(os.fspath, files)
    entries = (ModelInput(p, Ballot((), id=os.path.basename(p), source=p), content=p) for p in paths)
    return Reading(open_stream(io.BytesIO()), entries, None, unique_ids=False, total=len(files))


def format_of(source: str) -> str:
    """The format that a file's name tells.

    >>> format_of("prompts.jsonl.gz"), format_of("prompts.txt"), format_of("-")
    ('jsonl', 'text', 'text')
    """
    plain = source.lower().removesuffix(".gz").removesuffix(".zst")
    return "jsonl" if plain.endswith(JSON_ENDINGS) else "text"


def count(source: str, format: str) -> int | None:
    """The number of inputs in a file, for the progress bar; None for a pipe or if the file cannot be read."""
    if not Path(source).is_file():
        return None
    try:
        with open_stream(source) as stream:
            lines = stream.lines_or_errors()
            return sum(
                format == "text" or isinstance(line, DataError) or bool(line.strip()) for line in lines
            )
    except (DataError, SetupError):
        return None  # reported when reading comes to it


def _text_lines(stream: Stream, options: ReadOptions) -> Iterator[Located]:
    """Every line is an input, an empty one too: line n of the output answers line n, and n is its id."""
    for number, line in enumerate(stream.lines_or_errors(options.max_line_bytes), 1):
        where = f"{stream.name}:{number}"
        try:
            if isinstance(line, DataError):
                raise line
            yield Located(where, {"id": number, "text": decode_text(line)})
        except DataError as error:
            yield Located(where, {}, error)


def _entries(stream: Stream, options: ReadOptions, format: str, folder: Path | None) -> Iterator[Entry]:
    records = _text_lines(stream, options) if format == "text" else line_records(stream, options)
    for where, record, error in records:
        try:
            if error is not None:
                raise error
            record = _unwrapped(record)
            ballot, content = _input(record, options, folder)
            ballot = with_carry(ballot, None if format == "text" else record, options)
            yield ModelInput(where, ballot, content=content)
        except DataError as error:
            yield Entry(where, error=error.at(where))


def _input(record: Record, options: ReadOptions, folder: Path | None) -> tuple[Ballot, Any]:
    """The input in one of the fields of a record. With a `folder`, a text is the path of an image,
    relative to the working directory or to that folder."""
    row = convert(record, InputFields)
    if row.references is not None and row.reference is not None:
        raise DataError("has both references and reference; give one of them")
    references = row.references or row.reference or []
    content = _content(record, options.field, FIELDS if folder is None else IMAGE_FIELDS)
    source = content if isinstance(content, str) else None
    ballot = Ballot((), None, row.id, source, [references] if isinstance(references, str) else references)
    return ballot, content if folder is None or source is None else _image(folder, source)


class InputFields(msgspec.Struct):
    """Fields of an input that are passed on to its ballot."""

    id: str | int | None = None
    references: list[str] | None = None
    reference: str | list[str] | None = None


def _unwrapped(value: Record) -> Record:
    """A line of a batch for OpenAI or `vllm run_batch` as the plain line that it stands for.

    Of its request only the input is taken: model, `n` and the like are options of the command.

    >>> _unwrapped({"custom_id": "r1", "url": "/v1/completions", "body": {"model": "m", "prompt": "hi"}})
    {'id': 'r1', 'prompt': 'hi'}
    """
    body = value.get("body")
    if "custom_id" not in value or not isinstance(body, dict):
        return value
    return {"id": value["custom_id"], **{name: body[name] for name in FIELDS if name in body}}


def _content(value: Record, wanted: str | None, usual: tuple[str, ...]) -> str | list[Any]:
    """The input: a text, token ids, or a conversation."""
    names = [name for name in value if value[name] is not None]
    if wanted is not None and wanted not in names:
        raise DataError(
            f"has no field {wanted!r}, which --field asks for.{nearest(wanted, names)} It has: "
            f"{', '.join(names) or 'nothing'}"
        )
    field = wanted or next((name for name in usual if name in names), None)
    if field is None:
        raise DataError(
            f"has none of the fields {', '.join(usual)}; name the field of the input with --field "
            f"(it has: {', '.join(names) or 'nothing'})"
        )
    content = value[field]
    if isinstance(content, str):
        return content
    if isinstance(content, list) and (
        all(type(item) is int for item in content)
        or all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in content)
    ):
        return content
    raise DataError(
        "expected a text, a list of token ids, or a list of messages with role and content", field=field
    )


def _image(folder: Path, path: str) -> str:
    """A path as it stands, or relative to the folder of the file that it stands in."""
    for file in (Path(path), folder / path):
        if path and file.is_file():
            return os.fspath(file)
    raise DataError(f"there is no image file {path!r}")
