"""The operations over vocabularies in torch, on the model's device.

A plain `topk` over k rows of 50,000 tokens costs more than a small model's own step. The n best of many
numbers lie in the n blocks with the largest maxima, and the maxima are one quick pass; so only n blocks
are ever sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rangevote.decoding.arrays import (
    Array,
    Arrays,
    Floats,
    Integers,
    Mask,
    Picks,
    Truncation,
    by_contest,
    sizes,
)

#: Tokens in a block; a few cache lines.
BLOCK = 64


class TorchArrays(Arrays):
    """For models that answer in torch."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def best(self, scores: Array, base: Floats, bounds: Integers, n: int) -> Picks:
        """See `Arrays.best`."""
        offsets = self._floats(base, scores)  # (rows,)
        if len(set(sizes(bounds).tolist())) == 1:
            return self._best(scores, offsets, len(bounds) - 1, n, 0)
        return by_contest(
            bounds, lambda first, last: self._best(scores[first:last], offsets[first:last], 1, n, first)
        )

    def _best(self, scores: torch.Tensor, offsets: torch.Tensor, contests: int, n: int, first: int) -> Picks:
        """Contests of equally many rows, which start at row `first`."""
        rows, size = len(scores) // contests, scores.shape[1]
        if n * BLOCK * 2 >= rows * size:  # as many as there are: sort them all
            totals = (scores + offsets[:, None]).view(contests, rows * size)
            values, index = totals.topk(min(n, rows * size))
            row, tokens = index // size, index % size
        else:
            values, row, tokens = _best_by_blocks(scores, offsets, contests, n)
        row = row + torch.arange(contests, device=row.device)[:, None] * rows + first
        possible = values != -torch.inf
        return Picks(
            row[possible].cpu().numpy(),
            tokens[possible].cpu().numpy(),
            values[possible].double().cpu().numpy(),
        )

    def top(self, scores: Array, n: int) -> tuple[Integers, Floats]:
        """See `Arrays.top`."""
        n = min(n, scores.shape[1])
        if n * BLOCK * 2 >= scores.shape[1]:
            values, tokens = scores.topk(n)
        else:
            values, _, tokens = _best_by_blocks(scores, scores.new_zeros(len(scores)), len(scores), n)
        return tokens.cpu().numpy(), values.double().cpu().numpy()

    def at(self, scores: Array, rows: Integers, tokens: Integers) -> Floats:
        """See `Arrays.at`."""
        found = scores[self._integers(rows), self._integers(tokens)].double()
        return np.asarray(found.cpu().numpy())

    def unsound(self, scores: Array) -> Mask:
        """See `Arrays.unsound`; a sum shows NaN and is one quick pass."""
        return np.asarray(scores.sum(dim=1).isnan().cpu().numpy())

    def forbid(self, scores: Array, rows: Integers, tokens: Integers) -> None:
        """See `Arrays.forbid`."""
        scores[self._integers(rows), self._integers(tokens)] = -torch.inf

    def draw(self, scores: Array, uniforms: Floats, truncation: Truncation) -> Integers:
        """See `Arrays.draw`."""
        masses = scores - scores.amax(dim=1, keepdim=True)  # (rows, vocabulary)
        if truncation.temperature != 1.0:
            masses /= truncation.temperature
        masses = truncated(masses.exp_(), truncation)
        blocks = _by_block(masses, "sum").double().cumsum(dim=1)  # (rows, blocks)
        total = blocks[:, -1:]
        target = torch.as_tensor(uniforms, device=masses.device)[:, None] * total  # (rows, 1)
        block = torch.searchsorted(blocks, target, right=True).clamp_(max=blocks.shape[1] - 1)
        before = torch.where(block > 0, blocks.gather(1, (block - 1).clamp_(min=0)), 0.0)
        place = block * BLOCK + torch.arange(BLOCK, device=masses.device)  # (rows, BLOCK)
        inside = masses.gather(1, place.clamp(max=masses.shape[1] - 1)) * (place < masses.shape[1])
        inside = inside.double().cumsum(dim=1)
        # The block's own sum may round below the target: then it is the block's last token that has mass.
        last = (inside < inside[:, -1:]).sum(dim=1, keepdim=True)
        token = torch.minimum(torch.searchsorted(inside, target - before, right=True), last)
        token = torch.where(total > 0, block * BLOCK + token, -1)
        return np.asarray(token[:, 0].cpu().numpy())

    def perturb(
        self, scores: Array, exponentials: Array, proposal: Floats, perturbed: Floats
    ) -> tuple[Array, Array]:
        """See `Arrays.perturb`; in float64, since differences of near values are what decides."""
        scores = scores.double()
        limit = torch.as_tensor(perturbed, device=scores.device)[:, None]  # (rows, 1)
        parents = torch.as_tensor(proposal, device=scores.device)[:, None]
        total = scores.logsumexp(dim=1, keepdim=True)
        children = torch.where(scores == -torch.inf, -torch.inf, scores - total + parents)
        gumbels = children - torch.as_tensor(exponentials, device=scores.device).double().log()
        gap = (gumbels.amax(dim=1, keepdim=True) - gumbels).clamp_(min=0.0)
        v = limit - gumbels + (-torch.expm1(-gap)).log()
        values = limit - v.clamp(min=0.0) - torch.log1p(torch.exp(-v.abs()))
        values = torch.where(gap == 0, limit, values)
        return children, torch.where(children == -torch.inf, -torch.inf, values)

    def zeros(self, like: Array) -> Array:
        """See `Arrays.zeros`."""
        return torch.zeros(like.shape, dtype=torch.float32, device=like.device)

    def take(self, array: Array, rows: Integers) -> Array:
        """See `Arrays.take`."""
        return array.index_select(0, self._integers(rows))

    def numpy(self, array: Array) -> NDArray[Any]:
        """See `Arrays.numpy`."""
        return np.asarray(array.detach().cpu().numpy())

    def _integers(self, numbers: Integers) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.int64)).to(self._device)

    def _floats(self, numbers: Floats, like: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers)).to(like.device, like.dtype)


def _by_block(numbers: torch.Tensor, what: str) -> torch.Tensor:
    """The sum or the maximum of every block of a row (rows, blocks); the last block may be short."""
    size = numbers.shape[1]
    whole = size - size % BLOCK
    found: torch.Tensor = getattr(numbers[:, :whole].view(len(numbers), -1, BLOCK), what)(dim=2)
    if whole < size:
        found = torch.cat([found, getattr(numbers[:, whole:], what)(dim=1, keepdim=True)], dim=1)
    return found


def _best_by_blocks(
    scores: torch.Tensor, offsets: torch.Tensor, contests: int, n: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The n best of every contest: values, rows within the contest, tokens, each (contests, n)."""
    rows, size = len(scores) // contests, scores.shape[1]
    maxima = _by_block(scores, "amax")  # (all rows, blocks)
    blocks = maxima.shape[1]
    maxima = (maxima + offsets[:, None]).view(contests, rows * blocks)
    _, chosen = maxima.topk(min(n, rows * blocks), sorted=False)  # (contests, n)
    row = chosen // blocks  # within the contest
    tokens = (chosen % blocks * BLOCK)[..., None] + torch.arange(BLOCK, device=scores.device)
    beyond = tokens >= size  # the last block may be short
    anywhere = (row + torch.arange(contests, device=row.device)[:, None] * rows)[..., None]
    values = scores[anywhere, tokens.clamp(max=size - 1)] + offsets[anywhere]
    values = values.masked_fill_(beyond, -torch.inf).flatten(1)  # (contests, n * BLOCK)
    values, place = values.topk(min(n, values.shape[1]))
    return values, row.gather(1, place // BLOCK), tokens.flatten(1).gather(1, place)


def truncated(masses: torch.Tensor, truncation: Truncation) -> torch.Tensor:
    """The masses (rows, vocabulary) with 0 where a token may not be drawn; see `numpy_arrays.truncated`."""
    if truncation == Truncation(truncation.temperature):
        return masses
    shares = masses / masses.sum(dim=1, keepdim=True)
    best = shares.amax(dim=1, keepdim=True)
    keep = torch.ones_like(shares, dtype=torch.bool)
    if truncation.top_k is not None:
        keep &= shares >= shares.topk(min(truncation.top_k, shares.shape[1])).values[:, -1:]
    if truncation.top_p is not None:
        shares = shares * keep
        shares = shares / shares.sum(dim=1, keepdim=True)
        falling = shares.sort(dim=1, descending=True).values.double()
        before = falling.cumsum(dim=1) - falling  # mass of the better ones
        last = ((before < truncation.top_p).sum(dim=1, keepdim=True) - 1).clamp_(min=0)
        keep &= shares >= falling.gather(1, last).to(shares.dtype)
    if truncation.min_p is not None:
        keep &= shares >= truncation.min_p * best
    if truncation.epsilon is not None:
        keep &= shares >= truncation.epsilon
    return masses * (keep | (masses == masses.amax(dim=1, keepdim=True)))
