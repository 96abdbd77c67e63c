"""The cache that the network is given for rows under way.

A row owns the keys and values of the tokens it has written, in buffers that are written in place and grow now
and then; all else is its input's (`shared.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer

from rangevote.models.huggingface.groups import Groups
from rangevote.models.huggingface.shared import Prefix, Shared
from rangevote.models.protocol import Integers

#: Tokens by which a row's buffers grow.
GROWTH = 16

#: A buffer of each shape (without rows) that is not in use.
Spare = dict[torch.Size, Tensor]


@dataclass
class Tag:
    """Hung on the keys a layer hands out, for the attention function: what the keys alone do not say.

    `prefix`: what is attended to besides the rows' own, None: nothing. `own`: whether the rows have anything.
    """

    groups: Groups
    prefix: Prefix | None
    own: bool


def _tagged(keys: Tensor, tag: Tag) -> Tensor:
    keys.rangevote = tag  # type: ignore[attr-defined]
    return keys


class OwnLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """The rows' own keys and values (rows, heads, room, size), after a prefix that is shared or copied."""

    def __init__(self, prefix: Prefix, groups: Groups, copied: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tag = Tag(groups, None if copied else prefix, own=True)
        self.length, self._before = 0, prefix.keys.shape[2]  # own tokens, and those of the prefix
        kept = (prefix.keys, prefix.values)
        room = GROWTH + (self._before if copied else 0)
        self._buffers = [_room(states, len(groups.owner), room) for states in kept]
        self.is_initialized = True
        if copied:
            self._before = 0
            owner = torch.as_tensor(groups.owner, device=prefix.keys.device)
            self.update(*(states.index_select(0, owner) for states in kept))

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the new tokens' keys and values; returns all that are the rows' own, the keys with a tag."""
        rows, _, new, _ = key_states.shape
        first, self.length = self.length, self.length + new
        kept = []
        for i, states in enumerate((key_states, value_states)):
            if self.length > self._buffers[i].shape[2]:
                larger = _room(self._buffers[i], rows, self.length + GROWTH)
                larger[:, :, :first] = self._buffers[i][:rows, :, :first]
                self._buffers[i] = larger
            self._buffers[i][:rows, :, first : self.length] = states
            kept.append(self._buffers[i][:rows, :, : self.length])
        return _tagged(kept[0], self.tag), kept[1]

    def get_seq_length(self) -> int:
        """Tokens before the next one, shared and own."""
        return self._before + self.length

    def select(self, rows: Tensor, spare: Spare) -> None:
        """Reorder the rows. A buffer that is replaced serves the next layer, so that none is allocated."""
        for i, old in enumerate(self._buffers):
            new = spare.pop(old.shape[1:], None)
            if new is None or len(new) < len(rows):
                new = old.new_empty((len(rows), *old.shape[1:]))
            used = slice(0, self.length)
            torch.index_select(old[:, :, used], 0, rows.to(old.device), out=new[: len(rows), :, used])
            self._buffers[i] = new
            spare[old.shape[1:]] = old


class CrossLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values that the decoder takes from an encoder: all shared, and never changed."""

    def __init__(self, prefix: Prefix, groups: Groups) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        keys = prefix.keys.view_as(prefix.keys)  # the tag is not for others that have the same prefix
        self.keys, self.values = _tagged(keys, Tag(groups, prefix, own=False)), prefix.values
        self.is_initialized = True


def _room(like: Tensor, rows: int, tokens: int) -> Tensor:
    return like.new_empty((rows, like.shape[1], tokens, like.shape[3]))


class SharedCache:
    """The keys and values of rows under way; `past` is what the network is given."""

    def __init__(self, shared: Shared, owner: Integers) -> None:
        """Rows that have no tokens of their own yet; `owner` (rows,) are the numbers of their inputs."""
        self._shared = shared
        self._groups = Groups(owner, shared.inputs, shared.device)
        self._own = [OwnLayer(prefix, self._groups, shared.copied) for prefix in shared.own]
        self._spare: Spare = {}
        self.past = self._past(_cache(self._own))

    def _past(self, own: DynamicCache) -> DynamicCache | EncoderDecoderCache:
        if not self._shared.cross:
            return own
        cross = [CrossLayer(prefix, self._groups) for prefix in self._shared.cross]
        return EncoderDecoderCache(own, _cache(cross))

    def select(self, rows: Integers) -> None:
        """Reorder, repeat and drop rows."""
        index = torch.as_tensor(rows, device=self._groups.device)
        for layer in self._own:
            layer.select(index, self._spare)
        if len(self._spare) > 2:  # one for keys and one for values, and some from before they grew
            self._spare.clear()
        owner = self._groups.owner[rows]
        if not np.array_equal(owner, self._groups.owner):
            self._regroup(owner)

    def _regroup(self, owner: Integers) -> None:
        """Rows have other owners now; let go of the inputs without rows once they are half of all."""
        present = np.unique(owner)
        if 2 * len(present) <= self._shared.inputs:
            self._shared = self._shared.take(torch.as_tensor(present, device=self._groups.device))
            owner = np.searchsorted(present, owner)
        self._groups = Groups(owner, self._shared.inputs, self._groups.device)
        for layer, prefix in zip(self._own, self._shared.own, strict=True):
            layer.tag = Tag(self._groups, None if layer.tag.prefix is None else prefix, own=True)
        if isinstance(self.past, EncoderDecoderCache):
            self.past = self._past(self.past.self_attention_cache)


def _cache(layers: Sequence[DynamicLayer]) -> DynamicCache:
    cache = DynamicCache()
    cache.layers = list(layers)
    return cache
