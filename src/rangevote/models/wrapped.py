"""A model around another: passes everything on, so that what changes one thing says only that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rangevote.models.protocol import Integers, LanguageModel, Step


class Wrapped:
    """A `LanguageModel` that does what the one inside does."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self._model = model

    @property
    def ends(self) -> Sequence[int]:
        """The tokens that end a sequence."""
        return self._model.ends

    def start(self, inputs: Sequence[Any]) -> Any:
        """Read the inputs."""
        return self._model.start(inputs)

    def step(self, state: Any, tokens: Integers | None) -> Step[Any]:
        """One token further."""
        return self._model.step(state, tokens)

    def select(self, state: Any, rows: Integers) -> Any:
        """Repeat, drop and reorder rows."""
        return self._model.select(state, rows)

    def room(self, state: Any) -> Integers | None:
        """How many tokens may follow."""
        return self._model.room(state)

    def text(self, tokens: Sequence[int]) -> str | None:
        """The tokens as text."""
        return self._model.text(tokens)

    def source(self, input: Any) -> Sequence[int]:
        """The input in tokens."""
        return self._model.source(input)
