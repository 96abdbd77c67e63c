"""What transformers hands to a decoding method (`generate(custom_generate=...)`) is a model too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from rangevote.models.huggingface.model import Continued, HuggingFace
from rangevote.models.huggingface.shared_prefix import SharedPrompt
from rangevote.models.huggingface.steps import Prepared
from tests.models.huggingface.tiny import IDS, SHARING, inputs_of, model_of

K = 3


def handed(net, encoded, **settings) -> Continued:
    """The model of what `generate` prepares for K beams."""

    def decode(model, input_ids, logits_processor, stopping_criteria, generation_config, **model_kwargs):
        assert len(input_ids) % K == 0
        return Continued(Prepared.of(model, input_ids, logits_processor, generation_config, model_kwargs))

    return net.generate(
        **encoded, custom_generate=decode, num_beams=K, max_new_tokens=9, do_sample=False, **settings
    )


def walk(model, state) -> list[torch.Tensor]:
    rng, step = np.random.default_rng(0), model.step(state, None)
    found = [step.log_probs]
    for _ in range(5):
        rows = rng.integers(len(found[-1]), size=5)
        step = model.step(model.select(step.state, rows), rng.integers(4, 40, size=5))
        found.append(step.log_probs)
    return found


@pytest.mark.parametrize("kind", ["llama", "bart", "vit-gpt2", "git"])
def test_it_says_what_the_model_says_of_the_same_inputs(tiny_model, kind):
    net = tiny_model(kind)
    model, inputs = model_of(kind, net), inputs_of(kind)
    prepared = handed(net, model._encoder.encode(inputs)[0])
    assert prepared.inputs == range(len(inputs))
    assert list(prepared.ends) == list(model.ends)
    state = prepared.start(prepared.inputs)
    assert isinstance(state.prompt, SharedPrompt) == (kind in SHARING)
    assert len(state.prompt.ids) == len(inputs)  # each is read once, not once for each beam
    for found, expected in zip(walk(prepared, state), walk(model, model.start(inputs)), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    room, expected_room = prepared.room(prepared.start(prepared.inputs)), model.room(model.start(inputs))
    assert (room is None) == (expected_room is None)
    assert room is None or room.tolist() == expected_room.tolist()


def test_the_source_is_the_prompt_without_padding(tiny_model):
    net = tiny_model("llama")
    prepared = handed(net, HuggingFace(net)._encoder.encode(IDS)[0])
    assert [prepared.source(i) for i in prepared.inputs] == IDS
    assert handed(tiny_model("bart"), {"input_ids": torch.tensor([[5, 6]])}).source(0) == []


def test_processors_of_the_call_bend_the_ranking_even_a_forced_end(tiny_model):
    prepared = handed(tiny_model("bart"), {"input_ids": torch.tensor([[5, 6]])}, suppress_tokens=[7])
    step = prepared.step(prepared.start([0]), None)
    assert step.ranking[0, 7] == -np.inf
    for _ in range(8):  # of nine tokens at most
        step = prepared.step(step.state, np.array([9]))
    assert (step.ranking > -np.inf).sum() == 1


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_a_cache_of_fixed_size_is_replaced(tiny_model, kind):
    encoded = {"input_ids": torch.tensor([[5, 6, 7] * 6])}
    static = handed(tiny_model(kind), encoded, cache_implementation="static")
    found, expected = (walk(one, one.start([0])) for one in (static, handed(tiny_model(kind), encoded)))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_prompt_that_a_user_has_begun_to_read_is_read_from_there(tiny_model):
    net, ids = tiny_model("llama"), torch.tensor([[5, 6, 7, 8] * 6])
    begun = transformers.DynamicCache(config=net.config)
    with torch.no_grad():
        net(ids.repeat(K, 1)[:, :10], past_key_values=begun)
    prepared = handed(net, {"input_ids": ids}, past_key_values=begun)
    fresh = handed(net, {"input_ids": ids})
    for found, expected in zip(
        walk(prepared, prepared.start([0])), walk(fresh, fresh.start([0])), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert begun.get_seq_length() == 10  # the user's own is left alone
