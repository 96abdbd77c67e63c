"""Attention of one new token for every row, over the inputs' shared keys and the rows' own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rangevote.models.huggingface.cache import Tag
from rangevote.models.huggingface.groups import Groups
from rangevote.models.huggingface.shared import Prefix

#: Scores of one layer that are in memory at a time (numbers, not bytes).
MOST_SCORES = 1 << 24

#: Tensors that layers pass along and that do not change the attention of one token over all before it.
HARMLESS = {"position_ids", "cache_position", "position_embeddings"}


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
    tag: Tag | None = getattr(key, "rangevote", None)
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


def _crossed(queries: Tensor, prefix: Prefix, groups: Groups, bias: Tensor | None) -> Tensor:
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


def _joined(queries: Tensor, keys: Tensor, values: Tensor, prefix: Prefix, groups: Groups) -> Tensor:
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


def _join(queries: Tensor, own: Tensor, prefix: Prefix) -> tuple[Tensor, Tensor]:
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


def _by_row(found: Tensor, width: int) -> Tensor:
    """(inputs, key heads, width * queries, n) to (inputs, width, key heads, queries, n)."""
    inputs, heads, queries, size = found.shape
    return found.view(inputs, heads, width, queries // width, size).transpose(1, 2)
