"""Checkpoints: what comes back, and folders that are damaged, incomplete or not ours."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")
pytest.importorskip("safetensors", reason="needs safetensors: pip install 'rangevote[models]'")

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
    with pytest.raises(SetupError, match=r"no model in .*: rangevote\.json is missing; was it trained"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ('{"model_type": "marian"}', "it must have format, kind, options, vocabulary, training"),
        ({"format": 2}, "has format 2, and this rangevote reads 1"),
        ({"kind": "rnn"}, "unknown kind 'rnn'; known are show_and_tell, transformer"),
        ({"vocabulary": "../secret.json"}, "is no name of a file beside it"),
        ({"vocabulary": "none.json"}, r"cannot read the vocabulary .*none\.json"),
        ({"options": {"dropoff": 0.1}}, r"options\.dropoff = 0\.1\. Did you mean 'dropout'"),
        ({"options": {"dropout": "much"}}, r"options\.dropout = 'much'"),
        ({"options": {"dropout": 7}}, r"dropout 7; it goes from 0 to below 1"),
        (1.5, r"options\.\w+ = 1\.5"),
        (1e9, r"options\.\w+ = 1000000000\.0"),
        (10**12, "does not fit rangevote.json, whose network has more weights"),
    ],
)
def test_a_card_that_is_damaged_foreign_or_impossible_is_refused(folder, change, told):
    path = folder / "rangevote.json"
    card = json.loads(path.read_bytes())
    if isinstance(change, (int, float)):  # as the first size of the network
        change = {"options": card["options"] | {next(iter(card["options"])): change}}
    path.write_text(change if isinstance(change, str) else json.dumps(card | change))
    with pytest.raises(SetupError, match=told):
        load_checkpoint(folder)


def test_weights_that_are_missing_cut_off_or_something_else_are_refused(folder):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    for content in (whole[:-1], whole[:100], b"", b"\x80\x04pickle", b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(SetupError, match=r"model\.safetensors is damaged or no safetensors file"):
            load_checkpoint(folder)
    path.unlink()
    with pytest.raises(SetupError, match=r"model\.safetensors is missing\. Copy or train the model again"):
        load_checkpoint(folder)


def test_weights_of_another_model_or_that_are_no_numbers_are_refused(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(weights)[0]
    for change, told in (
        ({}, rf"1 tensors differ, such as '{name}'"),
        ({name: torch.zeros(1, 1, 1)}, "the files come from different models"),
        ({name: torch.full_like(weights[name], torch.nan)}, "holds weights that are no numbers"),
    ):
        save_file({one: weight for one, weight in weights.items() if one != name} | change, path)
        with pytest.raises(SetupError, match=told):
            load_checkpoint(folder)
