"""Every kind of model keeps the seam's contract, with shared prefixes and without."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from rangevote.model.huggingface.model import HuggingFace
from tests.model.contract import ModelContract
from tests.model.huggingface.tiny import MODELS, SEEING, make_processor

IDS = [[5, 6, 7, 8, 9] * 4 + [11], [10, 11], [12, 13, 14, 15, 30, 31, 32], [8, 20, 21]]


def images() -> list[Image.Image]:
    draw = np.random.default_rng(0)
    sizes = [(16, 16), (20, 31), (40, 8)]
    return [Image.fromarray(draw.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]


@pytest.mark.parametrize(("kind", "share"), [*((kind, True) for kind in MODELS), ("llama", False), ("bart", False)])
class TestHuggingFace(ModelContract):
    tolerance = 1e-4
    normalised = 1e-5

    @pytest.fixture
    def model(self, tiny_model, kind, share):
        return HuggingFace(tiny_model(kind), processor=make_processor() if kind in SEEING else None, share=share)

    @pytest.fixture
    def inputs(self, kind):
        return images() if kind in SEEING else IDS
