"""Records of other layouts: JSON objects, or rows of CSV, TSV and Parquet, with names of their own.

    a list a record     {"question_id": 7, "prompt": "...", "outputs": ["a", {"text": "b", "logprob": -3.1}]}
    a sample a record   {"task_id": 7, "completion": "a"}
                        {"task_id": 7, "completion": "b"}

`--field` names the list, `--group-by` what the samples of one ballot share, `--text-field` and
`--logprob-field` where a sample has its text and log-probability. What is not named is looked for under the
names that people use, in the first records (`recognise`). A name may be a path: `choices[*].message.content`.
Samples that belong together need not stand together, so they are kept in memory until the end of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from rangevote.errors import DataError, UsageError, nearest
from rangevote.formats.jsonl import HYPOTHESIS_FIELDS, ballot_of, ballot_scale, parse
from rangevote.formats.logprobs import Scale, number, total
from rangevote.formats.reader import Entry, ReadOptions, entry_at
from rangevote.hypothesis import Ballot

#: What people call a list of outputs, an output, its log-probability, and the rest of a record.
LISTS = (
    *("outputs", "texts", "responses", "samples", "completions", "generations", "resps", "predictions"),
    "generated_texts",
)
TEXTS = (
    *("text", "output", "response", "completion", "generation", "generated_text", "translation_text"),
    *("summary_text", "prediction", "hypothesis", "translation", "answer", "content", "message"),
)
LOGPROBS = ("logprob", "log_prob", "cumulative_logprob", "sum_logprob")
SOURCES = ("source", "prompt", "question", "instruction", "input", "query", "problem")
IDS = (
    *("id", "prompt_id", "doc_id", "question_id", "task_id", "example_id", "source_id", "input_id"),
    *("request_id", "custom_id", "sentence_id", "problem_id", "idx"),
)
REFERENCES = ("references", "reference", "target")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+|\*)\]")
_MISSING: Any = object()

Record = Mapping[str, Any]
#: Where a record stands, and what it is, or why it cannot be read.
Located = tuple[str, Record | DataError]


def at(value: Any, path: str) -> Any:
    """What stands at a path of names, [numbers] and [*]; `_MISSING` where nothing does.

    >>> at({"choices": [{"text": "a"}, {"text": "b"}]}, "choices[*].text")
    ['a', 'b']
    >>> at({"a.b": 1, "a": {"b": 2}}, "a.b"), at({"turns": ["x", "y"]}, "$.turns[-1]")
    (1, 'y')
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    return _follow(value, steps(path))


def steps(path: str) -> list[str | int]:
    """A path in pieces; -> UsageError where it is none."""
    pieces: list[str | int] = []
    end = 1 if path.startswith("$") else 0
    while end < len(path):
        match = _STEP.match(path, end)
        if match is None:
            raise UsageError(
                f"{path!r} is no path to a field; write it as outputs or choices[0].message.content."
            )
        pieces.append(match[1] if match[1] is not None else "*" if match[2] == "*" else int(match[2]))
        end = match.end()
    return pieces


def _follow(value: Any, pieces: Sequence[str | int]) -> Any:
    for i, piece in enumerate(pieces):
        if piece == "*" and isinstance(value, list):
            found = [_follow(item, pieces[i + 1 :]) for item in value]
            return _MISSING if any(item is _MISSING for item in found) else found
        indexed = value if isinstance(value, Mapping if isinstance(piece, str) else list) else ()
        try:
            value = indexed[piece]  # type: ignore[index]
        except (LookupError, TypeError):
            return _MISSING
    return value


# Which layout


def recognise(records: Sequence[Record], options: ReadOptions) -> ReadOptions | None:
    """The options with a layout as the first records show it; None where they show none.

    Of the fields that could say what belongs together, the first that repeats does, else the first.
    """
    if options.field is not None or options.group_by is not None or not records:
        return options
    first = records[0]
    for name in ("candidates", "hypotheses", *LISTS):
        if isinstance(_unpacked(first.get(name)), list):
            return replace(options, field=name)
    if options.text_field is None and not any(name in first for name in TEXTS):
        return None
    text = options.text_field or next(name for name in TEXTS if name in first)
    keys = [name for name in (*IDS, *SOURCES) if name in first and name != text]
    if not keys:
        return None
    repeated = (name for name in keys if _repeats([record.get(name) for record in records]))
    return replace(options, group_by=next(repeated, keys[0]))


def _repeats(values: Sequence[Any]) -> bool:
    known = [_hashable(value) for value in values if value is not None]
    return len(set(known)) < len(known)


def unknown_layout(names: Iterable[str]) -> DataError:
    return DataError(
        f"cannot tell where the candidates are among the fields {', '.join(names) or '(none)'}: name a list "
        f"of them with --field NAME, or, where every record is one sample, what the samples of a ballot "
        f"share with --group-by NAME, and the text with --text-field NAME"
    )


# Records to ballots


def read_records(records: Iterable[Located], options: ReadOptions, format: str) -> Iterator[Entry]:
    """The ballots of records in the layout that the options name."""
    scale, records = ballot_scale(options, format), to_the_end(records)
    if options.group_by is not None:
        yield from _grouped(records, options, options.group_by, scale)
        return
    for where, record in records:
        yield entry_at(where, partial(_whole_ballot, record, options, scale))


def read_record_lines(
    lines: Iterable[tuple[int, bytes | DataError]], name: str, options: ReadOptions
) -> Iterator[Entry]:
    """The ballots of JSON lines."""
    return read_records(((f"{name}:{number}", _record(line)) for number, line in lines), options, "jsonl")


def _record(line: bytes | DataError) -> Record | DataError:
    if isinstance(line, DataError):
        return line
    try:
        value = parse(line)
    except DataError as error:
        return error
    return value if isinstance(value, dict) else DataError(f"expected an object, got {_kind(value)}")


def _whole_ballot(record: Record | DataError, options: ReadOptions, scale: Scale | None) -> Ballot:
    if isinstance(record, DataError):
        raise record
    return record_ballot(record, options, scale)


def record_ballot(record: Record, options: ReadOptions, scale: Scale | None) -> Ballot:
    """The ballot of one record with a list."""
    shared = _shared(record, options)
    return _ballot(_candidates(record, options), shared, options, scale)


@dataclass
class SampleGroup:
    """The samples of one ballot so far: what it is called, and the first fault in it."""

    where: str
    shared: dict[str, Any]
    samples: list[Any] = field(default_factory=list)
    fault: DataError | None = None

    def ballot(self, options: ReadOptions, scale: Scale | None) -> Ballot:
        if self.fault is not None:
            raise self.fault
        return _ballot(self.samples, self.shared, options, scale)


def _grouped(
    records: Iterable[Located], options: ReadOptions, key_field: str, scale: Scale | None
) -> Iterator[Entry]:
    groups: dict[Hashable, SampleGroup] = {}
    for where, record in records:
        try:
            if isinstance(record, DataError):
                raise record
            key = _needed(record, key_field, "--group-by")
        except DataError as error:  # whose ballot it belongs to is not known
            groups[len(groups), where] = SampleGroup(where, {}, fault=error.at(where))
            continue
        group = groups.get(_hashable(key))
        try:
            shared = _shared(record, options, key)
            if group is None:
                group = groups[_hashable(key)] = SampleGroup(where, shared)
            elif group.shared["carry"] != shared["carry"]:
                options.report(
                    f"the records of {key!r} have different values of {', '.join(options.carry)}; the first "
                    f"ones are carried",
                    key="carry",
                )
            group.samples += _candidates(record, options)
        except DataError as error:
            group = group or groups.setdefault(_hashable(key), SampleGroup(where, {}))
            group.fault = group.fault or error.at(where)
    for group in groups.values():
        fault_where = group.fault.where if group.fault is not None else group.where
        yield entry_at(fault_where, partial(group.ballot, options, scale))


def to_the_end(records: Iterable[Located]) -> Iterator[Located]:
    """All records, and a fault that ends the reading as the last: what was read before it is not lost."""
    try:
        yield from records
    except DataError as error:
        yield error.where, error


def _shared(record: Record, options: ReadOptions, key: Any = None) -> dict[str, Any]:
    """What a ballot has beside its hypotheses."""
    named = (record[name] for name in IDS if isinstance(record.get(name), (str, int)))
    id = key if key is not None else next(named, None)
    source = next((record[name] for name in SOURCES if isinstance(record.get(name), str)), None)
    references = next((record[name] for name in REFERENCES if record.get(name) is not None), None)
    references = [references] if isinstance(references, str) else _unpacked(references)
    fields = {
        "id": id if isinstance(id, (str, int)) and not isinstance(id, bool) else None,
        "source": source,
        "references": references if _are(str, references) else None,
        "voters": _unpacked(record.get("voters")),
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return {"fields": known, "carry": carried(record, options)}


def _ballot(samples: list[Any], shared: dict[str, Any], options: ReadOptions, scale: Scale | None) -> Ballot:
    try:
        ballot = ballot_of({**shared["fields"], "candidates": samples}, options, scale)
    except DataError as error:
        called = options.field or "samples"
        renamed = re.sub(r"^candidates\b", called.replace("\\", r"\\"), error.field)
        raise DataError(error.problem, field=renamed) from None
    return msgspec.structs.replace(ballot, carry=shared["carry"]) if shared["carry"] else ballot


def _candidates(record: Record, options: ReadOptions) -> list[Any]:
    """The hypotheses of a record, as a line of the ballot file has them."""
    if options.field is None:
        return [_sample(record, options, "")]
    listed = _unpacked(_needed(record, options.field, "--field"))
    while isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], list):
        listed = listed[0]  # lm-eval has a list for each request
    if isinstance(listed, str):
        listed = [listed]
    if not isinstance(listed, list):
        raise DataError(
            f"expected a list of texts or objects, got {type(listed).__name__}", field=options.field
        )
    samples = [_sample(item, options, f"{options.field}[{i}]") for i, item in enumerate(listed)]
    if listed and _are(str, listed):
        samples = _scored(samples, record, options)
    if options.field == "samples":
        return [{"sampled": True, **({"text": s} if isinstance(s, str) else s)} for s in samples]
    return samples


def _scored(texts: list[Any], record: Record, options: ReadOptions) -> list[Any]:
    """Plain texts with the log-probabilities that stand in a list beside them."""
    if options.logprob_field is not None:
        scores = _unpacked(_needed(record, options.logprob_field, "--logprob-field"))
        if not isinstance(scores, list) or len(scores) != len(texts):
            size = len(scores) if isinstance(scores, list) else "no"
            raise DataError(f"{size} log-probabilities for {len(texts)} texts", field=options.logprob_field)
    else:
        scores = _unpacked(record.get("logprobs"))
        if not (isinstance(scores, list) and len(scores) == len(texts) and _are((int, float), scores)):
            return texts
    name = options.logprob_field or "logprobs"
    summed = [_logprob(score, f"{name}[{i}]") for i, score in enumerate(scores)]
    return [
        {"text": text} | ({} if p is None else {"logprob": p}) for text, p in zip(texts, summed, strict=True)
    ]


def _sample(item: Any, options: ReadOptions, path: str) -> Any:
    """One hypothesis: a text, or an object that becomes one of ours."""
    if not isinstance(item, Mapping):
        if isinstance(item, str):
            return item
        raise DataError(f"expected a text or an object, got {_kind(item)}", field=path)
    known = {name: item[name] for name in HYPOTHESIS_FIELDS if item.get(name) is not None}
    content = "tokens" in known or "tool_calls" in known
    if options.text_field is not None:
        name = options.text_field
        text = _needed(item, name, "--text-field", path)
    else:
        name = next((name for name in TEXTS if item.get(name) is not None), "")
        if not name and not content:
            raise DataError(
                f"has no text under a usual name; name its field with --text-field (it has: "
                f"{', '.join(item)})",
                field=path,
            )
        text = item.get(name)
    text = _said(text)
    if not isinstance(text, str) and (text is not None or not content):
        raise DataError(f"expected a text, got {_kind(text)}", field=f"{path}.{name}".lstrip("."))
    known["text"] = text
    score_name = options.logprob_field or next((n for n in LOGPROBS if item.get(n) is not None), None)
    if score_name is not None:
        score = at(item, score_name)
        if score is _MISSING and options.logprob_field is not None:
            score = _needed(item, score_name, "--logprob-field", path)
        known.pop("prob", None)
        known["logprob"] = _logprob(score, f"{path}.{score_name}".lstrip("."))
    return {name: value for name, value in known.items() if value is not None}


def _said(value: Any) -> Any:
    """The text of a message, and of a chat its last message."""
    if isinstance(value, list) and value and isinstance(value[-1], Mapping) and "content" in value[-1]:
        value = value[-1]
    return value.get("content") if isinstance(value, Mapping) and "content" in value else value


def _logprob(value: Any, path: str) -> float | None:
    """A log-probability; those of the single tokens are added up."""
    if isinstance(value, str):
        value = number(value.strip().encode(), path) if value.strip() else None
    if isinstance(value, list) and value and _are((int, float), value):
        value = total(value)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value if value is None or not math.isnan(value) else None
    raise DataError(f"expected a number or a list of numbers, got {_kind(value)}", field=path)


def _needed(record: Record, path: str, option: str, inside: str = "") -> Any:
    value = at(record, path)
    if value is _MISSING or value is None:
        raise DataError(
            f"has no {path!r}, which {option} asks for.{nearest(path, record)} It has: "
            f"{', '.join(map(str, record)) or 'nothing'}",
            field=inside,
        )
    return value


def carried(record: Any, options: ReadOptions, ballot: Ballot | None = None) -> dict[str, Any]:
    """The fields that are to be in the result too; null where a record has none, which is reported."""
    record, values = record if isinstance(record, Mapping) else {}, dict[str, Any]()
    for name, path in options.carried.items():
        value = at(record, path)
        if value is _MISSING and ballot is not None and path in ("source", "references"):
            value = getattr(ballot, path)
        if value is _MISSING:
            options.report(
                f"there is no field {path!r} to carry, so it is null.{nearest(path, record)}",
                key=("carry", path),
            )
            value = None
        values[name] = list(value) if isinstance(value, tuple) else value
    return values


def with_carry(ballot: Ballot, record: Any, options: ReadOptions) -> Ballot:
    """The ballot with the fields of its record that are to be carried."""
    if not options.carry:
        return ballot
    return msgspec.structs.replace(ballot, carry=carried(record, options, ballot))


def _unpacked(value: Any) -> Any:
    """A list that stands as JSON in a cell of a table, or the value as it is."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return parse(value.encode())
        except (DataError, UnicodeEncodeError):
            return value
    return list(value) if isinstance(value, tuple) else value


def _are(kind: type | tuple[type, ...], values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)


def _hashable(value: Any) -> Hashable:
    """1 and "1" are two keys; a conversation is one by its content."""
    return (type(value).__name__, value if isinstance(value, (str, int)) else repr(value))


def _kind(value: Any) -> str:
    names = {
        "NoneType": "null",
        "list": "an array",
        "tuple": "an array",
        "dict": "an object",
        "str": "a text",
    }
    return names.get(type(value).__name__, f"{value!r}"[:40])
