"""When a sample of voters is enough: an anytime-valid stopping rule, and the rounds that ask it.

Assumed: batches are independent, and the samples of one batch are exchangeable, as independent samples of
one model are; how many samples a batch has may depend on those before it, not on its own.

Against every rival group r somebody bets. For the voters of one batch the bet backs l, who led before that
batch (the first names a leader, and nobody bets on it):

    x = (sim(v, l) + evidence(l) - sim(v, r) - evidence(r) + within) / width  >= -1

where evidence is what of a score does not depend on the voters (`likelihood`). Suppose that r is the true
winner. Then, with within = 0, the mean of x is at most 0 whoever is backed, so for a stake b in (0, 1) the
wealth

    W_b = product over voters of (1 + b x)

is a non-negative supermartingale that starts at 1, and so is its mean over several stakes. By Ville's
inequality it ever reaches 1 / alpha with probability at most alpha. A rival against whom the wealth has ever
reached that is rejected, and the election is decided when only the leader is left. To declare a wrong winner
the true one must have been rejected: an event of probability alpha = 1 - confidence, whenever and however
often one looks. Nothing is shared out among the rivals, for only one of them is the true winner; it need not
even have been seen yet, since bets against an answer that no voter gave win alike.

With a tolerance a declared leader may be up to `within` below the best. Wealth that was won while backing
another one, who may be so near, is then no evidence for this leader: each has a purse of its own, and the
k-th that ever leads starts with 1 / (k (k + 1)), which is 1 in all.

Of a panel, one voter of each member makes a round, and only whole rounds are looked at. Member m's bet is
raised to p = share(m) / largest share, so that W_b = product over voters of (1 + b x)^p. If r is the true
winner, the means of x, weighted by the shares, sum to at most 0; p is at most 1, so E (1 + b x)^p is at most
(1 + b E x)^p, and the product over the members of a round, who are independent, is at most
(1 + b sum over m of share(m) E x_m)^(1 / largest share) <= 1 by the inequality of the weighted means. With
equal shares every voter counts as fully as one of a single model does.

Of several seats each is decided in turn among those without one, at alpha / seats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rangevote.errors import UsageError
from rangevote.hypothesis import Array, is_number

Integers = NDArray[np.int64]

#: Voters of the first round; every further one doubles their number.
FIRST_ROUND = 4
#: The stakes of a bettor: large ones find great leads early, small ones small leads in long runs.
STAKES = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999])
#: How the first wealth is shared out among them (`benchmarks/stopping.py` measures what it is worth).
PURSES = STAKES * (1.05 - STAKES)
PURSES /= PURSES.sum()
#: The smallest width of a bet: that of a leader who is certain to be ahead of the rival.
NARROWEST = 1e-3


def rounds(
    most: int, first: int = FIRST_ROUND, decided: Callable[[], bool] = lambda: False
) -> Iterator[range]:
    """The draws of each round: `first`, then as many again as there were, until it is decided or `most` are
    drawn in all. The one adaptive loop of the package.

    >>> list(rounds(20))
    [range(0, 4), range(4, 8), range(8, 16), range(16, 20)]
    """
    start, stop = 0, first
    while start < most:
        yield range(start, min(stop, most))
        if stop < most and decided():
            return
        start, stop = stop, 2 * stop


def check_within(within: object) -> None:
    """Refuse a tolerance outside 0 to 1."""
    if not is_number(within) or not 0 <= within < 1:
        raise UsageError(
            f"within must be a difference of scores from 0 to 1, such as 0.02, got {within!r:.60}."
        )


def deal(ends: Sequence[int]) -> tuple[Integers, Integers]:
    """The order in which voters are bet on, and after how many of them a leader is named.

    `ends` says how many voters there were after each batch. Samples that came together may be sorted, as a
    search returns them, so each batch is shuffled by a permutation that depends on its number and size alone.
    The order must not depend on the votes, and what was dealt stays dealt: a seed made of the votes, or a new
    deal when a new answer appears, lets the bettor know the future, and the bound fails (8 % wrong at 5 %).

    A batch that more than doubles the number of voters is taken in parts, so that the first part of a large
    first batch names a leader and the rest tests it.
    """
    batches = enumerate(pairwise((0, *ends)))
    # RandomState, since numpy guarantees that its permutations stay the same in every version
    dealt = [i + np.random.RandomState(batch).permutation(j - i) for batch, (i, j) in batches]
    voters = ends[-1] if len(ends) else 0
    doubled = {2**i for i in range(voters.bit_length())}
    order = np.concatenate([np.zeros(0, dtype=np.int64), *dealt])
    return order, np.array(sorted(doubled.union(ends) - {0}), dtype=np.int64)


class Bets(NamedTuple):
    """What is bet on: `totals` (voters, groups) are grades with the `evidence` of each group (groups,).

    `width` is the largest difference of two grades, `ends` says how many voters there were after each batch,
    `powers` (voters,) what the voters of a panel count, at most 1.
    """

    totals: Array
    evidence: Array
    width: float
    ends: Integers
    within: float = 0.0
    powers: Array | float = 1.0

    def sole_survivor(self, alpha: float) -> int | None:
        """The leader if all rivals are rejected, otherwise None."""
        leader = int(self.leaders()[-1])
        rejected = self.log_wealth().max(axis=0) >= -math.log(alpha)
        return leader if not rejected[leader] and rejected.sum() == len(rejected) - 1 else None

    def leaders(self) -> Integers:
        """The group that leads after each batch, shape (batches,)."""
        counted = self.totals * np.reshape(self.powers, (-1, 1))
        return np.asarray(counted.cumsum(axis=0)[self.ends - 1].argmax(axis=1))

    def log_wealth(self) -> Array:
        """What those who bet against each group have after each batch, shape (batches, groups)."""
        totals, evidence, width, ends, within, powers = self
        leaders = self.leaders()
        backed = np.repeat(np.concatenate([leaders[:1], leaders[:-1]]), np.diff(ends, prepend=0))  # (voters,)
        ahead = np.take_along_axis(totals, backed[:, None], axis=1) - totals + within  # (voters, groups)
        worst = width + evidence - evidence[backed][:, None] - within
        wins = ahead / np.maximum(worst, NARROWEST)
        wins[: ends[0]] = 0.0  # nobody leads yet
        wins[np.arange(len(backed)), backed] = 0.0
        purse = 0.0
        if within:
            wins[backed != leaders[-1]] = 0.0
            turn = list(dict.fromkeys([*backed[ends[0] :].tolist(), int(leaders[-1])])).index(leaders[-1]) + 1
            purse = -math.log(turn * (turn + 1))
        counts = np.reshape(powers, (-1, 1))
        wealth = np.full((len(ends), totals.shape[1]), -np.inf)
        for stake, share in zip(STAKES.tolist(), PURSES.tolist(), strict=True):
            won = (np.log1p(stake * wins) * counts).cumsum(axis=0)[ends - 1] + math.log(share)
            np.logaddexp(wealth, won, out=wealth)
        return wealth + purse
