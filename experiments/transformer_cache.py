"""The decoder's keys and values: of the sources, kept once for all rows of one, and of rows' own tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rangevote.models.huggingface.shared_attention import Groups
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
