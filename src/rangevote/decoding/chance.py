"""Random numbers that depend on the seed, the input and the draw, and on nothing else.

A counter-based generator (Philox) is keyed by the seed and by what the numbers are for; the input's place
in the run and the number of the draw are its counter. So a sample is the same alone or in any batch, on
any device, and after `--resume`.
"""

from __future__ import annotations

import numpy as np


def generator(seed: int, stream: int, input: int, draw: int = 0) -> np.random.Generator:
    """The generator of one draw for one input; `stream` keeps candidates and voters apart."""
    key = np.array([seed & (2**64 - 1), stream], dtype=np.uint64)
    counter = np.array([0, 0, draw, input], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
