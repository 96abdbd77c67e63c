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
    ("content", "told"),
    [
        ("", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ('{"model_type": "marian"}', "it must have format, kind, options, vocabulary, training"),
    ],
)
def test_a_card_that_is_damaged_or_foreign_is_refused(folder, content, told):
    (folder / "rangevote.json").write_text(content)
    with pytest.raises(SetupError, match=told):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 2}, "has format 2, and this rangevote reads 1; another version made it"),
        ({"kind": "rnn"}, "unknown kind 'rnn'; known are show_and_tell, transformer"),
        ({"vocabulary": "../secret.json"}, "is no name of a file beside it"),
        ({"vocabulary": "none.json"}, r"cannot read the vocabulary .*none\.json"),
        ({"options": {"dropoff": 0.1}}, r"options\.dropoff = 0\.1\. Did you mean 'dropout'"),
        ({"options": {"dropout": "much"}}, r"options\.dropout = 'much'"),
        ({"options": {"dropout": 7}}, r"rangevote\.json: dropout 7; it goes from 0 to below 1"),
    ],
)
def test_a_card_that_cannot_be_meant_is_refused(folder, change, told):
    card = json.loads((folder / "rangevote.json").read_bytes())
    (folder / "rangevote.json").write_text(json.dumps(card | change))
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


def test_weights_of_another_model_are_refused(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(weights)[0]
    other = dict(weights)
    del other[name]
    save_file(other, path)
    with pytest.raises(SetupError, match=rf"1 tensors differ, such as '{name}'"):
        load_checkpoint(folder)
    save_file(weights | {name: torch.zeros(1, 1, 1)}, path)
    with pytest.raises(SetupError, match="the files come from different models"):
        load_checkpoint(folder)


def test_weights_that_are_no_numbers_are_refused(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(weights)[0]
    save_file(weights | {name: torch.full_like(weights[name], torch.nan)}, path)
    with pytest.raises(SetupError, match="holds weights that are no numbers"):
        load_checkpoint(folder)


@pytest.mark.parametrize("value", [1.5, 1e9])
def test_a_size_that_is_no_whole_number_is_named(folder, value):
    card = json.loads((folder / "rangevote.json").read_bytes())
    name = next(iter(card["options"]))
    card["options"][name] = value
    (folder / "rangevote.json").write_text(json.dumps(card))
    with pytest.raises(SetupError, match=rf"rangevote.json: options.{name} = {value}"):
        load_checkpoint(folder)


def test_a_card_cannot_ask_for_more_memory_than_its_weights_have(folder, model):
    card = json.loads((folder / "rangevote.json").read_bytes())
    for name in [
        name for name, value in card["options"].items() if isinstance(value, int) and name != "heads"
    ]:
        large = {**card, "options": {**card["options"], name: 10**12}}
        (folder / "rangevote.json").write_text(json.dumps(large))
        with pytest.raises(SetupError, match=r"does not fit rangevote.json, whose network has more weights"):
            load_checkpoint(folder)
