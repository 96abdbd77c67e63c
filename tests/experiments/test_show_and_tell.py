"""Show and Tell against torch's LSTM and the LSTM's equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.vocabulary import START, Words

from tests.experiments.own_models import OwnModel, lively, log_probs
from tests.models.contract import chain

WORDS = ["a", "dog", "runs", "cat", "sits", "on", "the", "grass"]
SHAPE = ShowAndTellOptions(features=5, units=7, embedding=6, dropout=0.4)
INPUTS = IMAGES = list(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))


def lively_model():
    return lively(lambda: ShowAndTell(SHAPE, Words(WORDS)), 0.5)


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
