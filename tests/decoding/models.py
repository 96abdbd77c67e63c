"""Models for the tests of searches: the enumerable one of the model tests, with one thing changed each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rangevote.models.protocol import Integers, Step
from tests.models.table import Floats, Prefix, Table, TableModel


class SeveralEnds(TableModel):
    """Ends with more than one token."""

    def __init__(self, *arguments: Any, ends: tuple[int, ...], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ends = ends


class Roomy(TableModel):
    """Inputs are (name, room): so many tokens may follow."""

    def room(self, state: Table) -> Integers | None:
        return np.array([room for (_, room), _ in state.rows])


class Bent(TableModel):
    """Asks to be ranked by something else than its log-probs: `bend` has the table of what is added."""

    def bend(self, input: Hashable, prefix: Prefix) -> Floats:
        """Deterministic numbers (vocab,); a few tokens are forbidden."""
        rng = np.random.default_rng([self.seed, len(prefix), *prefix])
        forbidden = rng.random(self.vocab) < 0.2
        forbidden[self.end] = False
        return np.where(forbidden, -np.inf, rng.normal(size=self.vocab))

    def step(self, state: Table, tokens: Integers | None) -> Step[Table]:
        found = super().step(state, tokens)
        bends = np.array([self.bend(*row) for row in found.state.rows])
        return replace(found, ranking=found.log_probs + bends)


class Mute(TableModel):
    """Has no hidden states and knows no text."""

    def step(self, state: Table, tokens: Integers | None) -> Step[Table]:
        return replace(super().step(state, tokens), hidden=None)

    def text(self, tokens: Sequence[int]) -> str | None:
        return None


class Broken(TableModel):
    """NaN after one prefix of one input, `where`; of all tokens or of some."""

    where: tuple[Hashable, Prefix]
    tokens: list[int] | None = None

    def step(self, state: Table, tokens: Integers | None) -> Step[Table]:
        found = super().step(state, tokens)
        for row, place in zip(found.log_probs, found.state.rows, strict=True):
            if place == self.where:
                row[slice(None) if self.tokens is None else self.tokens] = np.nan
        return found


class InTorch(TableModel):
    """The same model with torch tensors; float64 unless told."""

    dtype = "float64"

    def step(self, state: Table, tokens: Integers | None) -> Step[Table]:
        import torch

        found = super().step(state, tokens)
        dtype = getattr(torch, self.dtype)
        return replace(
            found,
            log_probs=torch.tensor(found.log_probs, dtype=dtype),
            hidden=torch.tensor(found.hidden, dtype=dtype),
        )


class Written(TableModel):
    """Its probabilities are written down: prefix -> that of each token; elsewhere the end is sure."""

    def __init__(self, vocab: int, written: dict[Prefix, Sequence[float]]) -> None:
        super().__init__(vocab, None, seed=0)
        self.written = written

    def predict(self, input: Hashable, prefix: Prefix) -> tuple[Floats, Floats]:
        probabilities = np.array(self.written.get(prefix, np.eye(self.vocab)[self.end]), dtype=float)
        assert probabilities.shape == (self.vocab,)
        assert abs(probabilities.sum() - 1) < 1e-12
        with np.errstate(divide="ignore"):
            return np.log(probabilities), np.zeros(3)
