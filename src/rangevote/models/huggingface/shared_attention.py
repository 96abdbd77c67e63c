"""Attention of one new token for every row, over the inputs' shared keys and the rows' own.

Transformers looks attention up by the name in a model's configuration. Ours is registered as "rangevote", and
the name is put back when a pass is over. Other threads that use the model meanwhile get transformers' own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from rangevote.models.huggingface.steps import Net
from rangevote.models.protocol import Integers

NAME = "rangevote"
#: Scores of one layer that are in memory at a time (numbers, not bytes).
MOST_SCORES = 1 << 24
#: Tensors that layers pass along and that do not change the attention of one token over all before it.
HARMLESS = {"position_ids", "cache_position", "position_embeddings"}


@dataclass(frozen=True)
class Groups:
    """Which rows belong to which input: `owner` (rows,), numbers below `inputs`."""

    owner: Integers
    inputs: int
    device: torch.device

    @cached_property
    def width(self) -> int:
        """The most rows of any input."""
        return int(np.bincount(self.owner, minlength=1).max())

    @cached_property
    def even(self) -> bool:
        """Whether all inputs have equally many rows, which stand together and in order."""
        return np.array_equal(self.owner, np.repeat(np.arange(self.inputs), self.width))

    @cached_property
    def _slots(self) -> tuple[Tensor, Tensor]:
        """The slot of every row among (inputs * width,), and the row of every slot (0: there is none)."""
        order = np.argsort(self.owner, kind="stable")
        counts = np.bincount(self.owner, minlength=self.inputs)
        within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        slots = np.empty(len(order), dtype=np.int64)
        slots[order] = self.owner[order] * self.width + within
        rows = np.zeros(self.inputs * self.width, dtype=np.int64)
        rows[slots] = np.arange(len(order))
        return torch.as_tensor(slots, device=self.device), torch.as_tensor(rows, device=self.device)

    def gather(self, rows: Tensor) -> Tensor:
        """(rows, ...) to (inputs, width, ...), with any row where there is none."""
        chosen = rows if self.even else rows.index_select(0, self._slots[1].to(rows.device))
        return chosen.reshape(self.inputs, self.width, *rows.shape[1:])

    def scatter(self, grouped: Tensor) -> Tensor:
        """(inputs, width, ...) back to (rows, ...)."""
        flat = grouped.reshape(self.inputs * self.width, *grouped.shape[2:])
        return flat if self.even else flat.index_select(0, self._slots[0].to(flat.device))


@dataclass(frozen=True)
class SharedLayer:
    """What one layer keeps of the inputs: `keys`, `values` (inputs, heads, length, size).

    `mask` (inputs, 1, 1, length) is added to the attention's scores; None: nothing is masked.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor | None

    def take(self, inputs: Tensor) -> SharedLayer:
        """These inputs, copied."""
        mask = None if self.mask is None else self.mask.index_select(0, inputs)
        return SharedLayer(self.keys.index_select(0, inputs), self.values.index_select(0, inputs), mask)


@dataclass
class KeyTag:
    """Set on the keys a layer hands out, for the attention function: what the keys alone do not tell.

    `prefix`: what is attended to besides the rows' own, None: nothing. `own`: whether the rows have anything.
    """

    groups: Groups
    prefix: SharedLayer | None
    own: bool


class Unshareable(Exception):
    """A layer asks for something that this attention does not do."""


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    bias: Tensor | None,
    options: dict[str, Any],
) -> Tensor:
    """`query` (rows, heads, 1, size) -> (rows, 1, heads, size); the tag of `key` says what else there is.

    `bias` (1, heads, 1, length) is added to the scores. Heads may share keys: then there are fewer of those.
    """
    tag: KeyTag | None = getattr(key, "rangevote", None)
    if tag is None or mask is not None or query.shape[2] != 1 or _unknown(options):
        raise Unshareable
    rows, heads, _, size = query.shape
    scale = size**-0.5 if scaling is None else scaling
    queries = query.reshape(rows, key.shape[1], -1, size) * scale  # (rows, key heads, queries of each, size)
    if tag.prefix is None:
        out = _own(queries, key, value, bias)
    elif not tag.own:
        out = _crossed(queries, tag.prefix, tag.groups, bias)
    elif bias is None:
        out = _joined(queries, key, value, tag.prefix, tag.groups)
    else:
        raise Unshareable
    return out.reshape(rows, 1, heads, value.shape[3])


def _unknown(options: dict[str, Any]) -> bool:
    """Whether there are options such as a soft cap, sinks or a window."""
    if any(options.get(name) is not None for name in ("softcap", "s_aux", "sliding_window")):
        return True
    return any(isinstance(option, Tensor) and name not in HARMLESS for name, option in options.items())


def _softmax(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1, dtype=torch.float32).to(scores.dtype)


def _own(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
    """All that is attended to is the rows' own."""
    scores = queries @ keys.transpose(2, 3)  # (rows, key heads, queries, length)
    if bias is not None:
        scores += bias.reshape(1, *scores.shape[1:])
    return _softmax(scores) @ values


def _crossed(queries: Tensor, prefix: SharedLayer, groups: Groups, bias: Tensor | None) -> Tensor:
    """All that is attended to is shared: one product for all rows of an input."""
    grouped = _by_input(groups.gather(queries))  # (inputs, key heads, width * queries, size)
    scores = grouped @ prefix.keys.transpose(2, 3)  # (inputs, key heads, width * queries, length)
    if bias is not None:
        if queries.shape[2] != 1:
            raise Unshareable
        scores += bias
    if prefix.mask is not None:
        scores += prefix.mask
    return groups.scatter(_by_row(_softmax(scores) @ prefix.values, groups.width))


def _joined(queries: Tensor, keys: Tensor, values: Tensor, prefix: SharedLayer, groups: Groups) -> Tensor:
    """One softmax over both parts; the shared part's products are taken for all rows of an input at once."""
    own = groups.gather(queries @ keys.transpose(2, 3))  # (inputs, width, key heads, queries, own length)
    grouped = groups.gather(queries)  # (inputs, width, key heads, queries, size)
    of_one_row = groups.inputs * queries.shape[1] * queries.shape[2] * (prefix.keys.shape[2] + keys.shape[2])
    block = max(1, MOST_SCORES // of_one_row)
    parts = [
        _join(grouped[:, first : first + block], own[:, first : first + block], prefix)
        for first in range(0, groups.width, block)
    ]
    out, weights = parts[0] if len(parts) == 1 else map(torch.hstack, zip(*parts, strict=True))
    return groups.scatter(out) + groups.scatter(weights) @ values


def _join(queries: Tensor, own: Tensor, prefix: SharedLayer) -> tuple[Tensor, Tensor]:
    """The shared part's share of the answer, and the weights of the own part, whose scores are `own`.

    All are (inputs, width, key heads, queries, ...), with the size or the own length at the end.
    """
    common = _by_input(queries) @ prefix.keys.transpose(2, 3)  # (inputs, key heads, width * queries, length)
    if prefix.mask is not None:
        common += prefix.mask
    weights = _softmax(torch.cat([common, _by_input(own)], dim=-1))
    shared, width = common.shape[-1], queries.shape[1]
    return _by_row(weights[..., :shared] @ prefix.values, width), _by_row(weights[..., shared:], width)


def _by_input(grouped: Tensor) -> Tensor:
    """(inputs, width, key heads, queries, n) to (inputs, key heads, width * queries, n)."""
    return grouped.transpose(1, 2).flatten(2, 3)


def _by_row(grouped: Tensor, width: int) -> Tensor:
    """(inputs, key heads, width * queries, n) to (inputs, width, key heads, queries, n)."""
    inputs, heads, queries, size = grouped.shape
    return grouped.view(inputs, heads, width, queries // width, size).transpose(1, 2)


class _Running(threading.local):
    """Whether this thread is inside one of our passes."""

    active = False


_running = _Running()


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every layer."""
    if _running.active:
        return attend(query, key, value, attention_mask, scaling, position_bias, options), None
    if position_bias is not None:
        options["position_bias"] = position_bias
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **options)


def mask(*args: Any, **kwargs: Any) -> Any:
    """No mask inside our passes, where a new token sees all before it and padding is kept with the prefix."""
    return None if _running.active else sdpa_mask(*args, **kwargs)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)


class AttentionSwitch:
    """Turns the attention of a network to ours and back."""

    def __init__(self, net: Net) -> None:
        configs: list[Any] = [getattr(module, "config", None) for module in net.modules()]
        self._configs = [*{id(c): c for c in configs if hasattr(c, "_attn_implementation_internal")}.values()]
        self._lock = threading.Lock()

    @contextmanager
    def on(self) -> Iterator[None]:
        """For the length of one pass; passes of two threads take turns."""
        with self._lock:
            before = [config._attn_implementation_internal for config in self._configs]
            _running.active = True
            for config in self._configs:
                config._attn_implementation_internal = NAME
            try:
                yield
            finally:
                _running.active = False
                for config, name in zip(self._configs, before, strict=True):
                    config._attn_implementation_internal = name


_switches: WeakKeyDictionary[Net, AttentionSwitch] = WeakKeyDictionary()


def switch_of(net: Net) -> AttentionSwitch:
    """The one switch of a network."""
    if net not in _switches:
        _switches[net] = AttentionSwitch(net)
    return _switches[net]
