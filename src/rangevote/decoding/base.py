"""What all searches share: their options, the rows that are alive, and the step from one length to the next.

A `Search` is a frozen set of options; `begin` opens a `SearchState`, the state of one search over a batch of
inputs. A variant says which extensions of the live rows are kept (`pick`), and nothing else: masks,
lengths, log-probabilities, hidden states and the making of hypotheses are the same for all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rangevote.decoding.arrays import Array, Floats, Integers, Mask, as_numpy, has_nan, library
from rangevote.errors import DataError, UsageError
from rangevote.models.protocol import Step


def option(default: Any, allowed: Callable[[Any], bool], meaning: str) -> Any:
    """An option of a search: its default, which values are allowed, and how an error describes those."""
    return field(default=default, metadata={"allowed": allowed, "meaning": meaning})


def whole(default: int, least: int) -> Any:
    """An option that is a whole number."""
    return option(default, lambda value: _is_whole(value, least), f"a whole number from {least}")


def number(default: float | None, allowed: Callable[[float], bool], meaning: str) -> Any:
    """An option that is a number; None is allowed where it is the default."""

    def fits(value: Any) -> bool:
        if value is None or isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            return value is None and default is None
        return bool(allowed(float(value)))

    return option(default, fits, meaning)


def _is_whole(value: Any, least: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, np.integer)) and int(value) >= least


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """How to find hypotheses. Options that every search has:

    `max_new_tokens` bounds the length, the end of the sequence included (a model may have room for less);
    `min_new_tokens` forbids the end before that many tokens; `copy_filter` prunes, while searching, every
    hypothesis that contains at least this share of the source's unigrams (Ott et al. 2018; 0.5 in the
    paper); `copy_prunes="finished"` prunes it when it ends instead of at once.
    """

    max_new_tokens: int = whole(64, 1)
    min_new_tokens: int = whole(0, 0)
    copy_filter: float | None = number(None, lambda share: 0 < share <= 1, "a share above 0 and up to 1")
    copy_prunes: str = option("live", lambda value: value in ("live", "finished"), "'live' or 'finished'")

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not (each.metadata["allowed"](value) if each.metadata else _is_whole(value, 1)):
                meaning = each.metadata.get("meaning", "a whole number from 1")
                raise UsageError(f"{type(self).__name__}: {each.name} must be {meaning}, got {value!r}.")

    @property
    def _size_name(self) -> str:
        return next(field.name for field in fields(self) if not field.kw_only)

    @property
    def size(self) -> int:
        """How many hypotheses an input gets at most, and rows at a time."""
        return int(getattr(self, self._size_name))

    @abstractmethod
    def begin(self, task: Task) -> SearchState:
        """Open the search over a batch of inputs."""

    def with_options(self, **options: Any) -> Search:
        """The same search with other options."""
        return replace(self, **options)

    def __str__(self) -> str:
        """The search as `get_search` reads it: name, size, and the options that are not the default."""
        from rangevote.decoding import NAMES

        options = [field for field in fields(self) if field.kw_only]
        changed = [f"{f.name}={getattr(self, f.name)}" for f in options if getattr(self, f.name) != f.default]
        return ",".join([f"{NAMES[type(self)]}:{getattr(self, self._size_name)}", *changed])


@dataclass(frozen=True)
class SearchSum(Search):
    """Several searches whose hypotheses are taken together, as "sample:50+nucleus:50,p=0.9"."""

    parts: tuple[Search, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            if isinstance(part, SearchSum) or not isinstance(part, Search):
                raise UsageError(f"a sum has searches as its parts, got {part!r}.")

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def with_options(self, **options: Any) -> Search:
        return SearchSum(tuple(part.with_options(**options) for part in self.parts))

    def begin(self, task: Task) -> SearchState:
        """The parts begin by themselves."""
        raise UsageError(f"{str(self)!r} is several searches; run each of its parts.")

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))


@dataclass(frozen=True)
class Task:
    """A batch to search over.

    `numbers` are the inputs' indices in the whole run, `wanted` the inputs of the batch to search for,
    `stream` tells candidates from voters and `draws` is the range of samples wanted: with a seed they fix
    every random number, whatever else is in the batch. `limits` (inputs,) are the most tokens of each
    input, `sources` its unigrams for the copy filter, if there is one.
    """

    numbers: Sequence[int]
    limits: Integers
    ends: Integers
    sources: Sequence[Sequence[int]] | None
    wanted: Integers
    states: bool
    stream: int
    draws: range


@dataclass(frozen=True)
class Live:
    """Hypotheses that go on, as columns; grouped by input, in the order of the inputs.

    `logprob` is the model's own log P, `proposal` the same where the model's settings or the search change
    the probabilities that it extends by, `score` what the search ranks by, penalties included, and `mark`
    a number for the search's own use (which group, which draw).
    """

    owner: Integers  # (rows,) input of the row, within the batch
    mark: Integers  # (rows,)
    tokens: Integers  # (rows, length)
    logprob: Floats  # (rows,)
    score: Floats  # (rows,)
    proposal: Floats  # (rows,)

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def length(self) -> int:
        """Tokens so far."""
        return int(self.tokens.shape[1])

    @classmethod
    def first(cls, owner: Integers, mark: Integers, score: Floats | None = None) -> Live:
        """Empty prefixes."""
        zeros = np.zeros(len(owner))
        nothing = np.zeros((len(owner), 0), dtype=np.int64)
        return cls(owner, mark, nothing, zeros, zeros if score is None else score, zeros)


@dataclass(frozen=True)
class Extensions:
    """Live rows with one more token, as columns."""

    parent: Integers
    token: Integers
    logprob: Floats
    score: Floats
    proposal: Floats

    def __len__(self) -> int:
        return len(self.parent)

    def __getitem__(self, chosen: NDArray[Any] | slice) -> Extensions:
        return Extensions(*(getattr(self, f.name)[chosen] for f in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Extensions]) -> Extensions:
        """One after the other."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))

    def possible(self) -> Extensions:
        """Without those that were forbidden or have no probability."""
        return self[self.score != -np.inf]


@dataclass(frozen=True)
class Done:
    """A hypothesis that goes no further; `tokens` are without the end of the sequence."""

    owner: int
    mark: int
    tokens: tuple[int, ...]
    logprob: float
    score: float
    proposal: float
    finished: bool
    state: tuple[float, ...] | None = None
    weight: float | None = None


class SearchState(ABC):
    """One search over one batch of inputs, under way."""

    def __init__(self, search: Search, task: Task, live: Live) -> None:
        self.search, self.task, self.live = search, task, live
        self._filter = None if task.sources is None else CopyFilter(search, task, live.owner)
        self._hidden: Array | None = None  # (rows, dimension), summed over the row's tokens

    @abstractmethod
    def pick(self, log_probs: Array, ranking: Array) -> Extensions:
        """Choose among the extensions of the live rows: close some, return those that go on."""

    @abstractmethod
    def results(self) -> list[list[Done]]:
        """The hypotheses of each input, best first."""

    def advance(self, step: Step[Any]) -> tuple[Integers, Integers]:
        """One token further; returns for each row that goes on its row before, and its token."""
        ranking = step.log_probs if step.ranking is None else step.ranking
        self._check(has_nan(step.log_probs))
        if ranking is not step.log_probs:
            self._check(has_nan(ranking))
        if self.live.length < self.search.min_new_tokens:
            ranking[:, self.task.ends] = -np.inf
        if self._filter is not None:
            ranking[self._filter.forbidden()] = -np.inf
        if self.task.states:
            if step.hidden is None:
                raise UsageError(
                    "this model has no hidden states, so they cannot be kept; leave `states` off, "
                    "or vote by another similarity."
                )
            if self._hidden is None:
                xp = library(step.hidden)
                self._hidden = xp.zeros_like(step.hidden, dtype=xp.float32)
            self._hidden = self._hidden + step.hidden
        kept = self.pick(step.log_probs, ranking)
        if self._hidden is not None:
            self._hidden = self._hidden[kept.parent]
        if self._filter is not None:
            self._filter.extend(kept.parent, kept.token)
        before = self.live
        self.live = Live(
            before.owner[kept.parent],
            before.mark[kept.parent],
            np.concatenate([before.tokens[kept.parent], kept.token[:, None]], axis=1),
            kept.logprob,
            kept.score,
            kept.proposal,
        )
        return kept.parent, kept.token

    def ending(self, extensions: Extensions) -> NDArray[np.bool_]:
        """Which extensions go no further: those that end, and those that reach the limit."""
        limits = self.task.limits[self.live.owner[extensions.parent]]
        return np.isin(extensions.token, self.task.ends) | (self.live.length + 1 >= limits)

    def close(self, extensions: Extensions, worth: Floats) -> list[Done]:
        """Make hypotheses of extensions that go no further; `worth` is what they compete by."""
        live, ended = self.live, np.isin(extensions.token, self.task.ends)
        states = None
        if self._hidden is not None and len(extensions):  # the means over all tokens, the last one included
            states = as_numpy(self._hidden[extensions.parent]) / (live.length + 1)
        return [
            Done(
                int(live.owner[parent]),
                int(live.mark[parent]),
                (*live.tokens[parent].tolist(), *(() if ended[i] else (int(extensions.token[i]),))),
                float(extensions.logprob[i]),
                float(worth[i]),
                float(extensions.proposal[i]),
                bool(ended[i]),
                None if states is None else tuple(states[i].tolist()),
            )
            for i, parent in enumerate(extensions.parent.tolist())
        ]

    def _check(self, bad: Mask) -> None:
        """NaN cannot be ranked, so it is an error."""
        if bad.any():
            number = self.task.numbers[int(self.live.owner[bad][0])]
            raise DataError(
                f"the model's log-probabilities are NaN after {self.live.length} tokens. Its weights or the "
                f"input are out of range: try float32 (dtype='float32'), or leave the input out.",
                field=f"inputs[{number}]",
            )


NOTHING = -1  # fills the sources up to one width


class CopyFilter:
    """The copy filter of Ott et al. (2018): no hypothesis may contain too much of the source.

    A copy contains at least a given share of the source's distinct unigrams. "live" prunes copies as soon as
    they are copies: since a hypothesis only ever gains unigrams, this forbids exactly the extensions that
    reach the share, and the next best replace them, so that the beam stays full. "finished" lets them live
    but not end, as the original seems to do; copies that run on past the end of the source may then remain.
    Unigrams are the model's own tokens; while searching there are no words yet.
    """

    def __init__(self, search: Search, task: Task, owner: Integers) -> None:
        """For rows (rows,) without tokens; a source without tokens filters nothing."""
        assert search.copy_filter is not None
        assert task.sources is not None
        distinct = [sorted(set(source) - set(task.ends.tolist())) for source in task.sources]
        table = np.full((len(distinct), max(map(len, distinct), default=0)), NOTHING, dtype=np.int64)
        for row, tokens in zip(table, distinct, strict=True):
            row[: len(tokens)] = tokens
        # The slack keeps 0.28 * 25 = 7.000000000000001 from asking for eight.
        needed = [math.ceil(search.copy_filter * len(tokens) - 1e-9) for tokens in distinct]
        self._sources = table[owner]  # (rows, width) distinct tokens of the source
        self._needed = np.array(needed, dtype=np.int64)[owner]  # (rows,) how many of them make a copy
        self._seen = np.zeros(self._sources.shape, dtype=bool)  # (rows, width)
        self._ends = None if search.copy_prunes == "live" else task.ends

    def extend(self, parents: Integers, tokens: Integers) -> None:
        """Go one token further."""
        self._sources, self._needed = self._sources[parents], self._needed[parents]
        self._seen = self._seen[parents] | (self._sources == tokens[:, None])

    def forbidden(self) -> tuple[Integers, Integers]:
        """Rows and tokens of the extensions that would make a copy, or end one."""
        seen = self._seen.sum(axis=1)
        if self._ends is not None:
            copies = np.nonzero((self._needed > 0) & (seen >= self._needed))[0]
            return copies.repeat(len(self._ends)), np.tile(self._ends, len(copies))
        ripe = seen + 1 >= self._needed  # one more makes a copy
        rows, columns = np.nonzero(ripe[:, None] & ~self._seen & (self._sources != NOTHING))
        return rows, self._sources[rows, columns]


def random_generator(seed: int, stream: int, input: int, draw: int = 0) -> np.random.Generator:
    """Random numbers that depend on the seed, the input and the draw, and on nothing else.

    A counter-based generator (Philox) is keyed by the seed and by `stream`, which keeps candidates and voters
    apart; the input's index in the run and the number of the draw are its counter. So a sample is the same
    alone or in any batch, on any device, and after `--resume`.
    """
    key = np.array([seed & (2**64 - 1), stream], dtype=np.uint64)
    counter = np.array([0, 0, draw, input], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
