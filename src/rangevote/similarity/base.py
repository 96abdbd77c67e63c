"""What every measure is: the interface between measures and elections.

A `Similarity` grades: how strongly does a voter support a candidate, from -1 to 1. Any object with
`name`, `tally` and `matrix` is one. The measures of this package derive from `Measure`, which makes
both from a `Poll`: the candidates are read once, voters may arrive in several batches, and votes can
be counted again under other weights without reading anything twice. The simplest measure, `exact`, and
the poll of measures that grade pairs, `PairPoll`, stand here too.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import Array, Hypotheses, Hypothesis
from rangevote.kernel.plain import unit_bits

#: What sequences are made of: a name in `ngram.TOKENISERS`, or a function.
Tokenise = str | Callable[[str], Sequence[str]]

#: Largest number of (voter, candidate) pairs that a measure which needs all pairs will grade.
MAX_PAIRS = 4_000_000_000
#: Largest matrix of grades that is built (as many float64 as 2 GB hold).
MAX_MATRIX = 250_000_000
#: Pairs graded at a time: 32 MB of grades.
CHUNK = 1 << 22


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
    """A similarity that opens polls, and describes itself to elections, pages and services."""

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


def refuse_surrogates(hypotheses: Hypotheses) -> None:
    """Refuse a text that holds half a surrogate pair, which no encoding can write."""
    for i, text in enumerate(hypotheses.texts or ()):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"holds a lone surrogate (character {error.start}), which is not valid text.",
                field=f"{hypotheses.role}[{i}].text",
            ) from None


class TextMeasure(Measure):
    """A measure of texts; the empty text abstains."""

    def texts(self, hypotheses: Hypotheses) -> list[str]:
        if hypotheses.texts is None:
            if not len(hypotheses):
                return []
            raise DataError(f"have token ids but no text, which {self.name} needs.", field=hypotheses.role)
        refuse_surrogates(hypotheses)
        return list(hypotheses.texts)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        return [text if text.strip() else None for text in self.texts(candidates)]


#: Voters and candidates, as a poll reads them -> sim(v, c), shape (voters, candidates).
GradeRows = Callable[[Sequence[Any], Any], Array]


class PairPoll:
    """Grades rows of voters against all candidates, a bounded number at a time.

    Grades that were asked for as a matrix are kept, and those of few pairs: nobody is graded twice.
    """

    def __init__(
        self, candidates: Sequence[Any], grade: GradeRows, read: Callable[[Hypotheses], Any]
    ) -> None:
        self._candidates, self._grade, self._read = candidates, grade, read
        self._voters: list[Any] = []
        self._kept: Array = np.zeros((0, len(candidates)))  # (first voters, candidates)

    def add(self, voters: Hypotheses) -> None:
        self._voters.extend(self._read(voters))

    def tally(self, weights: Array) -> Array:
        """score(c), shape (candidates,): votes counted in units of 2^-60, so in any order."""
        check_pairs(len(self._voters), len(self._candidates))
        if len(self._voters) * len(self._candidates) <= CHUNK:
            self.matrix()
        votes = np.zeros(len(self._candidates), dtype=np.int64)  # (candidates,)
        bits = unit_bits(weights.tolist())
        step = max(1, CHUNK // max(1, len(self._candidates)))
        for start in range(0, len(self._voters), step):
            grades = self._rows(start, start + step)  # (rows, candidates)
            strengths = np.ldexp(weights[start : start + step, None] * grades, bits)
            votes += np.rint(strengths).astype(np.int64).sum(axis=0)
        return np.asarray(np.ldexp(votes.astype(np.float64), -bits))

    def matrix(self) -> Array:
        check_pairs(len(self._voters), len(self._candidates), matrix=True)
        self._kept = self._rows(0, len(self._voters))
        return self._kept

    def _rows(self, start: int, stop: int) -> Array:
        """Grades of some voters; only those that are not kept are made."""
        kept = self._kept[start:stop]
        fresh = self._voters[start + len(kept) : stop]
        if not fresh:
            return kept
        grades = self._grade(fresh, self._candidates)
        return np.concatenate([kept, grades]) if len(kept) else grades


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

    def poll(self, candidates: Hypotheses) -> UserPoll:
        return UserPoll(self.similarity, candidates)


class UserPoll(PairPoll):
    """A poll that asks the user's object, with all voters so far."""

    def __init__(self, similarity: Similarity, candidates: Hypotheses) -> None:
        super().__init__(candidates, partial(matrix_of, similarity), list)
        self._similarity, self._standing = similarity, candidates

    def tally(self, weights: Array) -> Array:
        return self._similarity.tally(self._standing, Hypotheses.of(self._voters, role="voters"), weights)


def matrix_of(similarity: Similarity, voters: Sequence[Hypothesis], candidates: Hypotheses) -> Array:
    """sim(v, c), shape (voters, candidates)."""
    return similarity.matrix(candidates, Hypotheses.of(voters, role="voters"))


def as_measure(similarity: Similarity) -> Measure:
    return similarity if isinstance(similarity, Measure) else UserMeasure(similarity)


def same_keys(voters: Sequence[Hashable], candidates: Sequence[Hashable]) -> Array:
    """1 where the keys are the same and not None, shape (voters, candidates)."""
    check_pairs(len(voters), len(candidates), matrix=True)
    columns: dict[Hashable, list[int]] = {}
    for c, key in enumerate(candidates):
        if key is not None:
            columns.setdefault(key, []).append(c)
    grades = np.zeros((len(voters), len(candidates)))
    for v, key in enumerate(voters):
        if key in columns:
            grades[v, columns[key]] = 1.0
    return grades


def rounded(scores: Array) -> Array:
    """Scores to a multiple of 2^-48, so that what is equal on paper ties whatever was rounded on the way.

    From 32 on neighbouring floats are further apart than that.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.ldexp(np.rint(np.ldexp(scores, 48)), -48)
    return np.where(np.abs(scores) < 32.0, near, scores)


def number_text(number: float) -> str:
    """A number for a name or signature: different numbers look different, whole ones have no point."""
    return repr(float(number)).removesuffix(".0")


def pair_limit() -> int:
    """How many pairs may be graded: `RANGEVOTE_MAX_PAIRS`, or `MAX_PAIRS`."""
    setting = os.environ.get("RANGEVOTE_MAX_PAIRS") or str(MAX_PAIRS)
    if not setting.isdecimal():
        raise UsageError(f"RANGEVOTE_MAX_PAIRS is {setting!r}; it must be a whole number.")
    return int(setting)


def check_pairs(voters: int, candidates: int, *, matrix: bool = False) -> None:
    """Refuse what would take hours or all memory, before it starts."""
    limit = MAX_MATRIX if matrix else pair_limit()
    pairs = voters * candidates
    if pairs > limit:
        raise UsageError(
            f"{voters:,} voters x {candidates:,} candidates are {pairs:,} pairs "
            f"({pairs * 8 / 1e9:,.1f} GB as a matrix), over the limit of {limit:,}. Use a linear measure "
            f"(overlap_2, precision_2, states, exact), fewer voters, or "
            + ("tally instead of matrix." if matrix else "set RANGEVOTE_MAX_PAIRS higher.")
        )
