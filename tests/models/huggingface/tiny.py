"""Tiny random transformers models of many kinds, and tokenizers for them.

The spread of their initial weights is large: with the usual one all tokens are about equally likely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

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
