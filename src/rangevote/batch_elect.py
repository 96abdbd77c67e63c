"""Elections in pipelines: `Elect` for Ray Data, Hugging Face datasets and data frames."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from rangevote.election.elect import elect_each
from rangevote.election.settings import ElectionOptions, Settings, settings_of
from rangevote.errors import DataError, SetupError, UsageError, need
from rangevote.formats.jsonl import UnclearScore, ballot_of
from rangevote.formats.reader import ReadOptions, naming_python_options
from rangevote.formats.result_writer import ResultShape, columns_of, result_fields, table_row, table_schema
from rangevote.hypothesis import Ballot
from rangevote.parallel import map_in_order

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Ballots that are elected at a time.
BATCH = 64


class Elect:
    """Elect in batches of columns; adds the columns that `rangevote vote --to parquet` writes.

    `candidates` names the column that has, in each row, a list of texts or of objects as in the ballot file.
    `logprobs` names a column with a list of log-probabilities for each list of texts, `voters` one like that
    of the candidates (if it is missing or null, the candidates vote), and `id` that of the ballots' ids. All
    columns are kept; `keep=False` drops these lists. The names of the result columns begin with `prefix`. A
    row that cannot be voted on is kept, with its `error`; with `on_error="stop"` it raises. The other options
    are those of `rangevote.elect`; `settings` gives them all at once.

    >>> batch = {"id": [7], "candidates": [["a dog runs", "a dog sits", "cats"]]}
    >>> result = Elect()(batch)
    >>> result["id"], result["winner"], result["error"]
    ([7], ['a dog runs'], [None])
    """

    def __init__(
        self,
        *,
        all_scores: bool = False,
        explain: bool = False,
        candidates: str = "candidates",
        voters: str = "voters",
        logprobs: str | None = None,
        id: str = "id",
        keep: bool = True,
        prefix: str = "",
        on_error: str = "keep",
        threads: int = 1,
        strict: bool = False,
        settings: Settings | None = None,
        **options: Unpack[ElectionOptions],
    ) -> None:
        if on_error not in ("keep", "stop"):
            raise UsageError(f"on_error is {on_error!r}; it must be 'keep' or 'stop'.")
        self.settings = settings or settings_of(options)
        self.shape, self.reading = ResultShape(False, all_scores, explain), ReadOptions(strict=strict)
        self.candidates, self.voters, self.logprobs, self.id = candidates, voters, logprobs, id
        self.keep, self.stop, self.threads = keep, on_error == "stop", threads
        self.prefix = prefix

    def __call__(self, batch: Any) -> Any:
        """The batch with results: a table for a table, a DataFrame for a DataFrame, otherwise columns. All
        else stays as it is: order, types, index, images."""
        kind = type(batch).__module__.partition(".")[0]
        if kind == "polars":
            raise UsageError("pass a polars frame as Arrow: polars.from_arrow(elect(frame.to_arrow())).")
        table = getattr(batch, "pa_table", batch)  # what a batch of `datasets` has before it is decoded
        arrow = kind in ("pyarrow", "datasets")
        names = list(table.schema.names if arrow else batch)
        inputs = [name for name in names if name in (self.candidates, self.voters, self.logprobs, self.id)]
        columns = {name: table.column(name).to_pylist() if arrow else _plain(batch[name]) for name in inputs}
        results = self._results(names, columns)
        if clash := [name for name in results if name in names]:
            raise UsageError(
                f"the batch has a column {clash[0]!r} already, which the results would replace; name theirs "
                f"otherwise with Elect(prefix=...)."
            )
        lists = [] if self.keep else [name for name in inputs if name != self.id]
        if arrow:
            return self._appended(table, lists, results)
        if kind == "pandas":
            return batch.drop(columns=lists).assign(**results)
        return {name: batch[name] for name in names if name not in lists} | results

    def _appended(self, table: Any, lists: Sequence[str], results: Mapping[str, list[Any]]) -> Any:
        import pyarrow as pa

        # datasets and Ray take the types of the first batch, which may have no error in it
        types = table_schema(self.shape, {})
        table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        table = table.drop_columns(list(lists))
        for name, column in results.items():
            table = table.append_column(name, pa.array(column, types.field(name[len(self.prefix) :]).type))
        return table

    def _results(self, names: Sequence[str], columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        if self.candidates not in columns:
            raise UsageError(
                f"the batch has no column {self.candidates!r}, only {', '.join(map(repr, names))}. Name it "
                f"with Elect(candidates=...)."
            )
        if any(isinstance(value, str) for value in columns[self.candidates]):
            key = self.id if self.id in names else next(n for n in (*names, self.id) if n != self.candidates)
            raise UsageError(
                f"the column {self.candidates!r} has one text per row, and a ballot needs a list of them. "
                f"Group the rows of each ballot first, for example by {key!r}: "
                f"frame.groupby({key!r})[{self.candidates!r}].agg(list).reset_index()"
            )
        ballots = [self._ballot(columns, i) for i in range(len(columns[self.candidates]))]
        good = [ballot for ballot in ballots if isinstance(ballot, Ballot)]
        parts = (good[i : i + BATCH] for i in range(0, len(good), BATCH))
        elected = map_in_order(
            lambda part: list(elect_each(part, self.settings)), parts, self.threads, batch=1
        )
        results = chain.from_iterable(elected)
        rows = []
        for i, ballot in enumerate(ballots):
            result = next(results) if isinstance(ballot, Ballot) else ballot
            if isinstance(result, DataError) and not self.stop:
                rows.append(table_row({"error": str(result)}))
            elif isinstance(result, DataError):
                raise result.placed(f"ballot {columns[self.id][i]!r}" if self.id in columns else "")
            elif isinstance(result, Exception):
                raise result
            else:
                assert isinstance(ballot, Ballot)
                rows.append(table_row(result_fields(ballot, result, self.shape)))
        return {self.prefix + name: [row.get(name) for row in rows] for name in self._names()}

    def _names(self) -> list[str]:
        """The columns that results can have under these settings."""
        settings = self.settings
        others = {"id", "member", "members", "left_out"} | (set() if settings.winners > 1 else {"winners"})
        if not hasattr(settings.measure, "label"):  # of answers
            others |= {"answer", "votes", "abstained", "entropy"}
        if settings.min_score is None and settings.min_share is None:
            others.add("no_winner")
        return [name for name in columns_of(self.shape) if name not in others]

    def _ballot(self, columns: Mapping[str, Sequence[Any]], i: int) -> Ballot | DataError:
        """The ballot of one row, checked as one of the ballot file is, or what is wrong with it."""
        value = {"candidates": _plain(columns[self.candidates][i])}
        try:
            if self.logprobs is not None:
                value["candidates"] = _scored(value["candidates"], _plain(columns[self.logprobs][i]))
            if self.voters in columns and columns[self.voters][i] is not None:
                value["voters"] = _plain(columns[self.voters][i])
            with naming_python_options():
                return self._read(value)
        except DataError as error:
            return error

    def _read(self, value: dict[str, Any]) -> Ballot:
        try:
            return ballot_of(value, self.reading)
        except UnclearScore as error:  # here are no options that say what a field means
            raise UsageError(
                f"{error.question} If it is one, name it logprob; that is a natural-log sum over all tokens. "
                f"If it is a reward or another quality score, give each candidate "
                f"{{'scores': {{'reward': ...}}}} and pass Elect(scores={{'reward': X}}) to add it to the "
                f"votes. Otherwise drop it."
            ) from None


def _plain(value: Any) -> Any:
    """Plain lists and objects instead of those of numpy and pandas; nulls in objects are left out."""
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _scored(texts: Any, logprobs: Any) -> Any:
    """Texts with the log-probabilities from a second column."""
    if logprobs is None or not isinstance(texts, list):
        return texts
    if not isinstance(logprobs, list) or len(logprobs) != len(texts):
        number = len(logprobs) if isinstance(logprobs, list) else "no"
        raise DataError(f"{number} log-probabilities for {len(texts)} candidates", field="logprobs")
    return [
        ({"text": text} if isinstance(text, str) else dict(text)) | ({} if p is None else {"logprob": p})
        for text, p in zip(texts, logprobs, strict=True)
    ]


@contextmanager
def ray_session(address: str | None = None, cpus: int | None = None) -> Iterator[Any]:
    """A connection to Ray: to the cluster at this address, or to a new one on this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is reported to anyone
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:  # listen on the loopback device only; read when Ray is imported
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = need("ray", "ray", "--engine ray")
    need("ray.data", "ray", "--engine ray")
    # on fewer than 6 CPUs the checkpoint, readers and elections may wait for each other for ever
    cpus = cpus or max(6, os.cpu_count() or 1)
    local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "num_cpus": cpus}
    if ray.is_initialized():
        yield ray
        return
    try:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(address=address or "local", **quiet, **({} if address else local))
    except Exception as error:  # one that starts too slowly raises just that
        where = f" at {address}" if address else ""
        raise SetupError(f"cannot use Ray{where}: {shorten(str(error), 500)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
