"""Every kind of model keeps the seam's contract, with shared prefixes and without."""

from __future__ import annotations

import pytest

from rangevote.models.huggingface.model import HuggingFace
from tests.models.contract import ModelContract
from tests.models.huggingface.samples import IDS, images
from tests.models.huggingface.tiny import MODELS, SEEING, make_processor

CASES = [*((kind, True) for kind in MODELS), ("llama", False), ("bart", False)]


@pytest.mark.parametrize(("kind", "share"), CASES)
class TestHuggingFace(ModelContract):
    tolerance = 1e-4
    normalised = 1e-5
    steps = 4

    @pytest.fixture
    def model(self, tiny_model, kind, share):
        return HuggingFace(
            tiny_model(kind), processor=make_processor() if kind in SEEING else None, share=share
        )

    @pytest.fixture
    def inputs(self, kind):
        return images() if kind in SEEING else IDS
