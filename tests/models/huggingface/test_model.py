"""Rows say step by step what transformers says of a whole sequence at once; settings change only rankings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from packaging.version import Version
from transformers import GenerationConfig

from rangevote.errors import UsageError
from rangevote.models.huggingface.model import HuggingFace
from rangevote.models.huggingface.shared_prefix import SharedPrompt
from tests.models.contract import ModelContract
from tests.models.huggingface.tiny import (
    BEGIN,
    END,
    MODELS,
    PAD,
    SHARING,
    forced,
    inputs_of,
    make,
    make_processor,
    model_of,
)

CASES = [("llama", True), ("bart", False), ("mamba", True)]


@pytest.mark.parametrize(("kind", "share"), CASES)
class TestHuggingFace(ModelContract):
    tolerance = 1e-4
    normalised = 1e-5
    steps = 4

    @pytest.fixture
    def model(self, tiny_model, kind, share):
        return model_of(kind, tiny_model(kind), share=share)

    @pytest.fixture
    def inputs(self, kind):
        return inputs_of(kind)


# BLIP's decoder takes no image of its own; what it says is compared with `generate` below.
KINDS = [kind for kind in MODELS if kind != "blip"]


@pytest.mark.parametrize(
    ("kind", "share"), [*((kind, True) for kind in KINDS), *((kind, False) for kind in SHARING)]
)
def test_rows_say_what_one_pass_over_the_whole_sequence_says(tiny_model, kind, share):
    if kind == "git" and Version(transformers.__version__) < Version("5.22"):
        pytest.skip("its steps with a cache differ from one pass in older versions")
    net, inputs = tiny_model(kind), inputs_of(kind)
    model = model_of(kind, net, share=share)
    written = np.random.default_rng(0).integers(4, 40, size=(2 * len(inputs), 20))
    owner = np.arange(len(written)) // 2  # two rows of every input
    step = model.step(model.select(model.start(inputs), owner), None)
    assert isinstance(step.state.prompt, SharedPrompt) == (share and kind in SHARING)
    steps = [step]
    for tokens in written.T:
        steps.append(model.step(steps[-1].state, tokens))
    for row, tokens in enumerate(written.tolist()):
        expected = forced(kind, net, inputs[owner[row]], tokens)
        found = torch.stack([step.log_probs[row] for step in steps])
        hidden = torch.stack([step.hidden[row] for step in steps])
        torch.testing.assert_close(found, expected.log_probs, rtol=0, atol=1e-4)
        torch.testing.assert_close(hidden, expected.hidden.float(), rtol=1e-4, atol=1e-4)


def test_a_cache_whose_rows_cannot_move_is_not_used():
    torch.manual_seed(0)
    net = transformers.RwkvForCausalLM(
        transformers.RwkvConfig(vocab_size=40, hidden_size=32, num_hidden_layers=2, eos_token_id=END)
    ).eval()
    model, prompt = HuggingFace(net), [5, 6, 7]
    step = model.step(model.start([prompt]), None)
    step = model.step(model.select(step.state, np.array([0, 0])), np.array([8, 9]))
    step = model.step(model.select(step.state, np.array([1, 0])), np.array([10, 11]))
    expected = torch.stack([forced("rwkv", net, prompt, ids).log_probs[-1] for ids in ([9, 10], [8, 11])])
    torch.testing.assert_close(step.log_probs, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["git", "blip"])
def test_the_likeliest_token_at_every_step_is_what_generate_writes(tiny_model, kind):
    net, inputs = tiny_model(kind), inputs_of(kind)
    model = model_of(kind, net)
    step, tokens = model.step(model.start(inputs), None), []
    for _ in range(12):
        tokens.append(step.log_probs.argmax(dim=-1).numpy())
        step = model.step(step.state, tokens[-1])
    for i, input in enumerate(inputs):
        found = [int(chosen[i]) for chosen in tokens]
        found = found[: found.index(model.ends[0])] if model.ends[0] in found else found
        pixels = make_processor()(images=[input], return_tensors="pt")["pixel_values"]
        ids = net.generate(pixel_values=pixels, max_new_tokens=12, do_sample=False)[0].tolist()[1:]
        assert found == (ids[: ids.index(model.ends[0])] if model.ends[0] in ids else ids)


PROMPT = [5, 6, 7, 8] * 5


def bent(kind: str, **settings) -> HuggingFace:
    """A model whose generation configuration has these settings."""
    net = make(kind)
    start = net.generation_config.decoder_start_token_id
    net.generation_config = GenerationConfig(
        bos_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD, decoder_start_token_id=start, **settings
    )
    return HuggingFace(net)


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_forbidden_words_have_no_rank_and_keep_their_probability(kind):
    model, free = bent(kind, bad_words_ids=[[9], [10, 11]], suppress_tokens=[12]), bent(kind)
    step, expected = (one.step(one.start([PROMPT]), None) for one in (model, free))
    assert step.ranking[0, [9, 12]].tolist() == [-np.inf, -np.inf]
    assert step.ranking[0, 11] == step.log_probs[0, 11]
    step.ranking[:] = 7.0  # may be written into without harm
    torch.testing.assert_close(step.log_probs, expected.log_probs)
    state = model.select(step.state, np.array([0, 0]))
    step = model.step(state, np.array([10, 13]))
    assert step.ranking[0, 11] == -np.inf  # after a 10
    assert step.ranking[1, 11] == step.log_probs[1, 11]


def test_a_row_keeps_its_own_tokens_for_what_may_not_repeat():
    model = bent("llama", no_repeat_ngram_size=2)
    step = model.step(model.start([[5, 20, 21]]), None)
    step = model.step(model.select(step.state, np.array([0, 0])), np.array([20, 22]))
    assert step.ranking[0, 21] == -np.inf  # 20 21 was in the prompt
    assert step.ranking[1, 21] > -np.inf
    step = model.step(model.select(step.state, np.array([1, 0, 1])), np.array([20, 20, 5]))
    assert (step.ranking[:, 21] == -np.inf).tolist() == [True, True, False]
    assert (step.ranking[:, 20] == -np.inf).tolist() == [False, True, True]  # 20 20, and 5 20


def test_what_belongs_to_a_search_is_not_applied():
    sampling = {"do_sample": True, "temperature": 0.1, "top_k": 3, "top_p": 0.5, "num_beams": 4}
    lengths = {"max_length": 3, "max_new_tokens": 2, "forced_eos_token_id": END, "early_stopping": True}
    model = bent("bart", **sampling, **lengths, length_penalty=2.0, num_return_sequences=2)
    step = model.step(model.start([PROMPT]), None)
    for _ in range(6):
        assert step.ranking is None
        step = model.step(step.state, np.array([7]))


def test_a_setting_made_for_a_fixed_batch_is_refused():
    with pytest.raises(UsageError, match=r"'encoder_no_repeat_ngram_size' cannot be kept.*= None"):
        bent("bart", encoder_no_repeat_ngram_size=2).start([PROMPT])
