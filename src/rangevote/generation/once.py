"""A model that reads a batch of inputs once, for all searches over it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rangevote.errors import DataError
from rangevote.model.protocol import Integers, LanguageModel, Step

#: How a model names an input of its batch.
PLACE = re.compile(r"^inputs\[(\d+)\]")


class ReadOnce:
    """The model, bound to one batch: every `start` gives the same fresh state.

    A fresh state can be selected from any number of times, so candidates and voters share one reading of the
    prompt. `numbers` are the inputs' places in the whole run, by which errors name them.
    """

    def __init__(self, model: LanguageModel[Any], inputs: Sequence[Any], numbers: Sequence[int]) -> None:
        self._model, self._inputs, self._numbers = model, inputs, numbers
        self._state: Any = None

    @property
    def ends(self) -> Sequence[int]:
        """The tokens that end a sequence."""
        return self._model.ends

    def start(self, inputs: Sequence[Any]) -> Any:
        """The state of the batch."""
        assert inputs is self._inputs  # bound to one batch
        if self._state is None:
            try:
                self._state = self._model.start(inputs)
            except DataError as error:
                field = PLACE.sub(lambda place: f"inputs[{self._numbers[int(place[1])]}]", error.field)
                raise DataError(error.problem, field=field, where=error.where) from error
        return self._state

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
