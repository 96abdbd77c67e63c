"""The Transformer against torch's own layers, teacher forcing and a search without any cache."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from experiments.transformer import (
    PRESETS,
    Transformer,
    TransformerNet,
    TransformerOptions,
    padded,
)
from experiments.transformer_layers import DecoderLayer, EncoderLayer, positions
from experiments.vocabulary import END, START, Words

from rangevote.decoding import search
from rangevote.errors import UsageError
from rangevote.models.protocol import Step
from tests.experiments.own_models import OwnModel, lively, log_probs
from tests.models.contract import chain

WORDS = ["a", "dog", "runs", "cat", "sits", "on", "the", "grass", "over", "street", "two", "men"]
INPUTS = ["a dog", "", "the cat sits on the grass over the street zebra", [5, 6, 4]]
SHAPE = TransformerOptions(dimension=16, layers=2, heads=2, inner=32, dropout=0.1)


def lively_model():
    return lively(lambda: Transformer(SHAPE, Words(WORDS)), 0.3)


@pytest.fixture
def model():
    return lively_model()


@pytest.fixture
def inputs():
    return INPUTS


class TestTransformer(OwnModel):
    pass


class TestBeyondTheRoomOfABuffer(OwnModel):
    @pytest.fixture(autouse=True)
    def short_buffers(self, monkeypatch):
        monkeypatch.setattr("experiments.transformer_layers.GROWTH", 2)


def test_the_steps_along_a_target_are_those_of_teacher_forcing(model, inputs):
    target = [4, 9, 7, 7, 5]
    sources = padded([[*model.source(input), END] for input in inputs])
    forced = log_probs(model.net.eval()(sources, torch.tensor([[START, *target]] * len(inputs))))
    for i, input in enumerate(inputs):
        np.testing.assert_allclose(chain(model, input, target).log_probs, forced[i], atol=1e-12)


class Naive:
    """The same model without any memory: the whole prefix goes through the network at every step."""

    ends = (END,)

    def __init__(self, model):
        self.model, self.text, self.source, self.room = model, model.text, model.source, model.room

    def start(self, inputs):
        return [(list(self.source(input)), [START]) for input in inputs]

    def step(self, state, tokens):
        if tokens is not None:
            state = [(source, [*prefix, int(t)]) for (source, prefix), t in zip(state, tokens, strict=True)]
        rows = [
            self.model.net.states(torch.tensor([[*source, END]]), torch.tensor([prefix]))[0, -1:]
            for source, prefix in state
        ]
        hidden = torch.cat(rows).detach()
        return Step(torch.from_numpy(log_probs(self.model.net.logits(hidden))), state, hidden)

    def select(self, state, rows):
        return [state[row] for row in rows]


@pytest.mark.parametrize("method", ["beam:7", "diverse_beam:6,groups=3", "sample:8,seed=3"])
def test_searches_find_what_they_find_without_a_cache(model, inputs, method, monkeypatch):
    monkeypatch.setattr("experiments.transformer_layers.GROWTH", 4)
    method += ",max_new_tokens=6"
    found = search(model, inputs, method, states=True)
    expected = search(Naive(model), inputs, method, states=True)
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.logprob for one in ours] == pytest.approx([one.logprob for one in theirs], abs=1e-9)
        np.testing.assert_allclose([one.state for one in ours], [one.state for one in theirs], atol=1e-6)


def torchs(kind, layer):
    """Torch's own layer with our weights."""
    theirs = kind(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64)
    own = layer.attention
    weights = {
        "self_attn.in_proj_weight": own.qkv.weight,
        "self_attn.in_proj_bias": own.qkv.bias,
        "linear1.weight": layer.feed.up.weight,
        "linear1.bias": layer.feed.up.bias,
        "linear2.weight": layer.feed.down.weight,
        "linear2.bias": layer.feed.down.bias,
        "self_attn.out_proj.weight": own.out.weight,
        "self_attn.out_proj.bias": own.out.bias,
    }
    for i, norm in enumerate(layer.norms, 1):
        weights |= {f"norm{i}.weight": norm.weight, f"norm{i}.bias": norm.bias}
    if isinstance(layer, DecoderLayer):
        cross = layer.cross
        weights |= {
            "multihead_attn.in_proj_weight": torch.cat([cross.q.weight, cross.kv.weight]),
            "multihead_attn.in_proj_bias": torch.cat([cross.q.bias, cross.kv.bias]),
            "multihead_attn.out_proj.weight": cross.out.weight,
            "multihead_attn.out_proj.bias": cross.out.bias,
        }
    theirs.load_state_dict(weights)
    return theirs


def test_the_encoder_layer_is_torchs(model):
    (layer, *_) = model.net.encoder
    assert isinstance(layer, EncoderLayer)
    states = torch.randn(3, 5, 16, dtype=torch.float64)
    pads = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    mask = torch.zeros(3, 5, dtype=torch.float64).masked_fill(pads, -math.inf)[:, None, None]
    model.net.eval()
    theirs = torchs(torch.nn.TransformerEncoderLayer, layer)(states, src_key_padding_mask=pads)
    torch.testing.assert_close(layer(states, mask)[~pads], theirs[~pads], atol=1e-12, rtol=0)


def test_the_decoder_layer_is_torchs(model):
    (layer, *_) = model.net.decoder
    states, memory = torch.randn(3, 4, 16, dtype=torch.float64), torch.randn(3, 6, 16, dtype=torch.float64)
    ahead = torch.ones(4, 4, dtype=torch.bool).triu(1)
    model.net.eval()
    theirs = torchs(torch.nn.TransformerDecoderLayer, layer)(states, memory, tgt_mask=ahead)
    torch.testing.assert_close(layer(states, memory, None), theirs, atol=1e-12, rtol=0)


def test_positions_are_sines_and_cosines_of_the_paper():
    found = positions(0, 12, 4, torch.zeros(0, dtype=torch.float64))
    for p in (0, 1, 11):
        expected = [math.sin(p), math.sin(p / 100), math.cos(p), math.cos(p / 100)]  # 10,000^(2/4) = 100
        assert found[p].tolist() == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(positions(7, 9, 4, found), found[7:9])


@pytest.mark.parametrize(("preset", "millions"), [("base", 65), ("big", 213)])
def test_the_presets_have_the_size_that_the_paper_tells(preset, millions):
    with torch.device("meta"):
        net = TransformerNet(PRESETS[preset], 37_000)  # the paper's joint vocabulary
    assert sum(p.numel() for p in net.parameters()) / 1e6 == pytest.approx(millions, rel=0.04)


@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (lambda: TransformerOptions(dimension=30), "dimension 30 does not divide into 4 heads"),
        (lambda: TransformerOptions(layers=0), "all sizes must be 1 or more"),
        (lambda: TransformerOptions(dropout=1.0), r"dropout 1\.0; it goes from 0 to below 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(misuse, told):
    with pytest.raises(UsageError, match=told):
        misuse()


def test_sources_without_rows_are_let_go_of(model, inputs):
    step = model.step(model.start(inputs * 2), None)
    state = model.select(step.state, np.array([6, 6, 1]))
    assert len(state.cross[0].keys) == 2
    step = model.step(state, np.array([5, 6, 7]))
    for row, (input, token) in enumerate([(inputs[2], 5), (inputs[2], 6), (inputs[1], 7)]):
        np.testing.assert_allclose(step.log_probs[row], chain(model, input, [token]).log_probs[1], atol=1e-12)
