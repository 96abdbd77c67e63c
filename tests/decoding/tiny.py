"""Tiny random models of transformers, and the plainest way to put one behind the seam: no cache, no padding.

Every step is a full forward pass over whole prefixes, so that searches are compared with transformers' own
without any of our code for its models between them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from rangevote.models.protocol import Step

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image")

PAD, START, END = 0, 1, 2
VOCAB = 40
SMALL: dict[str, Any] = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": PAD}
#: Small weights give near-uniform models and ties.
WIDE = 0.5


def _bart_like(kind: str) -> Any:
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=VOCAB,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        init_std=WIDE,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        **SMALL,
    )
    name = {"Bart": "BartForConditionalGeneration", "Marian": "MarianMTModel"}[kind]
    return getattr(transformers, name)(config)


def _llama() -> Any:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
            initializer_range=WIDE,
            **SMALL,
        )
    )


def _gpt2_config(**options: Any) -> Any:
    return transformers.GPT2Config(
        vocab_size=VOCAB,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        initializer_range=0.3,
        **SMALL,
        **options,
    )


def _vit_gpt2() -> Any:
    vit = transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=16,
        patch_size=8,
        initializer_range=WIDE,
    )
    gpt2 = _gpt2_config(add_cross_attention=True, is_decoder=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(vit, gpt2)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = START, PAD, END
    return transformers.VisionEncoderDecoderModel(config)


MAKERS = {
    "bart": lambda: _bart_like("Bart"),
    "marian": lambda: _bart_like("Marian"),
    "llama": _llama,
    "gpt2": lambda: transformers.GPT2LMHeadModel(_gpt2_config()),
    "vit_gpt2": _vit_gpt2,
}


@cache
def model(name: str, seed: int) -> Any:
    """A random model whose generation settings are nothing but its special tokens."""
    torch.manual_seed(seed)
    made = MAKERS[name]().eval()
    made.generation_config = transformers.GenerationConfig(**SMALL, decoder_start_token_id=START)
    return made


def inputs_for(name: str, seed: int, lengths: list[int]) -> list[Any]:
    """Prompts or sources of these lengths, without special tokens; or as many images."""
    rng = np.random.default_rng(seed)
    if name == "vit_gpt2":
        return [Image.fromarray(rng.integers(256, size=(16, 16, 3)).astype(np.uint8)) for _ in lengths]
    return [rng.integers(3, VOCAB, size=length).tolist() for length in lengths]


def pixels(images: list[Any], return_tensors: str = "pt") -> dict[str, Any]:
    """What a processor makes of images: numbers around 0 (images, channels, height, width)."""
    arrays = np.stack([np.asarray(image, dtype=np.float32) / 64 - 2 for image in images])
    return {"pixel_values": torch.from_numpy(arrays.transpose(0, 3, 1, 2).copy())}


def batched(name: str, inputs: list[Any], mask: bool) -> dict[str, Any]:
    """What `generate` takes: padded on the left for a model without encoder, else on the right."""
    if name == "vit_gpt2":
        return pixels(inputs)
    if not mask:
        return {"input_ids": torch.tensor(inputs)}
    width = max(map(len, inputs))
    ids, masks = torch.full((len(inputs), width), PAD), torch.zeros((len(inputs), width), dtype=torch.int64)
    for i, one in enumerate(inputs):
        place = slice(width - len(one), None) if name in ("llama", "gpt2") else slice(len(one))
        ids[i, place], masks[i, place] = torch.tensor(one), 1
    return {"input_ids": ids, "attention_mask": masks}


@dataclass
class Prefixes:
    """The state: an input and the tokens after it, for each row."""

    rows: list[tuple[int, tuple[int, ...]]]
    inputs: list[Any]


class Plain:
    """Any of the tiny models behind the seam."""

    def __init__(self, hf: Any, ends: tuple[int, ...] = (END,)) -> None:
        self.hf, self.ends = hf, ends

    def start(self, inputs: Any) -> Prefixes:
        return Prefixes([(i, ()) for i in range(len(inputs))], list(inputs))

    def step(self, state: Prefixes, tokens: Any) -> Step[Prefixes]:
        rows = state.rows
        if tokens is not None:
            rows = [(i, (*prefix, int(token))) for (i, prefix), token in zip(rows, tokens, strict=True)]
        alike = defaultdict(list)  # rows of one length can go together
        for place, (i, _) in enumerate(rows):
            alike[len(state.inputs[i]) if isinstance(state.inputs[i], list) else 0].append(place)
        log_probs, hidden = torch.empty(len(rows), VOCAB), torch.empty(len(rows), 32)
        for places in alike.values():
            logs, states = forced(
                self.hf, [state.inputs[rows[p][0]] for p in places], [rows[p][1] for p in places]
            )
            log_probs[places], hidden[places] = logs[:, -1], states[:, -1]
        return Step(log_probs, Prefixes(rows, state.inputs), hidden)

    def select(self, state: Prefixes, rows: Any) -> Prefixes:
        return Prefixes([state.rows[row] for row in rows], state.inputs)

    def room(self, state: Prefixes) -> None:
        return None

    def text(self, tokens: Any) -> None:
        return None

    def source(self, input: Any) -> list[int]:
        return input if isinstance(input, list) else []


@torch.no_grad()
def forced(hf: Any, inputs: list[Any], prefixes: list[tuple[int, ...]]) -> tuple[Any, Any]:
    """Teacher forcing of equally long inputs and prefixes: log P of every token, and the states.

    Both (rows, prefix + 1, ...): position t has what follows the first t tokens of the prefix.
    """
    states = []
    head = hf.get_output_embeddings()
    hook = head.register_forward_pre_hook(lambda _, args: states.append(args[0]))
    try:
        if not hf.config.is_encoder_decoder:
            logits = hf(torch.tensor([[*i, *p] for i, p in zip(inputs, prefixes, strict=True)])).logits
        else:
            written = torch.tensor([[START, *prefix] for prefix in prefixes])
            if isinstance(inputs[0], list):
                logits = hf(input_ids=torch.tensor(inputs), decoder_input_ids=written).logits
            else:
                logits = hf(**pixels(inputs), decoder_input_ids=written).logits
    finally:
        hook.remove()
    after = slice(-len(prefixes[0]) - 1, None)
    return logits[:, after].float().log_softmax(dim=-1), states[-1][:, after].float()
