"""One pass of the network: the next token's log-probabilities, and the state they come from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rangevote.models.huggingface.head import Net, watched

#: Logits that are normalised at a time (numbers, not bytes): the copy stays small.
BLOCK = 1 << 20


@dataclass(frozen=True)
class Prediction:
    """`log_probs` (rows, vocabulary) and `hidden` (rows, dimension), None where the network shows none."""

    log_probs: Tensor
    hidden: Tensor | None

    def take(self, rows: Tensor) -> Prediction:
        """These rows, copied."""
        hidden = None if self.hidden is None else self.hidden.index_select(0, rows)
        return Prediction(self.log_probs.index_select(0, rows), hidden)


def predict(net: Net, inputs: dict[str, Any]) -> tuple[Prediction, Any]:
    """Run the network and look at the last position; also returns its output as it is."""
    with watched(net) as states:
        output = net(**inputs, return_dict=True)
    logits = output.logits  # (rows, positions, vocabulary)
    last = logits[:, -1] if logits.shape[1] == 1 else logits[:, -1].clone()  # the rest need not be kept
    hidden = states[-1][:, -1].float() if states else None  # (rows, dimension)
    return Prediction(normalise(last), hidden), output


def normalise(logits: Tensor) -> Tensor:
    """Logits (rows, vocabulary) to log-probabilities, in place where they are float32 already."""
    logits = logits.float()
    size = max(1, BLOCK // logits.shape[1])
    for first in range(0, len(logits), size):
        logits[first : first + size] = logits[first : first + size].log_softmax(dim=-1)
    return logits


@contextmanager
def reading(net: Net) -> Iterator[None]:
    """No gradients and no dropout; a network in training is put back as it was."""
    training = [module for module in net.modules() if module.training] if net.training else []
    for module in training:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True
