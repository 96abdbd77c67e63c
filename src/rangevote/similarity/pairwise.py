"""Measures given by a function of pairs: edit distance, ROUGE-L, TER, and a user's own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from rangevote.errors import UsageError, need
from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel.plain import unit_bits
from rangevote.similarity.base import Measure, check_pairs, refuse_argument
from rangevote.similarity.units import (
    Reader,
    Tokenise,
    check_tokeniser,
    refuse_surrogates,
    texts_of,
    texts_or_none,
)

#: Pairs graded at a time: 32 MB of grades.
CHUNK = 1 << 22

#: How far rounding may lift a user's grade above 1.
SLACK = 1e-9

GradeRows = Callable[[Sequence[Any], Sequence[Any]], Array]


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
    refuse_argument("edit", argument)
    return SequenceMeasure("edit", "Levenshtein", tokenize)


def rouge_l(argument: str, tokenize: Tokenise) -> SequenceMeasure:
    """F1 of the longest common subsequence: 2 LCS / (|v| + |c|)."""
    refuse_argument("rouge_l", argument)
    return SequenceMeasure("rouge_l", "LCSseq", tokenize)


class Ter(Measure):
    """1 - TER of the candidate with the voter as its reference, at least -1; the empty text abstains.

    TER is sacrebleu's: edits, of which a shift of words is one, over the voter's length, in lower case.
    """

    name = "ter"
    lowest = -1.0

    def poll(self, candidates: Hypotheses) -> PairPoll:
        rate = need("sacrebleu.metrics", "evaluate", "the similarity 'ter'").TER().sentence_score
        known: dict[tuple[str, str], float] = {}

        def grade(voter: str, candidate: str) -> float:
            if not voter.strip() or not candidate.strip():
                return 0.0
            if (voter, candidate) not in known:
                known[voter, candidate] = max(-1.0, 1.0 - rate(candidate, [voter]).score / 100)
            return known[voter, candidate]

        def rows(voters: Sequence[str], candidates: Sequence[str]) -> Array:
            grades = [[grade(v, c) for c in candidates] for v in voters]
            return np.array(grades, dtype=np.float64).reshape(len(voters), len(candidates))

        return PairPoll(self._texts(candidates), rows, self._texts)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        return texts_or_none(candidates, self.name)

    def _texts(self, hypotheses: Hypotheses) -> list[str]:
        return texts_of(hypotheses, self.name)


def ter(argument: str, tokenize: Tokenise) -> Ter:
    refuse_argument("ter", argument)
    return Ter()


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
