"""Checkpoints: what comes back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from experiments.checkpoint import load_checkpoint, read_card, save_checkpoint
from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.transformer import Transformer, TransformerOptions
from experiments.vocabulary import Bpe, Words

from rangevote.errors import SetupError
from tests.models.contract import chain

TEXTS = ["a dog runs", "ein Hund läuft über die Straße"]


@pytest.fixture(scope="module", params=["transformer", "show_and_tell"])
def model(request):
    torch.manual_seed(0)
    if request.param == "transformer":
        return Transformer(TransformerOptions(8, 1, 2, 8), Bpe.train(TEXTS, 280))
    return ShowAndTell(ShowAndTellOptions(3, 4, 5), Words.train(TEXTS))


@pytest.fixture
def input(model):
    return "a dog" if model.kind == "transformer" else np.ones(3)


@pytest.fixture
def folder(model, tmp_path):
    save_checkpoint(model, tmp_path / "model", {"dev_loss": 1.5})
    return tmp_path / "model"


def test_a_model_comes_back_as_it_was(model, input, folder):
    found = load_checkpoint(folder)
    assert type(found) is type(model)
    assert found.options == model.options
    expected = chain(model, input, [5, 6])
    assert (chain(found, input, [5, 6]).log_probs == expected.log_probs).all()
    assert found.text([5, 6]) == model.text([5, 6])
    assert read_card(folder)["training"] == {"dev_loss": 1.5}
    moved = next(load_checkpoint(folder, device="meta", dtype=torch.float64).net.parameters())
    assert (moved.device.type, moved.dtype) == ("meta", torch.float64)


def test_an_empty_folder_is_no_model(tmp_path):
    with pytest.raises(SetupError, match=r"no model in .*: rangevote\.json is missing"):
        load_checkpoint(tmp_path)
