"""Measures of pairs: edit distance, ROUGE-L, TER and a user's own function; and measures made of others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np

from rangevote.errors import UsageError, need
from rangevote.hypothesis import Array, Hypotheses
from rangevote.similarity.base import (
    ChangedMeasure,
    Measure,
    PairPoll,
    Poll,
    Similarity,
    TextMeasure,
    Tokenise,
    as_measure,
    matrix_of,
    number_text,
    refuse_surrogates,
    rounded,
)
from rangevote.similarity.ngram import Reader, check_tokeniser

#: How far rounding may lift a user's grade above 1.
SLACK = 1e-9


class SequenceMeasure(Measure):
    """A measure of two token sequences, graded by rapidfuzz; the empty sequence abstains."""

    tokenize: Tokenise

    def __init__(self, name: str, scorer: str, tokenize: Tokenise) -> None:
        check_tokeniser(tokenize)
        self.name, self.tokenize, self._scorer = name, tokenize, scorer

    def poll(self, candidates: Hypotheses) -> PairPoll:
        need("rapidfuzz", "evaluate", f"the similarity {self.name!r}")
        reader = Reader(self.tokenize, candidates)
        ids: dict[Any, int] = {}

        def read(hypotheses: Hypotheses) -> list[list[int]]:
            refuse_surrogates(hypotheses)
            # rapidfuzz compares hashes, and those of small numbers are the numbers
            return [[ids.setdefault(token, len(ids)) for token in t] for t in reader.tokens(hypotheses)]

        return PairPoll(read(candidates), self._grade, read)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        return [tuple(tokens) or None for tokens in Reader(self.tokenize, candidates).tokens(candidates)]

    def _grade(self, voters: Sequence[Any], candidates: Sequence[Any]) -> Array:
        from rapidfuzz import distance, process

        lengths = np.array([len(v) for v in voters], dtype=np.float64)[:, None]  # (voters, 1)
        others = np.array([len(c) for c in candidates], dtype=np.float64)[None, :]  # (1, candidates)
        if not len(voters) or not len(candidates):
            return np.zeros((len(voters), len(candidates)))
        scorer = getattr(distance, self._scorer)
        if self._scorer == "LCSseq":
            shared = process.cdist(voters, candidates, scorer=scorer.similarity, dtype=np.int32)
            grades = 2.0 * shared / np.maximum(lengths + others, 1)
        else:
            edits = process.cdist(voters, candidates, scorer=scorer.distance, dtype=np.int32)
            grades = 1.0 - edits / np.maximum(np.maximum(lengths, others), 1)
        return np.where((lengths > 0) & (others > 0), grades, 0.0)


def edit(argument: str, tokenize: Tokenise) -> SequenceMeasure:
    """1 - word edit distance / length of the longer."""
    return SequenceMeasure("edit", "Levenshtein", tokenize)


def rouge_l(argument: str, tokenize: Tokenise) -> SequenceMeasure:
    """F1 of the longest common subsequence: 2 LCS / (|v| + |c|)."""
    return SequenceMeasure("rouge_l", "LCSseq", tokenize)


class Ter(TextMeasure):
    """1 - TER of the candidate with the voter as its reference, at least -1; the empty text abstains.

    TER is sacrebleu's: edits, of which a shift of words is one, over the voter's length, in lower case.
    """

    name = "ter"
    lowest = -1.0

    def poll(self, candidates: Hypotheses) -> PairPoll:
        metric: Any = need("sacrebleu.metrics", "evaluate", "the similarity 'ter'").TER()

        @cache
        def grade(voter: str, candidate: str) -> float:
            if not voter.strip() or not candidate.strip():
                return 0.0
            return float(max(-1.0, 1.0 - metric.sentence_score(candidate, [voter]).score / 100))

        def rows(voters: Sequence[str], candidates: Sequence[str]) -> Array:
            grades = [[grade(v, c) for c in candidates] for v in voters]
            return np.array(grades, dtype=np.float64).reshape(len(voters), len(candidates))

        return PairPoll(self.texts(candidates), rows, self.texts)


class Custom(Measure):
    """Your own function `(voter, candidate) -> grade`, in [-1, 1].

    It is given texts, or token ids where there is no text; with `batched=True` it is called as
    `(voters, candidates)` on lists and returns an array of shape (voters, candidates).
    """

    lowest = -1.0

    def __init__(
        self, function: Callable[[Any, Any], Any], *, name: str | None = None, batched: bool = False
    ) -> None:
        self.function, self.batched = function, batched
        self.name = name or getattr(function, "__name__", type(function).__name__).strip("<>")

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(_contents(candidates), self._grade, _contents)

    def _grade(self, voters: Sequence[Any], candidates: Sequence[Any]) -> Array:
        if self.batched:
            grades = np.asarray(self.function(voters, candidates), dtype=np.float64)
        else:
            pairs = [[self.function(v, c) for c in candidates] for v in voters]
            grades = np.asarray(pairs, dtype=np.float64).reshape(len(voters), len(candidates))
        if grades.shape != (len(voters), len(candidates)):
            raise UsageError(
                f"the similarity {self.name!r} returned shape {grades.shape} for {len(voters)} voters and "
                f"{len(candidates)} candidates; expected {(len(voters), len(candidates))}."
            )
        wrong = ~(np.abs(grades) <= 1.0 + SLACK)  # NaN is wrong too
        if wrong.any():
            v, c = (int(i) for i in np.argwhere(wrong)[0])
            raise UsageError(
                f"the similarity {self.name!r} gave {float(grades[v, c])!r} to voter {v} and candidate {c}; "
                f"grades must be from -1 to 1."
            )
        return np.asarray(np.clip(grades, -1.0, 1.0))


def _contents(hypotheses: Hypotheses) -> list[Any]:
    return [hypotheses.content(i) for i in range(len(hypotheses))]


class Mixture(Measure):
    """sim(v, c) = sum of coefficient * sim_i(v, c); linear if all its parts are."""

    def __init__(self, parts: Sequence[tuple[float, Similarity]]) -> None:
        total = sum(abs(coefficient) for coefficient, _ in parts)
        if not parts or not 0 < total <= 1 + 1e-9:
            raise UsageError(
                f"the coefficients of a mixture sum to {total:g}; they must sum to at most 1, so that grades "
                f"stay within -1 and 1, for example 0.5*overlap_2+0.5*states."
            )
        self._parts = [(coefficient, as_measure(part)) for coefficient, part in parts]
        measures = [part for _, part in self._parts]
        self.name = "+".join(f"{number_text(coefficient)}*{part.name}" for coefficient, part in self._parts)
        self.linear = all(part.linear for part in measures)
        self.decomposes = all(part.decomposes for part in measures)
        negative = any(coefficient < 0 for coefficient, _ in parts)
        self.lowest = -1.0 if negative else min(part.lowest for part in measures)

    def parts(self) -> list[tuple[float, Measure]]:
        return [(outer * inner, part) for outer, mixed in self._parts for inner, part in mixed.parts()]

    def poll(self, candidates: Hypotheses) -> MixturePoll:
        return MixturePoll([(coefficient, part.poll(candidates)) for coefficient, part in self._parts])

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """The keys of all parts together; None where all abstain."""
        columns = [part.keys(candidates) for _, part in self._parts]
        return [None if set(row) == {None} else row for row in zip(*columns, strict=True)]

    def about(self, source: str | None) -> Mixture:
        """The same mixture, with every part about this source."""
        parts = [(coefficient, part.about(source)) for coefficient, part in self._parts]
        return self if parts == self._parts else Mixture(parts)


class MixturePoll:
    """One poll for each part."""

    def __init__(self, parts: Sequence[tuple[float, Poll]]) -> None:
        self._parts = parts

    def add(self, voters: Hypotheses) -> None:
        for _, poll in self._parts:
            poll.add(voters)

    def tally(self, weights: Array) -> Array:
        return self._sum(lambda poll: poll.tally(weights))

    def matrix(self) -> Array:
        return self._sum(lambda poll: poll.matrix())

    def _sum(self, votes: Callable[[Poll], Array]) -> Array:
        (first, poll), *others = self._parts
        total = first * votes(poll)
        for coefficient, poll in others:
            total = total + coefficient * votes(poll)
        return total


class Cutoff(ChangedMeasure):
    """The grades of `inner` from `least` on, others as 0. Every pair is graded, whatever the measure is.

    Plain voting on open-ended texts elects what is a little like everything. With a cutoff a voter supports
    only candidates at least this similar to it, so that nobody is elected as a compromise.
    """

    def __init__(self, inner: Similarity, least: float) -> None:
        super().__init__(inner)
        self.least = least

    def poll(self, candidates: Hypotheses) -> PairPoll:
        return PairPoll(candidates, self._grade, list)

    def _grade(self, voters: Sequence[Any], candidates: Hypotheses) -> Array:
        grades = matrix_of(self.inner, voters, candidates)
        return np.where(rounded(grades) >= self.least, grades, 0.0)
