"""From logits to what the searches ask for."""

from __future__ import annotations

import torch
from torch import Tensor

from experiments.vocabulary import PAD, START, UNKNOWN


def next_token(logits: Tensor) -> Tensor:
    """Logits (rows, vocabulary), overwritten, to log-probabilities over what may be written.

    The padding and the start are in no text, and an unknown word is no output: the other tokens share out
    their probability, so that log P(token) = log P(token | text so far, a token that can be written).
    """
    logits[:, [PAD, START, UNKNOWN]] = -torch.inf
    return logits.log_softmax(dim=-1)
