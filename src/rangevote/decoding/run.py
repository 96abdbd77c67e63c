"""Search a model's outputs for many inputs, in batches that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rangevote.decoding import get_search
from rangevote.decoding.arrays import Array, Integers
from rangevote.decoding.base import Done, Search, SearchState, SearchSum, Task
from rangevote.decoding.sample import Sampling
from rangevote.decoding.stochastic import StochasticBeamState
from rangevote.errors import UsageError
from rangevote.hypothesis import Hypothesis
from rangevote.models.protocol import Engine, LanguageModel, Step

#: Rows that go through the model at a time; more make a batch slower before they make it quicker.
MAX_ROWS = 256
#: Candidates and voters that are sampled with the same seed are different draws all the same.
STREAMS = {"candidates": 0, "voters": 1}


def search(
    model: LanguageModel[Any] | Engine,
    inputs: Sequence[Any],
    method: Search | str = "beam:10",
    *,
    states: bool = False,
    max_rows: int = MAX_ROWS,
) -> list[list[Hypothesis]]:
    """Hypotheses for every input, best first.

    `method` is a search (`Beam(10)`, `Sample(100, seed=1)`, ...) or its name as on the command line
    ("beam:10", "nucleus:100,p=0.9"). `states=True` keeps the mean of the decoder's states over each
    hypothesis' own tokens, for voting by `states`. At most `max_rows` hypotheses are extended at a time,
    though never less than one input's beam; the result does not depend on it.
    """
    several = batches(model, inputs, method, states=states, max_rows=max_rows)
    return [hypotheses for batch in several for hypotheses in batch]


def batches(
    model: LanguageModel[Any] | Engine,
    inputs: Sequence[Any],
    method: Search | str,
    *,
    states: bool = False,
    max_rows: int = MAX_ROWS,
    first: int = 0,
    stream: int = 0,
) -> Iterator[list[list[Hypothesis]]]:
    """The same batch by batch; `first` is the first input's index in the whole run, `stream` see `Task`."""
    search = get_search(method)
    if isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence):
        raise UsageError(
            f"inputs must be a list, got {type(inputs).__name__}; for one input give a list of one."
        )
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        raise UsageError(f"max_rows must be a whole number from 1, got {max_rows!r}.")
    several = max(1, max_rows // search.size)
    for start in range(0, len(inputs), several):
        part = inputs[start : start + several]
        numbers = range(first + start, first + start + len(part))
        yield search_batch(model, part, search, numbers, states, stream, max_rows)


def search_batch(
    model: LanguageModel[Any] | Engine,
    inputs: Sequence[Any],
    search: Search,
    numbers: Sequence[int],
    states: bool = False,
    stream: int = 0,
    max_rows: int = MAX_ROWS,
) -> list[list[Hypothesis]]:
    """All hypotheses of one batch; those of a sum are its parts', one after the other."""
    if isinstance(model, Engine) and states:
        raise UsageError("an engine gives no hidden states; leave states out, and use another similarity.")
    parts = search.parts if isinstance(search, SearchSum) else (search,)
    hypotheses: list[list[Hypothesis]] = [[] for _ in inputs]
    for i, part in enumerate(parts):
        own_stream = stream + i * len(STREAMS)  # parts with one seed are different draws
        lists: Sequence[Sequence[Hypothesis]]
        if isinstance(model, Engine):
            lists = model.hypotheses(inputs, part)
            if len(lists) != len(inputs):
                raise UsageError(
                    f"the engine gave {len(lists)} lists of hypotheses for {len(inputs)} inputs."
                )
        else:
            with SearchBatch(model, inputs, part, numbers, states, own_stream) as reading:
                lists = reading.all(max_rows)
        for listed, found in zip(hypotheses, lists, strict=True):
            listed += found
    return hypotheses


class SearchBatch:
    """A batch of inputs that the model has read once; hypotheses can be asked for again and again.

    That is how samples are drawn in rounds: only the draws that are wanted, from one reading of the prompt.
    """

    def __init__(
        self,
        model: LanguageModel[Any],
        inputs: Sequence[Any],
        search: Search,
        numbers: Sequence[int],
        states: bool = False,
        stream: int = 0,
    ) -> None:
        self._model, self._search = model, search
        self._state = model.start(inputs)
        room = model.room(self._state)
        limits = np.full(len(inputs), search.max_new_tokens, dtype=np.int64)
        if room is not None:
            limits = np.minimum(limits, room)
        sources = None if search.copy_filter is None else [model.source(input) for input in inputs]
        ends = np.array(model.ends, dtype=np.int64)
        self._task = Task(tuple(numbers), limits, ends, sources, np.arange(len(inputs)), states, stream)

    def __enter__(self) -> SearchBatch:
        return self

    def __exit__(self, *error: object) -> None:
        self._state = None  # the prompt's keys and values can be large

    def all(self, max_rows: int = MAX_ROWS) -> list[list[Hypothesis]]:
        if not isinstance(self._search, Sampling):
            return self._run(self._task)
        inputs = len(self._task.numbers)
        several = max(1, max_rows // inputs)
        wanted = range(self._search.size)
        parts = [self.draw(wanted[i : i + several]) for i in range(0, len(wanted), several)]
        if len(parts) == 1:
            return parts[0]
        merged = ([one for part in parts for one in part[i]] for i in range(inputs))
        return [sorted(samples, key=lambda one: -(one.logprob or 0.0)) for samples in merged]

    def draw(self, draws: range, wanted: Sequence[int] | None = None) -> list[list[Hypothesis]]:
        """These samples alone, of these inputs of the batch alone (others get none); for a `Sampling`."""
        task = replace(self._task, draws=draws)
        if wanted is not None:
            task = replace(task, wanted=np.array(wanted, dtype=np.int64))
        return self._run(task)

    def _run(self, task: Task) -> list[list[Hypothesis]]:
        """Samples, and groups of beams, begin alike: a prefix goes through the model once, whoever has it."""
        search_state = self._search.begin(task)
        model, tokens = self._model, None
        prefixes, prefix = distinct(search_state.live.owner)
        state = model.select(self._state, search_state.live.owner[prefixes])
        while len(search_state.live):
            step = model.step(state, tokens)
            parents, added = search_state.advance(repeated(step, prefix))
            if len(added):
                before = prefix[parents]
                prefixes, prefix = distinct(before * (int(added.max()) + 1) + added)
                tokens = added[prefixes]
                state = model.select(step.state, before[prefixes])
        return [[self._hypothesis(search_state, done) for done in each] for each in search_state.results()]

    def _hypothesis(self, search_state: SearchState, done: Done) -> Hypothesis:
        sampled = isinstance(self._search, Sampling)
        return Hypothesis(
            text=self._model.text(done.tokens),
            tokens=done.tokens,
            logprob=min(done.logprob, 0.0),
            state=done.state,
            finished=done.finished,
            sampled=sampled,
            weight=search_state.weight(done) if isinstance(search_state, StochasticBeamState) else None,
            ranked_by=None if done.score == done.logprob else done.score,
        )


def distinct(keys: Integers) -> tuple[Integers, Integers]:
    """Rows with different keys, and which of these each row is like; in order where all are different."""
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    every = np.arange(len(keys))
    return (every, every) if len(first) == len(keys) else (first, index)


def repeated(step: Step[Any], rows: Integers) -> Step[Any]:
    """A step of distinct prefixes as one of all rows."""
    if len(rows) == len(step.log_probs):
        return step

    def spread(array: Array | None) -> Array | None:
        return None if array is None else array[rows]

    return Step(step.log_probs[rows], step.state, spread(step.hidden), spread(step.ranking))
