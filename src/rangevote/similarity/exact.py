"""exact: the same text, or the same answer in the text. This is majority voting (self-consistency)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache

import numpy as np

from rangevote.hypothesis import Array, Hypotheses
from rangevote.kernel.plain import unit_bits
from rangevote.similarity.answers import THINK, THINK_END, Key, get_key, split_reasoning
from rangevote.similarity.base import Measure, check_pairs, same_content
from rangevote.similarity.units import DEFAULT_UNIT, Tokenise, refuse_surrogates


class Exact(Measure):
    """1 for the same key, otherwise 0. Without a key, texts are compared, including the empty text.

    A key is a function from the text, without reasoning such as <think>...</think> before it, to what is
    compared; None abstains. If a key has `prepare`, that is called with all texts of a list first.
    """

    linear = answers = decomposes = True

    def __init__(self, key: Key | None = None, *, name: str | None = None) -> None:
        self.key = key
        self.name = name or ("exact" if key is None else f"exact:{getattr(key, '__name__', 'key')}")
        self.label = None if key is None else str

    def poll(self, candidates: Hypotheses) -> ExactPoll:
        return ExactPoll(candidates, self.keys)

    def keys(self, candidates: Hypotheses) -> list[Hashable]:
        """What is compared: the text, the token ids, or what the key function finds in the text."""
        refuse_surrogates(candidates)
        contents = same_content(candidates)
        if self.key is None:
            return contents
        answers = [_answer(content) if isinstance(content, str) else None for content in contents]
        if hasattr(self.key, "prepare"):
            self.key.prepare(answer for answer in answers if answer is not None)
        return [None if answer is None else self.key(answer) for answer in answers]

    def remembering(self) -> Exact:
        if self.key is None or hasattr(self.key, "prepare"):
            return self
        return Exact(cache(self.key), name=self.name)


class ExactPoll:
    """Votes counted by key."""

    def __init__(self, candidates: Hypotheses, keys: Callable[[Hypotheses], list[Hashable]]) -> None:
        self._keys = keys
        self._candidates = keys(candidates)
        self._voters: list[Hashable] = []

    def add(self, voters: Hypotheses) -> None:
        self._voters.extend(self._keys(voters))

    def tally(self, weights: Array) -> Array:
        """score(c): the mass of the voters with c's key, shape (candidates,)."""
        votes: dict[Hashable, int] = {}
        bits = unit_bits(weights.tolist())
        for key, vote in zip(self._voters, np.ldexp(weights, bits).tolist(), strict=True):
            if key is not None:
                votes[key] = votes.get(key, 0) + round(vote)
        return np.ldexp([float(votes.get(key, 0)) for key in self._candidates], -bits)

    def matrix(self) -> Array:
        """1 where the keys are the same, shape (voters, candidates)."""
        check_pairs(len(self._voters), len(self._candidates), matrix=True)
        rows = [[v is not None and v == c for c in self._candidates] for v in self._voters]
        return np.array(rows, dtype=np.float64).reshape(len(self._voters), len(self._candidates))


def _answer(text: str) -> str:
    """The text without reasoning; of a text that was cut off in its reasoning, nothing."""
    thought = THINK_END in text or text.lstrip().startswith(THINK)
    return split_reasoning(text, ended=False)[1] if thought else text


def exact(argument: str, tokenize: Tokenise) -> Exact:
    """Same text, or same answer: exact:last_number and others; of JSON the same value."""
    if not argument:
        return exact("json", DEFAULT_UNIT) if tokenize == "json" else Exact()
    key = get_key(argument)
    name = getattr(key, "__name__", argument)  # of a command not all may be shown
    return Exact(key, name=f"exact:{name if name.startswith('command=') else argument}")
