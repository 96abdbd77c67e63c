"""A callable for batches of ballots: Ray Data's `map_batches`, Hugging Face's `Dataset.map(batched=True)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rangevote.election.settings import Grader, Settings
from rangevote.errors import DataError, UsageError
from rangevote.formats import Entry, ReadOptions
from rangevote.formats.careful import ballot_of
from rangevote.formats.mass import doubt_mass
from rangevote.formats.results import decoded, row_of
from rangevote.hypothesis import Ballot
from rangevote.parallel import map_in_order
from rangevote.scale.lines import Shape, line_of
from rangevote.similarity.tokens import Tokenise

#: The columns of a result, but for those that are asked for.
COLUMNS = (
    "winner",
    "winner_tokens",
    "index",
    "score",
    "margin",
    "signature",
    "near_tie",
    "no_support",
    "error",
)


class Elect:
    """Holds the elections of a batch; the columns of the results are those of `rangevote vote --to parquet`.

    `candidates` names the column with a list of texts or of objects as in the ballot file for each row,
    `logprobs` one with a list of log-probabilities beside a list of texts, `voters` one like the candidates'
    (a column that is not there, or null: the candidates vote), `id` the ballots' id. All other columns are
    handed on; the lists themselves are not, unless `keep` is set. A row that cannot be voted on is kept, with
    its `error`; with `on_error="stop"` it raises. The other options are those of `rangevote.elect`.

    >>> batch = {"id": [7], "candidates": [["a dog runs", "a dog sits", "cats"]]}
    >>> result = Elect()(batch)
    >>> result["id"], result["winner"], result["error"]
    ([7], ['a dog runs'], [None])
    """

    def __init__(
        self,
        *,
        similarity: Grader = "overlap_2",
        weights: str | None = None,
        temperature: float = 1.0,
        rule: str = "range",
        winners: int = 1,
        tokenize: Tokenise = "words",
        preset: str | None = None,
        normalize: str | None = None,
        merge: bool = False,
        scores: bool = False,
        explain: bool = False,
        candidates: str = "candidates",
        voters: str = "voters",
        logprobs: str | None = None,
        id: str = "id",
        keep: bool = False,
        on_error: str = "keep",
        threads: int = 1,
    ) -> None:
        if on_error not in ("keep", "stop"):
            raise UsageError(f"on_error is {on_error!r}; it must be 'keep' or 'stop'.")
        self.settings = Settings(
            similarity, preset, weights, temperature, rule, winners, tokenize, normalize, merge
        )
        self.shape = Shape(False, scores, explain, False)
        self.candidates, self.voters, self.logprobs, self.id = candidates, voters, logprobs, id
        self.keep, self.stop, self.threads = keep, on_error == "stop", threads

    def __call__(self, batch: Any) -> Any:
        """The batch with results: a table for a table, a DataFrame for a DataFrame, else columns."""
        kind = type(batch).__module__.partition(".")[0]
        if kind == "pyarrow":
            return self._table(batch)
        if kind == "pandas":
            columns = {str(name): batch[name].tolist() for name in batch.columns}
            return type(batch)(self._columns(columns))
        columns = self._columns({name: _listed(batch[name]) for name in batch})
        return self._with_types(columns) if kind == "datasets" else columns

    def _with_types(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """As a table: `datasets` keeps the types of the first batch, which may have no error in it."""
        import pyarrow as pa

        return pa.table(dict(columns) | self._typed(columns))

    def _typed(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """The columns of results with their types, which a batch without errors does not tell."""
        import pyarrow as pa

        from rangevote.formats.results import table_schema

        kinds = table_schema(self.shape, str)
        names = [name for name in columns if name in kinds.names and name != "id"]
        return {name: pa.array(columns[name], kinds.field(name).type) for name in names}

    def _table(self, table: Any) -> Any:
        import pyarrow as pa

        columns: Mapping[str, Sequence[Any]] = {
            name: table.column(name).to_pylist() for name in table.column_names
        }
        results = self._results(columns)
        made = {name: table.column(name) for name in self._handed_on(columns)}
        return pa.table(made | self._typed(results))

    def _columns(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        return {name: list(columns[name]) for name in self._handed_on(columns)} | self._results(columns)

    def _handed_on(self, columns: Iterable[str]) -> list[str]:
        lists = set() if self.keep else {self.candidates, self.voters, self.logprobs}
        return [name for name in columns if name not in lists]

    def _results(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """The columns of the results, a value for each row."""
        if self.candidates not in columns:
            raise UsageError(
                f"the batch has no column {self.candidates!r}, only {', '.join(map(repr, columns))}. Name it "
                f"with Elect(candidates=...)."
            )
        count = len(columns[self.candidates])
        lines = map_in_order(lambda row: self._line(columns, row), range(count), self.threads)
        rows = [row_of(decoded(line), None) for line in lines]
        names = [*COLUMNS, *(["winners"] if self.settings.winners > 1 else [])]
        names += [
            name
            for name, asked in (("scores", self.shape.scores), ("explanation", self.shape.explain))
            if asked
        ]
        return {name: [row.get(name) for row in rows] for name in names}

    def _line(self, columns: Mapping[str, Sequence[Any]], row: int) -> bytes:
        """The result of one row as the engine would write it."""
        try:
            entry = Entry("", self._ballot(columns, row))
        except DataError as error:
            entry = Entry("", error=error)
        line = line_of(entry, self.settings, self.shape)
        if line.error is not None and (self.stop or not isinstance(line.error, DataError)):
            raise line.error
        return line.content

    def _ballot(self, columns: Mapping[str, Sequence[Any]], row: int) -> Ballot:
        """The ballot of one row, checked as one of the ballot file is."""
        value = {"candidates": _plain(columns[self.candidates][row])}
        if self.logprobs is not None:
            value["candidates"] = _scored(value["candidates"], _plain(columns[self.logprobs][row]))
        if self.voters in columns and columns[self.voters][row] is not None:
            value["voters"] = _plain(columns[self.voters][row])
        ballot = ballot_of(value, READING)
        doubt_mass(ballot, READING)
        return ballot


READING = ReadOptions()


def _listed(column: Any) -> Sequence[Any]:
    """A column as a sequence; Ray's default batches hold arrays of numpy."""
    if isinstance(column, np.ndarray):
        column = column.tolist()
    listed: Sequence[Any] = column
    return listed


def _plain(value: Any) -> Any:
    """Python's own lists and objects in place of numpy's; what is null in an object is not there."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _scored(texts: Any, logprobs: Any) -> Any:
    """Texts with the log-probabilities of a second column."""
    if logprobs is None or not isinstance(texts, list):
        return texts
    if not isinstance(logprobs, list) or len(logprobs) != len(texts):
        number = len(logprobs) if isinstance(logprobs, list) else "no"
        raise DataError(f"{number} log-probabilities for {len(texts)} candidates", field="logprobs")
    return [
        ({"text": text} if isinstance(text, str) else dict(text)) | ({} if p is None else {"logprob": p})
        for text, p in zip(texts, logprobs, strict=True)
    ]
