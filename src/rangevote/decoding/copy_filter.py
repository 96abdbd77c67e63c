"""The copy filter of Ott et al. (2018): no hypothesis may contain too much of the source.

A copy contains at least a given share of the source's distinct unigrams. "live" prunes copies as soon as they
are copies: since a hypothesis only ever gains unigrams, this forbids exactly the extensions that reach the
share, and the next best replace them, so that the beam stays full. "finished" lets them live but not end, as
the original seems to do; copies that run on past the end of the source may then remain. Unigrams are the
model's own tokens; while searching there are no words yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
NOTHING = -1  # fills the sources up to one width


@dataclass(frozen=True)
class CopyFilter:
    """Which tokens of its source each row contains."""

    sources: Integers  # (inputs, width) distinct tokens of each source
    needed: Integers  # (inputs,) how many of them make a copy
    ends: Integers | None  # the tokens that a copy may not end with; None: copies are pruned alive
    owner: Integers  # (rows,)
    seen: NDArray[np.bool_]  # (rows, width)

    @classmethod
    def of(
        cls, sources: Sequence[Sequence[int]], share: float, ends: Integers, prunes: str = "live"
    ) -> CopyFilter:
        """A filter without rows; a source without tokens filters nothing."""
        distinct = [sorted(set(source) - set(ends.tolist())) for source in sources]
        width = max(map(len, distinct), default=0)
        table = np.full((len(distinct), width), NOTHING, dtype=np.int64)
        for i, tokens in enumerate(distinct):
            table[i, : len(tokens)] = tokens
        # The slack keeps 0.28 * 25 = 7.000000000000001 from asking for eight.
        needed = np.array([math.ceil(share * len(tokens) - 1e-9) for tokens in distinct], dtype=np.int64)
        nobody = np.zeros(0, dtype=np.int64)
        return cls(
            table, needed, None if prunes == "live" else ends, nobody, np.zeros((0, width), dtype=bool)
        )

    def rows(self, owner: Integers) -> CopyFilter:
        """The filter for rows without tokens."""
        return replace(self, owner=owner, seen=np.zeros((len(owner), self.sources.shape[1]), dtype=bool))

    def extended(self, parents: Integers, tokens: Integers) -> CopyFilter:
        """The filter one token later."""
        owner = self.owner[parents]
        copied = self.sources[owner] == tokens[:, None]  # (rows, width)
        return replace(self, owner=owner, seen=self.seen[parents] | copied)

    def forbidden(self) -> tuple[Integers, Integers]:
        """Rows and tokens of the extensions that would make a copy, or end one."""
        if self.ends is not None:
            needed = self.needed[self.owner]
            copies = np.nonzero((needed > 0) & (self.seen.sum(axis=1) >= needed))[0]
            return copies.repeat(len(self.ends)), np.tile(self.ends, len(copies))
        sources = self.sources[self.owner]  # (rows, width)
        ripe = self.seen.sum(axis=1) + 1 >= self.needed[self.owner]  # one more makes a copy
        rows, columns = np.nonzero(ripe[:, None] & ~self.seen & (sources != NOTHING))
        return rows, sources[rows, columns]
