"""Records of other tools: JSON objects, or rows of CSV, TSV and Parquet, with field names of their own.

    a list per record:    {"question_id": 7, "prompt": "?", "outputs": ["a", {"text": "b", "logprob": -3.1}]}
    a sample per record:  {"task_id": 7, "completion": "a"}
                          {"task_id": 7, "completion": "b"}

`LAYOUTS` has one row for each tool whose records are read as a format of their own. For all others, `--field`
names the list, `--group-by` what the samples of one ballot share, `--text-field` and `--logprob-field` where
a sample has its text and log-probability. What is not named is looked for in the first records, under the
names that people use (`recognise`). A name may be a path: `choices[*].message.content`. Samples of one ballot
need not be neighbours, so they are kept in memory until the end of the file.

A file may also be one JSON array: of records, or of lists as a Hugging Face pipeline returns them:

    [[{"generated_text": "a"}, {"generated_text": "b"}], ...]

A list of lists has one for each input, whose id is its number from 0; the flat list that a pipeline returns
for a single input is one ballot, as is a list of texts. The array is read into memory as a whole, up to the
limit on the length of a line. One list per line is read as well.
"""

from __future__ import annotations

import ast
import fnmatch
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, count, islice
from typing import Any, NamedTuple

import msgspec

from rangevote.errors import DataError, UsageError, nearest
from rangevote.formats.choices import answered, candidate_of, ended
from rangevote.formats.jsonl import (
    HYPOTHESIS_FIELDS,
    ask_about_lists,
    ask_about_scores,
    ballot_of,
    kind_of,
    parse,
)
from rangevote.formats.logprobs import (
    Scale,
    ballot_scale,
    fixed_scale,
    number,
    scale_of,
    total,
)
from rangevote.formats.reader import Decode, Entry, ReadOptions, Record, entry_at
from rangevote.hypothesis import Ballot
from rangevote.text import Stream

#: Usual names of a list of outputs, an output, its log-probability, and the other fields of a record.
LISTS = (
    *("outputs", "texts", "responses", "samples", "completions", "generations", "resps", "predictions"),
    *("generated_texts", "summaries", "captions", "answers"),
)
TEXTS = (
    *("text", "output", "response", "completion", "generation", "generated_text", "translation_text"),
    *("summary_text", "prediction", "hypothesis", "translation", "answer", "content", "message"),
    *("summary", "caption"),
)
LOGPROBS = ("logprob", "log_prob", "cumulative_logprob", "sum_logprob")
SOURCES = (
    *("source", "prompt", "question", "instruction", "input", "query", "problem"),
    *("arguments.gen_args_0.arg_0", "arguments[0].arg_0", "arguments[0][0]"),  # lm-eval
)
IDS = (
    *("id", "prompt_id", "doc_id", "question_id", "task_id", "example_id", "source_id", "input_id"),
    *("request_id", "custom_id", "sentence_id", "problem_id", "idx"),
)
REFERENCES = ("references", "reference", "target")
#: Records that are read to detect their layout.
HEAD = 1000
#: Names of what a pipeline returns, which differ by task.
PIPELINE = ("generated_text", "translation_text", "summary_text")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+|\*)\]")
_MISSING: Any = object()


class Located(NamedTuple):
    """A record and its place; with an `error`, the record has only the fields that could be read."""

    where: str
    record: Record
    error: DataError | None = None


# Paths


def at(value: Any, path: str) -> Any:
    """The value at a path of names, [numbers] and [*]; `_MISSING` if there is none.

    >>> at({"choices": [{"text": "a"}, {"text": "b"}]}, "choices[*].text")
    ['a', 'b']
    >>> at({"a.b": 1, "a": {"b": 2}}, "a.b"), at({"turns": ["x", "y"]}, "$.turns[-1]")
    (1, 'y')
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    return _follow(value, steps(path))


@cache
def steps(path: str) -> Sequence[str | int]:
    """The names and numbers of a path."""
    pieces: list[str | int] = []
    end = 1 if path.startswith("$") else 0
    while end < len(path):
        match = _STEP.match(path, end)
        if match is None:
            raise UsageError(
                f"{path!r} is not a path to a field; write it as outputs or choices[0].message.content."
            )
        pieces.append(match[1] if match[1] is not None else "*" if match[2] == "*" else int(match[2]))
        end = match.end()
    return pieces


def _follow(value: Any, pieces: Sequence[str | int]) -> Any:
    for i, piece in enumerate(pieces):
        if piece == "*" and isinstance(value, list):
            values = [_follow(item, pieces[i + 1 :]) for item in value]
            return _MISSING if any(item is _MISSING for item in values) else values
        indexed = value if isinstance(value, Mapping if isinstance(piece, str) else list) else ()
        try:
            value = indexed[piece]  # type: ignore[index]
        except (LookupError, TypeError):
            return _MISSING
    return value


# Tools


@dataclass(frozen=True)
class Layout:
    """Where records have their candidates, and what the scores mean.

    `lists` are paths to the list of candidates and `scores` to a list of scores beside plain texts: the first
    that a record has is taken. Without `lists` every record is one candidate. `candidate` turns an item of
    the list into the fields of a hypothesis, or None if the model refused to answer. `prepare` refuses
    records without an answer, and rewrites those of another shape.
    """

    lists: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    ids: tuple[str, ...] = IDS
    sampled: bool = False
    scale: Callable[[ReadOptions], Scale | None] = ballot_scale
    candidate: Callable[[Record, str], dict[str, Any] | None] | None = None
    prepare: Callable[[Record], Record] | None = None


def _vllm_output(output: Record, path: str) -> dict[str, Any]:
    """The last token is the end of the sequence, unless a length limit or a stop string ended the output."""
    tokens, reason = output.get("token_ids"), output.get("finish_reason")
    by_token = reason == "stop" and not isinstance(output.get("stop_reason"), str)
    return {
        "text": output.get("text"),
        "tokens": tokens[:-1] if isinstance(tokens, list) and by_token else tokens,
        "logprob": output.get("cumulative_logprob"),
        "finished": ended(reason),
    }


_SOCKEYE_ALPHA = (
    "Sockeye divides scores by a power of the length, and the file does not say which. Pass "
    "--length-normalised length (Sockeye's default, --length-penalty-alpha 1), --length-normalised X for "
    "another alpha, --length-normalised none for alpha 0; or --score-scale count to ignore the scores."
)

#: Tools whose JSON lines are formats of their own.
LAYOUTS = {
    # --nbest-size N --output-type json. Scores are minus the natural log of P, divided by length ** alpha,
    # with a list for each target factor, the words' first. Texts are the model's tokens, joined by spaces.
    "sockeye": Layout(
        lists=("translations", "translation"),
        scores=("scores[*][0]", "scores", "score"),
        ids=("sentence_id",),
        scale=partial(scale_of, alpha=None, sign=-1, words=True, unsettled=_SOCKEYE_ALPHA),
    ),
    # Dumped outputs of LLM.generate. Scores are the natural log of P, summed, of the model itself (before
    # temperature); null unless log-probabilities were requested.
    "vllm": Layout(lists=("outputs",), sampled=True, scale=fixed_scale, candidate=_vllm_output),
    # Batch output of OpenAI and `vllm run_batch`, and bare response bodies. Log-probabilities of tokens lack
    # the end of the sequence, so they may add up to more than 1.
    "openai": Layout(
        lists=("choices", "response.body.choices"),
        ids=("custom_id", "id"),
        sampled=True,
        scale=partial(fixed_scale, complete=False),
        candidate=candidate_of,
        prepare=answered,
    ),
}


# Which layout


def recognise(records: Sequence[Record], options: ReadOptions) -> ReadOptions | None:
    """The options with the layout detected in the first records; None if there is none.

    Samples are grouped by the first usual field whose values repeat, otherwise by the first usual field.
    """
    if options.field or options.group_by or options.columns or not records:
        return options
    first = records[0]
    text = options.text_field or next((name for name in TEXTS if name in first), None)
    for name in ("candidates", "hypotheses", *LISTS):
        if name == "answers" and text is not None:
            continue  # the right ones, beside an output
        if isinstance(_unpacked(first.get(name)), list):
            return _filtered(records, replace(options, field=name))
    keys = [name for name in (*IDS, *SOURCES) if name in first and name != text]
    if text is None or not keys:
        return None
    for name in keys:
        values = [_hashable(record[name]) for record in records if record.get(name) is not None]
        if len(set(values)) < len(values):
            return replace(options, group_by=name)
    return replace(options, group_by=keys[0])


def _filtered(records: Sequence[Record], options: ReadOptions) -> ReadOptions:
    """The options with the filter of an lm-eval log whose records are read: by default the first."""
    names = list(dict.fromkeys(r["filter"] for r in records if isinstance(r.get("filter"), str)))
    if options.filter is None and options.field == "resps" and names:
        options = replace(options, filter=names[0])
        if names[0] != "none":
            options.warn(
                f"only the answers of the first filter, {names[0]!r}, are read; --filter chooses another."
            )
    elif options.filter is not None and len(records) > 1 and names and options.filter not in names:
        options.report(
            f"the first records do not have the filter {options.filter!r}, only {', '.join(names)}",
            key="filter",
        )
    return options


# Records to ballots


def decoder(options: ReadOptions) -> Decode:
    """The function from a line of JSON to its ballot, for the layout that the options name."""
    reader = RecordReader(options)

    def decode(line: bytes) -> Ballot | None:
        record = _object(parse(line))
        return None if reader.leaves_out(record) else reader.ballot(record)

    return decode


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    hint = "; jq -c '.[]' makes lines of an array" if isinstance(value, list) else ""
    raise DataError(f"expected an object, got {kind_of(value)}{hint}")


def read_records(records: Iterable[Located], options: ReadOptions) -> Iterator[Entry]:
    """The ballots of records, in the layout given by options or detected in the first records."""
    rows = _to_the_end(records)
    head = list(islice(rows, HEAD))
    first = [row.record for row in head if row.error is None]
    recognised = recognise(first, options)
    if recognised is None:
        raise DataError(
            f"cannot tell where the candidates are among the fields {', '.join(first[0]) or '(none)'}: name "
            f"a list of them with --field NAME, columns of one candidate each with --columns 'NAME_*', or, "
            f"where every record is one sample, what the samples of a ballot share with --group-by NAME, and "
            f"the text with --text-field NAME"
        )
    reader = RecordReader(recognised)
    rows = (row for row in chain(head, rows) if not reader.leaves_out(row.record))
    if recognised.group_by is not None:
        yield from reader.grouped(rows, recognised.group_by)
        return
    for where, record, error in rows:
        id = reader.id_of(record)
        if error is not None:
            yield Entry(where, error=error.placed(where), id=id)
        else:
            yield entry_at(where, reader.ballot, record, id=id)


def _to_the_end(records: Iterable[Located]) -> Iterator[Located]:
    """All records; a fault that ends the reading becomes the last one, so that earlier records are kept."""
    try:
        yield from records
    except DataError as error:
        yield Located(error.where, {}, error)


def line_records(stream: Stream, options: ReadOptions, *, lists: bool = False) -> Iterator[Located]:
    """The records of JSON lines; of `lists`, one for each line with a list."""
    numbers = count()
    for i, line in enumerate(stream.lines_or_errors(options.max_line_bytes), 1):
        if isinstance(line, bytes) and not line.strip():
            continue
        where, record = f"{stream.name}:{i}", {"id": next(numbers)} if lists else {}
        try:
            if isinstance(line, DataError):
                raise line
            value = parse(line)
            yield Located(where, {**record, "outputs": value} if lists else _object(value))
        except DataError as error:
            yield Located(where, record, error)


@dataclass
class SampleGroup:
    """The samples of one ballot so far, and its first fault: one bad sample invalidates the ballot."""

    where: str
    key: Any = None
    fields: dict[str, Any] | None = None
    samples: list[Any] = field(default_factory=list)
    fault: DataError | None = None


class RecordReader:
    """Makes ballots of records in the layout that the options name."""

    def __init__(self, options: ReadOptions) -> None:
        layout = LAYOUTS.get(options.format or "")
        if layout is None or options.layout:
            layout = Layout(
                lists=(options.field,) if options.field else (), sampled=options.field == "samples"
            )
        self.options, self.layout, self.scale = options, layout, layout.scale(options)

    def leaves_out(self, record: Record) -> bool:
        """Whether a record of lm-eval is of another filter than the chosen one."""
        chosen = self.options.filter
        return chosen is not None and record.get("filter", chosen) != chosen

    def ballot(self, record: Record) -> Ballot:
        """The ballot of one record with a list."""
        if self.layout.prepare is not None:
            record = self.layout.prepare(record)
        path, candidates = self._candidates(record)
        return self._ballot(path, candidates, self._fields(record))

    def grouped(self, records: Iterable[Located], group_by: str) -> Iterator[Entry]:
        """The ballots of samples that share what is at the path `group_by`."""
        groups: dict[Hashable, SampleGroup] = {}
        for where, record, error in records:
            group = SampleGroup(where)
            try:
                key = at(record, group_by)
                if key in (_MISSING, None):  # which ballot it belongs to is not known
                    groups[len(groups), where] = group
                    raise error or _missing(record, group_by, "--group-by")
                group = groups.setdefault(_hashable(key), SampleGroup(where, key))
                if error is not None:
                    raise error
                fields = self._fields(record, key)
                if group.fields is not None and group.fields["carry"] != fields["carry"]:
                    self.options.report(
                        f"the records of {key!r} have different values of {', '.join(self.options.carry)}; "
                        f"those of the first record are carried",
                        key="carry",
                    )
                group.fields = group.fields or fields
                group.samples += self._candidates(record)[1]
            except DataError as fault:
                group.fault = group.fault or fault.at(where)
            except UsageError as question:
                raise UsageError(f"{where}: {question}") from None
        path = self.options.field or "samples"
        for group in groups.values():
            id = group.key if _is_id(group.key) else None
            if group.fault is not None:
                yield Entry(group.fault.where, error=group.fault, id=id)
            else:
                yield entry_at(group.where, self._ballot, path, group.samples, group.fields, id=id)

    def id_of(self, record: Record) -> str | int | None:
        return next((record[name] for name in self.layout.ids if _is_id(record.get(name))), None)

    def _fields(self, record: Record, key: Any = None) -> dict[str, Any]:
        """The fields of a ballot other than its candidates."""
        id = self.id_of(record) if key is None else key
        source = next((text for name in SOURCES if isinstance(text := at(record, name), str)), None)
        references = next((record[name] for name in REFERENCES if record.get(name) is not None), None)
        references = [references] if isinstance(references, str) else _unpacked(references)
        fields = {
            "id": id if _is_id(id) else None,
            "source": source,
            "references": references if _are(str, references) else None,
            "voters": _unpacked(record.get("voters")),
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        return {**fields, "carry": carried(record, self.options, fields)}

    def _ballot(self, path: str, candidates: list[Any], fields: dict[str, Any]) -> Ballot:
        fields = dict(fields)
        carry = fields.pop("carry")
        try:
            ballot = ballot_of({**fields, "candidates": candidates}, self.options, self.scale)
        except DataError as error:
            renamed = re.sub(r"^candidates\b", path.replace("\\", r"\\"), error.field)
            raise DataError(error.problem, field=renamed) from None
        return msgspec.structs.replace(ballot, carry=carry) if carry else ballot

    def _candidates(self, record: Record) -> tuple[str, list[Any]]:
        """The path to the candidates of a record, and the candidates as in a line of the ballot file."""
        path, items = self._items(record)
        candidates = [self._candidate(item, place) for place, item in items.items()]
        if path and self.options.columns is None and candidates and _are(str, list(items.values())):
            candidates = self._scored(candidates, record)
        answers = [candidate for candidate in candidates if candidate is not None]
        if len(answers) < len(candidates):
            if not answers:
                problem = "every choice is a refusal or was filtered out, so there is nothing to vote on"
                raise DataError(problem, field=path)
            problem = "refusals and answers that were filtered out are not candidates and are left out"
            self.options.report(problem, field=path, key=("refusal", path))
        if self.layout.sampled:
            answers = [{"sampled": True, **_as_fields(answer)} for answer in answers]
        return path, answers

    def _items(self, record: Record) -> tuple[str, dict[str, Any]]:
        """The path to the candidates of a record, and what it has there, each item by its own path."""
        layout, options = self.layout, self.options
        if options.columns is not None:
            names = fnmatch.filter(record, options.columns)
            if not names:
                raise _missing(record, options.columns, "--columns")
            return options.columns, {name: record[name] for name in names if record[name]}  # else: fewer
        if not layout.lists:
            return "", {"": record}
        path = _first_path(record, layout.lists) or layout.lists[-1]
        asked_by = "--field" if options.field else f"the format {options.format}"
        items = _unpacked(_needed(record, path, asked_by))
        while isinstance(items, list) and len(items) == 1 and isinstance(items[0], list):
            items = items[0]  # lm-eval has a list for each request
        if isinstance(items, str):
            items = [items]
        if not isinstance(items, list):
            raise DataError(f"expected a list of texts or objects, got {kind_of(items)}", field=path)
        return path, {f"{path}[{i}]": item for i, item in enumerate(items)}

    def _scored(self, texts: list[Any], record: Record) -> list[Any]:
        """Plain texts with their scores from lists beside them."""
        options, lists = self.options, dict[str, tuple[str, list[Any]]]()
        path = _first_path(record, self.layout.scores or (options.logprob_field or "logprobs",))
        if path is None and options.logprob_field is not None:
            raise _missing(record, options.logprob_field, "--logprob-field")
        scores: Any = None if path is None else _unpacked(at(record, path))
        fits = _are((int, float), scores) and len(scores) == len(texts)
        if path is None or (path == "logprobs" and not fits):  # which may be something else
            unpacked = {name: _unpacked(value) for name, value in record.items()}
            ask_about_lists(unpacked, unpacked, len(texts), options)
        else:
            scores = scores if isinstance(scores, list) else [scores]
            nan = bool(self.layout.scores)  # a tool does not mean a missing score by it
            lists["logprob"] = path, [_logprob(x, f"{path}[{i}]", nan=nan) for i, x in enumerate(scores)]
        for name in options.score_field:
            if isinstance(numbers := _unpacked(at(record, name)), list):
                lists[name] = name, numbers
        for name, (path, values) in lists.items():
            if len(values) != len(texts):
                raise DataError(f"{len(values)} scores for {len(texts)} texts", field=path)
            texts = [{**_as_fields(text), name: x} for text, x in zip(texts, values, strict=True)]
        return texts

    def _candidate(self, item: Any, path: str) -> Any:
        """One candidate: a text, or the fields of a `Hypothesis`."""
        options = self.options
        if isinstance(item, str):
            return item
        if not isinstance(item, Mapping):
            raise DataError(f"expected a text or an object, got {kind_of(item)}", field=path)
        if self.layout.candidate is not None:
            fields = self.layout.candidate(item, path)
            return fields and {name: value for name, value in fields.items() if value is not None}
        fields = {name: item[name] for name in HYPOTHESIS_FIELDS if item.get(name) is not None}
        other_content = "tokens" in fields or "tool_calls" in fields
        name = options.text_field or next((name for name in TEXTS if item.get(name) is not None), "")
        if options.text_field is not None:
            text = _needed(item, name, "--text-field", path)
        elif name or other_content:
            text = item.get(name)
        else:
            names = ", ".join(item)
            problem = f"has no text under a usual name; name its field with --text-field (it has: {names})"
            raise DataError(problem, field=path)
        fields["text"] = text = _text_of(text)
        if not isinstance(text, str) and (text is not None or not other_content):
            raise DataError(f"expected a text, got {kind_of(text)}", field=f"{path}.{name}".lstrip("."))
        score_name = options.logprob_field or next((n for n in LOGPROBS if item.get(n) is not None), None)
        if score_name is not None:
            score = at(item, score_name)
            if score is _MISSING:
                raise _missing(item, score_name, "--logprob-field", path)
            fields.pop("prob", None)
            fields["logprob"] = _logprob(score, f"{path}.{score_name}".lstrip("."))
        elif "prob" not in fields:
            ask_about_scores(item, HYPOTHESIS_FIELDS, path, options)
        fields |= {name: x for name in options.score_field if (x := at(item, name)) is not _MISSING}
        return {name: value for name, value in fields.items() if value is not None}


def _first_path(record: Record, paths: Iterable[str]) -> str | None:
    """The first of the paths at which a record has something."""
    return next((path for path in paths if at(record, path) not in (_MISSING, None)), None)


def _as_fields(candidate: Any) -> dict[str, Any]:
    return {"text": candidate} if isinstance(candidate, str) else candidate


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _text_of(value: Any) -> Any:
    """The text of a message or its parts; of a chat, the text of the last message; other values unchanged."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        if "content" in value[-1]:
            value = value[-1]
        elif all(isinstance(part.get("text", ""), str) for part in value):
            return "".join(part.get("text", "") for part in value)
    return _text_of(value["content"]) if isinstance(value, Mapping) and "content" in value else value


def _logprob(value: Any, path: str, *, nan: bool = False) -> float | None:
    """A log-probability; a list of those of tokens is summed. NaN, as pandas writes it, means missing."""
    if isinstance(value, str):
        value = number(value.strip().encode(), path) if value.strip() else None
    if isinstance(value, list) and value and _are((int, float), value):
        value = total(value)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return None if value is None or (math.isnan(value) and not nan) else value
    raise DataError(f"expected a number or a list of numbers, got {kind_of(value)}", field=path)


def _needed(record: Record, path: str, needed_by: str, inside: str = "") -> Any:
    value = at(record, path)
    if value is _MISSING or value is None:
        raise _missing(record, path, needed_by, inside)
    return value


def _missing(record: Record, path: str, needed_by: str, inside: str = "") -> DataError:
    if at(record, path) is None:
        return DataError(f"has null in {path!r}, which {needed_by} asks for; leave it out.", field=inside)
    return DataError(
        f"has no {path!r}, which {needed_by} asks for.{nearest(path, record)} It has: "
        f"{', '.join(map(str, record)) or 'nothing'}",
        field=inside,
    )


def carried(record: Any, options: ReadOptions, fallbacks: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are to be in the result too; null where a record has none, which is reported.

    `fallbacks` has the source and the references, which a record may have under another name.
    """
    record, values = record if isinstance(record, Mapping) else {}, dict[str, Any]()
    for name, path in options.carried.items():
        value = at(record, path)
        if value is _MISSING and path in ("source", "references"):
            value = fallbacks.get(path, _MISSING)
        if value is _MISSING:
            options.report(
                f"there is no field {path!r} to carry, so it is null.{nearest(path, record)}",
                key=("carry", path),
            )
            value = None
        values[name] = list(value) if isinstance(value, tuple) else value
    return values


def with_carry(ballot: Ballot, record: Any, options: ReadOptions) -> Ballot:
    """The ballot with the carried fields of its record."""
    if not options.carry:
        return ballot
    fallbacks = {"source": ballot.source, "references": ballot.references}
    return msgspec.structs.replace(ballot, carry=carried(record, options, fallbacks))


def _unpacked(value: Any) -> Any:
    """A list from a cell that has it as JSON or as Python writes it; other values unchanged."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        for read in (msgspec.json.decode, ast.literal_eval):
            try:
                return read(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                pass
        return value
    return list(value) if isinstance(value, tuple) else value


def _are(kind: type | tuple[type, ...], values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)


def _hashable(value: Any) -> Hashable:
    """A key that tells 1 from "1"; a conversation is compared by its content."""
    return (type(value).__name__, value if isinstance(value, (str, int)) else repr(value))


# A JSON array


def array_records(stream: Stream, options: ReadOptions) -> Iterator[Located]:
    """The records of an array; each list of an array of lists, or of a list per line, becomes a record."""
    first, _, rest = stream.peek(2**16).lstrip().partition(b"\n")
    flat = first[:1] == b"[" and first[1:].lstrip()[:1] in (b"{", b'"') and first.rstrip().endswith(b"]")
    if flat and rest.lstrip()[:1] == b"[":
        yield from line_records(stream, options, lists=True)
        return
    value = _array(stream, options)
    records = all(isinstance(item, dict) for item in value)
    pipeline = records and not options.layout and any(name in value[0] for name in PIPELINE if value)
    if value and (_are(str, value) or pipeline):
        records, value = False, [value]
    for i, item in enumerate(value):
        record, error = item if records else {"id": i, "outputs": item}, None
        if not records and not isinstance(item, (list, str)):
            error = DataError(f"expected a list of texts or objects, got {kind_of(item)}", field="outputs")
        yield Located(f"{stream.name}[{i}]", record, error)


def _array(stream: Stream, options: ReadOptions) -> list[Any]:
    content = bytearray()
    for chunk in stream.chunks():
        content += chunk
        if len(content) > options.max_line_bytes:
            problem = f"the document exceeds --max-line-bytes ({options.max_line_bytes:,} bytes)"
            raise DataError(problem, where=stream.name)
    try:
        value = parse(bytes(content)) if content.strip() else []
        if not isinstance(value, list):
            raise DataError("expected an array of records or of lists")
    except DataError as error:
        hint = "; one object per line is the format jsonl" if content.lstrip()[:1] == b"{" else ""
        raise DataError(error.problem + hint, where=stream.name) from None
    return value
