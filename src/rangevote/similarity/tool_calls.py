"""Tool calls, elected in stages: text or calls, then the tools' names, then the arguments."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rangevote.hypothesis import Array, Hypotheses, ToolCall
from rangevote.similarity.base import ChangedMeasure, Similarity, same_keys
from rangevote.similarity.json_leaves import canonical, read_json

#: The two kinds of output.
TEXT, CALLS = "text", "calls"


class CallKey(NamedTuple):
    """What calls are compared by: the tools' names first, then the arguments."""

    names: tuple[str, ...]
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(f"{name}({values})" for name, values in zip(self.names, self.arguments, strict=True))


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


#: What a voter votes for in the stages so far, or a candidate stands for; nothing where it abstains.
Path = tuple[Hashable, ...]


class Stage(NamedTuple):
    """The rivals of a stage, each with the weight of its voters; of equal ones the first wins."""

    masses: dict[Path, float]

    @property
    def winner(self) -> Path:
        return max(self.masses, key=lambda path: self.masses[path], default=())

    @property
    def lead(self) -> float | None:
        """By how much the winner is above the next; None where it has no rival."""
        first, *others = sorted(self.masses.values(), reverse=True) or [0.0]
        return first - others[0] if others else None


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
        return TextOrToolCallsPoll(self, candidates)

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
        """(TEXT, key by `inner`) of a text, a `CallKey` of calls; None of those that abstain."""
        texts = texts_of(candidates)
        keys: list[Hashable] = [calls and call_key(calls) for calls in candidates.tool_calls or ()]
        keys = keys or [None] * len(candidates)
        for i, key in zip(texts, self.inner.keys(candidates.pick(texts)) if texts else (), strict=True):
            keys[i] = None if key is None else (TEXT, key)
        return keys


def texts_of(hypotheses: Hypotheses) -> list[int]:
    """The indices of those that are texts."""
    columns = hypotheses.tool_calls or [None] * len(hypotheses)
    return [i for i, calls in enumerate(columns) if not calls]


def path_of(key: Any) -> Path:
    if isinstance(key, CallKey):
        return CALLS, key.names, key
    return () if key is None else (TEXT,)


class TextOrToolCallsPoll:
    """Votes in stages: text or calls, the tools' names, the arguments."""

    def __init__(self, measure: TextOrToolCalls, candidates: Hypotheses) -> None:
        self._measure = measure
        self._keys, self._texts = measure.keys(candidates), texts_of(candidates)
        self._paths = list(map(path_of, self._keys))
        self._poll = measure.inner.poll(candidates.pick(self._texts)) if self._texts else None
        self._voter_keys: list[Hashable] = []
        self._voter_texts: list[int] = []

    def add(self, voters: Hypotheses) -> None:
        texts, first = texts_of(voters), len(self._voter_keys)
        if texts and self._poll is not None:
            self._poll.add(voters.pick(texts))
        self._voter_texts += [first + i for i in texts]
        self._voter_keys += self._measure.keys(voters)

    def stages(self, weights: Array) -> list[Stage]:
        """How the voters decided; what no candidate stands for is left out."""
        voters = list(zip(map(path_of, self._voter_keys), weights.tolist(), strict=True))
        stages: list[Stage] = []
        winner: Path = ()
        for length in range(1, 4):
            standing = (path[:length] for path in self._paths if len(path) >= length)
            votes: dict[Path, list[float]] = {path: [] for path in standing if path[:-1] == winner}
            if stages and not votes:  # a text has won, or nobody
                break
            for path, weight in voters:
                if path[:length] in votes:
                    votes[path[:length]].append(weight)
            stages.append(Stage({path: math.fsum(masses) for path, masses in votes.items()}))
            winner = stages[-1].winner
        return stages

    def stage_grades(self) -> list[tuple[Array, int]]:
        """What every voter gives to those who stand in each stage, shape (voters, rivals), and who of them
        leads, where all voters count the same."""
        paths = list(map(path_of, self._voter_keys))
        stages = self.stages(np.full(len(paths), 1.0 / max(1, len(paths))))
        grades = []
        for length, stage in enumerate(stages, 1):
            rivals = list(stage.masses)
            votes = same_keys([path[:length] for path in paths], rivals)
            grades.append((votes, rivals.index(stage.winner) if rivals else 0))
        if stages[0].winner == (TEXT,):  # then among one text of each group
            firsts = {self._keys[i]: i for i in reversed(self._texts) if self._keys[i] is not None}
            among_texts = self.matrix()[:, sorted(firsts.values())]
            grades.append((among_texts, int(among_texts.sum(axis=0).argmax())))
        return grades

    def tally(self, weights: Array) -> Array:
        """score(c) of candidates of the winning kind that call the winning tools; -inf for others."""
        last = self.stages(weights)[-1]
        if not last.masses:  # nothing but calls that abstain
            return np.zeros(len(self._keys))
        scores = np.array([last.masses.get(path, -np.inf) for path in self._paths])
        if last.winner == (TEXT,) and self._poll is not None:
            scores[self._texts] = self._poll.tally(weights[self._voter_texts])
        return scores

    def matrix(self) -> Array:
        """Grades of all voters, 0 between texts and calls, shape (voters, candidates)."""
        grades = same_keys(self._voter_keys, self._keys)
        if self._poll is not None and self._voter_texts:
            grades[np.ix_(self._voter_texts, self._texts)] = self._poll.matrix()
        return grades
