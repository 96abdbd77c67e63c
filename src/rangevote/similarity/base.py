"""What every measure is: the interface between measures and elections.

A `Similarity` grades: how strongly does a voter support a candidate, from -1 to 1. Any object with
`name`, `tally` and `matrix` is one. The measures of this package derive from `Measure`, which makes
both from a `Poll`: the candidates are read once, voters may arrive in several batches, and votes can
be counted again under other weights without reading anything twice.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rangevote.errors import UsageError
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.units import Tokenise

#: Largest number of (voter, candidate) pairs that a measure which needs all pairs will grade.
MAX_PAIRS = 4_000_000_000
#: Largest matrix of grades that is built (as many float64 as 2 GB hold).
MAX_MATRIX = 250_000_000


@runtime_checkable
class Similarity(Protocol):
    """How strongly a voter supports a candidate."""

    @property
    def name(self) -> str: ...

    def tally(self, candidates: Hypotheses, voters: Hypotheses, weights: Array) -> Array:
        """score(c) = sum of weights[v] * sim(v, c), shape (candidates,)."""

    def matrix(self, candidates: Hypotheses, voters: Hypotheses) -> Array:
        """sim(v, c), shape (voters, candidates)."""


class Poll(Protocol):
    """One election under one measure: the candidates are fixed, voters arrive."""

    def add(self, voters: Hypotheses) -> None:
        """Take more voters in."""

    def tally(self, weights: Array) -> Array:
        """score(c) over all voters so far, shape (candidates,); one weight for each voter."""

    def matrix(self) -> Array:
        """sim(v, c) of all voters so far, shape (voters, candidates)."""


class Measure(ABC):
    """A similarity made from a poll, which says of itself what elections, pages and services ask."""

    name: str
    #: The smallest grade the measure can give.
    lowest: float = 0.0
    #: Whether an election costs the number of tokens, or the number of pairs.
    linear: bool = False
    #: Whether equal answers, or equal texts, support each other and others do not: majority voting.
    answers: bool = False
    #: How an answer is written; None where answers are not compared.
    label: Callable[[Hashable], str] | None = None
    #: Whether an election has several stages (`rangevote.similarity.tool_calls`).
    staged: bool = False
    #: Whether a grade is a sum over n-grams or whole texts, so that it can be explained by them.
    decomposes: bool = False
    #: Whether hypotheses are compared by their decoder states.
    needs_states: bool = False
    #: Where a model grades, its own scores of (source, candidate, reference); whether it reads the source,
    #: and whether the higher score is the better one.
    scores: Callable[[Sequence[Any], dict[str, Any]], Array] | None = None
    reads_source: bool = False
    higher_is_better: bool = True
    #: What sequences are made of, and the orders of their n-grams, in sets or bags; `Index` explains `short`.
    tokenize: Tokenise | None = None
    orders: Sequence[int] = ()
    bag: bool = False
    short: bool = False

    def __repr__(self) -> str:
        return f"<similarity {self.name}>"

    @abstractmethod
    def poll(self, candidates: Hypotheses) -> Poll:
        """Open an election among these candidates."""

    def tally(self, candidates: Hypotheses, voters: Hypotheses, weights: Array) -> Array:
        return self._poll_with(candidates, voters).tally(weights)

    def matrix(self, candidates: Hypotheses, voters: Hypotheses) -> Array:
        return self._poll_with(candidates, voters).matrix()

    def _poll_with(self, candidates: Hypotheses, voters: Hypotheses) -> Poll:
        poll = self.poll(candidates)
        poll.add(voters)
        return poll

    def parts(self) -> list[tuple[float, Measure]]:
        """The measures that this one is made of, each with its coefficient."""
        return [(1.0, self)]

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """One key for each candidate: those with the same key get the same grades from everybody, and those
        with None, as voters, abstain."""
        return same_content(candidates)

    def signature_on(self, candidates: Hypotheses) -> str:
        """What the n-grams of these candidates are made of, as the signature names it. Those without text
        are compared by their token ids."""
        units = [part.tokenize for _, part in self.parts() if part.tokenize is not None]
        names = [getattr(unit, "__name__", "custom") if callable(unit) else unit for unit in units]
        names = names if candidates.texts is not None else ["tokens" for _ in units]
        return "+".join(dict.fromkeys(names))

    def about(self, source: str | None) -> Measure:
        """The measure for hypotheses about this source; most do not look at it."""
        return self

    def features(self, candidates: Hypotheses) -> Hashable:
        """What a poll among these candidates counts: measures with the same features can share one."""
        return self.name, self.signature_on(candidates)

    def under(self, poll: Poll) -> Poll:
        """A poll of a measure with the same features, under this measure; nothing is read again."""
        return poll

    def remembering(self) -> Measure:
        """The measure for texts that stand in several elections; it looks for the answer in each once."""
        return self


def same_content(candidates: Hypotheses) -> list[Hashable]:
    """Keys under which candidates with the same text, or the same token ids, are the same."""
    contents = (candidates.content(i) for i in range(len(candidates)))
    return [content if isinstance(content, str) else tuple(content) for content in contents]


class ChangedMeasure(Measure):
    """A measure that changes the grades of another one, `inner`."""

    def __init__(self, inner: Similarity) -> None:
        self.inner = as_measure(inner)
        self.name = self.inner.name

    def parts(self) -> list[tuple[float, Measure]]:
        return self.inner.parts()

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        return self.inner.keys(candidates)

    def about(self, source: str | None) -> Measure:
        inner = self.inner.about(source)
        if inner is self.inner:
            return self
        changed = copy(self)
        changed.inner = inner
        return changed


class UserMeasure(Measure):
    """Any object with `name`, `tally` and `matrix`."""

    def __init__(self, similarity: Similarity) -> None:
        self.similarity, self.name = similarity, similarity.name
        self.lowest = float(getattr(similarity, "lowest", -1.0))
        self.linear = bool(getattr(similarity, "linear", False))

    def poll(self, candidates: Hypotheses) -> StoredPoll:
        return StoredPoll(self.similarity, candidates)


def as_measure(similarity: Similarity) -> Measure:
    return similarity if isinstance(similarity, Measure) else UserMeasure(similarity)


class StoredPoll:
    """A poll for any `Similarity`: keeps the voters until votes are counted, and a matrix once it is made."""

    def __init__(self, similarity: Similarity, candidates: Hypotheses) -> None:
        self._similarity, self._candidates = similarity, candidates
        self._voters: Hypotheses | None = None
        self._kept: Array = np.zeros((0, len(candidates)))  # (first voters, candidates)

    def add(self, voters: Hypotheses) -> None:
        if self._voters is None:
            self._voters = voters
        else:
            self._voters = Hypotheses.of([*self._voters, *voters], role="voters")

    def tally(self, weights: Array) -> Array:
        return self._similarity.tally(self._candidates, self._all(), weights)

    def matrix(self) -> Array:
        voters, graded = self._all(), len(self._kept)
        if graded < len(voters):
            fresh = Hypotheses.of(voters[graded:], role="voters") if graded else voters
            self._kept = np.concatenate([self._kept, self._similarity.matrix(self._candidates, fresh)])
        return self._kept

    def _all(self) -> Hypotheses:
        return self._voters if self._voters is not None else Hypotheses.of([], role="voters")


def number_text(number: float) -> str:
    """A number for a name or signature: different numbers look different, whole ones have no point."""
    return repr(float(number)).removesuffix(".0")


#: Packages that are on no index.
REPOSITORIES = {"metricx24": "https://github.com/google-research/metricx"}


def how_to_install(package: str) -> str:
    """The command that brings a package of others."""
    if package in REPOSITORIES:
        return f"git clone {REPOSITORIES[package]} && export PYTHONPATH=$PWD/metricx"
    return f"pip install {package}"


def refuse_argument(name: str, argument: str) -> None:
    """For measures whose name is complete."""
    if argument:
        raise UsageError(f"{name} takes no order or key in its name, got {argument!r}; write {name}.")


def pair_limit() -> int:
    """How many pairs may be graded: `RANGEVOTE_MAX_PAIRS`, or `MAX_PAIRS`."""
    given = os.environ.get("RANGEVOTE_MAX_PAIRS", "")
    if given and not given.isdecimal():
        raise UsageError(f"RANGEVOTE_MAX_PAIRS is {given!r}; it must be a whole number.")
    return int(given) if given else MAX_PAIRS


def check_pairs(voters: int, candidates: int, *, matrix: bool = False) -> None:
    """Refuse what would take hours or all memory, with the numbers, before it starts."""
    limit = MAX_MATRIX if matrix else pair_limit()
    pairs = voters * candidates
    if pairs > limit:
        raise UsageError(
            f"{voters:,} voters x {candidates:,} candidates are {pairs:,} pairs "
            f"({pairs * 8 / 1e9:,.1f} GB as a matrix), over the limit of {limit:,}. Use a linear measure "
            f"(overlap_2, precision_2, states, exact), fewer voters, or "
            + ("tally instead of matrix." if matrix else "set RANGEVOTE_MAX_PAIRS higher.")
        )
