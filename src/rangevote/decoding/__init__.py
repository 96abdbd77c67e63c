"""The searches that give hypotheses: `SEARCHES` lists them, `get_search` reads "beam:10,copy_filter=0.5".

`search` runs one on a model (`rv.search`) for many inputs, in batches that fit into memory. A sum such as
"sample:50+nucleus:50,p=0.9" has the hypotheses of all its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from rangevote.decoding.arrays import Integers
from rangevote.decoding.base import Done, Search, SearchSum, Task
from rangevote.decoding.beam import Beam, LengthNormalised
from rangevote.decoding.diverse import DiverseBeam, DiverseDecoding
from rangevote.decoding.sample import Epsilon, MinP, Nucleus, Sample, Sampling, TopK
from rangevote.decoding.stochastic import StochasticBeam
from rangevote.errors import DataError, UsageError, choose
from rangevote.hypothesis import Hypothesis
from rangevote.models.protocol import Engine, LanguageModel, Step

SEARCHES: dict[str, type[Search]] = {
    "beam": Beam,
    "length_normalised": LengthNormalised,
    "diverse_decoding": DiverseDecoding,
    "diverse_beam": DiverseBeam,
    "stochastic_beam": StochasticBeam,
    "sample": Sample,
    "top_k": TopK,
    "nucleus": Nucleus,
    "epsilon": Epsilon,
    "min_p": MinP,
}
NAMES = {kind: name for name, kind in SEARCHES.items()}
#: Between the parts of a sum; a plus within a number is followed by a digit.
_PLUS = re.compile(r"\s*\+\s*(?=[a-z_])")
#: How a model names an input of its batch.
_INPUT = re.compile(r"^inputs\[(\d+)\]")


def get_search(spec: Search | str, **common: Any) -> Search:
    """The search of this name, size and options; a search is itself.

    `common` are options for every part of a sum that has them and does not set them itself.

    >>> get_search("beam:10,copy_filter=0.5")
    Beam(max_new_tokens=64, min_new_tokens=0, copy_filter=0.5, copy_prunes='live', k=10, ...)
    >>> str(get_search("greedy")), get_search("nucleus:100,p=0.8,seed=3").p
    ('beam:1', 0.8)
    >>> str(get_search("sample:50+nucleus:50,seed=2", seed=1))
    'sample:50,seed=1+nucleus:50,seed=2'
    """
    if isinstance(spec, Search):
        return spec
    if not isinstance(spec, str):
        raise UsageError(f"a search is a name such as 'beam:10' or an object such as Beam(10), got {spec!r}.")
    parts = [_one_search(part, common) for part in _PLUS.split(spec)]
    return parts[0] if len(parts) == 1 else SearchSum(tuple(parts))


def _one_search(spec: str, common: dict[str, Any]) -> Search:
    head, *options = spec.split(",")
    name, _, size = ("beam:1" if head.strip() == "greedy" else head.strip()).partition(":")
    kind = choose("search", name.strip(), SEARCHES)
    size = size.strip()
    if not size.isdecimal() or len(size) > 9:
        raise UsageError(f"search {spec!r}: say how many hypotheses, as in '{name}:10'.")
    types = _options(kind)
    values = {}
    for each in options:
        option, equals, value = (part.strip() for part in each.partition("="))
        if not option and not equals:
            continue
        choose(f"option of search {NAMES[kind]}", option, types)
        if not equals:
            raise UsageError(f"search {spec!r}: option {option!r} needs a value, as in '{option}=...'.")
        values[option] = _value(str(types[option]), value)
    shared = {option: value for option, value in common.items() if option in types}
    return kind(int(size), **{**shared, **values})  # type: ignore[call-arg]


def open_options(spec: str) -> set[str]:
    """The options that a search, or a part of a sum, has and does not set.

    >>> "p" in open_options("sample:5+nucleus:5"), "p" in open_options("sample:5+nucleus:5,p=0.8")
    (True, False)
    """
    unset: set[str] = set()
    for part in _PLUS.split(spec):
        names = {option.partition("=")[0].strip() for option in part.split(",")[1:]}
        unset |= _options(type(_one_search(part, {}))).keys() - names
    return unset


def _options(kind: type[Search]) -> dict[str, Any]:
    """The options of a search and their types."""
    return {field.name: field.type for field in fields(kind) if field.kw_only}


def _value(type: str, value: str) -> Any:
    """A number, true, false or a word, as the option's type has it."""
    if value.lower() in ("true", "false") and "bool" in type:
        return value.lower() == "true"
    if value.lower() == "none" and "None" in type:
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


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
    """Search for hypotheses of every input; each list is best first.

    `method` is a search (`Beam(10)`, `Sample(100, seed=1)`, ...) or its name as on the command line
    ("beam:10", "nucleus:100,p=0.9"). `states=True` keeps the mean of the decoder's states over each
    hypothesis' own tokens, for voting by `states`. At most `max_rows` hypotheses are extended at a time,
    though never less than one input's beam; the result does not depend on it.
    """
    search = get_search(method)
    check_inputs(inputs)
    check_rows(max_rows)
    size, numbers = max(1, max_rows // search.size), range(len(inputs))
    hypotheses: list[list[Hypothesis]] = []
    for start in range(0, len(inputs), size):
        batch = slice(start, start + size)
        hypotheses += Batch(model, inputs[batch], numbers[batch], states).search(search, max_rows=max_rows)
    return hypotheses


def check_inputs(inputs: Any) -> None:
    """Refuse what is not a list."""
    if isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence):
        raise UsageError(
            f"inputs must be a list, got {type(inputs).__name__}; for one input give a list of one."
        )


def check_rows(max_rows: Any) -> None:
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        raise UsageError(f"max_rows must be a whole number from 1, got {max_rows!r}.")


@contextmanager
def _naming(numbers: Sequence[int]) -> Iterator[None]:
    """Name the inputs of a batch in errors by their numbers in the whole run."""
    try:
        yield
    except DataError as error:
        field = _INPUT.sub(lambda match: f"inputs[{numbers[int(match[1])]}]", error.field)
        raise DataError(error.problem, field=field, where=error.where) from error


class Batch:
    """Inputs that a model reads once, to search for their hypotheses again and again.

    `numbers` are the inputs' places in the whole run: they fix random numbers and name inputs in errors.
    """

    def __init__(
        self,
        model: LanguageModel[Any] | Engine,
        inputs: Sequence[Any],
        numbers: Sequence[int],
        states: bool = False,
    ) -> None:
        self._model: Any = model
        self._inputs, self._numbers, self._states = inputs, numbers, states
        if not isinstance(model, Engine):
            with _naming(numbers):
                self._fresh = model.start(inputs)
        elif states:
            raise UsageError(
                "an engine gives no hidden states; leave states out, and use another similarity."
            )

    def search(self, search: Search, stream: int = 0, max_rows: int = MAX_ROWS) -> list[list[Hypothesis]]:
        """All hypotheses of a search; those of a sum are its parts', one after the other."""
        parts = search.parts if isinstance(search, SearchSum) else (search,)
        hypotheses: list[list[Hypothesis]] = [[] for _ in self._inputs]
        for i, part in enumerate(parts):
            part_stream = stream + i * len(STREAMS)  # parts with one seed are different draws
            for so_far, more in zip(hypotheses, self._search(part, part_stream, max_rows), strict=True):
                so_far += more
        return hypotheses

    def _search(self, search: Search, stream: int, max_rows: int) -> Sequence[Sequence[Hypothesis]]:
        count = len(self._inputs)
        if isinstance(self._model, Engine):
            with _naming(self._numbers):
                lists = self._model.hypotheses(self._inputs, search)
            if len(lists) != count:
                raise UsageError(f"the engine gave {len(lists)} lists of hypotheses for {count} inputs.")
            return lists
        if not isinstance(search, Sampling):
            return self.run(search, stream)
        draws, size = range(search.size), max(1, max_rows // count)
        parts = [self.run(search, stream, draws[i : i + size]) for i in range(0, len(draws), size)]
        merged = ([one for part in parts for one in part[i]] for i in range(count))
        return [sorted(samples, key=lambda one: -(one.logprob or 0.0)) for samples in merged]

    @cached_property
    def _sources(self) -> list[Sequence[int]]:
        return [self._model.source(input) for input in self._inputs]

    def run(
        self, search: Search, stream: int = 0, draws: range = range(0), wanted: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        """One search, all rows at a time; of a `Sampling` these draws, of the `wanted` inputs alone.

        Samples, and groups of beams, begin alike: rows with the same prefix send it through the model once.
        """
        model, count = self._model, len(self._inputs)
        limits, room = np.full(count, search.max_new_tokens), model.room(self._fresh)
        task = Task(
            numbers=self._numbers,
            limits=limits if room is None else np.minimum(limits, room),
            ends=np.array(model.ends, dtype=np.int64),
            sources=None if search.copy_filter is None else self._sources,
            wanted=np.arange(count) if wanted is None else np.array(wanted, dtype=np.int64),
            states=self._states,
            stream=stream,
            draws=draws,
        )
        search_state, tokens = search.begin(task), None
        prefixes, prefix = _distinct(search_state.live.owner)
        state = model.select(self._fresh, search_state.live.owner[prefixes])
        while len(search_state.live):
            step = model.step(state, tokens)
            if len(prefix) != len(step.log_probs):
                spread = [None if a is None else a[prefix] for a in (step.hidden, step.ranking)]
                step = Step(step.log_probs[prefix], step.state, *spread)
            parents, added = search_state.advance(step)
            if len(added):
                before = prefix[parents]
                prefixes, prefix = _distinct(before * (int(added.max()) + 1) + added)
                tokens = added[prefixes]
                state = model.select(step.state, before[prefixes])
        sampled = isinstance(search, Sampling)
        return [[self._hypothesis(done, sampled) for done in each] for each in search_state.results()]

    def _hypothesis(self, done: Done, sampled: bool) -> Hypothesis:
        return Hypothesis(
            text=self._model.text(done.tokens),
            tokens=done.tokens,
            logprob=min(done.logprob, 0.0),
            state=done.state,
            finished=done.finished,
            sampled=sampled,
            weight=done.weight,
            ranked_by=None if done.score == done.logprob else done.score,
        )


def _distinct(keys: Integers) -> tuple[Integers, Integers]:
    """Rows with different keys, and which of these each row is like; in order where all are different."""
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    rows = np.arange(len(keys))
    return (rows, rows) if len(first) == len(keys) else (first, index)
