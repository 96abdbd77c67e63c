"""What inputs leave behind for their rows: keys and values, kept once.

Beams of one input have its prompt in common, so the prompt's keys and values need not be repeated for each of
them, neither in memory nor in the attention's products (Athiwaratkun et al. 2024, bifurcated attention;
Juravsky et al. 2024, Hydragen). The same is true of all that a decoder takes from an encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer

#: Prompts up to this length are copied to the rows: cheaper than attention in two parts.
SHORT = 16


@dataclass(frozen=True)
class Prefix:
    """What one layer keeps of the inputs: `keys`, `values` (inputs, heads, length, size).

    `mask` (inputs, 1, 1, length) is added to the attention's scores; None: nothing is masked.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor | None

    def take(self, inputs: Tensor) -> Prefix:
        """These inputs, copied."""
        mask = None if self.mask is None else self.mask.index_select(0, inputs)
        return Prefix(self.keys.index_select(0, inputs), self.values.index_select(0, inputs), mask)


@dataclass(frozen=True)
class Shared:
    """One `Prefix` for each layer: of the prompts in the decoder, and of what comes from an encoder."""

    own: Sequence[Prefix]
    cross: Sequence[Prefix]

    def take(self, inputs: Tensor) -> Shared:
        """These inputs, copied."""
        return Shared([p.take(inputs) for p in self.own], [p.take(inputs) for p in self.cross])

    @property
    def inputs(self) -> int:
        """How many there are."""
        return len(self.own[0].keys)

    @property
    def device(self) -> torch.device:
        """Where they are; layers of a model that is spread out may be elsewhere."""
        return self.own[0].keys.device

    @property
    def copied(self) -> bool:
        """Whether the prompts are so short that rows had better have copies of them."""
        return self.own[0].keys.shape[2] <= SHORT and self.own[0].mask is None

    @property
    def kind(self) -> tuple[bool, ...]:
        """What the attention has to mind: copies, padding of the prompts, padding of the encoder's part."""
        return self.copied, self.own[0].mask is not None, bool(self.cross) and self.cross[0].mask is not None

    @classmethod
    def of(cls, cache: Any, own_mask: Tensor | None, cross_mask: Tensor | None) -> Shared | None:
        """Take over transformers' cache after the prompt; None where it is of a kind that cannot be shared.

        The masks (inputs, length) are 1 for tokens and 0 for padding.
        """
        pair = isinstance(cache, EncoderDecoderCache)
        halves = [cache.self_attention_cache, cache.cross_attention_cache] if pair else [cache]
        if any(type(half) is not DynamicCache for half in halves):
            return None
        own, cross = halves[0].layers, halves[1].layers if pair else []
        # Windows, quantised and recurrent layers are other classes; layers that use another's are empty.
        if any(type(layer) is not DynamicLayer or layer.get_seq_length() == 0 for layer in (*own, *cross)):
            return None
        if not own or not _covers(own_mask, own) or not _covers(cross_mask, cross):
            return None
        return cls(_prefixes(own, own_mask), _prefixes(cross, cross_mask))


def _covers(mask: Tensor | None, layers: Sequence[Any]) -> bool:
    """Whether a mask says all there is to say about the tokens in the layers."""
    return mask is None or not layers or mask.shape[1] == layers[0].keys.shape[2] or bool(mask.all())


def _prefixes(layers: Sequence[Any], mask: Tensor | None) -> list[Prefix]:
    added = None
    if layers and mask is not None and not bool(mask.all()):
        zero = torch.zeros_like(mask, dtype=layers[0].keys.dtype)
        added = zero.masked_fill(mask == 0, -torch.inf)[:, None, None]  # (inputs, 1, 1, length)
    return [Prefix(layer.keys.contiguous(), layer.values.contiguous(), added) for layer in layers]
