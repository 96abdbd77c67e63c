"""Puts our attention in the place of transformers' for the length of one pass.

Transformers looks attention up by the name in a model's configuration. Ours is registered as "rangevote", and
the name is put back when the pass is over. Other threads that use the model meanwhile get transformers' own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from rangevote.models.huggingface.attention import attend
from rangevote.models.huggingface.head import Net

NAME = "rangevote"


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


class Switch:
    """Turns the attention of a network to ours and back."""

    def __init__(self, net: Net) -> None:
        configs: list[Any] = [getattr(module, "config", None) for module in net.modules()]
        self._configs = [*{id(c): c for c in configs if hasattr(c, "_attn_implementation_internal")}.values()]
        self._turn = threading.Lock()

    @contextmanager
    def on(self) -> Iterator[None]:
        """For the length of one pass; passes of two threads take turns."""
        with self._turn:
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


_switches: WeakKeyDictionary[Net, Switch] = WeakKeyDictionary()


def switch_of(net: Net) -> Switch:
    """The one switch of a network."""
    if net not in _switches:
        _switches[net] = Switch(net)
    return _switches[net]
