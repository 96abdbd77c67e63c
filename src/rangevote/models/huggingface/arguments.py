"""The arguments of a network as transformers keeps them between steps, and their rows."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor
from transformers import EncoderDecoderCache

from rangevote.models.huggingface.head import Net

#: Under which names models keep their caches.
CACHES = ("past_key_values", "cache_params", "state", "mems", "past_buckets_states")

#: What belongs to an input, not to a row: the same for all its rows.
OF_INPUTS = ("encoder_outputs", "encoder_hidden_states", "encoder_attention_mask")

#: Of no use once the prompt is read and cached.
OF_PROMPTS = ("pixel_values", "pixel_values_videos", "pixel_mask", "mm_encoder_outputs", "inputs_embeds")


def cache_name(kwargs: Any) -> str | None:
    """Under which name there is a cache."""
    return next((name for name in CACHES if kwargs.get(name) is not None), None)


def without(kwargs: dict[str, Any], *names: str | None) -> dict[str, Any]:
    """All arguments but these."""
    return {name: value for name, value in kwargs.items() if name not in names}


def of_inputs(net: Net) -> tuple[str, ...]:
    """The arguments that belong to inputs; with an encoder the mask is that of its tokens."""
    return (*OF_INPUTS, "attention_mask") if net.config.is_encoder_decoder else OF_INPUTS


def batch_dimension(name: str, value: Tensor) -> int:
    """Which dimension are the rows: the first, but that positions may be (3, rows, length)."""
    return 1 if name == "position_ids" and value.ndim == 3 else 0


def take(name: str, value: Any, rows: Tensor, count: int) -> Any:
    """Rows of an argument that has `count` of them; what has no rows stays as it is."""
    if isinstance(value, Tensor) and value.ndim > 1:
        dimension = batch_dimension(name, value)
        return value.index_select(dimension, rows) if value.shape[dimension] == count else value
    if isinstance(value, dict):  # the output of an encoder
        taken = copy.copy(value)
        for part in value:
            taken[part] = take(part, value[part], rows, count)
        return taken
    return value


def cached(cache: Any) -> int:
    """How many tokens a cache holds; 0 where it does not count them."""
    try:
        return 0 if cache is None else int(cache.get_seq_length())
    except (AttributeError, ValueError):  # recurrent layers have no length
        return 0


def twin(cache: Any) -> Any:
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


def reordered(net: Net, cache: Any, rows: Tensor, same_inputs: bool = False) -> Any:
    """A cache of transformers with other rows; the given one keeps its own.

    `same_inputs`: every row's input stays what it was, so what comes from an encoder need not move.
    """
    if hasattr(net, "_reorder_cache"):
        return net._reorder_cache(cache, rows)
    if isinstance(cache, Tensor):
        return cache.index_select(0, rows)
    if isinstance(cache, (list, tuple)):
        return type(cache)(reordered(net, part, rows) for part in cache)
    other = twin(cache)
    moved: Any = (
        other.self_attention_cache if same_inputs and isinstance(other, EncoderDecoderCache) else other
    )
    moved.reorder_cache(rows)
    return other
