"""The texts that are measured: how they are cut into words, the references and sources beside them, and how
files of them are read and brought into the same order.

    outputs      text, or {"id", "winner"} as `rangevote vote` and `generate` write it, or {"id", "text"};
                 also as columns of CSV or TSV
    references   text files, one for each reference; or {"id", "references", "source"}, as ballots have them
    sources      text, or {"id", "source"}

Lines of two files are matched by id if every line of both has one, otherwise by line number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from rangevote.errors import DataError, UsageError, choose, need
from rangevote.formats import Entry, ReadOptions
from rangevote.formats.csv_tsv import looks_delimited, table_records
from rangevote.formats.jsonl import decode_as, decode_text, parse
from rangevote.formats.layouts import Located
from rangevote.hypothesis import Ballot
from rangevote.kernel.plain import UNITS as PLAIN_UNITS
from rangevote.similarity.base import Tokenise
from rangevote.similarity.ngram import TOKENISERS
from rangevote.text import Source, open_stream

Split = Callable[[str], Sequence[str]]

_WORDPUNCT = re.compile(r"\w+|[^\w\s]+")

#: name -> a function, or where sacrebleu's tokeniser is defined; token ids are not words. "wordpunct" cuts
#: punctuation off as NLTK's tokeniser of that name does; under it the references of newstest2014 have the
#: 21.66 words that the paper reports.
UNITS: dict[str, Split | str] = {name: path for name, (_, path) in TOKENISERS.items() if path is not None}
UNITS |= {**PLAIN_UNITS, "wordpunct": _WORDPUNCT.findall}


@dataclass(frozen=True)
class WordUnits:
    """How texts are cut before they are counted; part of every signature, since it changes the numbers.

    `tokenize` is the unit of everything that counts words; `bleu_tokenize` is sacreBLEU's own tokenisation;
    `lowercase` applies to both.
    """

    tokenize: Tokenise = "space"
    bleu_tokenize: str = "13a"
    lowercase: bool = False

    @property
    def signature(self) -> str:
        name = getattr(self.tokenize, "__name__", "custom") if callable(self.tokenize) else self.tokenize
        return f"on:{name}|case:{'lc' if self.lowercase else 'mixed'}"

    def splitter(self) -> Split:
        """A function from a text to its words."""
        split = self._split()
        return (lambda text: split(text.lower())) if self.lowercase else split

    def _split(self) -> Split:
        if callable(self.tokenize):
            return self.tokenize
        unit = choose("tokenisation", self.tokenize, UNITS)
        if callable(unit):
            return unit
        module, _, name = unit.partition(":")
        tokenise = getattr(need(module, "evaluate", f"the tokenisation {self.tokenize!r}"), name)()
        return lambda text: tokenise(text).split()


@dataclass(frozen=True)
class EvaluationCorpus:
    """References and sources of `size` items; None where there are none at all.

    An item may have several references, and not every item the same number.
    """

    size: int
    references: Sequence[Sequence[str]] | None = None
    sources: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        size: int,
        references: Sequence[str | Sequence[str]] | None = None,
        sources: Sequence[str] | None = None,
    ) -> EvaluationCorpus:
        """A corpus for `size` outputs; a plain string is a single reference."""
        if size == 0:
            raise DataError("there are no outputs, so there is nothing to measure.")
        for name, texts in (("references", references), ("sources", sources)):
            if isinstance(texts, str):
                raise UsageError(f"{name} is one string; pass a list with an entry for each output.")
            if texts is not None and len(texts) != size:
                raise DataError(
                    f"there are {size:,} outputs but {len(texts):,} {name}; there must be one for each."
                )
        if references is None:
            return cls(size, None, sources)
        items = [(item,) if isinstance(item, str) else tuple(item) for item in references]
        if () in items:
            field = f"references[{items.index(())}]"
            raise DataError("is empty; every output needs a reference.", field=field)
        return cls(size, items, sources)

    @property
    def references_per_item(self) -> tuple[int, int]:
        """The fewest and the most references of an item; (0, 0) without references."""
        counts = [len(item) for item in self.references or ()]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def signature(self) -> str:
        """How many references, as sacrebleu writes it: `nrefs:5`, or `nrefs:var`."""
        fewest, most = self.references_per_item
        return f"nrefs:{most if fewest == most else 'var'}"

    def columns(self) -> list[list[str]]:
        """Lists with one reference per item, as many as the most references an item has.

        That makes the references' diversity comparable with the outputs': five references per item are
        five texts of the outputs' size, not one five times as long. Items with fewer repeat theirs.
        """
        items = self.references or ()
        return [[item[i % len(item)] for item in items] for i in range(self.references_per_item[1])]


Id = str | int
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
#: Bytes in which the names of columns are looked for.
HEAD = 2**16


class LineFields(msgspec.Struct, gc=False):
    """The fields of a line of JSON that are read; others are ignored."""

    id: Id | None = None
    winner: str | list[int] | UnsetType | None = UNSET
    text: str | UnsetType = UNSET
    source: str | None = None
    references: list[str] | str | None = None
    error: str | None = None
    candidates: Any = UNSET
    hypotheses: Any = UNSET


#: A first line with one of these keys is JSON; any other is text, even if it can be read as JSON.
KEYS = frozenset({"winner", "text", "references", "source", "candidates", "hypotheses"})
_KEY = re.compile(rb'"(' + "|".join(KEYS).encode() + rb')"\s*:')


@dataclass(frozen=True)
class FileValues(Generic[T_co]):
    """Values in file order with their locations ("file:12"), and ids if every line has one. In a `table` all
    ids are texts."""

    name: str
    values: Sequence[T_co]
    where: Sequence[str]
    ids: Sequence[Id] | None = None
    table: bool = False

    def map(self, value_of: Callable[[T_co], T]) -> FileValues[T]:
        """The same file with other values; an error names the line."""
        values = []
        for where, value in zip(self.where, self.values, strict=True):
            try:
                values.append(value_of(value))
            except DataError as error:
                raise error.at(where) from None
        return FileValues(self.name, values, self.where, self.ids, self.table)


def read_outputs(source: Source, *, plain: bool = False) -> FileValues[str]:
    """One output per line; an election without candidates counts as an empty output.

    With `plain`, lines of JSON are texts too.
    """
    return _read_lines(source, "outputs", plain).map(_output)


def read_references(
    sources: Sequence[Source], *, plain: bool = False
) -> tuple[FileValues[list[str]], FileValues[str] | None]:
    """The references of each item; and the sources, if every line has one."""
    first, *others = files = [_read_lines(source, "references", plain) for source in sources]
    if not others:
        complete = all(isinstance(line, LineFields) and line.source for line in first.values)
        return first.map(_references), first.map(_source) if complete else None
    if any(isinstance(line, LineFields) for file in files for line in file.values):
        raise UsageError(
            "several files of references must be plain text, with one reference per line; in JSON lines, all "
            "references of an item are in one file."
        )
    for file in others:
        _check_lengths(file, first)
    rows = [[str(text) for text in texts] for texts in zip(*(file.values for file in files), strict=True)]
    return FileValues(first.name, rows, first.where), None


def read_sources(source: Source, *, plain: bool = False) -> FileValues[str]:
    """One source per line."""
    return _read_lines(source, "sources", plain).map(_source)


def read_beam(name: str, entries: Iterable[Entry]) -> FileValues[Ballot]:
    """The ballots of a file, or of several that were joined."""
    entries = list(entries)
    if not entries:
        raise DataError("is empty: there are no ballots in it.", where=name)
    ballots = [entry.get() for entry in entries]
    ids = [ballot.id for ballot in ballots if ballot.id is not None]  # the reader refuses repeated ids
    where = [entry.where for entry in entries]
    return FileValues(name, ballots, where, ids if len(ids) == len(ballots) else None)


def as_entries(ballots: Iterable[Ballot | Entry]) -> Iterator[Entry]:
    """Entries of a file know their line; other ballots are named by their number."""
    for number, one in enumerate(ballots):
        yield one if isinstance(one, Entry) else Entry(f"ballots[{number}]", one)


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Errors in the data say where the ballot stands."""
    try:
        yield
    except DataError as error:
        raise error.placed(where) from None


def align(values: FileValues[T], order: FileValues[object]) -> list[T]:
    """The values in the order of another file: by id if both have ids, otherwise by line number."""
    if values.ids is None or order.ids is None:
        _check_lengths(values, order)
        return list(values.values)
    ids, wanted = values.ids, order.ids
    if values.table != order.table:  # in one of them all ids are texts
        ids, wanted = [str(id) for id in ids], [str(id) for id in wanted]
    by_id = dict(zip(ids, values.values, strict=True))
    _check_ids(order, wanted, by_id.keys(), values.name)
    _check_ids(values, ids, set(wanted), order.name)
    return [by_id[id] for id in wanted]


def _check_lengths(values: FileValues[object], order: FileValues[object]) -> None:
    if len(values.values) != len(order.values):
        raise DataError(
            f"{values.name} has {len(values.values):,} lines and {order.name} {len(order.values):,}; without "
            f"ids in both, line n of one belongs to line n of the other."
        )


def _check_ids(file: FileValues[object], ids: Sequence[Id], others: Set[Id], other: str) -> None:
    for id, where in zip(ids, file.where, strict=True):
        if id not in others:
            raise DataError(f"{other} has nothing for {id!r}.", field="id", where=where)


def _read_lines(source: Source, role: str, plain: bool) -> FileValues[str | LineFields]:
    """All lines of a path, of '-' or of a binary file; the first line tells texts from JSON."""
    with open_stream(source) as stream:
        head = stream.peek(HEAD).partition(b"\n")[0]
        named = b"winner" in head or stream.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
        table = looks_delimited(head, stream.name) if named and not plain and head[:1] != b"{" else None
        if table is not None:
            located = list(_table_lines(table_records(stream, ReadOptions(format=table))))
        else:
            raw = stream.lines()
            first = next(raw, None)
            if first is None:
                raise DataError(f"is empty: there are no {role} in it.", where=stream.name)
            json = not plain and _is_json(first)
            located = list(_decode(chain([first], raw), stream.name, json))
    where, lines = [where for where, _ in located], [line for _, line in located]
    fields = [line for line in lines if isinstance(line, LineFields)]
    ids = [line.id for line in fields if line.id is not None]
    if len(ids) < len(lines):
        return FileValues(stream.name, lines, where)
    before: dict[Id, str] = {}
    for id, line in zip(ids, where, strict=True):
        if before.setdefault(id, line) != line:
            problem = f"{id!r} was used before, at {before[id]}; ids must differ, or be left out."
            raise DataError(problem, field="id", where=line)
    return FileValues(stream.name, lines, where, ids, table is not None)


def _table_lines(records: Iterator[Located]) -> Iterator[tuple[str, str | LineFields]]:
    """Rows with the fields of the same names; the row of a bad ballot has an error instead of a winner."""
    for where, record, error in records:
        if error is not None:
            raise error.at(where)
        fields = {name: record[name] for name in LineFields.__struct_fields__ if name in record}
        fields.pop("winner" if fields.get("error") else "error", None)
        yield where, LineFields(**fields)


def _is_json(line: bytes) -> bool:
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        value = parse(line)
    except DataError:  # damaged JSON is reported when it is decoded
        return _KEY.search(line) is not None
    return not KEYS.isdisjoint(value) or {"id", "error"} <= value.keys()  # a ballot that was skipped


def _decode(lines: Iterator[bytes], name: str, json: bool) -> Iterator[tuple[str, str | LineFields]]:
    for number, line in enumerate(lines, 1):
        if json and (not line or line.isspace()):
            continue
        where = f"{name}:{number}"
        try:
            yield where, decode_as(line, LineFields) if json else decode_text(line)
        except DataError as error:
            raise error.at(where) from None


def _output(line: str | LineFields) -> str:
    if isinstance(line, str):
        return line
    if isinstance(line.winner, list):
        raise DataError("holds token ids, but texts are compared; decode them first.", field="winner")
    if line.winner is not UNSET:
        return line.winner or ""
    if line.error is not None:
        raise DataError(f"there is no winner, since the ballot is bad ({line.error}); correct or remove it.")
    if line.text is not UNSET:
        return line.text
    if line.candidates is not UNSET or line.hypotheses is not UNSET:
        raise DataError("is a ballot, not an output; elect a winner first: rangevote vote FILE")
    raise DataError('expected an output: {"id": ..., "winner": "..."} or {"id": ..., "text": "..."}')


def _references(line: str | LineFields) -> list[str]:
    if isinstance(line, str):
        return [line]
    if isinstance(line.references, str):
        return [line.references]
    if not line.references:
        raise DataError(f"is missing for the id {line.id!r}.", field="references")
    return line.references


def _source(line: str | LineFields) -> str:
    if isinstance(line, str):
        return line
    if line.source is None:
        raise DataError(f"is missing for the id {line.id!r}.", field="source")
    return line.source
