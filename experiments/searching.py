"""Step "search": the hypotheses of a model for every item, as a file of ballots.

For every k its own file: a prefix of a beam of 100 is not a beam of 10. Long searches are written in parts,
so that an interrupted one goes on; the parts are joined at the end.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from experiments.data import Items, beside, read_items
from experiments.translator import Ctranslate2Model, open_model
from rangevote.decoding import Batch, get_search
from rangevote.formats import read
from rangevote.formats.jsonl import write_ballot
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.text import write_atomically


@dataclass(frozen=True)
class Task:
    """One search over many items; `states` and `tokens` say what of a hypothesis is kept."""

    spec: str
    states: bool
    tokens: bool
    max_rows: int
    model: Any
    items: Items


def search_items(
    output: Path,
    *,
    spec: str,
    states: bool,
    tokens: bool,
    first: int,
    max_rows: int,
    part_rows: int,
    device: str,
    model: Path,
    items: Path,
    draft: Path,
) -> None:
    """Search the `first` items (0: all) and write ballots; states go into an array beside them.

    Without `tokens` the file is a third as long: the texts of a thousand voters are enough to vote.
    """
    found = open_model(model, device, spec)
    task = Task(spec, states, tokens, max_rows, found, read_items(items).first(first))
    write_lists(output, task, part_rows, draft)


def write_lists(output: Path, task: Task, part_rows: int, draft: Path) -> None:
    """Search in parts of about `part_rows` hypotheses, kept in `draft` until the list is complete."""
    several = max(1, part_rows // get_search(task.spec).size)
    starts = range(0, len(task.items), several)
    parts = [_part(task, start, min(start + several, len(task.items)), draft) for start in starts]
    _join(parts, output, task.states)


def _part(task: Task, start: int, stop: int, folder: Path) -> Path:
    """Ballots of some items, unless an earlier run has written them."""
    path = folder / f"{start}-{stop}.jsonl.gz"
    if path.exists():
        return path
    rows: list[Any] = []
    lines = []
    for number, hypotheses in enumerate(_found(task, start, stop), start):
        rows += [np.array(one.state, dtype=np.float16) for one in hypotheses if task.states]
        lines.append(write_ballot(_ballot(task, number, hypotheses)))
    if task.states:  # first, since the part is there once its lines are
        np.save(beside(path), np.array(rows))
    with write_atomically(path) as file:
        file.writelines(lines)
    return path


def _found(task: Task, start: int, stop: int) -> Iterator[list[Hypothesis]]:
    """Item by item; random numbers depend on an item's index in the whole, not in its part."""
    inputs = task.items.inputs[start:stop]
    if isinstance(task.model, Ctranslate2Model):
        yield from task.model.search(inputs, task.spec, start)
        return
    method = get_search(task.spec)
    several = max(1, task.max_rows // method.size)
    for begin in range(start, stop, several):
        numbers = range(begin, min(begin + several, stop))
        batch = task.items.inputs[begin : numbers.stop]
        yield from Batch(task.model, batch, numbers, task.states).search(method, max_rows=task.max_rows)


def _ballot(task: Task, number: int, hypotheses: list[Hypothesis]) -> Ballot:
    kept = [
        msgspec.structs.replace(one, state=None, tokens=one.tokens if task.tokens else None)
        for one in hypotheses
    ]
    items = task.items
    return Ballot(
        kept,
        id=items.ids[number],
        source=None if items.sources is None else items.sources[number],
        references=items.references[number],
    )


def _join(parts: list[Path], output: Path, states: bool) -> None:
    """One file of all parts."""
    beside(output).unlink(missing_ok=True)
    if states:
        # float16 as in published n-best lists: a cosine changes in the fourth digit, a file halves
        np.save(beside(output), np.concatenate([np.load(beside(part)) for part in parts]))
    with write_atomically(output) as file:
        for part in parts:
            with gzip.open(part, "rb") as plain:
                shutil.copyfileobj(plain, file)


def read_ballots(path: Path) -> Iterator[Ballot]:
    """The ballots of a file one by one, with the states that lie beside it."""
    states = np.load(beside(path), mmap_mode="r") if beside(path).exists() else None
    done = 0
    with read(path) as entries:
        for entry in entries:
            ballot = entry.get()
            size = len(ballot.candidates)
            yield ballot if states is None else _with_states(ballot, states[done : done + size])
            done += size


def _with_states(ballot: Ballot, states: Any) -> Ballot:
    rows = np.asarray(states, dtype=np.float64)
    listed = zip(ballot.candidates, rows, strict=True)
    return msgspec.structs.replace(
        ballot, candidates=[msgspec.structs.replace(one, state=row) for one, row in listed]
    )
