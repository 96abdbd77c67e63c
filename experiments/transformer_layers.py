"""The layers of the Transformer, for whole sequences and for the next token alone, with their caches.

Pre-norm: each part reads a normalised copy of the stream and adds to it, x + part(norm(x)), with one more
norm at the end of each stack. `transformer.py` puts the layers together. The keys and values of a source are
kept once for all rows of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rangevote.models.huggingface.shared_prefix import Groups
from rangevote.models.protocol import Integers

#: Tokens by which a row's buffers grow.
GROWTH = 32
#: A buffer that is not in use; the layers hand it on.
Spare = list[Tensor]


class Buffer:
    """Keys or values (length, rows, heads, size), with room for more tokens.

    The position comes first: then what is in use is one piece of memory, which is reordered at the speed of
    copying it, and products with the transposed keys need no copy.
    """

    def __init__(self) -> None:
        self.length = 0
        self._kept: Tensor | None = None  # (room, rows, heads, size)

    def append(self, new: Tensor) -> Tensor:
        """Write `new` (rows, heads, size) in place, and return all so far (length, rows, heads, size)."""
        if self._kept is None or self.length == len(self._kept):
            larger = new.new_empty((self.length + GROWTH, *new.shape))
            if self._kept is not None:
                larger[: self.length] = self._kept
            self._kept = larger
        self._kept[self.length] = new
        self.length += 1
        return self._kept[: self.length]

    def select(self, rows: Tensor, spare: Spare) -> None:
        """Reorder the rows into the spare buffer, which the one that is left then becomes.

        Fresh memory for every step would cost several times as much as the copying.
        """
        assert self._kept is not None
        shape = (len(self._kept), len(rows), *self._kept.shape[2:])
        needed = int(np.prod(shape))
        flat = spare.pop() if spare else self._kept.new_empty(0)
        if flat.numel() < needed:
            flat = self._kept.new_empty(needed)
        chosen = flat[:needed].view(shape)
        torch.index_select(self._kept[: self.length], 1, rows, out=chosen[: self.length])
        spare.append(self._kept.flatten())
        self._kept = chosen


class Own:
    """The keys and values of one layer that belong to the rows' own tokens."""

    def __init__(self) -> None:
        self.keys, self.values = Buffer(), Buffer()

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """One more token of every row, each (rows, heads, size); returns all, (length, rows, heads, size)."""
        return self.keys.append(keys), self.values.append(values)

    def select(self, rows: Tensor, spare: Spare) -> None:
        """Reorder, repeat and drop rows."""
        self.keys.select(rows, spare)
        self.values.select(rows, spare)


@dataclass(frozen=True)
class Cross:
    """The keys and values of one layer that come from the sources, each (inputs, heads, source length, size).

    `mask` (inputs, 1, 1, source length) is added to the scores; None: no source is padded.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor | None
    groups: Groups

    @classmethod
    def of(cls, keys: Tensor, values: Tensor, mask: Tensor | None, groups: Groups) -> Cross:
        """Keys and values in one piece of memory, which else every product would make of them again."""
        return cls(keys.contiguous(), values.contiguous(), mask, groups)

    def take(self, inputs: Tensor, groups: Groups) -> Cross:
        """These inputs alone."""
        mask = None if self.mask is None else self.mask.index_select(0, inputs)
        return Cross(self.keys.index_select(0, inputs), self.values.index_select(0, inputs), mask, groups)


def regroup(layers: Sequence[Cross], owner: Integers) -> list[Cross]:
    """The layers for rows of these owners (rows,); lets go of the inputs without rows when they are half.

    Returns layers whose groups hold the new owners, which count the inputs that are left.
    """
    before = layers[0].groups
    present = np.unique(owner)
    if 0 < 2 * len(present) <= before.inputs:
        groups = Groups(np.searchsorted(present, owner), len(present), before.device)
        index = torch.as_tensor(present, device=before.device)
        return [layer.take(index, groups) for layer in layers]
    groups = Groups(owner, before.inputs, before.device)
    return [replace(layer, groups=groups) for layer in layers]


def positions(first: int, last: int, dimension: int, like: Tensor) -> Tensor:
    """Sinusoids of the positions first to last - 1, (positions, dimension); Vaswani et al. 2017, section 3.5.

    PE(p, i) = sin(p / 10000^(2i/d)) in the first half of the dimensions and the cosine in the second, a fixed
    reordering of the paper's, which takes turns.
    """
    half = dimension // 2
    # In float64: float32 is off by 1e-3 at position 10,000.
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10_000) / half))
    angles = torch.arange(first, last, dtype=torch.float64)[:, None] * rates  # (positions, half)
    return torch.cat([angles.sin(), angles.cos()], dim=1).to(like.device, like.dtype)


def split_heads(states: Tensor, heads: int) -> Tensor:
    """(batch, length, dimension) to (batch, heads, length, size)."""
    batch, length, dimension = states.shape
    return states.view(batch, length, heads, dimension // heads).transpose(1, 2)


def join_heads(states: Tensor) -> Tensor:
    """The inverse of `split_heads`."""
    return states.transpose(1, 2).flatten(2)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    """softmax(QK^T / sqrt(size)) V; all (batch, heads, length, size).

    In float32 where a CPU computes in bfloat16: its gradient of this takes ten times as long by that.
    """
    if q.device.type != "cpu" or q.dtype != torch.bfloat16:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), attn_mask=mask, is_causal=causal
        )


class SelfAttention(nn.Module):
    """softmax(QK^T / sqrt(size)) V, with queries, keys and values from the same sequence."""

    def __init__(self, dimension: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dimension, 3 * dimension)
        self.out = nn.Linear(dimension, dimension)

    def forward(self, states: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """`states` (batch, length, dimension); `mask` (batch, 1, 1, length) is added to the scores."""
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(states).chunk(3, dim=-1))
        found = attend(q, k, v, mask, causal=causal)
        return cast(Tensor, self.out(join_heads(found)))

    def step(self, states: Tensor, cache: Own) -> Tensor:
        """The next token of each row, (rows, dimension); its key and value join the cache."""
        q, k, v = self.qkv(states).view(len(states), 3, self.heads, -1).unbind(1)  # each (rows, heads, size)
        keys, values = cache.append(k, v)  # (length, rows, heads, size)
        queries = (q * q.shape[-1] ** -0.5).unsqueeze(2)  # (rows, heads, 1, size)
        weights = (queries @ keys.permute(1, 2, 3, 0)).softmax(dim=-1)  # (rows, heads, 1, length)
        found = weights @ values.permute(1, 2, 0, 3)  # (rows, heads, 1, size)
        return cast(Tensor, self.out(found.flatten(1)))


class CrossAttention(nn.Module):
    """Attention from the decoder to what the encoder made of the source."""

    def __init__(self, dimension: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dimension, dimension)
        self.kv = nn.Linear(dimension, 2 * dimension)
        self.out = nn.Linear(dimension, dimension)

    def forward(self, states: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """`states` (batch, length, dimension), `memory` (batch, source length, dimension)."""
        keys, values = self.memory(memory)
        queries = split_heads(self.q(states), self.heads)
        found = attend(queries, keys, values, mask)
        return cast(Tensor, self.out(join_heads(found)))

    def memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the source, each (batch, heads, source length, size)."""
        keys, values = (split_heads(part, self.heads) for part in self.kv(memory).chunk(2, dim=-1))
        return keys, values

    def step(self, states: Tensor, cross: Cross) -> Tensor:
        """The next token of each row, (rows, dimension): one product for all rows of an input."""
        q = self.q(states).view(len(states), self.heads, -1)  # (rows, heads, size)
        q = q * q.shape[-1] ** -0.5
        queries = cross.groups.gather(q).transpose(1, 2)  # (inputs, heads, width, size)
        scores = queries @ cross.keys.transpose(2, 3)  # (inputs, heads, width, source length)
        if cross.mask is not None:
            scores += cross.mask
        found = (scores.softmax(dim=-1) @ cross.values).transpose(1, 2)  # (inputs, width, heads, size)
        return cast(Tensor, self.out(cross.groups.scatter(found).flatten(1)))


class FeedForward(nn.Module):
    """max(0, xW + b)V + c."""

    def __init__(self, dimension: int, inner: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dimension, inner), nn.Linear(inner, dimension)

    def forward(self, states: Tensor) -> Tensor:
        """Of each position alone."""
        return cast(Tensor, self.down(self.up(states).relu_()))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, dimension: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention, self.feed = SelfAttention(dimension, heads), FeedForward(dimension, inner)
        self.norms = nn.ModuleList(nn.LayerNorm(dimension) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """`states` (batch, length, dimension)."""
        states = states + self.dropout(self.attention(self.norms[0](states), mask, causal=False))
        return cast(Tensor, states + self.dropout(self.feed(self.norms[1](states))))


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source, and feed-forward."""

    def __init__(self, dimension: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention, self.cross = SelfAttention(dimension, heads), CrossAttention(dimension, heads)
        self.feed = FeedForward(dimension, inner)
        self.norms = nn.ModuleList(nn.LayerNorm(dimension) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """All positions at once, each of which sees itself and those before it."""
        states = states + self.dropout(self.attention(self.norms[0](states), None, causal=True))
        states = states + self.dropout(self.cross(self.norms[1](states), memory, mask))
        return cast(Tensor, states + self.dropout(self.feed(self.norms[2](states))))

    def step(self, states: Tensor, own: Own, cross: Cross) -> Tensor:
        """The next position of every row, (rows, dimension); overwrites `states`."""
        states += self.attention.step(self.norms[0](states), own)
        states += self.cross.step(self.norms[1](states), cross)
        states += self.feed(self.norms[2](states))
        return states
