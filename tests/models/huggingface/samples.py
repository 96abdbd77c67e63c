"""Inputs for tiny models: token ids and images."""

from __future__ import annotations

import numpy as np
from PIL import Image

#: Of different lengths, one long enough that rows share it and others so short that they get copies.
IDS = [[5, 6, 7, 8, 9] * 4 + [11], [10, 11], [12, 13, 14, 15, 30, 31, 32], [8, 20, 21]]


def images() -> list[Image.Image]:
    """Noise of several sizes."""
    draw = np.random.default_rng(0)
    sizes = [(16, 16), (20, 31), (40, 8)]
    return [Image.fromarray(draw.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]
