"""The last layer, from hidden states to one number for each token of the vocabulary.

For a few rows it is the longest part of a step, and the product of a few rows with a great matrix is what
BLAS on a processor is worst at: turned around, block by block, it takes half the time or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

#: A transformers model; its class tells a type checker nothing about what `forward` takes.
Net = Any

#: Vocabularies below this are not worth it.
LARGE = 1 << 13
#: Numbers of a block that are turned around while they are still in the processor's cache.
BLOCK = 1 << 16
#: Rows from which oneDNN is quicker than the product turned around.
SEVERAL = 8
ONEDNN = bool(torch._C._has_mkldnn) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@contextmanager
def watched(net: Net) -> Iterator[list[Tensor]]:
    """Collects what the last layer is given, (rows, positions, dimension) in each pass; makes it quick."""
    states: list[Tensor] = []
    head = net.get_output_embeddings()
    if head is None:
        yield states
        return
    hook = head.register_forward_pre_hook(lambda _, given: states.append(given[0]))
    quick = _can_be_quick(head)
    if quick:
        head.forward = lambda hidden: product(hidden, head.weight, head.bias)
    try:
        yield states
    finally:
        hook.remove()
        if quick:
            del head.forward


def _can_be_quick(head: nn.Module) -> bool:
    """Whether it is a plain matrix of float32 on a processor, whose `forward` nobody has replaced."""
    return (
        type(head) is nn.Linear
        and head.weight.device.type == "cpu"
        and head.weight.dtype == torch.float32
        and head.out_features >= LARGE
        and "forward" not in vars(head)
    )


def product(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """hidden @ weight.T + bias: (..., dimension), (vocabulary, dimension) -> (..., vocabulary)."""
    flat = hidden.reshape(-1, hidden.shape[-1])  # (rows, dimension)
    rows = len(flat)
    if rows == 1:
        return nn.functional.linear(hidden, weight, bias)
    # BLAS works on eight at a time: 9 rows take longer than 16, but 7 not longer than 8.
    turned = nn.functional.pad(flat, (0, 0, 0, -rows % 8 if rows > 8 else 0)).t()  # (dimension, rows or more)
    out = flat.new_empty((rows, len(weight)))
    size = max(1024, BLOCK // rows)
    for first in range(0, len(weight), size):
        block = slice(first, first + size)
        out[:, block] = (weight[block] @ turned)[:, :rows].t()
    if bias is not None:
        out += bias
    return out.view(*hidden.shape[:-1], len(weight))
