"""A streaming election: voters arrive, the count can be asked for at any time, and sampling can stop.

`election/sequential_test.py` has the rule by which it stops, and why it may be asked at any time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rangevote.election.elect import Panel, conclude, elect_columns
from rangevote.election.preprocess import prepare
from rangevote.election.result import Result
from rangevote.election.rules import NOT_ADAPTIVE, WITHOUT_VOTERS, Contest, ranked
from rangevote.election.sequential_test import FIRST_ROUND, Bets, Integers, check_within, deal, rounds
from rangevote.election.settings import ElectionOptions, Settings, settings_of, with_option_names
from rangevote.election.weights import default_weights, panel_of, weigh
from rangevote.errors import DataError, UsageError
from rangevote.hypothesis import Array, Hypotheses, Hypothesis, Listed, Logprobs, concatenate
from rangevote.similarity.base import same_keys
from rangevote.similarity.tool_calls import TextOrToolCallsPoll

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Electorate:
    """An election among fixed candidates whose voters arrive one at a time or in batches.

    Adding a voter costs its own length; the result is, bit for bit, that of one election with all the
    voters so far. Options are those of `elect`. Where answers are compared (`exact`), candidates can be left
    out: then every voter stands for election.

    >>> electorate = Electorate(["a dog runs", "a cat sits"], similarity="overlap_1")
    >>> electorate.add(["the dog runs"]).add(["a dog walks", "dogs run"]).result().winner
    'a dog runs'
    >>> Electorate(similarity="exact:last_number").add(["it is 5", "so 7", "5"]).result().winner
    'it is 5'
    """

    @with_option_names
    def __init__(
        self,
        candidates: Listed | Panel | None = None,
        logprobs: Logprobs | Mapping[str, Logprobs] = None,
        *,
        settings: Settings | None = None,
        **options: Unpack[ElectionOptions],
    ) -> None:
        self._settings = settings = settings or settings_of(options)
        if settings.rule in WITHOUT_VOTERS:
            raise UsageError(f"nobody votes under rule={settings.rule!r}; use elect.")
        self._voters: list[Hypotheses] = []
        self._ends: list[int] = []  # how many there were after each batch
        self._open = candidates is None
        if candidates is None:
            self._check_open(logprobs)
            candidates = []
        checked = Hypotheses.of(candidates, logprobs)
        self._candidates = prepare(checked, settings.normalize, settings.merge)
        if not len(self._candidates) and not self._open:
            raise DataError("there are no candidates, so nobody can be elected.", field="candidates")
        evidence = settings.evidence(self._candidates)
        self._evidence = np.zeros(len(self._candidates)) if evidence is None else evidence
        if self._candidates.tool_calls is not None:
            self._settings = settings.with_tool_calls()
        self._poll = self._settings.measure.poll(self._candidates)

    def _check_open(self, logprobs: object) -> None:
        """Only answers are known before anybody gives them; a text that is sampled later is not."""
        settings = self._settings
        if not settings.measure.answers:
            raise UsageError(
                f"candidates can be left out where answers are compared, such as by similarity='exact', not "
                f"by {settings.measure.name!r}; give candidates."
            )
        if logprobs is not None or settings.has_evidence or settings.winners > 1:
            raise UsageError(
                "logprobs, likelihood, scores and several winners need candidates; give them first."
            )

    def __len__(self) -> int:
        """How many voters there are so far."""
        return sum(map(len, self._voters))

    def add(
        self,
        voters: Listed | Panel | str | Hypothesis,
        logprobs: Logprobs | Mapping[str, Logprobs] = None,
        *,
        member: str | None = None,
    ) -> Electorate:
        """Take in more voters (a single text or Hypothesis is one voter); returns the electorate.

        `member` is the member of a panel that they belong to, or they are given by member; then all voters
        belong to one. A batch that is refused leaves the electorate as it was.
        """
        several = [voters] if isinstance(voters, (str, Hypothesis)) else voters
        batch = Hypotheses.of(several, logprobs, role="voters")
        if member is not None:
            batch = batch.of_member(member)
        if len(self) and len(batch) and (batch.members is None) != (self._all().members is None):
            raise UsageError(
                "in a panel every voter belongs to a member; some were added with member= and some without."
            )
        if batch.tool_calls is not None and not self._settings.measure.staged:
            self._settings = self._settings.with_tool_calls()
            self._recount()
        try:
            self._poll.add(self._normal(batch))
        except BaseException:  # a part of the poll may have taken the batch in
            self._recount()
            raise
        self._voters.append(batch)
        if len(batch):
            self._ends.append(len(self))
        return self

    def sample(
        self,
        draw: Callable[[range], Listed],
        most: int,
        *,
        first: int = FIRST_ROUND,
        confidence: float = 0.99,
        within: float = 0.0,
    ) -> Result:
        """Draw voters in rounds until the election is decided, at most so many; the result.

        `draw` gives the voters of some numbers, as `range(8, 16)`; each round doubles how many there are.
        """
        for numbers in rounds(most, first, lambda: self.decided(confidence, within)):
            self.add(draw(numbers))
        return self.result()

    def _recount(self) -> None:
        self._poll = self._settings.measure.poll(self._candidates)
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
        if self._open:
            return elect_columns(voters, None, settings)
        electors = prepare(voters, settings.normalize, settings.merge)
        weighting, weights = weigh(
            electors, settings.weights, settings.vote_temperature, voters, settings.shares
        )
        evidence = settings.evidence(self._candidates)
        contest = Contest(
            self._candidates, electors, weights, settings.measure, self._poll, evidence, settings.merging
        )
        return conclude(contest, weighting, settings)

    def decided(self, confidence: float = 0.99, within: float = 0.0) -> bool:
        """Whether the winners, in their order, can be trusted to win however many more voters are sampled.

        Right for independent samples with equal weights, and for panels of such: then one voter of each
        member that has a share, given by `shares` or by its votes, makes a round. A wrong winner is ever
        declared with probability at most 1 - confidence, however often this is called; one whose score is at
        most `within` below the best is not wrong. Rivals are groups of candidates: those that the similarity
        cannot tell apart (`Result.groups`) do not compete. Where every voter stands, answers that nobody has
        given yet are rivals too.
        """
        if not 0 < confidence < 1:
            raise UsageError(f"confidence must lie between 0 and 1, got {confidence!r}.")
        check_within(within)
        voters = self._all()
        if self._settings.rule in NOT_ADAPTIVE:
            raise UsageError(
                f"decided() does not support rule={self._settings.rule!r}; use rule='range', with a cutoff "
                f"or without."
            )
        weighting = self._settings.weights or default_weights(voters)
        if weighting != "count":
            raise UsageError(
                f"decided() is for sampled voters of equal weight, not weights={weighting!r}; "
                f"use weights='count'."
            )
        dealt, ends, powers = self._dealt()
        if self._settings.measure.staged:
            return len(dealt) > 0 and self._stages_decided(1 - confidence, within)
        grades, evidence = self._answers(dealt) if self._open else self._grades()
        groups = grades.shape[1]
        if groups == 1 or not len(dealt):
            return groups == 1 and not self._open
        left = list(range(groups))  # groups without a seat
        seats = min(self._settings.winners, groups - 1)
        grades, alpha = grades[dealt], (1 - confidence) / seats
        power, support = np.ones((len(grades), 1)), np.zeros((len(grades), 1))  # of each voter
        for _ in range(seats):
            totals = power * (grades + evidence)[:, left]
            winner = Bets(totals, evidence[left], self._width(), ends, within, powers).sole_survivor(alpha)
            if winner is None:
                return False
            leader = left.pop(winner)
            if self._settings.rule == "reweighted":
                support += np.maximum(grades[:, [leader]], 0.0)
                power = 1.0 / (1.0 + support)
        return True

    def _dealt(self) -> tuple[Integers, Integers, Array]:
        """The voters in the order in which they are bet on, after how many of them a leader is named, and
        what each counts: of a panel whole rounds, in which every member has one."""
        voters = self._all()
        panel = panel_of(voters, self._settings.shares) if len(voters) else None
        if panel is None:
            dealt, ends = deal(self._ends)
            return dealt, ends, np.ones(len(dealt))
        whose = np.array(voters.members)
        of_member = [np.flatnonzero(whose == name) for name in (*panel.shares, *panel.left_out)]
        dealt, ends = deal([min(int(np.searchsorted(mine, end)) for mine in of_member) for end in self._ends])
        shares = np.array([*panel.shares.values(), *(0.0 for _ in panel.left_out)])
        rows = np.stack([mine[dealt] for mine in of_member], axis=1)  # (rounds, members)
        return rows.ravel(), ends * len(of_member), np.tile(shares / shares.max(), len(dealt))

    def _stages_decided(self, alpha: float, within: float) -> bool:
        """Calls of tools are elected in up to three stages, each of which has its part of the error: to
        declare a wrong winner, the true one of some stage must have been rejected."""
        if self._settings.has_evidence or self._settings.winners > 1:
            return False
        poll = self._poll
        if self._open:
            everyone = self._normal(self._all())
            poll = self._settings.measure.poll(everyone)
            poll.add(everyone)
        assert isinstance(poll, TextOrToolCallsPoll)
        dealt, ends, powers = self._dealt()
        for grades, leader in poll.stage_grades():
            totals = grades[dealt]
            if self._open and totals.shape[1]:  # as in `_answers`
                columns = np.argsort((totals != 0).argmax(axis=0), kind="stable")
                totals = np.hstack([np.zeros((len(totals), 1)), totals[:, columns]])
                leader = 1 + int(np.flatnonzero(columns == leader)[0])
            groups = totals.shape[1]
            bets = Bets(totals, np.zeros(groups), self._width(), ends, within, powers)
            if groups > 1 and leader != bets.sole_survivor(alpha / 3):
                return False
        return True

    def _grades(self) -> tuple[Array, Array]:
        """What voters give to each group (voters, groups), and the evidence of the group (groups,)."""
        evidence = self._evidence[self._firsts]
        return self._poll.matrix()[:, self._firsts], np.where(evidence > -math.inf, evidence, 0.0)

    def _answers(self, dealt: Integers) -> tuple[Array, Array]:
        """The same for one answer that nobody has given yet, and then for the answers so far.

        The first column leads a tie, so the order of columns must not tell of votes that are still to be
        dealt: answers stand in the order in which they are dealt, after the one that was never given.
        """
        keys = self._settings.measure.keys(self._normal(self._all()))
        answers = dict.fromkeys(keys[i] for i in dealt if keys[i] is not None)
        return same_keys(keys, [None, *answers]), np.zeros(len(answers) + 1)

    @cached_property
    def _firsts(self) -> list[int]:
        """The best candidate of each group by its evidence: its voters' grades are those of the group.

        A group without any probability can win nothing, unless all are like that.
        """
        keys = self._settings.measure.keys(self._candidates)
        likeliest = ranked(self._evidence, self._candidates).tolist()
        possible = [i for i in likeliest if self._evidence[i] > -math.inf] or likeliest
        return sorted({keys[i]: i for i in reversed(possible)}.values())

    def _width(self) -> float:
        """The largest possible difference of two grades."""
        return 1.0 - self._settings.measure.lowest
