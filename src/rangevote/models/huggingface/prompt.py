"""Prompts that have been read: what the network says after them, and how their rows go on.

Rows share what their input left in the cache wherever that gives what the plain way gives. Which models allow
it is not written anywhere, so it is tried: the first prompts of a kind go on for two tokens in both ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rangevote.models.huggingface.arguments import OF_PROMPTS, cache_name, cached, twin, without
from rangevote.models.huggingface.cache import SharedCache
from rangevote.models.huggingface.feed import Direct, Growing
from rangevote.models.huggingface.forward import Prediction, predict
from rangevote.models.huggingface.head import Net
from rangevote.models.huggingface.limits import most_written
from rangevote.models.huggingface.prepare import Prepared
from rangevote.models.huggingface.rows import PlainRows, Rows, SharedRows
from rangevote.models.huggingface.shared import Shared
from rangevote.models.protocol import Integers

#: How far the two ways may differ, relative to the spread of the log-probabilities.
TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 0.05, torch.float16: 0.02}


@dataclass
class Trials:
    """Kinds of prompts that were tried, and whether their rows can share; `share`: whether they may."""

    share: bool = True
    found: dict[tuple[str | bool, ...], bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """Prompts after reading: one row for each in `first`, `ids` (inputs, length) and `kwargs`."""

    net: Net
    first: Prediction
    ids: Tensor
    processors: Any
    kwargs: dict[str, Any]
    shared: Shared | None = None

    @classmethod
    def read(cls, prepared: Prepared, trials: Trials) -> Prompt:
        """Read prepared inputs, each once."""
        net, kwargs = prepared.net, dict(prepared.kwargs)
        name = cache_name(kwargs)
        if name is not None:
            kwargs[name] = twin(kwargs[name])  # what was prepared may be read again
        first, output = predict(net, _given(net, prepared.ids, kwargs))
        encoder = net.config.is_encoder_decoder
        kwargs = net._update_model_kwargs_for_generation(output, kwargs, is_encoder_decoder=encoder)
        if cache_name(kwargs) is not None:
            kwargs = without(kwargs, *OF_PROMPTS)
        prompt = cls(net, first, prepared.ids, prepared.processors, kwargs)
        return prompt._settled(trials) if trials.share else prompt

    @cached_property
    def needs_ids(self) -> bool:
        """Whether rows must keep all their token ids."""
        direct = self.shared is not None and Direct.of(self.net, self.kwargs) is not None
        return not direct or len(self.processors) > 0

    def begin(self, owner: Integers) -> Rows:
        """Rows of the inputs with these numbers (rows,), before their first token."""
        if self.shared is None:
            return PlainRows(self.net, self.kwargs, owner, len(self.ids))
        feed = Direct.of(self.net, self.kwargs) or Growing(self.net, self.kwargs, len(self.ids), expand=False)
        index = torch.as_tensor(owner, device=self.net.device)
        cache = SharedCache(self.shared, owner)
        return SharedRows(self.net, cache, feed.take(index, same_inputs=False), owner)

    def _settled(self, trials: Trials) -> Prompt:
        """This prompt in the one way or the other, by the trial of its kind."""
        shared, most = _shared(self.net, self.kwargs), most_written(self.net)
        if shared is None or (most is not None and self.ids.shape[1] + 2 > most):  # no room to try anything
            return self
        other = replace(self, kwargs=without(self.kwargs, "past_key_values"), shared=shared)
        kind: tuple[str | bool, ...] = (type(self.net).__name__, *shared.kind)
        if kind not in trials.found:
            owner = _telling(shared)
            trials.found[kind] = _agree(self.net, _tried(self, owner), lambda: _tried(other, owner))
        return other if trials.found[kind] else self


def _given(net: Net, ids: Tensor, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The network's arguments for the prompt, less what a user's own cache has of it already."""
    before = cached(kwargs.get("past_key_values"))
    length = ids.shape[1] - before if 0 < before < ids.shape[1] else None
    return dict(
        net.prepare_inputs_for_generation(ids, next_sequence_length=length, is_first_iteration=True, **kwargs)
    )


def _shared(net: Net, kwargs: dict[str, Any]) -> Shared | None:
    """What can be shared of the cache. A decoder's mask already has a place for the next token."""
    mask = kwargs.get("attention_mask")
    if net.config.is_encoder_decoder:
        return Shared.of(kwargs.get("past_key_values"), None, mask)
    own = None if mask is None else mask[:, :-1]
    return Shared.of(kwargs.get("past_key_values"), own, kwargs.get("encoder_attention_mask"))


def _telling(shared: Shared) -> Integers:
    """Owners of three rows, repeated and out of order: of the most padded input and of the least padded."""
    masks = [half[0].mask for half in (shared.own, shared.cross) if half and half[0].mask is not None]
    padding = masks[0].isinf().sum(dim=(1, 2, 3)).cpu().numpy() if masks else np.arange(shared.inputs)
    most, least = int(padding.argmax()), int(padding.argmin())
    return np.array([most, least, most])


def _tried(prompt: Prompt, owner: Integers) -> Tensor:
    """Log-probabilities (2, vocabulary) after each row's likeliest token, a reordering and one more token."""
    index, order = torch.as_tensor(owner, device=prompt.ids.device), np.array([2, 1])
    tokens = prompt.first.log_probs.index_select(0, index).argmax(dim=-1)  # (rows,)
    ids = torch.cat([prompt.ids.index_select(0, index), tokens[:, None]], dim=1)
    rows = prompt.begin(owner)
    rows.step(tokens, ids)
    rows.select(order)
    tokens, ids = tokens[order], ids[order]
    return rows.step(tokens, torch.cat([ids, tokens[:, None]], dim=1)).log_probs


def _agree(net: Net, plain: Tensor, shared: Any) -> bool:
    """Whether the shared way, which is a function yet to be called, gives what the plain one gave."""
    try:
        difference = (plain - shared()).square().mean().sqrt()
    except Exception:  # whatever a network of unknown build makes of a cache it does not know
        return False
    spread = (plain - plain.mean(dim=-1, keepdim=True)).square().mean().sqrt()
    return bool(difference <= TOLERANCE.get(net.dtype, 0.0) * spread)
