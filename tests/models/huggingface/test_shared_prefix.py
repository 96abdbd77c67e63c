"""Rows that share what their input left in the cache say what rows with copies of it say."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import transformers

from rangevote.models.huggingface import shared_prefix
from rangevote.models.huggingface.model import HuggingFace
from rangevote.models.huggingface.shared_prefix import SharedPrompt
from tests.models.huggingface.tiny import DECODER, IDS, SEEING, SHARING, images, make, model_of

LONG = [[(7 * i + j) % 35 + 4 for j in range(20)] for i in range(4)]


def walk(model, inputs, seed: int, steps: int = 20, rows: int = 9) -> list[torch.Tensor]:
    """Log-probabilities along a way that repeats, drops and moves rows by chance."""
    rng = np.random.default_rng(seed)
    step = model.step(model.start(inputs), None)
    found = [step.log_probs]
    for _ in range(steps):
        chosen = rng.integers(len(found[-1]), size=rng.integers(1, rows + 1))
        state = model.select(step.state, chosen)
        step = model.step(state, rng.integers(4, 40, size=len(chosen)))
        found.append(step.log_probs)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", SHARING)
def test_shared_rows_say_what_plain_rows_say(tiny_model, kind, seed):
    inputs = images() if kind in SEEING else [IDS, LONG][seed]
    shared, plain = (model_of(kind, tiny_model(kind), share=share) for share in (True, False))
    for found, expected in zip(walk(shared, inputs, seed), walk(plain, inputs, seed), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)
    assert set(shared._trials.values()) == {True}
    assert plain._trials == {}


def test_attention_in_small_pieces_gives_the_same(tiny_model, monkeypatch):
    whole = walk(model_of("qwen2", tiny_model("qwen2")), LONG, 1)
    monkeypatch.setattr(shared_prefix, "MOST_SCORES", 1)
    for found, expected in zip(walk(model_of("qwen2", tiny_model("qwen2")), LONG, 1), whole, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_a_prompt_is_kept_once_however_many_rows_it_has(tiny_model):
    model = model_of("llama", tiny_model("llama"))
    fresh = model.start(LONG)
    kept = [prefix.keys.data_ptr() for prefix in fresh.prompt.prefix.decoder]
    state = model.step(model.select(fresh, np.arange(400) // 100), np.full(400, 5)).state
    layers = state.rows._cache.layers
    assert [layer.tag.prefix.keys.data_ptr() for layer in layers] == kept
    assert all(layer.tag.prefix.keys.shape[:1] == (len(LONG),) for layer in layers)
    assert all(layer.keys.shape[::2] == (400, 1) for layer in layers)


def test_inputs_without_rows_are_let_go_and_a_fresh_state_keeps_them(tiny_model):
    model = model_of("llama", tiny_model("llama"))
    fresh = model.start(LONG)
    step = model.step(model.select(fresh, np.array([0, 1, 2, 3])), np.full(4, 5))
    state = model.select(step.state, np.array([3, 3, 1]))
    assert all(len(layer.tag.prefix.keys) == 2 for layer in state.rows._cache.layers)
    found = model.step(state, np.array([6, 7, 8])).log_probs
    plain = model_of("llama", tiny_model("llama"), share=False)
    step = plain.step(plain.select(plain.start(LONG), np.array([3, 3, 1])), np.full(3, 5))
    torch.testing.assert_close(
        found, plain.step(step.state, np.array([6, 7, 8])).log_probs, rtol=0, atol=1e-4
    )
    again = model.step(model.select(fresh, np.arange(4)), np.full(4, 5)).log_probs
    torch.testing.assert_close(again[[3, 3, 1]], step.log_probs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_kinds_of_numbers_are_shared_too_and_answers_are_float32(dtype):
    net = make("qwen2").to(dtype)
    shared, plain = (walk(HuggingFace(net, share=share), LONG, 2, steps=5) for share in (True, False))
    tolerance = {torch.float64: 1e-5}.get(dtype, 1.0)
    for found, expected in zip(shared, plain, strict=True):
        assert found.dtype == torch.float32
        assert (found - expected).abs().mean() < tolerance


def test_a_model_whose_shared_answers_would_differ_goes_the_plain_way(tiny_model, monkeypatch):
    crossed = shared_prefix._crossed
    monkeypatch.setattr(shared_prefix, "_crossed", lambda *given: crossed(*given) * 1.1)
    model = model_of("bart", tiny_model("bart"))
    assert not isinstance(model.start(IDS).prompt, SharedPrompt)
    assert list(model._trials.values()) == [False]


def test_a_prompt_with_no_room_for_a_trial_is_not_tried(tiny_model):
    model = model_of("gpt2", tiny_model("gpt2"))
    step = model.step(model.start([[5] * 63]), None)
    assert model.room(step.state).tolist() == [1]
    assert model._trials == {}


def test_the_model_comes_back_as_it_was_also_after_an_error(tiny_model, monkeypatch):
    net = tiny_model("llama")
    before = (net.config.to_dict(), net.generation_config.to_dict(), net.config._attn_implementation)
    hooks, head = dict(net.lm_head._forward_pre_hooks), dict(vars(net.lm_head))
    walk(HuggingFace(net), LONG, 0, steps=3)
    assert (net.config.to_dict(), net.generation_config.to_dict(), net.config._attn_implementation) == before
    assert net.lm_head._forward_pre_hooks == hooks
    assert vars(net.lm_head).keys() == head.keys()
    assert not net.training
    model = HuggingFace(net)
    state = model.step(model.start(LONG), None).state
    monkeypatch.setattr(shared_prefix, "_joined", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.step(state, np.full(len(LONG), 5))
    assert net.config._attn_implementation == "sdpa"
    assert net.lm_head._forward_pre_hooks == hooks


def test_a_model_in_training_is_read_without_dropout_and_stays_in_training():
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=4, eos_token_id=2)
    net = transformers.GPT2LMHeadModel(config).train()
    net.transformer.h[1].eval()
    first, second = (walk(HuggingFace(net), LONG, 0, steps=3) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert net.training
    assert net.transformer.h[0].training
    assert not net.transformer.h[1].training


def test_eager_attention_gives_the_same_and_stays_eager():
    net = make("qwen2")
    expected = walk(HuggingFace(net), LONG, 0, steps=4)
    net.set_attn_implementation("eager")
    for found, known in zip(walk(HuggingFace(net), LONG, 0, steps=4), expected, strict=True):
        torch.testing.assert_close(found, known, rtol=0, atol=1e-4)
    assert net.config._attn_implementation == "eager"


def test_threads_may_use_one_model_at_the_same_time():
    torch.manual_seed(0)
    net = transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER)).eval()
    prompts = torch.tensor(LONG)
    with torch.no_grad():
        expected = [walk(HuggingFace(net), LONG, 0, steps=6), net(prompts).logits]
    wrong = []

    def steps() -> None:
        for found, known in zip(walk(HuggingFace(net), LONG, 0, steps=6), expected[0], strict=True):
            wrong.append((found - known).abs().max() > 1e-4)

    def passes() -> None:
        for _ in range(30):
            with torch.no_grad():
                wrong.append((net(prompts).logits - expected[1]).abs().max() > 1e-4)

    threads = [threading.Thread(target=work) for work in (steps, passes, steps)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 2 * 7 + 30
    assert not any(wrong)
