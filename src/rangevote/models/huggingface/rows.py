"""Rows under way: prefixes of at least one token, which are extended and reordered."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rangevote.models.huggingface.arguments import cache_name, reordered, without
from rangevote.models.huggingface.cache import SharedCache
from rangevote.models.huggingface.feed import Feed, Growing
from rangevote.models.huggingface.forward import Prediction, predict
from rangevote.models.huggingface.head import Net
from rangevote.models.huggingface.switch import switch_of
from rangevote.models.protocol import Integers


class Rows(Protocol):
    """Rows and what the network remembers of them. Both methods change them in place."""

    def step(self, tokens: Tensor, ids: Tensor | None) -> Prediction:
        """Append `tokens` (rows,); `ids` (rows, length) are all tokens with these, where they are kept."""

    def select(self, rows: Integers) -> None:
        """Reorder, repeat and drop rows."""


class PlainRows:
    """On transformers' own cache, in which every row has everything: works for every model."""

    def __init__(self, net: Net, kwargs: dict[str, Any], owner: Integers, inputs: int) -> None:
        """`kwargs` come from the prompt, one row for each of the `inputs`; `owner` (rows,) are ours."""
        self._net, self._owner, self._name = net, owner, cache_name(kwargs)
        index = torch.as_tensor(owner, device=net.device)
        self._cache = None if self._name is None else reordered(net, kwargs[self._name], index)
        feed = Growing(net, without(kwargs, self._name), inputs, expand=True)
        self._feed = feed.take(index, same_inputs=False)

    def step(self, tokens: Tensor, ids: Tensor | None) -> Prediction:
        """See `Rows.step`."""
        assert ids is not None
        cache = {} if self._name is None else {self._name: self._cache}
        prediction, output = predict(self._net, self._feed.inputs(ids, cache))
        self._feed.after(output)
        name = cache_name(output)  # not always the name under which it is given
        self._cache = self._cache if name is None else output[name]
        return prediction

    def select(self, rows: Integers) -> None:
        """See `Rows.select`."""
        owner = self._owner[rows]
        same = np.array_equal(owner, self._owner)
        if same and np.array_equal(rows, np.arange(len(owner))):
            return
        index = torch.as_tensor(rows, device=self._net.device)
        if self._cache is not None:
            self._cache = reordered(self._net, self._cache, index, same)
        self._feed, self._owner = self._feed.take(index, same), owner


class SharedRows:
    """On our own cache, in which what the rows of an input have in common is kept once."""

    def __init__(self, net: Net, cache: SharedCache, feed: Feed, owner: Integers) -> None:
        """`feed`: for rows as in `owner` (rows,)."""
        self._net, self._cache, self._feed, self._owner = net, cache, feed, owner
        self._switch = switch_of(net)

    def step(self, tokens: Tensor, ids: Tensor | None) -> Prediction:
        """See `Rows.step`."""
        seen = ids if self._feed.needs_ids and ids is not None else tokens[:, None]
        given = self._feed.inputs(seen, {"past_key_values": self._cache.past})
        with self._switch.on():
            prediction, output = predict(self._net, given)
        self._feed.after(output)
        return prediction

    def select(self, rows: Integers) -> None:
        """See `Rows.select`."""
        if np.array_equal(rows, np.arange(len(self._owner))):
            return
        owner = self._owner[rows]
        self._cache.select(rows)
        index = torch.as_tensor(rows, device=self._net.device)
        self._feed = self._feed.take(index, np.array_equal(owner, self._owner))
        self._owner = owner
