"""Transformers models of a few thousand random weights, and what transformers itself finds with them."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

import rangevote as rv

VOCABULARY, PAD, START, END = 40, 0, 1, 2
#: Wide enough that no two beams are equally good.
SPREAD = {"initializer_range": 0.5}
SPECIAL = {"pad_token_id": PAD, "bos_token_id": START, "eos_token_id": END}


def llama() -> Any:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, num_key_value_heads=2, **sizes, **SPECIAL, **SPREAD
    )
    return transformers.LlamaForCausalLM(config)


def gpt2() -> Any:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=VOCABULARY, **sizes, **SPECIAL, **SPREAD)
    )


def bart() -> Any:
    sizes = {f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in _BART.items()}
    config = transformers.BartConfig(
        vocab_size=VOCABULARY,
        d_model=32,
        max_position_embeddings=64,
        init_std=0.5,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        **sizes,
        **SPECIAL,
    )
    return transformers.BartForConditionalGeneration(config)


_BART = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}


def vit_gpt2() -> Any:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    vit = transformers.ViTConfig(image_size=8, patch_size=4, **sizes, **SPREAD)
    writer = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, **SPECIAL, **SPREAD
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(vit, writer)
    model = transformers.VisionEncoderDecoderModel(config=config)
    for settings in (model.config, model.generation_config):
        settings.decoder_start_token_id = START
        settings.pad_token_id, settings.eos_token_id = PAD, END
    return model


MODELS = {"llama": llama, "gpt2": gpt2, "bart": bart, "vit_gpt2": vit_gpt2}


def made(name: str, seed: int = 0) -> Any:
    """A model of this kind, with the weights of this seed."""
    torch.manual_seed(seed)
    return MODELS[name]().eval()


def inputs(model: Any, number: int = 3, *, padded: bool = False) -> dict[str, Tensor]:
    """What `generate` takes: images or token ids, some of them padded on the left."""
    torch.manual_seed(9)
    if model.config.model_type == "vision-encoder-decoder":
        return {"pixel_values": torch.randn(number, 3, 8, 8)}
    ids = torch.randint(3, VOCABULARY, (number, 6))
    mask = torch.ones_like(ids)
    if padded:
        ids[0, :2], mask[0, :2] = PAD, 0
    return {"input_ids": ids, "attention_mask": mask}


def beams(model: Any, given: dict[str, Tensor], k: int, **options: Any) -> list[list[rv.Hypothesis]]:
    """The lists of transformers' own beam search, with log-probabilities before normalisation."""
    out = model.generate(
        **given,
        **{"num_beams": k, "num_return_sequences": k, "do_sample": False, "length_penalty": 1.0, **options},
        return_dict_in_generate=True,
        output_scores=True,
    )
    lengths = (out.beam_indices >= 0).sum(dim=1)  # with the end
    width = out.sequences.shape[1] - out.beam_indices.shape[1]
    prompt = width if width > 0 else 1
    power = options.get("length_penalty", 1.0)
    logprobs = out.sequences_scores * lengths.float() ** power
    found = [
        _hypothesis(row[prompt : prompt + n], float(logprob), float(score))
        for row, n, logprob, score in zip(
            out.sequences.tolist(), lengths.tolist(), logprobs, out.sequences_scores, strict=True
        )
    ]
    return [found[i : i + k] for i in range(0, len(found), k)]


def _hypothesis(tokens: list[int], logprob: float, score: float) -> rv.Hypothesis:
    finished = tokens[-1] == END
    return rv.Hypothesis(
        tokens=tuple(tokens[:-1] if finished else tokens), logprob=logprob, finished=finished, ranked_by=score
    )


def tokenizer() -> PreTrainedTokenizerFast:
    """Words w3, w4, ... with white space between them."""
    words = {"<pad>": PAD, "<s>": START, "</s>": END, **{f"w{i}": i for i in range(3, VOCABULARY)}}
    splitter = Tokenizer(models.WordLevel(words, unk_token="w3"))
    splitter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=splitter, pad_token="<pad>", bos_token="<s>", eos_token="</s>", padding_side="left"
    )
