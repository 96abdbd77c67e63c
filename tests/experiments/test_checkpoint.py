"""Checkpoints: what comes back, and folders that are damaged, incomplete or not ours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from experiments.checkpoint import load_checkpoint, read_card, save_checkpoint
from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.transformer import Transformer, TransformerOptions
from experiments.vocabulary import Bpe, Words
from safetensors.torch import load_file, save_file

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


@pytest.mark.parametrize(("content", "told"), [("{", "is damaged"), ('{"format": 2}', "has format 2")])
def test_a_card_that_is_damaged_or_of_another_version_is_refused(folder, content, told):
    (folder / "rangevote.json").write_text(content)
    with pytest.raises(SetupError, match=told):
        load_checkpoint(folder)


def test_weights_that_are_missing_cut_off_or_of_another_model_are_refused(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SetupError, match=r"model\.safetensors is damaged or no safetensors file"):
        load_checkpoint(folder)
    save_file({**weights, min(weights): torch.zeros(1, 1, 1)}, path)
    with pytest.raises(SetupError, match="the files come from different models"):
        load_checkpoint(folder)
    path.unlink()
    with pytest.raises(SetupError, match=r"model\.safetensors is missing\. Copy or train the model again"):
        load_checkpoint(folder)
