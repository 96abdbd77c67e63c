"""The last layer in blocks gives what torch's own product gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rangevote.models.huggingface import steps
from rangevote.models.huggingface.model import HuggingFace
from tests.models.huggingface.tiny import make


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7, 33])
def test_the_product_in_blocks_is_the_product(rows, bias):
    torch.manual_seed(rows)
    layer = torch.nn.Linear(16, 3001, bias=bias)
    hidden = torch.randn(rows, 1, 16)
    with torch.no_grad():
        found = steps.product(hidden, layer.weight, layer.bias)
        torch.testing.assert_close(found, layer(hidden), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "marian"])
def test_a_model_predicts_the_same_in_blocks(kind, monkeypatch):
    net, prompt = make(kind), [[5, 6, 7] * 7]
    found = []
    for large in (1, 1 << 13):
        monkeypatch.setattr(steps, "LARGE_VOCABULARY", large)
        assert steps._is_plain(net.get_output_embeddings()) == (large == 1)
        model = HuggingFace(net)
        step = model.step(model.select(model.start(prompt), np.zeros(4, dtype=int)), np.array([5, 6, 7, 8]))
        found.append(step)
        assert "forward" not in vars(net.get_output_embeddings())
    torch.testing.assert_close(found[0].log_probs, found[1].log_probs, rtol=0, atol=1e-4)
    torch.testing.assert_close(found[0].hidden, found[1].hidden, rtol=0, atol=1e-4)


@pytest.mark.parametrize("change", ["dtype", "subclass", "replaced"])
def test_a_layer_that_is_not_plain_is_left_alone(change):
    class Other(torch.nn.Linear):
        pass

    layer = (Other if change == "subclass" else torch.nn.Linear)(16, steps.LARGE_VOCABULARY)
    assert steps._is_plain(torch.nn.Linear(16, steps.LARGE_VOCABULARY))
    if change == "dtype":
        layer = layer.bfloat16()
    if change == "replaced":
        layer.forward = lambda hidden: hidden
    assert not steps._is_plain(layer)
