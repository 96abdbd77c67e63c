"""Show and Tell against torch's LSTM and the LSTM's equations, and images that it cannot see."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from experiments.data import StoredFeatures
from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.vocabulary import START, Words

from rangevote.errors import DataError, UsageError
from tests.experiments.own_models import OwnModel, lively, log_probs
from tests.models.contract import chain

WORDS = ["a", "dog", "runs", "cat", "sits", "on", "the", "grass"]
SHAPE = ShowAndTellOptions(features=5, units=7, embedding=6, dropout=0.4)
INPUTS = IMAGES = list(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))


def lively_model(**options):
    return lively(lambda: ShowAndTell(SHAPE, Words(WORDS), **options), 0.5)


@pytest.fixture
def model():
    return lively_model()


class TestShowAndTell(OwnModel):
    pass


def test_the_steps_along_a_caption_are_those_of_torchs_lstm(model):
    words, net = [5, 4, 7], model.net.eval()
    image = torch.from_numpy(IMAGES[0]).double()[None]
    states = net.states(image, torch.tensor([[START, *words]]))[0]
    found = chain(model, IMAGES[0], words)
    np.testing.assert_allclose(found.hidden, states.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(found.log_probs, log_probs(net.logits(states)), atol=1e-12)


def test_a_step_is_the_equations_of_hochreiter_and_schmidhuber(model):
    net = {name: parameter.detach().numpy() for name, parameter in model.net.named_parameters()}
    hidden, cell = np.split(net["image.weight"] @ IMAGES[1].astype(float) + net["image.bias"], 2)
    hidden = np.tanh(hidden)
    for word in (START, 6):
        gates = net["lstm.weight_ih_l0"] @ net["embedding.weight"][word] + net["lstm.bias_ih_l0"]
        gates += net["lstm.weight_hh_l0"] @ hidden + net["lstm.bias_hh_l0"]
        let_in, keep, new, show = np.split(gates, 4)
        cell = cell / (1 + np.exp(-keep)) + np.tanh(new) / (1 + np.exp(-let_in))
        hidden = np.tanh(cell) / (1 + np.exp(-show))
    np.testing.assert_allclose(chain(model, IMAGES[1], [6]).hidden[-1], hidden, atol=1e-12)


def test_captions_are_words(model):
    assert model.text([4, 5, 6]) == "a dog runs"


def test_paths_are_seen_with_eyes_and_mix_with_features(tmp_path):
    names = np.array(["one.jpg", "two.jpg"])
    np.savez(tmp_path / "features.npz", names=names, features=np.stack(IMAGES[:2]).astype(np.float16))
    model = lively_model(read_features=StoredFeatures(tmp_path / "features.npz"))
    seen = model.start(["images/two.jpg", IMAGES[3], tmp_path / "one.jpg"])
    known = model.start([IMAGES[1].astype(np.float16), IMAGES[3], IMAGES[0].astype(np.float16)])
    torch.testing.assert_close(seen.hidden, known.hidden)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        (["a.jpg"], r"'a\.jpg' is a path, and this model takes feature vectors"),
        ("a.jpg", r"inputs is one path, 'a\.jpg'; give a list"),
        ([IMAGES[0], [1.0, 2.0, 3.0]], r"inputs\[1\]: features of shape \(3,\); this model takes 5"),
        ([[1.0, 2.0, 3.0, 4.0, math.nan]], r"inputs\[0\]: a feature is infinite or no number"),
    ],
)
def test_inputs_that_are_no_features_are_refused(model, inputs, told):
    with pytest.raises((UsageError, DataError), match=told):
        model.start(inputs)
