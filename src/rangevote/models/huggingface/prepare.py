"""What transformers' `generate` prepares for a decoding method: encoder output, tokens, processors, a cache.

It comes through `generate(custom_generate=...)`: for models of ours with a method that returns what it was
given, and for users' own calls of `generate` with `rangevote.custom_generate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache, LogitsProcessorList, StaticCache
from transformers.generation import logits_process

from rangevote.errors import UsageError
from rangevote.models.huggingface.steps import (
    Net,
    Prompt,
    batch_dimension,
    cache_name,
    cached_tokens,
    predict,
    reordered,
    shallow_copy,
    take,
    updated,
    without,
)
from rangevote.quiet import quiet

#: Longer than anything: the search limits lengths.
ENDLESS = 1 << 30
#: Of no use when the prompt is read and cached.
OF_PROMPTS = ("pixel_values", "pixel_values_videos", "pixel_mask", "mm_encoder_outputs", "inputs_embeds")

#: Settings of a model's generation configuration that belong to a search, which here is ours.
OVERRULED: dict[str, Any] = {
    "num_beams": 1,
    "num_return_sequences": 1,
    "do_sample": False,
    "early_stopping": False,
    "length_penalty": 1.0,
    "max_length": ENDLESS,
    "max_new_tokens": None,
    "max_time": None,
    "stop_strings": None,
    "penalty_alpha": None,
    "dola_layers": None,
    "prompt_lookup_num_tokens": None,
    "cache_implementation": None,
    "use_cache": True,
    "output_attentions": False,
    "output_hidden_states": False,
    "output_scores": False,
    "output_logits": False,
    "return_dict_in_generate": False,
}

#: Processors made for a fixed batch, not for rows that come and go; and the settings they come from.
BOUND = {
    "EncoderRepetitionPenaltyLogitsProcessor": "encoder_repetition_penalty",
    "EncoderNoRepeatNGramLogitsProcessor": "encoder_no_repeat_ngram_size",
    "PrefixConstrainedLogitsProcessor": "prefix_allowed_tokens_fn",
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": "guidance_scale",
}


@dataclass(frozen=True)
class Prepared:
    """One row for each input: first tokens `ids` (inputs, length), and the network's other arguments.

    With `stride` k > 1 the arguments could not be reduced to one row for each input: every k-th row counts.
    """

    net: Net
    ids: Tensor
    processors: LogitsProcessorList
    settings: Any
    kwargs: dict[str, Any]
    stride: int = 1

    @classmethod
    def by(cls, hf: Net, encoded: dict[str, Any]) -> Prepared:
        """Let transformers prepare `encoded` inputs."""
        with quiet():
            prepared: Prepared = hf.generate(**encoded, **OVERRULED, custom_generate=_as_given)
        forced_end = logits_process.ForcedEOSTokenLogitsProcessor  # at a greatest length, which there is not
        kept = [processor for processor in prepared.processors if not isinstance(processor, forced_end)]
        return replace(prepared, processors=_checked(kept))

    @classmethod
    def of(cls, net: Net, ids: Tensor, processors: Any, settings: Any, kwargs: dict[str, Any]) -> Prepared:
        """What transformers handed to a decoding method, where `ids` have k rows for each input."""
        k = max(settings.num_beams or 1, settings.num_return_sequences or 1)
        kwargs = {name: _dynamic(value, net) for name, value in kwargs.items()}
        if k == 1 or kwargs.get("mm_encoder_outputs") is not None:  # which are not repeated row by row
            return cls(net, ids, _checked(processors), settings, kwargs, k)
        reduced = {name: _every(net, name, value, k) for name, value in kwargs.items()}
        return cls(net, ids[::k], _checked(processors), settings, reduced)

    def read(self) -> Prompt:
        """Let the network read the inputs, each once."""
        net, kwargs = self.net, dict(self.kwargs)
        name = cache_name(kwargs)
        if name is not None:
            kwargs[name] = shallow_copy(kwargs[name])  # what was prepared may be read again
        before = cached_tokens(kwargs.get("past_key_values"))  # what a user's own cache has of the prompt
        length = self.ids.shape[1] - before if 0 < before < self.ids.shape[1] else None
        given = net.prepare_inputs_for_generation(
            self.ids, next_sequence_length=length, is_first_iteration=True, **kwargs
        )
        first, output = predict(net, dict(given))
        kwargs = updated(net, output, kwargs)
        if cache_name(kwargs) is not None:
            kwargs = without(kwargs, *OF_PROMPTS)
        return Prompt(net, first, self.ids, self.processors, kwargs)


def _as_given(
    model: Net,
    input_ids: Tensor,
    logits_processor: Any,
    stopping_criteria: Any,
    generation_config: Any,
    **kwargs: Any,
) -> Prepared:
    return Prepared(model, input_ids, logits_processor, generation_config, kwargs)


def _dynamic(value: Any, net: Net) -> Any:
    """A cache that grows, instead of one of fixed size, which is still empty."""
    pair = isinstance(value, EncoderDecoderCache)
    if not isinstance(value.self_attention_cache if pair else value, StaticCache):
        return value
    config = net.config.get_text_config(decoder=True)
    own = DynamicCache(config=config)
    return EncoderDecoderCache(own, DynamicCache(config=config)) if pair else own


def _every(net: Net, name: str, value: Any, k: int) -> Any:
    """Undo the repetition of rows: in every tensor, in the encoder's output, and in a user's cache."""
    if isinstance(value, Tensor):
        count = value.shape[batch_dimension(name, value)]
        return take(name, value, torch.arange(0, count, k, device=value.device), count)
    if isinstance(value, dict):
        return type(value)({part: _every(net, part, inside, k) for part, inside in value.items()})
    if isinstance(value, (DynamicCache, EncoderDecoderCache)) and cached_tokens(value):
        own: Any = value.self_attention_cache if isinstance(value, EncoderDecoderCache) else value
        keys = own.layers[0].keys  # (rows, heads, length, size)
        return reordered(net, value, torch.arange(0, len(keys), k, device=keys.device))
    return value


def _checked(processors: Any) -> LogitsProcessorList:
    for processor in processors:
        setting = BOUND.get(type(processor).__name__)
        if setting is not None:
            raise UsageError(
                f"the generation setting {setting!r} cannot be kept here: it is made for a fixed number of "
                f"rows. Switch it off: generation_config.{setting} = None."
            )
    return LogitsProcessorList(processors)
