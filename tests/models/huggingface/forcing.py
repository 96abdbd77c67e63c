"""What transformers itself says of a sequence in one pass over all its tokens, without a cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tests.models.huggingface.tiny import BEGIN, SEEING, make_processor


class Said(NamedTuple):
    """Of every place from the end of the prompt on: log-probabilities and the last layer's input."""

    log_probs: torch.Tensor  # (tokens + 1, vocabulary)
    hidden: torch.Tensor  # (tokens + 1, dimension)


def forced(kind: str, net: Any, input: Any, tokens: list[int]) -> Said:
    """`input` is a list of token ids, or an image."""
    states: list[torch.Tensor] = []
    net = net.text_decoder if kind == "blip" else net
    hook = net.get_output_embeddings().register_forward_pre_hook(lambda _, given: states.append(given[0]))
    try:
        with torch.no_grad():
            logits = _run(kind, net, input, tokens)[0, -len(tokens) - 1 :]
    finally:
        hook.remove()
    return Said(logits.log_softmax(dim=-1), states[-1][0, -len(tokens) - 1 :])


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
