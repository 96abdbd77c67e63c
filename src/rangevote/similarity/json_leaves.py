"""Structured outputs: JSON compared by its leaves, and calls of tools.

A JSON text is the set of its leaves, (path, value), with numbers by their value and names in order: two
texts are equal if their leaves are. Calls of tools are elected in stages (`TextOrToolCalls`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rangevote.errors import UsageError
from rangevote.hypothesis import Array, Hypotheses, ToolCall
from rangevote.similarity.answers import split_reasoning
from rangevote.similarity.base import Measure, Similarity, keys_of, open_poll

#: What a decoder may raise on a text that is no JSON.
_REFUSALS = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError)
_FENCE = re.compile(r"\A\s*```\w*\n(.*)\n\s*```\s*\Z", re.DOTALL)
#: A name that needs no quotes in a path.
_NAME = re.compile(r"[^\W\d][\w-]*")

#: The two parties.
TEXT, CALLS = "text", "calls"

Leaf = tuple[str, str]  # path, value as JSON


def read_json(text: str) -> Any:
    """The value of a text that is JSON, in a code fence or not, after reasoning or not; else a ValueError."""
    text = split_reasoning(text)[1]
    fenced = _FENCE.match(text)
    try:
        return msgspec.json.decode(fenced[1] if fenced else text)
    except _REFUSALS as error:
        raise ValueError(f"not JSON: {error}") from None


def leaves(value: Any, path: str = "") -> list[Leaf]:
    """Every value with its path, names in order; an empty object or list is a leaf.

    >>> leaves({"b": [1, 2.0], "a": {"x": "y"}})
    [('a.x', '"y"'), ('b[0]', '1'), ('b[1]', '2')]
    """
    if isinstance(value, dict) and value:
        named = sorted(value.items())
        return [leaf for name, inner in named for leaf in leaves(inner, _below(path, name))]
    if isinstance(value, list) and value:
        return [leaf for i, inner in enumerate(value) for leaf in leaves(inner, f"{path}[{i}]")]
    return [(path, _scalar(value))]


def _below(path: str, name: str) -> str:
    shown = name if _NAME.fullmatch(name) else _encoded(name)
    return f"{path}.{shown}" if path else shown


def _scalar(value: Any) -> str:
    """A number by its value: 1, 1.0 and 1e0 are the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _encoded(value)


def _encoded(value: Any) -> str:
    return str(value) if type(value) is int else msgspec.json.encode(value).decode()


def canonical(value: Any) -> str:
    """A JSON value written in one way: names in order, numbers by their value, no spaces.

    >>> canonical({"b": 1.50, "a": [1e1]})
    '{"a":[10],"b":1.5}'
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{_encoded(k)}:{canonical(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return _scalar(value)


def json_leaves(text: str) -> list[Leaf]:
    """What `tokenize="json"` makes of a text: its leaves; none where it is no JSON, so that it abstains."""
    try:
        return leaves(read_json(text))
    except (ValueError, RecursionError):
        return []


def json_value(steps: tuple[str | int, ...], text: str) -> str | None:
    """The value at a path of a JSON text, written in one way; a text without its quotes."""
    try:
        value = read_json(text)
        for step in steps:
            value = value[step]
        return value if isinstance(value, str) else canonical(value)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


_STEP = re.compile(r'\.?(?:"([^"]*)"|([^.\[\]"]+))|\[(\d+)\]')


def path_steps(path: str) -> tuple[str | int, ...]:
    """The names and indices of a path as items[0].price, with quotes around names that need them."""
    steps: list[str | int] = []
    rest = path.removeprefix("$")
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise UsageError(f"cannot read the path {path!r} at {rest!r}; write it as items[0].price.")
        quoted, name, index = match.groups()
        steps.append(int(index) if index is not None else name if quoted is None else quoted)
        rest = rest[match.end() :]
    return tuple(steps)


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
    """What stands against each other, with the weight of its voters, and which of them wins, if any."""

    masses: dict[Hashable, float]
    winner: Hashable

    @property
    def lead(self) -> float | None:
        """By how much the winner is above the next; None where it has no rival."""
        others = [mass for key, mass in self.masses.items() if key != self.winner]
        return self.masses[self.winner] - max(others) if others else None


class TextOrToolCalls(Measure):
    """Texts and calls of tools in one election: two parties, of which the larger wins, and then its best.

    Calls are elected by the names of their tools first, then by equal arguments (after canonical JSON); texts
    by `within`. Who does not belong to the winning party, or calls other tools, cannot be elected (score
    -inf), and grades across are 0. Calls whose arguments are not JSON abstain in all stages.
    """

    def __init__(self, within: Similarity) -> None:
        self.within, self.name = within, within.name
        self.linear = bool(getattr(within, "linear", False))
        self.lowest = min(0.0, float(getattr(within, "lowest", -1.0)))

    def poll(self, candidates: Hypotheses) -> TextOrToolCallsPoll:
        return TextOrToolCallsPoll(self.within, candidates)

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
        for i, key in zip(texts, keys_of(self.within, candidates.pick(texts)) if texts else (), strict=True):
            keys[i] = None if key is None else (TEXT, key)
        return keys

    def signature_on(self, candidates: Hypotheses) -> str:
        return self.within.signature_on(candidates) if isinstance(self.within, Measure) else ""

    def about(self, source: str | None) -> Measure:
        about = self.within.about(source) if isinstance(self.within, Measure) else self.within
        return self if about is self.within else TextOrToolCalls(about)


def call_keys(hypotheses: Hypotheses) -> tuple[list[CallKey | None], list[int]]:
    """The key of each hypothesis with calls, None for others; and the indices of those that are texts."""
    calls = hypotheses.tool_calls or [None] * len(hypotheses)
    keys = [call_key(some) if some else None for some in calls]
    return keys, [i for i, some in enumerate(calls) if not some]


class TextOrToolCallsPoll:
    """Votes in stages: text or calls, the tools' names, the arguments."""

    def __init__(self, within: Similarity, candidates: Hypotheses) -> None:
        self._within = within
        self._calls, self._texts = call_keys(candidates)
        keys = keys_of(within, candidates.pick(self._texts)) if self._texts else []
        firsts = {key: i for i, key in zip(reversed(self._texts), reversed(keys), strict=True)}
        self._groups = sorted(i for key, i in firsts.items() if key is not None)  # one text of each group
        self._standing = self._speaking(candidates, self._texts)
        self._poll = open_poll(within, candidates.pick(self._texts)) if self._texts else None
        self._voter_calls: list[CallKey | None] = []
        self._voter_texts: list[int] = []
        self._text_votes: list[int] = []  # of those that do not abstain

    def add(self, voters: Hypotheses) -> None:
        calls, texts = call_keys(voters)
        if texts and self._poll is not None:
            self._poll.add(voters.pick(texts))
        first = len(self._voter_calls)
        self._voter_texts += [first + i for i in texts]
        self._text_votes += [first + i for i in sorted(self._speaking(voters, texts))]
        self._voter_calls += calls

    def _speaking(self, hypotheses: Hypotheses, texts: list[int]) -> set[int]:
        """The texts that do not abstain."""
        keys = keys_of(self._within, hypotheses.pick(texts)) if texts else []
        return {i for i, key in zip(texts, keys, strict=True) if key is not None}

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
        party: list[Hashable] = [None if key is None else CALLS for key in self._voter_calls]
        for i in self._text_votes:
            party[i] = TEXT
        names = [None if key is None else key.names for key in self._voter_calls]
        stages = self.stages(np.full(size, 1.0 / max(1, size)))
        found = []
        columns: list[Sequence[Hashable]] = [party, names, self._voter_calls]
        for stage, keys in zip(stages, columns, strict=False):
            rivals = list(stage.masses)
            rows = [[key == rival for rival in rivals] for key in keys]
            found.append((np.array(rows, dtype=np.float64), rivals.index(stage.winner) if rivals else 0))
        if stages[0].winner == TEXT:
            grades = self.matrix()[:, self._groups]
            found.append((grades, int(grades.sum(axis=0).argmax())))
        return found

    def tally(self, weights: Array) -> Array:
        """score(c) of those who are of the winning party, and call the winning tools; else -inf."""
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
        """Grades of all voters, 0 across parties, shape (voters, candidates)."""
        rows = [[v is not None and v == c for c in self._calls] for v in self._voter_calls]
        grades = np.array(rows, dtype=np.float64).reshape(len(self._voter_calls), len(self._calls))
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
