"""Tool calls, elected in stages: text or calls, then the tools' names, then the arguments."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from rangevote.hypothesis import Array, Hypotheses, ToolCall
from rangevote.similarity.base import ChangedMeasure, Measure, Similarity, same_keys
from rangevote.similarity.json_leaves import canonical, read_json

#: The two kinds of output.
TEXT, CALLS = "text", "calls"


class CallKey(NamedTuple):
    """What calls are compared by: the tools' names first, then the arguments."""

    names: tuple[str, ...]
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(f"{name}({given})" for name, given in zip(self.names, self.arguments, strict=True))


def call_key(calls: Sequence[ToolCall]) -> CallKey | None:
    """The key of the calls of one hypothesis; None where arguments are not JSON: such calls abstain."""
    try:
        arguments = tuple(
            canonical(read_json(call.arguments) if isinstance(call.arguments, str) else call.arguments)
            for call in calls
        )
    except (ValueError, RecursionError):
        return None
    return CallKey(tuple(call.name for call in calls), arguments)


class Stage(NamedTuple):
    """The rivals of a stage, each with the weight of its voters, and the winner, if any."""

    masses: dict[Hashable, float]
    winner: Hashable

    @property
    def lead(self) -> float | None:
        """By how much the winner is above the next; None where it has no rival."""
        others = [mass for key, mass in self.masses.items() if key != self.winner]
        return self.masses[self.winner] - max(others) if others else None


class TextOrToolCalls(ChangedMeasure):
    """Texts and tool calls in one election: the kind with more votes wins, and then the best of that kind.

    Calls are elected by the names of their tools first, then by equal arguments (after canonical JSON); texts
    by `inner`. Candidates of the other kind, or that call other tools, cannot be elected (score -inf), and
    grades between the two kinds are 0. Calls whose arguments are not JSON abstain in all stages.
    """

    staged = True

    def __init__(self, inner: Similarity) -> None:
        super().__init__(inner)
        self.linear, self.lowest = self.inner.linear, min(0.0, self.inner.lowest)

    def poll(self, candidates: Hypotheses) -> TextOrToolCallsPoll:
        return TextOrToolCallsPoll(self.inner, candidates)

    def label(self, key: Hashable) -> str:
        """Calls as name(arguments); all texts are one answer here."""
        return str(key) if isinstance(key, CallKey) else "(text)"

    def margin(self, candidates: Hypotheses, voters: Hypotheses, weights: Array) -> float | None:
        """The smallest lead of the stages that had rivals; None where none had."""
        poll = self.poll(candidates)
        poll.add(voters)
        leads = [stage.lead for stage in poll.stages(weights)]
        return min((lead for lead in leads if lead is not None), default=None)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        calls, texts = call_keys(candidates)
        keys: list[Hashable] = list(calls)
        for i, key in text_keys(self.inner, candidates, texts).items():
            keys[i] = (TEXT, key)
        return keys


def call_keys(hypotheses: Hypotheses) -> tuple[list[CallKey | None], list[int]]:
    """The key of each hypothesis with calls, None for others; and the indices of those that are texts."""
    calls = hypotheses.tool_calls or [None] * len(hypotheses)
    keys = [call_key(some) if some else None for some in calls]
    return keys, [i for i, some in enumerate(calls) if not some]


def text_keys(inner: Measure, hypotheses: Hypotheses, texts: list[int]) -> dict[int, Hashable]:
    """The keys of those texts that do not abstain, by their indices."""
    keys = inner.keys(hypotheses.pick(texts)) if texts else []
    return {i: key for i, key in zip(texts, keys, strict=True) if key is not None}


class TextOrToolCallsPoll:
    """Votes in stages: text or calls, the tools' names, the arguments."""

    def __init__(self, inner: Measure, candidates: Hypotheses) -> None:
        self._inner = inner
        self._calls, self._texts = call_keys(candidates)
        self._standing = text_keys(inner, candidates, self._texts)
        firsts = {key: i for i, key in reversed(self._standing.items())}
        self._groups = sorted(firsts.values())  # one text of each group
        self._poll = inner.poll(candidates.pick(self._texts)) if self._texts else None
        self._voter_calls: list[CallKey | None] = []
        self._voter_texts: list[int] = []
        self._text_votes: list[int] = []  # of those that do not abstain

    def add(self, voters: Hypotheses) -> None:
        calls, texts = call_keys(voters)
        if texts and self._poll is not None:
            self._poll.add(voters.pick(texts))
        first = len(self._voter_calls)
        self._voter_texts += [first + i for i in texts]
        self._text_votes += [first + i for i in text_keys(self._inner, voters, texts)]
        self._voter_calls += calls

    def stages(self, weights: Array) -> list[Stage]:
        """How the voters decided; what no candidate stands for is left out. Of equal ones the first wins."""
        listed = weights.tolist()
        calls = [key for key in self._calls if key is not None]
        votes = [
            (key, weight) for key, weight in zip(self._voter_calls, listed, strict=True) if key is not None
        ]
        texts = [(TEXT, listed[i]) for i in self._text_votes]
        standing = [
            TEXT if i in self._standing else CALLS
            for i, key in enumerate(self._calls)
            if key is not None or i in self._standing
        ]
        first = _stage(standing, texts + [(CALLS, weight) for _, weight in votes])
        if first.winner != CALLS:
            return [first]
        names = _stage([key.names for key in calls], [(key.names, weight) for key, weight in votes])
        return [first, names, _stage([key for key in calls if key.names == names.winner], votes)]

    def stage_grades(self) -> list[tuple[Array, int]]:
        """What every voter gives to those who stand in each stage, shape (voters, rivals), and who of them
        leads, where all voters count the same."""
        size = len(self._voter_calls)
        kind: list[Hashable] = [None if key is None else CALLS for key in self._voter_calls]
        for i in self._text_votes:
            kind[i] = TEXT
        names = [None if key is None else key.names for key in self._voter_calls]
        stages = self.stages(np.full(size, 1.0 / max(1, size)))
        found = []
        columns: list[Sequence[Hashable]] = [kind, names, self._voter_calls]
        for stage, keys in zip(stages, columns, strict=False):
            rivals = list(stage.masses)
            found.append((same_keys(keys, rivals), rivals.index(stage.winner) if rivals else 0))
        if stages[0].winner == TEXT:
            grades = self.matrix()[:, self._groups]
            found.append((grades, int(grades.sum(axis=0).argmax())))
        return found

    def tally(self, weights: Array) -> Array:
        """score(c) of candidates of the winning kind that call the winning tools; -inf for others."""
        last = self.stages(weights)[-1]
        if last.winner is None:  # nothing but calls that abstain
            return np.zeros(len(self._calls))
        scores = np.full(len(self._calls), -np.inf)
        if last.winner == TEXT:
            assert self._poll is not None
            scores[self._texts] = self._poll.tally(weights[self._voter_texts])
        for i, key in enumerate(self._calls):
            scores[i] = last.masses.get(key, scores[i])
        return scores

    def matrix(self) -> Array:
        """Grades of all voters, 0 between texts and calls, shape (voters, candidates)."""
        grades = same_keys(self._voter_calls, self._calls)
        if self._poll is not None and self._voter_texts:
            grades[np.ix_(self._voter_texts, self._texts)] = self._poll.matrix()
        return grades


def _stage(standing: Sequence[Hashable], votes: Sequence[tuple[Hashable, float]]) -> Stage:
    weights: dict[Hashable, list[float]] = {key: [] for key in standing}
    for key, weight in votes:
        if key in weights:
            weights[key].append(weight)
    masses = {key: math.fsum(some) for key, some in weights.items()}
    return Stage(masses, max(masses, key=lambda key: masses[key], default=None))
