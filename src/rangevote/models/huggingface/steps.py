"""Steps of a network on transformers' own cache: prepare and read prompts, then extend and reorder rows.

What transformers' `generate` prepares (encoder output, tokens, processors, a cache) comes through
`generate(custom_generate=...)`: for models of ours with a method that returns what it was given, and for
users' own calls of `generate` with `rangevote.custom_generate`.

This is the plain path, on which every row has a copy of all that its input left behind; it works for every
model. `shared_prefix.py` has rows that keep what they have in common once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache, LogitsProcessorList, StaticCache
from transformers.generation import logits_process

from rangevote.errors import UsageError
from rangevote.models.load import quiet
from rangevote.models.protocol import Integers

#: A transformers model; its class tells a type checker nothing about what `forward` takes.
Net = Any

#: Under which names models keep their caches.
CACHES = ("past_key_values", "cache_params", "state", "mems", "past_buckets_states")
#: What belongs to an input, not to a row: the same for all its rows.
OF_INPUTS = ("encoder_outputs", "encoder_hidden_states", "encoder_attention_mask")
#: Logits that are normalised at a time (numbers, not bytes): the copy stays small.
LOGITS_AT_A_TIME = 1 << 20
#: Vocabularies below this gain nothing from `product`.
LARGE_VOCABULARY = 1 << 13
#: Numbers that `product` makes at a time: they stay in the processor's cache.
PRODUCT_BLOCK = 1 << 16


@dataclass(frozen=True)
class Prediction:
    """`log_probs` (rows, vocabulary) and `hidden` (rows, dimension), None where the network shows none."""

    log_probs: Tensor
    hidden: Tensor | None

    def take(self, rows: Tensor) -> Prediction:
        """These rows, copied."""
        hidden = None if self.hidden is None else self.hidden.index_select(0, rows)
        return Prediction(self.log_probs.index_select(0, rows), hidden)


@dataclass(frozen=True)
class Prompt:
    """Prompts after reading: one row for each in `first`, `ids` (inputs, length) and `kwargs`."""

    net: Net
    first: Prediction
    ids: Tensor
    processors: Any
    kwargs: dict[str, Any]

    def begin(self, owner: Integers) -> Rows:
        """Rows of the inputs with these numbers (rows,), before their first token."""
        return Rows(self, owner)


class Rows:
    """Rows under way, `ids` (rows, length) with the prompts' tokens; both methods change them in place."""

    #: Whether arguments that belong to inputs are repeated, one for each row.
    repeats_inputs = True

    def __init__(self, prompt: Prompt, owner: Integers) -> None:
        """Rows without tokens of their own; `owner` (rows,) are the numbers of their inputs."""
        self._net, self._owner, self._name = prompt.net, owner, cache_name(prompt.kwargs)
        index = torch.as_tensor(owner, device=prompt.net.device)
        self.ids = prompt.ids.index_select(0, index)
        fixed = () if self.repeats_inputs else of_inputs(prompt.net)
        self._kwargs = take_all(without(prompt.kwargs, self._name), index, len(prompt.ids), fixed)
        self._cache = self._first_cache(prompt, index)

    def _first_cache(self, prompt: Prompt, index: Tensor) -> Any:
        return None if self._name is None else reordered(prompt.kwargs[self._name], index)

    def step(self, tokens: Tensor) -> Prediction:
        """Append these tokens (rows,) and predict what follows, as transformers' own loop does."""
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=1)
        cache = {} if self._name is None else {self._name: self._cache}
        inputs = self._net.prepare_inputs_for_generation(
            self.ids, next_sequence_length=1 if cache else None, **self._kwargs, **cache
        )
        prediction, output, kwargs = predict(self._net, dict(inputs), self._kwargs)
        self._kwargs = without(kwargs, *CACHES)
        name = cache_name(output)  # not always the name under which it is given
        self._cache = self._cache if name is None else output[name]
        return prediction

    def select(self, rows: Integers) -> None:
        """Reorder, repeat and drop rows."""
        owner, before = self._owner[rows], self._owner
        if np.array_equal(rows, np.arange(len(before))):
            return
        same_inputs = np.array_equal(owner, before)
        index = torch.as_tensor(rows, device=self._net.device)
        self.ids = self.ids.index_select(0, index)
        self._select_cache(rows, index, same_inputs)
        fixed = () if self.repeats_inputs and not same_inputs else of_inputs(self._net)
        self._kwargs = take_all(self._kwargs, index, len(before), fixed)
        self._owner = owner

    def _select_cache(self, rows: Integers, index: Tensor, same_inputs: bool) -> None:
        if self._cache is not None:
            self._cache = reordered(self._cache, index, same_inputs)


def predict(
    net: Net, inputs: dict[str, Any], kwargs: dict[str, Any]
) -> tuple[Prediction, Any, dict[str, Any]]:
    """Run the network and look at the last position; also returns its output and the arguments afterwards."""
    with output_layer(net) as states:
        output = net(**inputs, return_dict=True)
    logits = output.logits  # (rows, positions, vocabulary)
    last = logits[:, -1] if logits.shape[1] == 1 else logits[:, -1].clone()  # the rest need not be kept
    log_probs = last.float()
    size = max(1, LOGITS_AT_A_TIME // log_probs.shape[1])
    for first in range(0, len(log_probs), size):
        log_probs[first : first + size] = log_probs[first : first + size].log_softmax(dim=-1)
    hidden = states[-1][:, -1].float() if states else None  # (rows, dimension)
    encoder = net.config.is_encoder_decoder
    after = net._update_model_kwargs_for_generation(output, kwargs, is_encoder_decoder=encoder)
    return Prediction(log_probs, hidden), output, dict(after)


@contextmanager
def inference(net: Net) -> Iterator[None]:
    """No gradients and no dropout; a network in training is put back as it was."""
    training = [module for module in net.modules() if module.training] if net.training else []
    for module in training:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def cache_name(kwargs: Any) -> str | None:
    """Under which name there is a cache."""
    return next((name for name in CACHES if kwargs.get(name) is not None), None)


def without(kwargs: dict[str, Any], *names: str | None) -> dict[str, Any]:
    """All arguments but these."""
    return {name: value for name, value in kwargs.items() if name not in names}


def of_inputs(net: Net) -> tuple[str, ...]:
    """The arguments that belong to inputs; with an encoder the mask is that of its tokens."""
    return (*OF_INPUTS, "attention_mask") if net.config.is_encoder_decoder else OF_INPUTS


def take_all(kwargs: dict[str, Any], rows: Tensor, count: int, fixed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Rows of all arguments but the fixed ones."""
    return {
        name: value if name in fixed else take(name, value, rows, count) for name, value in kwargs.items()
    }


def take(name: str, value: Any, rows: Tensor, count: int) -> Any:
    """Rows of an argument that has `count` of them; what has no rows stays as it is."""
    if isinstance(value, Tensor) and value.ndim > 1:
        dimension = 1 if name == "position_ids" and value.ndim == 3 else 0  # positions (3, rows, length)
        return value.index_select(dimension, rows) if value.shape[dimension] == count else value
    if isinstance(value, dict):  # the output of an encoder
        taken = copy.copy(value)
        for part in value:
            taken[part] = take(part, value[part], rows, count)
        return taken
    return value


def cached_tokens(cache: Any) -> int:
    """How many tokens a cache has; 0 where it does not count them."""
    try:
        return 0 if cache is None else int(cache.get_seq_length())
    except (AttributeError, ValueError):  # recurrent layers have no length
        return 0


def reordered(cache: Any, rows: Tensor, same_inputs: bool = False) -> Any:
    """A cache of transformers with other rows; the given one keeps its own.

    `same_inputs`: every row's input stays what it was, so what comes from an encoder need not move.
    """
    other = shallow_copy(cache)
    pair = same_inputs and isinstance(other, EncoderDecoderCache)
    (other.self_attention_cache if pair else other).reorder_cache(rows)
    return other


def shallow_copy(cache: Any) -> Any:
    """A cache of its own with the same tensors."""
    return copy.deepcopy(cache, {id(tensor): tensor for tensor in _tensors(cache)})


def _tensors(thing: Any) -> list[Tensor]:
    """All tensors inside an object."""
    if isinstance(thing, Tensor):
        return [thing]
    if type(thing).__module__.startswith("transformers.") and hasattr(thing, "__dict__"):
        thing = vars(thing)
    parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


@contextmanager
def output_layer(net: Net) -> Iterator[list[Tensor]]:
    """Collects what the last layer is given, (rows, positions, dimension) in each pass.

    On a processor the last layer is the longest part of a step. PyTorch multiplies a few rows by a large
    matrix several times as slowly as `product`, with which beam search is 1.3 to 1.7 times as fast.
    """
    states: list[Tensor] = []
    head = net.get_output_embeddings()
    if head is None:
        yield states
        return
    hook = head.register_forward_pre_hook(lambda _, given: states.append(given[0]))
    plain = _is_plain(head)
    if plain:
        head.forward = lambda hidden: product(hidden, head.weight, head.bias)
    try:
        yield states
    finally:
        hook.remove()
        if plain:
            del head.forward


def _is_plain(head: nn.Module) -> bool:
    """Whether it is a large matrix of float32 on a processor, whose `forward` nobody has replaced."""
    return (
        type(head) is nn.Linear
        and head.weight.device.type == "cpu"
        and head.weight.dtype == torch.float32
        and head.out_features >= LARGE_VOCABULARY
        and "forward" not in vars(head)
    )


def product(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """hidden @ weight.T + bias: (..., dimension), (vocabulary, dimension) -> (..., vocabulary)."""
    flat = hidden.reshape(-1, hidden.shape[-1])  # (rows, dimension)
    rows = len(flat)
    # BLAS works on eight rows at a time: 9 take longer than 16, but 7 not longer than 8.
    turned = nn.functional.pad(flat, (0, 0, 0, -rows % 8 if rows > 8 else 0)).t()  # (dimension, rows or more)
    out = flat.new_empty((rows, len(weight)))
    size = max(1024, PRODUCT_BLOCK // max(rows, 1))
    for first in range(0, len(weight), size):
        block = slice(first, first + size)
        out[:, block] = (weight[block] @ turned)[:, :rows].t()
    if bias is not None:
        out += bias
    return out.view(*hidden.shape[:-1], len(weight))


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

        def as_given(
            model: Net, input_ids: Tensor, logits_processor: Any, generation_config: Any, **kwargs: Any
        ) -> Prepared:
            del kwargs["stopping_criteria"]
            return cls(model, input_ids, logits_processor, generation_config, kwargs)

        with quiet():
            prepared: Prepared = hf.generate(**encoded, **OVERRULED, custom_generate=as_given)
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
            kwargs[name] = shallow_copy(kwargs[name])  # a cache that the user began to fill stays as it is
        before = cached_tokens(kwargs.get("past_key_values"))  # what a user's own cache has of the prompt
        length = self.ids.shape[1] - before if 0 < before < self.ids.shape[1] else None
        inputs = net.prepare_inputs_for_generation(
            self.ids, next_sequence_length=length, is_first_iteration=True, **kwargs
        )
        first, _, kwargs = predict(net, dict(inputs), kwargs)
        name = cache_name(kwargs)
        if name is not None and hasattr(kwargs[name], "reorder_cache"):
            kwargs = without(kwargs, *OF_PROMPTS)
        elif name is not None:  # a cache of rows that cannot move: read all tokens at every step
            kwargs = {**without(kwargs, name), "use_cache": False}
        return Prompt(net, first, self.ids, self.processors, kwargs)


def _dynamic(value: Any, net: Net) -> Any:
    """A cache that grows, instead of one of fixed size, which is still empty."""
    pair = isinstance(value, EncoderDecoderCache)
    if not isinstance(value.self_attention_cache if pair else value, StaticCache):
        return value
    config = net.config.get_text_config(decoder=True)
    cache = DynamicCache(config=config)
    return EncoderDecoderCache(cache, DynamicCache(config=config)) if pair else cache


def _every(net: Net, name: str, value: Any, k: int) -> Any:
    """Undo the repetition of rows: in every tensor, in the encoder's output, and in a user's cache."""
    if isinstance(value, Tensor):
        count = len(value) if name != "position_ids" or value.ndim < 3 else value.shape[1]
        return take(name, value, torch.arange(0, count, k, device=value.device), count)
    if isinstance(value, dict):
        return type(value)({part: _every(net, part, inside, k) for part, inside in value.items()})
    if isinstance(value, (DynamicCache, EncoderDecoderCache)) and cached_tokens(value):
        cache: Any = value.self_attention_cache if isinstance(value, EncoderDecoderCache) else value
        keys = cache.layers[0].keys  # (rows, heads, length, size)
        return reordered(value, torch.arange(0, len(keys), k, device=keys.device))
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
