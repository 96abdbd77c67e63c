"""Rows that keep the keys and values of their prompt once: a cache and an attention function of our own.

Beams of one input have its prompt in common, so the prompt's keys and values need not be repeated for each of
them, neither in memory nor in the attention's products (Athiwaratkun et al. 2024, bifurcated attention;
Juravsky et al. 2024, Hydragen). The same is true of all that a decoder takes from an encoder. A row owns only
the keys and values of the tokens it has written.

Which models allow this is not documented, so it is tried: the first prompts of a kind go on for two tokens on
the plain path (`steps.py`) and on this one, and rows share only where both give the same.

Transformers looks attention up by the name in a model's configuration. Ours is registered as "rangevote", and
the name is restored after each pass. Other threads that use the model meanwhile get transformers' own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from rangevote.models.huggingface.steps import Net, Prediction, Prompt, Rows, without
from rangevote.models.protocol import Integers

NAME = "rangevote"
#: Where transformers keeps the name of a network's attention.
CONFIGURED = "_attn_implementation_internal"
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
        positions = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        slots = np.empty(len(order), dtype=np.int64)
        slots[order] = self.owner[order] * self.width + positions
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

    `prefix`: what is attended to besides the rows' own, None: nothing. `crossed`: the rows have nothing.
    """

    groups: Groups
    prefix: SharedLayer | None
    crossed: bool = False


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
    Raises if a layer asks for more.
    """
    tag: KeyTag | None = getattr(key, "rangevote", None)
    unknown = any(options.get(name) is not None for name in ("softcap", "s_aux", "sliding_window"))
    unknown |= any(isinstance(option, Tensor) and name not in HARMLESS for name, option in options.items())
    if tag is None or mask is not None or query.shape[2] != 1 or unknown:
        raise NotImplementedError
    rows, heads, _, size = query.shape
    scale = size**-0.5 if scaling is None else scaling
    queries = query.reshape(rows, key.shape[1], -1, size) * scale  # (rows, key heads, queries of each, size)
    if tag.prefix is None:  # all that is attended to is the rows' own
        scores = queries @ key.transpose(2, 3)  # (rows, key heads, queries, length)
        out = _softmax(scores if bias is None else scores + bias.reshape(1, *scores.shape[1:])) @ value
    elif tag.crossed:
        out = _crossed(queries, tag.prefix, tag.groups, bias)
    elif bias is None:
        out = _joined(queries, key, value, tag.prefix, tag.groups)
    else:
        raise NotImplementedError
    return out.reshape(rows, 1, heads, value.shape[3])


def _softmax(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1, dtype=torch.float32).to(scores.dtype)


def _crossed(queries: Tensor, prefix: SharedLayer, groups: Groups, bias: Tensor | None) -> Tensor:
    """All that is attended to is shared: one product for all rows of an input."""
    grouped = _by_input(groups.gather(queries))  # (inputs, key heads, width * queries, size)
    scores = grouped @ prefix.keys.transpose(2, 3)  # (inputs, key heads, width * queries, length)
    if bias is not None:
        if queries.shape[2] != 1:
            raise NotImplementedError
        scores += bias
    if prefix.mask is not None:
        scores += prefix.mask
    return groups.scatter(_by_row(_softmax(scores) @ prefix.values, groups.width))


def _joined(queries: Tensor, keys: Tensor, values: Tensor, prefix: SharedLayer, groups: Groups) -> Tensor:
    """One softmax over both parts; the shared part's products are taken for all rows of an input at once."""
    # (inputs, width, key heads, queries, own length)
    row_scores = groups.gather(queries @ keys.transpose(2, 3))
    grouped = groups.gather(queries)  # (inputs, width, key heads, queries, size)
    of_one_row = groups.inputs * queries.shape[1] * queries.shape[2] * (prefix.keys.shape[2] + keys.shape[2])
    block = max(1, MOST_SCORES // of_one_row)
    parts = [
        _join(grouped[:, first : first + block], row_scores[:, first : first + block], prefix)
        for first in range(0, groups.width, block)
    ]
    out, weights = parts[0] if len(parts) == 1 else map(torch.hstack, zip(*parts, strict=True))
    return groups.scatter(out) + groups.scatter(weights) @ values


def _join(queries: Tensor, row_scores: Tensor, prefix: SharedLayer) -> tuple[Tensor, Tensor]:
    """The shared share of the answer, and the weights of the rows' own part, which has `row_scores`.

    All are (inputs, width, key heads, queries, ...), with the size or the own length at the end.
    """
    common = _by_input(queries) @ prefix.keys.transpose(2, 3)  # (inputs, key heads, width * queries, length)
    if prefix.mask is not None:
        common += prefix.mask
    weights = _softmax(torch.cat([common, _by_input(row_scores)], dim=-1))
    shared, width = common.shape[-1], queries.shape[1]
    return _by_row(weights[..., :shared] @ prefix.values, width), _by_row(weights[..., shared:], width)


def _by_input(grouped: Tensor) -> Tensor:
    """(inputs, width, key heads, queries, n) to (inputs, key heads, width * queries, n)."""
    return grouped.transpose(1, 2).flatten(2, 3)


def _by_row(grouped: Tensor, width: int) -> Tensor:
    """(inputs, key heads, width * queries, n) to (inputs, width, key heads, queries, n)."""
    inputs, heads, queries, size = grouped.shape
    return grouped.view(inputs, heads, width, queries // width, size).transpose(1, 2)


#: `ours` is set while this thread is inside one of our passes.
_thread = threading.local()


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
    if hasattr(_thread, "ours"):
        return attend(query, key, value, attention_mask, scaling, position_bias, options), None
    if position_bias is not None:
        options["position_bias"] = position_bias
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **options)


def mask(*args: Any, **kwargs: Any) -> Any:
    """No mask inside our passes, where a new token sees all before it and padding is kept with the prefix."""
    return None if hasattr(_thread, "ours") else sdpa_mask(*args, **kwargs)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)


#: The configurations of a network in which its attention is named, and a lock for passes of several threads.
_switches: WeakKeyDictionary[Net, tuple[list[Any], threading.Lock]] = WeakKeyDictionary()


@contextmanager
def our_attention(net: Net) -> Iterator[None]:
    """Switch a network to our attention for the length of one pass; passes of two threads take turns."""
    if net not in _switches:
        named = {id(c): c for m in net.modules() if hasattr(c := getattr(m, "config", None), CONFIGURED)}
        _switches[net] = list(named.values()), threading.Lock()
    configs, lock = _switches[net]
    with lock:
        before = [getattr(config, CONFIGURED) for config in configs]
        _thread.ours = True
        for config in configs:
            setattr(config, CONFIGURED, NAME)
        try:
            yield
        finally:
            del _thread.ours
            for config, name in zip(configs, before, strict=True):
                setattr(config, CONFIGURED, name)


#: Prompts up to this length are copied to the rows: cheaper than attention in two parts.
SHORT_PROMPT = 16
#: How far the two ways may differ, relative to the spread of the log-probabilities.
TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 0.05, torch.float16: 0.02}

#: Kinds of prompts that were tried, and whether their rows can share.
Trials = dict[tuple[object, ...], bool]


@dataclass(frozen=True)
class SharedPrompt(Prompt):
    """Prompts whose rows share `prefix`."""

    prefix: SharedPrefix

    def begin(self, owner: Integers) -> Rows:
        """Rows of the inputs with these numbers (rows,), before their first token."""
        return SharedRows(self, owner)


def shared_where_possible(prompt: Prompt, most: int | None, trials: Trials) -> Prompt:
    """The prompt with rows that share, or as it is; `most` tokens fit into the network."""
    net, kwargs = prompt.net, without(prompt.kwargs, "past_key_values")
    mask = kwargs.get("attention_mask")
    if net.config.is_encoder_decoder:
        masks = None, mask
    else:  # the mask already has a column for the next token
        masks = None if mask is None else mask[:, :-1], kwargs.get("encoder_attention_mask")
    prefix = SharedPrefix.of(prompt.kwargs.get("past_key_values"), *masks)
    if prefix is None or (most is not None and prompt.ids.shape[1] + 2 > most):  # no room to try anything
        return prompt
    shared = SharedPrompt(net, prompt.first, prompt.ids, prompt.processors, kwargs, prefix)
    padding = [half[0].mask if half else None for half in (prefix.decoder, prefix.encoder)]
    kind = (type(net).__name__, prefix.copied, *(mask is not None for mask in padding))
    if kind not in trials:
        owner = np.array([0, prefix.inputs - 1, 0])
        for one in padding:
            if one is not None:  # the rows of the most and of the least padded input, out of order
                padded = one.isinf().sum(dim=(1, 2, 3))
                owner = np.array([int(padded.argmax()), int(padded.argmin()), int(padded.argmax())])
                break
        plain = _two_steps(prompt, owner)
        spread = (plain - plain.mean(dim=-1, keepdim=True)).square().mean().sqrt()
        try:
            difference = (plain - _two_steps(shared, owner)).square().mean().sqrt()
            trials[kind] = bool(difference <= TOLERANCE.get(net.dtype, 0.0) * spread)
        except Exception:  # whatever a network of unknown build makes of a cache it does not know
            trials[kind] = False
    return shared if trials[kind] else prompt


def _two_steps(prompt: Prompt, owner: Integers) -> Tensor:
    """Log-probabilities (2, vocabulary) after each row's likeliest token, a reordering and one more token."""
    index, order = torch.as_tensor(owner, device=prompt.ids.device), np.array([2, 1])
    tokens = prompt.first.log_probs.index_select(0, index).argmax(dim=-1)  # (rows,)
    rows = prompt.begin(owner)
    rows.step(tokens)
    rows.select(order)
    return rows.step(tokens[order]).log_probs


class SharedRows(Rows):
    """Rows on our own cache: what their inputs left behind is kept once, what they have written is theirs."""

    repeats_inputs = False

    def _first_cache(self, prompt: Prompt, index: Tensor) -> DynamicCache | EncoderDecoderCache:
        assert isinstance(prompt, SharedPrompt)
        self._name, self._prefix = "past_key_values", prompt.prefix
        self._groups = Groups(self._owner, len(prompt.ids), prompt.prefix.decoder[0].keys.device)
        self._layers = [
            RowsLayer(layer, self._groups, prompt.prefix.copied) for layer in prompt.prefix.decoder
        ]
        return self._new_cache()

    def _new_cache(self) -> DynamicCache | EncoderDecoderCache:
        """What the network is given."""
        decoder, encoder = DynamicCache(), DynamicCache()
        decoder.layers = list(self._layers)
        encoder.layers = [CrossLayer(layer, self._groups) for layer in self._prefix.encoder]
        return EncoderDecoderCache(decoder, encoder) if encoder.layers else decoder

    def step(self, tokens: Tensor) -> Prediction:
        with our_attention(self._net):
            return super().step(tokens)

    def _select_cache(self, rows: Integers, index: Tensor, same_inputs: bool) -> None:
        index = index.to(self._groups.device)
        for layer in self._layers:
            layer.reorder_cache(index)  # type: ignore[arg-type]
        if same_inputs:
            return
        owner = self._groups.owner[rows]
        present = np.unique(owner)  # inputs without rows are dropped when they are half of all
        if 2 * len(present) <= self._groups.inputs:
            self._prefix = self._prefix.take(torch.as_tensor(present, device=self._groups.device))
            owner = np.searchsorted(present, owner)
        self._groups = Groups(owner, self._prefix.inputs, self._groups.device)
        for layer, prefix in zip(self._layers, self._prefix.decoder, strict=True):
            layer.tag = KeyTag(self._groups, None if layer.tag.prefix is None else prefix)
        self._cache = self._new_cache()


@dataclass(frozen=True)
class SharedPrefix:
    """Each layer's keys and values of the prompts in the decoder, and of what comes from an encoder."""

    decoder: Sequence[SharedLayer]
    encoder: Sequence[SharedLayer]

    def take(self, inputs: Tensor) -> SharedPrefix:
        """These inputs, copied."""
        return SharedPrefix(
            [layer.take(inputs) for layer in self.decoder], [layer.take(inputs) for layer in self.encoder]
        )

    @property
    def inputs(self) -> int:
        return len(self.decoder[0].keys)

    @property
    def copied(self) -> bool:
        """Whether the prompts are so short that rows had better have copies of them."""
        return self.decoder[0].keys.shape[2] <= SHORT_PROMPT and self.decoder[0].mask is None

    @classmethod
    def of(cls, cache: Any, mask: Tensor | None, encoder_mask: Tensor | None) -> SharedPrefix | None:
        """Take over transformers' cache after the prompt; None where it is of a kind that cannot be shared.

        The masks (inputs, length) are 1 for tokens and 0 for padding.
        """
        pair = isinstance(cache, EncoderDecoderCache)
        halves = [cache.self_attention_cache, cache.cross_attention_cache] if pair else [cache]
        if any(type(half) is not DynamicCache for half in halves):
            return None
        decoder, encoder = halves[0].layers, halves[1].layers if pair else []
        # Windows, quantised and recurrent layers are other classes; layers that use another's are empty.
        if any(
            type(layer) is not DynamicLayer or layer.get_seq_length() == 0 for layer in (*decoder, *encoder)
        ):
            return None
        shared: list[list[SharedLayer]] = []
        for layers, present in ((decoder, mask), (encoder, encoder_mask)):
            added = None
            if layers and present is not None and not bool(present.all()):
                if present.shape[1] != layers[0].keys.shape[2]:
                    return None
                zero = torch.zeros_like(present, dtype=layers[0].keys.dtype)
                added = zero.masked_fill(present == 0, -torch.inf)[:, None, None]  # (inputs, 1, 1, length)
            shared.append([SharedLayer(kv.keys.contiguous(), kv.values.contiguous(), added) for kv in layers])
        return cls(*shared) if decoder else None


class RowsLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """The rows' own keys and values (rows, heads, tokens, size), after a prefix that is shared or copied."""

    def __init__(self, prefix: SharedLayer, groups: Groups, copied: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tag = KeyTag(groups, None if copied else prefix)
        if copied:
            owner = torch.as_tensor(groups.owner, device=prefix.keys.device)
            super().update(prefix.keys.index_select(0, owner), prefix.values.index_select(0, owner))

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append the new tokens' keys and values; returns all that are the rows' own, the keys with a tag."""
        keys, values = super().update(key_states, value_states)
        keys.rangevote = self.tag  # type: ignore[attr-defined]
        return keys, values

    def get_seq_length(self) -> int:
        """Tokens before the next one, shared and own."""
        shared = 0 if self.tag.prefix is None else self.tag.prefix.keys.shape[2]
        return shared + super().get_seq_length()


class CrossLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values that the decoder takes from an encoder: all shared, and never changed."""

    def __init__(self, prefix: SharedLayer, groups: Groups) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys = prefix.keys.view_as(prefix.keys)  # the tag is not for others that have the same prefix
        self.keys.rangevote = KeyTag(groups, prefix, crossed=True)  # type: ignore[attr-defined]
        self.values = prefix.values
        self.is_initialized = True
