"""A model for the tests of `rangevote generate`: small, quick, and wrong where a test wants it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest

from rangevote.errors import DataError
from tests.models.table import Table, TableModel

WORDS = ["", "the", "cat", "sat", "on", "a", "mat"]


class Speaker(TableModel):
    """Answers any text with a few words; an empty prompt is refused, as by a real model.

    `stop_at`: when this input is read, Ctrl-C is pressed.
    """

    def __init__(self) -> None:
        super().__init__(len(WORDS), 5, seed=3)
        self.stop_at: object = None
        self.read: list[Hashable] = []

    def start(self, inputs: Sequence[Hashable]) -> Table:
        if self.stop_at in inputs:
            raise KeyboardInterrupt
        self.read += inputs
        named = [repr(input) for input in inputs]
        if "''" in named:
            raise DataError("the prompt is empty.", field=f"inputs[{named.index(repr(''))}]")
        return super().start(named)

    def see(self) -> None:
        """Take images from now on, as far as one can tell from outside."""
        self.reads_images = True

    def text(self, tokens: Sequence[int]) -> str:
        return " ".join(WORDS[token] for token in tokens)


@pytest.fixture
def speaker(monkeypatch: pytest.MonkeyPatch) -> Speaker:
    """`--model speaker` is this model; how it was asked for stands in `asked`."""
    model = Speaker()
    model.asked = []  # type: ignore[attr-defined]

    def load(name: str, *, device: str | None = None, dtype: str | None = None, chat: bool = True) -> Speaker:
        model.asked.append((name, device, dtype, chat))  # type: ignore[attr-defined]
        return model

    monkeypatch.setattr("rangevote.models.load.load", load)
    return model
