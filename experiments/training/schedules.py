"""The learning rate at each step, as a share of the highest one.

>>> [round(inverse_sqrt(step, total=100, warmup=4), 2) for step in (1, 2, 4, 16)]
[0.25, 0.5, 1.0, 0.5]
"""

from __future__ import annotations

import math


def constant(step: int, total: int, warmup: int) -> float:
    """1 after a linear rise."""
    return min(1.0, step / max(1, warmup))


def inverse_sqrt(step: int, total: int, warmup: int) -> float:
    """min(step / warmup, sqrt(warmup / step)): Vaswani et al. 2017, section 5.3."""
    warmup = max(1, warmup)
    return min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, total: int, warmup: int) -> float:
    """A linear rise, then half a wave down to 0 after the last step."""
    if step < warmup:
        return step / warmup
    done = min(1.0, (step - warmup) / max(1, total - warmup))
    return 0.5 * (1 + math.cos(math.pi * done))


#: name -> (step from 1, steps in all, steps of the rise) -> share
SCHEDULES = {"constant": constant, "inverse_sqrt": inverse_sqrt, "cosine": cosine}
