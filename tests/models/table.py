"""A model small enough to enumerate: every (input, prefix) has its own random distribution.

It keeps the rules of the seam and insists that searches keep theirs: a state that was used up, a token
where none is due, or rows that are not there fail an assertion.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rangevote.models.protocol import Integers, Step

Floats = NDArray[np.float64]
Prefix = tuple[int, ...]


@dataclass
class Table:
    """The state: an input and a prefix for each row. `fresh`: as `start` gave it; `spent`: used already."""

    rows: list[tuple[Hashable, Prefix]]
    fresh: bool = False
    begun: bool = False
    spent: bool = False


class Listed(NamedTuple):
    """One sequence of an enumeration: its tokens without the end, log P of all, and whether the end came."""

    tokens: Prefix
    logprob: float
    finished: bool


class TableModel:
    """P(next | input, prefix) = softmax(sharp * z), with z drawn from a seed made of all three.

    After `length` tokens the end is certain, so P is over finitely many sequences; None: no such limit.
    Inputs are anything hashable. `hidden` (rows, 3) is a draw from the same seed.
    """

    def __init__(
        self, vocab: int, length: int | None, seed: int, *, end: int = 0, sharp: float = 1.0
    ) -> None:
        self.vocab, self.length, self.seed, self.end, self.sharp = vocab, length, seed, end, sharp
        self.ends = (end,)
        self._known: dict[tuple[Hashable, Prefix], tuple[Floats, Floats]] = {}

    def predict(self, input: Hashable, prefix: Prefix) -> tuple[Floats, Floats]:
        """log P(. | input, prefix) (vocab,) and the hidden state (3,)."""
        key = (input, prefix)
        if key not in self._known:
            digest = hashlib.blake2b(repr((self.seed, input, prefix)).encode(), digest_size=8).digest()
            rng = np.random.default_rng(int.from_bytes(digest, "little"))
            scores, hidden = self.sharp * rng.normal(size=self.vocab), rng.normal(size=3)
            if self.length is not None and len(prefix) >= self.length:
                scores[np.arange(self.vocab) != self.end] = -np.inf
            self._known[key] = scores - np.logaddexp.reduce(scores), hidden
        return self._known[key]

    def start(self, inputs: Sequence[Hashable]) -> Table:
        return Table([(input, ()) for input in inputs], fresh=True)

    def step(self, state: Table, tokens: Integers | None) -> Step[Table]:
        assert not state.spent, "a state is used once"
        assert (tokens is not None) == state.begun, "None at the first step, tokens at every other"
        state.spent = True
        rows = state.rows
        if tokens is not None:
            tokens = np.asarray(tokens)
            assert tokens.shape == (len(rows),), "one token for each row"
            assert ((tokens >= 0) & (tokens < self.vocab)).all(), "tokens of the vocabulary"
            rows = [
                (input, (*prefix, int(token))) for (input, prefix), token in zip(rows, tokens, strict=True)
            ]
        found = [self.predict(*row) for row in rows]
        log_probs = np.array([logs for logs, _ in found]).reshape(len(rows), self.vocab)
        hidden = np.array([vector for _, vector in found]).reshape(len(rows), 3)
        return Step(log_probs, Table(rows, begun=True), hidden)

    def select(self, state: Table, rows: Integers) -> Table:
        assert not state.spent, "a state is used once"
        state.spent = not state.fresh
        rows = np.asarray(rows)
        assert ((rows >= 0) & (rows < len(state.rows))).all(), "rows that are there"
        return Table([state.rows[row] for row in rows.tolist()], begun=state.begun)

    def room(self, state: Table) -> Integers | None:
        return None

    def text(self, tokens: Sequence[int]) -> str | None:
        return " ".join(str(token) for token in tokens)

    def source(self, input: Hashable) -> Sequence[int]:
        return list(input) if isinstance(input, (tuple, list)) else []


def enumerate_sequences(model: TableModel, input: Hashable, max_len: int) -> list[Listed]:
    """Every sequence of at most `max_len` tokens with P > 0, most likely first; their P sum to 1.

    The end counts as a token: a sequence of `max_len` tokens without it was cut.
    """
    found: list[Listed] = []
    open_: list[tuple[Prefix, float]] = [((), 0.0)]
    while open_:
        prefix, total = open_.pop()
        if len(prefix) == max_len:
            found.append(Listed(prefix, total, finished=False))
            continue
        log_probs, _ = model.predict(input, prefix)
        for token in np.flatnonzero(log_probs > -np.inf).tolist():
            logprob = total + float(log_probs[token])
            if token == model.end:
                found.append(Listed(prefix, logprob, finished=True))
            else:
                open_.append(((*prefix, token), logprob))
    return sorted(found, key=lambda listed: (-listed.logprob, listed.tokens))
