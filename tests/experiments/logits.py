"""What a search may see of our own models' logits."""

from __future__ import annotations

import math

from experiments.vocabulary import PAD, START, UNKNOWN


def log_probs(logits):
    """What a search may see of logits: nothing of the marks that are never written."""
    logits = logits.detach().clone()
    logits[..., [PAD, START, UNKNOWN]] = -math.inf
    return logits.log_softmax(dim=-1).numpy()
