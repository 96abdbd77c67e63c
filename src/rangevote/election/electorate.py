"""A streaming election: voters arrive, the count can be asked for at any time, and sampling can stop.

`decided` is anytime-valid. Voters are independent samples, so for a rival r of the leader l the grade
differences x = (sim(v, l) - sim(v, r) + d) / width are independent and at least -1. Here d is by how much
l's own likelihood is above r's (`likelihood`), a constant known beforehand, and the width is the largest
difference of two grades, and -d more where d < 0. If r were at least as
good as l, their mean would be at most 0, and for every b in (0, 1) the wealth of a gambler who always
bets the share b on x > 0,

    W_b = product over voters of (1 + b x),

would be a non-negative supermartingale that starts at 1; so is the mean of W_b over a grid of b. By
Ville's inequality it ever reaches R / alpha with probability at most alpha / R. With R rivals, the
union bound over the pairs (true winner, other) gives: the rule ever names a wrong leader with
probability at most alpha = 1 - confidence, whenever and however often one looks. Of several seats each is
tested against all who stand below it, and R counts these pairs: at the first seat that goes to a wrong one,
its true holder stands below. Reweighted voters bet on what their reweighted grades differ by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rangevote.election.elect import Listed, conclude
from rangevote.election.normalize import prepare
from rangevote.election.result import Result
from rangevote.election.rules import WITHOUT_VOTERS, Contest, order, own_likelihood
from rangevote.election.settings import ElectionOptions, Settings
from rangevote.election.weights import default_weights, weigh
from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import Array, Hypotheses, Hypothesis, concatenate
from rangevote.similarity.base import keys_of, open_poll
from rangevote.similarity.structured import Parties

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The shares a gambler bets; small ones find small leads in long runs, large ones great leads early.
BETS = 0.5 ** np.arange(0.25, 7.0, 0.75)  # (bets,), 0.84 down to 0.0096


class Electorate:
    """An election among fixed candidates whose voters arrive one at a time or in batches.

    Adding a voter costs its own length; the result is, bit for bit, that of one election with all the
    voters so far. Options are those of `elect`.

    >>> electorate = Electorate(["a dog runs", "a cat sits"], similarity="overlap_1")
    >>> electorate.add(["the dog runs"]).add(["a dog walks", "dogs run"]).result().winner
    'a dog runs'
    """

    def __init__(
        self,
        candidates: Listed,
        logprobs: Iterable[float | None] | None = None,
        *,
        settings: Settings | None = None,
        **options: Unpack[ElectionOptions],
    ) -> None:
        self._settings = settings = settings or Settings(**options)
        if settings.rule in WITHOUT_VOTERS:
            raise UsageError(f"nobody votes under rule={settings.rule!r}; use elect.")
        checked = Hypotheses.of(candidates, logprobs)
        self._candidates = prepare(checked, settings.normalize, settings.merge)
        if not len(self._candidates):
            raise DataError("there are no candidates, so nobody can be elected.", field="candidates")
        x = settings.own_likelihood
        self._own = own_likelihood(self._candidates, x) if x else np.zeros(len(self._candidates))
        if self._candidates.tool_calls is not None:
            self._settings = settings.with_parties()
        self._poll = open_poll(self._settings.measure, self._candidates)
        self._voters: list[Hypotheses] = []

    def __len__(self) -> int:
        """How many voters there are so far."""
        return sum(map(len, self._voters))

    def add(
        self,
        voters: Listed | str | Hypothesis,
        logprobs: Iterable[float | None] | None = None,
        *,
        member: str | None = None,
    ) -> Electorate:
        """Take in more voters (a single text or Hypothesis is one voter); returns the electorate.

        `member` is the member of a panel that they belong to; then all voters belong to one. A batch that is
        refused leaves the electorate as it was.
        """
        listed = [voters] if isinstance(voters, (str, Hypothesis)) else voters
        batch = Hypotheses.of(listed, logprobs, role="voters")
        if member is not None:
            batch = batch.of_member(member)
        if len(self) and len(batch) and (batch.members is None) != (self._all().members is None):
            raise UsageError(
                "in a panel every voter belongs to a member; some were added with member= and some without."
            )
        if batch.tool_calls is not None and self._settings is not (party := self._settings.with_parties()):
            self._settings = party
            self._recount()
        try:
            self._poll.add(self._normal(batch))
        except BaseException:  # a part of the poll may have taken the batch in
            self._recount()
            raise
        self._voters.append(batch)
        return self

    def _recount(self) -> None:
        self._poll = open_poll(self._settings.measure, self._candidates)
        for before in self._voters:
            self._poll.add(self._normal(before))

    def _normal(self, voters: Hypotheses) -> Hypotheses:
        return prepare(voters, self._settings.normalize, False)

    def _all(self) -> Hypotheses:
        if len(self._voters) != 1:
            self._voters = [concatenate(self._voters)]
        return self._voters[0]

    def result(self) -> Result:
        """The election with all voters so far."""
        voters = self._all()
        if not len(voters):
            raise DataError("nobody has voted yet; add voters first.", field="voters")
        settings = self._settings
        electors = prepare(voters, settings.normalize, settings.merge)
        weighting, weights = weigh(
            electors, settings.weights, settings.vote_temperature, voters, settings.shares
        )
        contest = Contest(
            self._candidates, electors, weights, settings.measure, self._poll, settings.own_likelihood
        )
        return conclude(contest, weighting, settings)

    def decided(self, confidence: float = 0.99) -> bool:
        """Whether the winners, in their order, can be trusted to win however many more voters are sampled.

        Right for independent samples with equal weights. A wrong winner is ever declared with
        probability at most 1 - confidence, however often this is called. Rivals are groups of candidates:
        those that the similarity cannot tell apart (`Result.groups`) do not compete.
        """
        if not 0 < confidence < 1:
            raise UsageError(f"confidence must lie between 0 and 1, got {confidence!r}.")
        voters = self._all()
        if voters.members is not None:
            raise UsageError("decided() is for samples of one model; it knows no panels.")
        weighting = self._settings.weights or default_weights(voters)
        if weighting != "count":
            raise UsageError(
                f"decided() is for sampled voters of equal weight, not weights={weighting!r}; "
                f"use weights='count'."
            )
        if isinstance(self._settings.measure, Parties):
            return False  # calls of tools are elected in stages, of which this knows nothing
        grades = self._poll.matrix()[:, self._firsts]  # (voters, groups)
        own = self._own[self._firsts]  # (groups,)
        own = np.where(own > -math.inf, own, 0.0)  # -inf only where all of them are
        total = grades + own
        left = list(range(len(self._firsts)))  # groups without a seat
        seats = min(self._settings.winners, len(left) - 1)
        pairs = sum(len(left) - 1 - seat for seat in range(seats))
        enough = math.log(max(1, pairs) / (1 - confidence))
        power, given = np.ones((len(grades), 1)), np.zeros((len(grades), 1))  # of each voter
        for _ in range(seats):
            leader = left[int(np.argmax((power * total[:, left]).sum(axis=0)))]
            left.remove(leader)
            width = self._width() + np.maximum(own[left] - own[leader], 0.0)  # (rivals,)
            if (log_wealth(power * (total[:, [leader]] - total[:, left]) / width) < enough).any():
                return False
            if self._settings.rule == "reweighted":
                given += np.maximum(grades[:, [leader]], 0.0)
                power = 1.0 / (1.0 + given)
        return True

    @cached_property
    def _firsts(self) -> list[int]:
        """The best candidate of each group by its own likelihood: its voters' grades are those of the group.

        A group without any probability can win nothing, unless all are like that.
        """
        keys = keys_of(self._settings.measure, self._candidates)
        likeliest = order(self._own, self._candidates).tolist()
        possible = [i for i in likeliest if self._own[i] > -math.inf] or likeliest
        return sorted({keys[i]: i for i in reversed(possible)}.values())

    def _width(self) -> float:
        """The largest possible difference of two grades."""
        return 1.0 - float(getattr(self._settings.measure, "lowest", -1.0))


def log_wealth(differences: Array) -> Array:
    """Log of the mean over `BETS` of product of (1 + b x); differences (voters, rivals) -> (rivals,)."""
    wealth = np.stack([np.log1p(bet * differences).sum(axis=0) for bet in BETS])  # (bets, rivals)
    return np.asarray(np.logaddexp.reduce(wealth, axis=0) - math.log(len(BETS)))
