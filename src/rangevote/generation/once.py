"""A model that reads a batch of inputs once, for all searches over it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rangevote.errors import DataError
from rangevote.models.protocol import LanguageModel, ModelWrapper

#: How a model names an input of its batch.
PLACE = re.compile(r"^inputs\[(\d+)\]")


class ReadOnce(ModelWrapper):
    """The model, bound to one batch: every `start` gives the same fresh state.

    A fresh state can be selected from any number of times, so candidates and voters share one reading of the
    prompt. `numbers` are the inputs' places in the whole run, by which errors name them.
    """

    def __init__(self, model: LanguageModel[Any], inputs: Sequence[Any], numbers: Sequence[int]) -> None:
        super().__init__(model)
        self._inputs, self._numbers = inputs, numbers
        self._state: Any = None

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
