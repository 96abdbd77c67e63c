"""What holds for both of our own models, and what a search may see of their logits."""

from __future__ import annotations

import math

import pytest
import torch
from experiments.vocabulary import END, PAD, START, UNKNOWN

from tests.models.contract import ModelContract, chain


def log_probs(logits):
    """What a search may see of logits: nothing of the marks that are never written."""
    logits = logits.detach().clone()
    logits[..., [PAD, START, UNKNOWN]] = -math.inf
    return logits.log_softmax(dim=-1).numpy()


def lively(make, noise):
    """A model whose next words depend visibly on the input and on the words before them."""
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for parameter in model.net.parameters():
            parameter += noise * torch.randn_like(parameter)
    model.net.double()
    return model


class OwnModel(ModelContract):
    """The contract, for the fixtures `model` and `inputs` of a module."""

    @pytest.fixture
    def model(self, request):
        return request.module.lively_model()

    @pytest.fixture
    def inputs(self, request):
        return request.module.INPUTS

    def test_the_marks_are_never_written(self, model, inputs):
        step = model.step(model.start(inputs), None)
        assert (step.log_probs[:, [PAD, START, UNKNOWN]] == -math.inf).all()
        assert (step.log_probs[:, END] > -math.inf).all()

    def test_dropout_is_off_when_searching_after_training(self, model, inputs):
        model.net.train()
        first, second = chain(model, inputs[0], [5]), chain(model, inputs[0], [5])
        assert (first.log_probs == second.log_probs).all()
