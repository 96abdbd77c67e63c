"""A model whose search can be given up between two tokens."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rangevote.models.protocol import Integers, LanguageModel, ModelWrapper, Step


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class Stoppable(ModelWrapper):
    """A model that can be told to stop between two tokens."""

    def __init__(self, model: LanguageModel[Any], stop: threading.Event) -> None:
        super().__init__(model)
        self._stop = stop

    def start(self, inputs: Sequence[Any]) -> Any:
        """Read the inputs, if still wanted."""
        self._check()
        return super().start(inputs)

    def step(self, state: Any, tokens: Integers | None) -> Step[Any]:
        """One token further, if still wanted."""
        self._check()
        return super().step(state, tokens)

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped
