"""GGUF files hold weights, configuration and tokenizer in one."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from rangevote.errors import SetupError
from rangevote.models.huggingface.model import HuggingFace
from rangevote.models.load import load
from tests.models.huggingface.tiny import END, make

gguf = pytest.importorskip("gguf", reason="needs gguf: pip install 'rangevote[models]'")
pytest.importorskip("accelerate", reason="needs accelerate: pip install 'rangevote[models]'")


def first(model, *inputs) -> torch.Tensor:
    return model.step(model.start(inputs), None).log_probs


def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key matrix in the order of GGUF files of LLaMA models."""
    halves = weight.reshape(heads, 2, len(weight) // heads // 2, -1)
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write_gguf(path: Path, net, words: list[str]) -> None:
    config = net.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3, 3, 3] + [1] * (len(words) - 3))
    writer.add_token_merges(["a b", "b a"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    for name, tensor in net.state_dict().items():
        weight = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:
            weight = permuted(weight, config.num_attention_heads)
        name = name.replace("model.embed_tokens", "token_embd").replace("model.norm", "output_norm")
        name = name.replace("lm_head", "output").replace("model.layers.", "blk.")
        for theirs, short in names.items():
            name = name.replace(theirs, short)
        writer.add_tensor(name, np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_has_weights_configuration_and_tokenizer(tmp_path, capfd):
    net = make("llama")
    words = ["<pad>", "<s>", "</s>", "a", "b", "ab", "ba", "Ġ", *[f"w{i}" for i in range(32)]]
    write_gguf(tmp_path / "tiny.gguf", net, words)
    capfd.readouterr()
    model = load(tmp_path / "tiny.gguf")
    assert capfd.readouterr() == ("", "")
    torch.testing.assert_close(
        first(model, [5, 6, 7], [9]), first(HuggingFace(net), [5, 6, 7], [9]), rtol=0, atol=1e-4
    )
    assert model.ends == (END,)
    assert model.source("ab") == [5]
    assert model.text([5, 3]) == "aba"


def test_a_broken_gguf_file_is_a_setup_error(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF and nothing")
    with pytest.raises(SetupError, match=r"broken.gguf.*transformers cannot read it"):
        load(tmp_path / "broken.gguf")


SMOL = os.environ.get("RANGEVOTE_TEST_GGUF", "")


@pytest.mark.slow
@pytest.mark.skipif(not SMOL, reason="set RANGEVOTE_TEST_GGUF to the path of a SmolLM2 GGUF file")
def test_a_real_gguf_file_answers_in_a_chat():
    model = load(SMOL)
    step = model.step(model.start(["What is the capital of France? Answer in one word."]), None)
    tokens = []
    while not tokens or (tokens[-1] not in model.ends and len(tokens) < 20):
        tokens.append(int(step.log_probs.argmax()))
        step = model.step(step.state, np.array(tokens[-1:]))
    assert "Paris" in model.text(tokens)
