"""What the members of a panel did over a file: who wins, and who agrees with whom."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from rangevote.election.result import Result
from rangevote.hypothesis import Array
from rangevote.similarity.base import same_content

#: Members that wrote the same text in this share of their common ballots are called copies.
COPIES = 0.9


class MemberSummary(Struct, kw_only=True):
    """What one member did.

    `outputs` are its candidates. It `wins` where the elected output is its own, of equal ones the first in
    the file; in `same` ballots the measure cannot tell an output of it from the elected one. `share` is its
    mean share of the vote in the `ballots` where it votes. `agreement` is the mean similarity to the others'
    outputs; of answers, how often they are the same. `copies` wrote the same text in most ballots.
    """

    name: str
    outputs: int = 0
    ballots: int = 0
    wins: int = 0
    same: int = 0
    share: float | None = None
    agreement: float | None = None
    copies: list[str] = []


class PanelSummary(Struct, kw_only=True):
    """The members over `ballots` of the `total` in a file; `elected` of these have a winner.

    `matrix[i][j]` is the mean similarity between the outputs of members i and j, None where they never meet.
    """

    ballots: int
    total: int
    elected: int
    measure: str
    answers: bool
    members: list[MemberSummary]
    matrix: list[list[float | None]]


class PanelCount:
    """Counts what the members do, one election after the other."""

    def __init__(self) -> None:
        self.ballots = self.elected = 0
        self._members: dict[str, MemberSummary] = {}
        # sums over ballots, (members, members): similarity, equal texts, and common ballots
        self._sums = np.zeros((3, 0, 0))

    def add(self, result: Result) -> None:
        """Count one election."""
        self.ballots += 1
        self.elected += bool(result.elected)
        candidates = result.candidates
        for name in candidates.members or ():
            self._member(name).outputs += 1
        if result.elected and candidates.members is not None:
            self._member(candidates.members[result.elected[0]]).wins += 1
            group = next(one.candidates for one in result.groups if result.elected[0] in one.candidates)
            for name in {candidates.members[index] for index in group}:
                self._member(name).same += 1
        if result.panel is not None:
            self._add_votes(result, result.panel.shares)

    def _member(self, name: str) -> MemberSummary:
        if name not in self._members:
            self._members[name] = MemberSummary(name=name)
            self._sums = np.pad(self._sums, ((0, 0), (0, 1), (0, 1)))
        return self._members[name]

    def _add_votes(self, result: Result, shares: dict[str, float]) -> None:
        voters = result.voters
        for name, share in shares.items():
            member = self._member(name)
            member.ballots += 1
            member.share = (member.share or 0.0) + share
        within = within_members(result)
        numbers: dict[object, int] = {}
        texts = np.array([numbers.setdefault(text, len(numbers)) for text in same_content(voters)])
        alike = within @ result.similarity.matrix(voters, voters) @ within.T
        equal = within @ (texts[:, None] == texts) @ within.T
        known = list(self._members)
        places = [known.index(name) for name in shares]
        self._sums[np.ix_(range(3), places, places)] += [(alike + alike.T) / 2, equal, np.ones_like(alike)]

    def summary(self, total: int, measure: str, answers: bool) -> PanelSummary:
        """What was counted, of a file of `total` ballots; the members that agree most come first."""
        with np.errstate(invalid="ignore"):
            alike, equal = self._sums[:2] / self._sums[2]  # NaN where two never meet
        np.fill_diagonal(alike, np.nan)
        names = list(self._members)
        members = []
        for i, member in enumerate(self._members.values()):
            others = alike[i][~np.isnan(alike[i])]
            if member.share is not None:
                member.share /= member.ballots
            member.agreement = float(others.mean()) if len(others) else None
            member.copies = [names[j] for j in np.flatnonzero(equal[i] >= COPIES).tolist() if j != i]
            members.append(member)
        order = sorted(range(len(names)), key=lambda i: (-(members[i].agreement or 0.0), names[i]))
        return PanelSummary(
            ballots=self.ballots,
            total=total,
            elected=self.elected,
            measure=measure,
            answers=answers,
            members=[members[i] for i in order],
            matrix=[[None if np.isnan(one) else one for one in alike[i, order].tolist()] for i in order],
        )


def within_members(result: Result) -> Array:
    """The weights of the voters within their members, (members, voters); each row sums to 1."""
    lists = result.voters.by_member()
    within = np.zeros((len(lists), len(result.voters)))
    for row, (indices, _) in zip(within, lists, strict=True):
        weights = result.weights[indices]
        row[indices] = weights / weights.sum() if weights.any() else 1 / len(indices)
    return within
