"""What a search does over whole vocabularies, for numpy arrays and for torch tensors on any device.

Everything as large as (rows, vocabulary) stays where the model put it; what comes back are small numpy arrays
about the chosen tokens. One code serves both libraries, which share most names; a numpy model needs no torch.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A numpy array or a torch tensor.
Array = Any
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Tokens in a block; a few cache lines.
BLOCK = 64
#: Of probabilities that were computed in float32, relatively.
ROUNDING = 1e-6
#: In place of -inf where everything is forbidden.
LEAST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Truncation:
    """Which tokens may be drawn: log-probs are divided by `temperature`, then the tail is cut off.

    With an `amount` of x the `cut` "top_k" keeps the x best, and ties of the last; "top_p" the fewest of the
    best that have a share x of the mass; "min_p" what is at least x times as probable as the best; "epsilon"
    what has at least a probability of x. The best token always stays.
    """

    temperature: float = 1.0
    cut: str | None = None
    amount: float = 0.0


def library(array: Array) -> Any:
    """numpy or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def as_numpy(array: Array) -> NDArray[Any]:
    return np.asarray(array if isinstance(array, np.ndarray) else array.detach().cpu())


def has_nan(scores: Array) -> Mask:
    """Which rows contain NaN, which nothing else here expects; a sum shows it, and is one quick pass."""
    return as_numpy(library(scores).isnan(scores.sum(1)))


def values_at(scores: Array, rows: Integers, tokens: Integers) -> Floats:
    return as_numpy(_doubles(scores[rows, tokens]))


#: Tokens chosen in rows, with what they were ranked by: three columns of one length.
Picks = tuple[Integers, Integers, Floats]


def best_extensions(scores: Array, base: Floats, bounds: Integers, n: int) -> Picks:
    """The n best extensions of every contest, best first, contests in order.

    `scores` (rows, vocabulary) plus `base` (rows,) is compared among the rows bounds[c]:bounds[c+1]
    of contest c. Impossible extensions (-inf) are left out.
    """
    offsets = _like(scores, base)  # (rows,)
    spans = [(first, last, 1) for first, last in pairwise(bounds.tolist()) if last > first]
    if len({last - first for first, last, _ in spans}) == 1:  # all contests at once
        spans = [(0, len(scores), len(spans))]
    parts = []
    for first, last, contests in spans:
        best = _best(scores[first:last], offsets[first:last], contests, n)
        values, row, tokens = map(as_numpy, best)
        row = row + np.arange(first, last, (last - first) // contests)[:, None]
        possible = values != -np.inf
        parts.append((row[possible], tokens[possible], values[possible].astype(np.float64)))
    rows, tokens, values = map(np.concatenate, zip(*parts, strict=True))
    return rows, tokens, values


def best_tokens(scores: Array, n: int) -> Integers:
    """The n best tokens of every row, best first, (rows, n)."""
    _, _, tokens = _best(scores, _like(scores, np.zeros(len(scores))), len(scores), n)
    return as_numpy(tokens)


def _best(scores: Array, offsets: Array, contests: int, n: int) -> tuple[Array, Array, Array]:
    """The n best of contests of equally many rows: values, rows in the contest, tokens; each (contests, n).

    Sorting k rows of 50,000 tokens costs more than a small model's own step. The n best of many numbers lie
    in the n blocks with the largest maxima, and the maxima are one quick pass; so only n blocks are sorted.
    """
    rows, size = len(scores) // contests, scores.shape[1]
    if n * BLOCK * 2 >= rows * size:  # nearly as many as there are: compare them all
        totals = (scores + offsets[:, None]).reshape(contests, rows * size)
        values, index = _largest(totals, min(n, rows * size))
        return values, index // size, index % size
    maxima = _by_block(scores, "amax")  # (all rows, blocks)
    blocks = maxima.shape[1]
    maxima = (maxima + offsets[:, None]).reshape(contests, rows * blocks)
    _, chosen = _largest(maxima, min(n, rows * blocks))  # (contests, n)
    if isinstance(chosen, np.ndarray):
        chosen.sort(axis=1)  # of equal values the first stays the first
    row = chosen // blocks  # within the contest
    tokens = (chosen % blocks * BLOCK)[..., None] + _range(scores, BLOCK)
    all_rows = (row + _range(scores, contests)[:, None] * rows)[..., None]
    inside = tokens < size  # the last block may be short
    values = scores[all_rows, tokens.clip(max=size - 1)] + offsets[all_rows]
    values = library(scores).where(inside, values, -np.inf).reshape(contests, -1)  # (contests, n * BLOCK)
    values, index = _largest(values, min(n, values.shape[1]))
    contest = _range(scores, contests)[:, None]
    return values, row[contest, index // BLOCK], tokens.reshape(contests, -1)[contest, index]


def _largest(values: Array, n: int) -> tuple[Array, Array]:
    """The n largest of every row, largest first, and where they are.

    In numpy equal values keep their order; torch leaves it open.
    """
    if not isinstance(values, np.ndarray):
        largest, index = values.topk(n)
        return largest, index
    index = np.stack([_largest_of(row, n) for row in values])
    return np.take_along_axis(values, index, axis=1), index


def _largest_of(values: Floats, n: int) -> Integers:
    index = np.arange(values.size)
    if n < values.size:  # all above the n-th largest, and the first of those equal to it
        edge = np.partition(values, values.size - n)[values.size - n]
        above = np.flatnonzero(values > edge)
        index = np.sort(np.concatenate([above, np.flatnonzero(values == edge)[: n - len(above)]]))
    return index[np.argsort(-values[index], kind="stable")]


def draw_tokens(scores: Array, uniforms: Floats, truncation: Truncation) -> Integers:
    """One token a row, by inverting the distribution's sum at the row's number in [0, 1).

    A row in which nothing can be drawn gives -1.
    """
    xp = library(scores)
    row = _range(scores, len(scores))[:, None]  # (rows, 1)
    best = xp.amax(scores, axis=1, keepdims=True).clip(min=LEAST)
    masses = scores - best  # (rows, vocabulary)
    if truncation.temperature != 1.0:
        masses /= truncation.temperature
    masses = truncated(xp.exp(masses, out=masses), truncation)
    blocks = xp.cumsum(_doubles(_by_block(masses, "sum")), axis=1)  # (rows, blocks)
    total = blocks[:, -1:]
    target = _like(blocks, uniforms)[:, None] * total  # (rows, 1)
    block = (blocks <= target).sum(1)[:, None].clip(max=blocks.shape[1] - 1)
    before = xp.where(block > 0, blocks[row, (block - 1).clip(min=0)], 0.0)
    index = block * BLOCK + _range(scores, BLOCK)  # (rows, BLOCK)
    inside = masses[row, index.clip(max=masses.shape[1] - 1)] * (index < masses.shape[1])
    inside = xp.cumsum(_doubles(inside), axis=1)
    # The block's own sum may round below the target: then it is the block's last token that has mass.
    last = (inside < inside[:, -1:]).sum(1)
    token = xp.minimum((inside <= target - before).sum(1), last)
    return as_numpy(xp.where(total[:, 0] > 0, block[:, 0] * BLOCK + token, -1))


def truncated(masses: Array, truncation: Truncation) -> Array:
    """The masses (rows, vocabulary) with 0 where a token may not be drawn; the best always stays."""
    if truncation.cut is None:
        return masses
    xp, amount = library(masses), truncation.amount
    if truncation.cut == "top_k":
        kept = masses >= _largest(masses, min(int(amount), masses.shape[1]))[0][:, -1:]
    elif truncation.cut == "top_p":
        kept = _nucleus(masses, amount)
    else:
        best = xp.amax(masses, axis=1, keepdims=True)
        whole = best if truncation.cut == "min_p" else masses.sum(1)[:, None]
        kept = masses >= xp.minimum(amount * whole, best)
    return xp.where(kept, masses, 0.0)


def _nucleus(masses: Array, p: float) -> Array:
    """The fewest tokens that have the share p of a row's mass together; of equal ones the first.

    As in transformers, the tail is summed up, of which a share of 1 - p may go: so p = 1 cuts off nothing.
    On a CPU numpy sorts row by row, torch's own sort there being ten times as slow.
    """
    xp = library(masses)
    if xp is not np and masses.device.type == "cpu":
        return xp.from_numpy(_nucleus(as_numpy(masses), p))
    if xp is np and len(masses) > 1:
        return np.concatenate([_nucleus(row[None], p) for row in masses])
    rising = np.sort(masses, axis=1) if xp is np else masses.sort(dim=1).values
    tail = xp.cumsum(_doubles(rising), axis=1)  # (rows, vocabulary)
    cut = (tail <= (1 - p) * (1 + ROUNDING) * tail[:, -1:]).sum(1).clip(max=masses.shape[1] - 1)
    edge = rising[_range(masses, len(masses)), cut][:, None]  # (rows, 1), the least that stays
    above, ties = masses > edge, masses == edge
    left = masses.shape[1] - cut - above.sum(1)  # how many of the ties stay
    return above | (ties & (xp.cumsum(ties, axis=1) <= left[:, None]))


def perturb(
    scores: Array, exponentials: Floats, proposal: Floats, perturbed: Floats, n: int
) -> tuple[Integers, Floats, Floats]:
    """The n best children of every row in stochastic beam search, best first (rows, n): their tokens, their
    log-probabilities and their perturbed ones.

    `scores` (rows, vocabulary) are normalised, the parents' `proposal` log-probability (rows,) added; Gumbel
    noise is -log of the `exponentials` (rows, vocabulary), and its maximum in each row is made the parent's
    `perturbed` value (Kool et al. 2019, appendix B.3). This keeps the order, so only the best are computed.
    In float64: differences of near values decide.
    """
    xp, scores = library(scores), _doubles(scores)
    limit = perturbed[:, None]  # (rows, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noisy = scores - xp.log(_like(scores, exponentials))  # (rows, vocabulary)
        tokens = best_tokens(noisy, n)
        rows = np.arange(len(tokens))[:, None]
        total = np.logaddexp.reduce(scores, axis=1) if xp is np else as_numpy(scores.logsumexp(1))
        shift = (proposal - np.maximum(total, np.finfo(float).min))[:, None]  # also where nothing is possible
        children = values_at(scores, rows, tokens) + shift
        gumbels = values_at(noisy, rows, tokens) + shift
        gap = gumbels[:, :1] - gumbels
        v = limit - gumbels + np.log(-np.expm1(-gap))
        values = limit - v.clip(min=0.0) - np.log1p(np.exp(-np.abs(v)))
    values = np.where(gap == 0, limit, values)
    return tokens, children, np.where(children == -np.inf, -np.inf, values)


def _by_block(numbers: Array, what: str) -> Array:
    """The sum or the maximum of every block of a row (rows, blocks); the last block may be short."""
    xp, size = library(numbers), numbers.shape[1]
    reduce, whole = getattr(xp, what), size - size % BLOCK
    blocks = reduce(numbers[:, :whole].reshape(len(numbers), -1, BLOCK), axis=2)
    if whole < size:
        blocks = xp.concatenate([blocks, reduce(numbers[:, whole:], axis=1, keepdims=True)], axis=1)
    return blocks


def _doubles(array: Array) -> Array:
    return library(array).asarray(array, dtype=library(array).float64)


def _like(array: Array, numbers: NDArray[Any]) -> Array:
    """Numbers in the library, type and device of an array."""
    if isinstance(array, np.ndarray):
        return numbers.astype(array.dtype, copy=False)
    return library(array).asarray(numbers, dtype=array.dtype, device=array.device)


def _range(array: Array, n: int) -> Array:
    """0 to n - 1, where the array is."""
    return np.arange(n) if isinstance(array, np.ndarray) else library(array).arange(n, device=array.device)
