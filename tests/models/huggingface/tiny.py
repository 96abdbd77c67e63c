"""Tiny random transformers models of many kinds, tokenizers and inputs for them, and what they say of a text.

The spread of their initial weights is large: with the usual one all tokens are about equally likely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from rangevote.models.huggingface.model import HuggingFace

VOCABULARY = 40
PAD, BEGIN, END, UNKNOWN = range(4)
TEXT = "a the dog cat man woman runs sits sleeps eats red green blue big small in on under house tree"
WORDS = TEXT.split(" ")
ROOM = 64

NAMES = {"vocab_size": VOCABULARY, "bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD}
DECODER = {
    **NAMES,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": ROOM,
    "initializer_range": 0.5,
}
ENCODER_DECODER = {
    **NAMES,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": ROOM,
    "init_std": 0.5,
}
EYE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 16,
    "patch_size": 4,
    "initializer_range": 0.5,
}


def _gpt2(**more: Any) -> Any:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": ROOM, "initializer_range": 0.5}
    return transformers.GPT2Config(**NAMES, **sizes, **more)


def _gemma() -> Any:
    config = transformers.Gemma2Config(**DECODER, num_key_value_heads=2, head_dim=8, sliding_window=4)
    return transformers.Gemma2ForCausalLM(config)


def _vit_gpt2() -> Any:
    decoder = _gpt2(add_cross_attention=True, is_decoder=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(**EYE), decoder
    )
    net = transformers.VisionEncoderDecoderModel(config)
    net.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=BEGIN, pad_token_id=PAD, eos_token_id=END
    )
    return net


def _git() -> Any:
    return transformers.GitForCausalLM(transformers.GitConfig(vision_config=EYE, **DECODER))


def _blip() -> Any:
    text = {
        **DECODER,
        "initializer_range": 0.3,
        "encoder_hidden_size": 32,
        "projection_dim": 32,
        "sep_token_id": END,
    }
    config = transformers.BlipConfig(text_config=text, vision_config={**EYE, "projection_dim": 32})
    return transformers.BlipForConditionalGeneration(config)


def _t5() -> Any:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "initializer_factor": 1.0}
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(**NAMES, **sizes, decoder_start_token_id=PAD)
    )


#: kind -> makes a model of it
MODELS: dict[str, Callable[[], Any]] = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**DECODER, num_key_value_heads=2)
    ),
    "gpt2": lambda: transformers.GPT2LMHeadModel(_gpt2()),
    "opt": lambda: transformers.OPTForCausalLM(
        transformers.OPTConfig(**DECODER, ffn_dim=64, word_embed_proj_dim=32, init_std=0.5)
    ),
    "bloom": lambda: transformers.BloomForCausalLM(
        transformers.BloomConfig(**NAMES, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.5)
    ),
    "mistral": lambda: transformers.MistralForCausalLM(
        transformers.MistralConfig(**DECODER, num_key_value_heads=2, sliding_window=6)
    ),
    "gemma2": _gemma,
    "mamba": lambda: transformers.MambaForCausalLM(
        transformers.MambaConfig(
            **NAMES, hidden_size=32, num_hidden_layers=2, state_size=8, initializer_range=0.5
        )
    ),
    "bart": lambda: transformers.BartForConditionalGeneration(
        transformers.BartConfig(**ENCODER_DECODER, decoder_start_token_id=END, forced_eos_token_id=END)
    ),
    "marian": lambda: transformers.MarianMTModel(
        transformers.MarianConfig(**ENCODER_DECODER, decoder_start_token_id=PAD, forced_eos_token_id=None)
    ),
    "t5": _t5,
    "vit-gpt2": _vit_gpt2,
    "git": _git,
    "blip": _blip,
}

#: Models whose input is an image.
SEEING = ("vit-gpt2", "git", "blip")
#: Models whose rows share what their inputs left in the cache; T5 only where its attention can be replaced.
SHARING = ("llama", "qwen2", "gpt2", "opt", "bart", "marian", "vit-gpt2")
if hasattr(transformers.models.t5.modeling_t5, "ALL_ATTENTION_FUNCTIONS"):
    SHARING = (*SHARING, "t5")


def make(kind: str, seed: int = 0) -> Any:
    """A model with weights drawn from a seed."""
    torch.manual_seed(seed)
    return MODELS[kind]().eval()


def make_tokenizer(template: str | None = None) -> Any:
    """Words apart at spaces; a text begins with <s>. `template` is one for chats."""
    known = ["<pad>", "<s>", "</s>", "<unk>", *WORDS, "user", "assistant", ":"]
    known += [f"w{i}" for i in range(VOCABULARY - len(known))]
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(known)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", BEGIN)])
    marks = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, chat_template=template, **marks)


def make_processor() -> Any:
    """For images of 16 x 16 points."""
    size = {"height": 16, "width": 16}
    return transformers.ViTImageProcessorPil(size=size)


def model_of(kind: str, net: Any, **options: Any) -> HuggingFace:
    """The network behind the seam, with a processor if it sees."""
    return HuggingFace(net, processor=make_processor() if kind in SEEING else None, **options)


def inputs_of(kind: str) -> list[Any]:
    return images() if kind in SEEING else IDS


def first(model: Any, *inputs: Any) -> torch.Tensor:
    """Log-probabilities of the first token."""
    return model.step(model.start(inputs), None).log_probs


#: Of different lengths, one long enough that rows share it and others so short that they get copies.
IDS = [[5, 6, 7, 8, 9] * 4 + [11], [10, 11], [12, 13, 14, 15, 30, 31, 32], [8, 20, 21]]


def images() -> list[Image.Image]:
    """Noise of several sizes."""
    draw = np.random.default_rng(0)
    sizes = [(16, 16), (20, 31), (40, 8)]
    return [Image.fromarray(draw.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]


class Forced(NamedTuple):
    """Of every position from the end of the prompt on: log-probabilities and the last layer's input."""

    log_probs: torch.Tensor  # (tokens + 1, vocabulary)
    hidden: torch.Tensor  # (tokens + 1, dimension)


def forced(kind: str, net: Any, input: Any, tokens: list[int]) -> Forced:
    """What transformers says in one pass over all tokens, without a cache; `input`: ids or an image."""
    states: list[torch.Tensor] = []
    net = net.text_decoder if kind == "blip" else net
    hook = net.get_output_embeddings().register_forward_pre_hook(lambda _, given: states.append(given[0]))
    try:
        with torch.no_grad():
            logits = _run(kind, net, input, tokens)[0, -len(tokens) - 1 :]
    finally:
        hook.remove()
    return Forced(logits.log_softmax(dim=-1), states[-1][0, -len(tokens) - 1 :])


def _run(kind: str, net: Any, input: Any, tokens: list[int]) -> torch.Tensor:
    if kind in SEEING:
        return _seen(kind, net, make_processor()(images=[input], return_tensors="pt")["pixel_values"], tokens)
    if net.config.is_encoder_decoder:
        written = torch.tensor([[net.generation_config.decoder_start_token_id, *tokens]])
        return net(input_ids=torch.tensor([input]), decoder_input_ids=written, use_cache=False).logits
    return net(input_ids=torch.tensor([[*input, *tokens]]), use_cache=False).logits


def _seen(kind: str, net: Any, pixels: torch.Tensor, tokens: list[int]) -> torch.Tensor:
    written = torch.tensor([[BEGIN, *tokens]])
    if kind == "vit-gpt2":
        return net(pixel_values=pixels, decoder_input_ids=written, use_cache=False).logits
    if kind == "git":
        return net(pixel_values=pixels, input_ids=written, use_cache=False).logits
    raise AssertionError(kind)
