"""Rows grouped by their input, so that what an input's rows share is kept once and used for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rangevote.models.protocol import Integers


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
        """The place of every row among (inputs * width,), and the row of every place (0: there is none)."""
        order = np.argsort(self.owner, kind="stable")
        counts = np.bincount(self.owner, minlength=self.inputs)
        within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = self.owner[order] * self.width + within
        rows = np.zeros(self.inputs * self.width, dtype=np.int64)
        rows[places] = np.arange(len(order))
        return torch.as_tensor(places, device=self.device), torch.as_tensor(rows, device=self.device)

    def gather(self, rows: Tensor) -> Tensor:
        """(rows, ...) to (inputs, width, ...), with any row where there is none."""
        chosen = rows if self.even else rows.index_select(0, self._slots[1].to(rows.device))
        return chosen.reshape(self.inputs, self.width, *rows.shape[1:])

    def scatter(self, grouped: Tensor) -> Tensor:
        """(inputs, width, ...) back to (rows, ...)."""
        flat = grouped.reshape(self.inputs * self.width, *grouped.shape[2:])
        return flat if self.even else flat.index_select(0, self._slots[0].to(flat.device))
