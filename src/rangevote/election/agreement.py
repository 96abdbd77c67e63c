"""Shares of a panel's members without labels, for answers: by how often a member agrees with the others.

    p(m)     = how often m's answer is that of the election without m and its twins
    share(m) = max(0, log(p(m) (K - 1) / (1 - p(m)))), in proportion;  K = 10 assumed answers

The weight is that of an independent voter who is right with probability p and otherwise gives one of K - 1
others. Equal shares come first; the shares that follow elect again, until nothing changes. Members that make
the same mistakes are twins and one voice: they divide one share and do not vote on each other's agreement, so
that listing a member several times changes nothing. Votes are counted in whole numbers, so that no bit
depends on the order of ballots, members or outputs.

Where texts are graded rather than answers compared, agreement is not quality, and equal shares are as good.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rangevote.election.preprocess import prepare
from rangevote.election.settings import Settings, settings_of, with_option_names
from rangevote.election.weights import weigh_members
from rangevote.errors import DataError, warn
from rangevote.hypothesis import Array, Ballot, Hypotheses, Listed, as_ballot

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rangevote.election.settings import ElectionOptions

#: How many answers a question is assumed to have.
ANSWERS = 10
#: From which share of equal answers, and of equal mistakes, on members are one voice.
TWINS = 0.9
MOST_ROUNDS = 100
#: Votes and parts of votes are whole multiples of 2^-48 and 2^-30; numbers closer than `TIE` units are a tie.
VOTE, PART, TIE = 2.0**48, 2.0**30, 2.0**24

Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Agreement:
    """The shares of a panel's members (they sum to 1), and what they were found from.

    `agreement` is how often each member gives the answer that is elected without it and its twins (NaN if
    there is no such election), `twins` are groups of members that share one voice, and `overlap` is how often
    two members give the same answer (members x members, in the order of `shares`; NaN if they never meet).
    `converged` says whether the shares stopped changing within `rounds`; if they cycled, they are the mean.
    """

    shares: dict[str, float]
    agreement: dict[str, float]
    twins: tuple[tuple[str, ...], ...]
    rounds: int
    converged: bool
    ballots: int
    overlap: Array


class Voice(NamedTuple):
    """One member, or twins: its cells in ascending order, and the part of its vote that each has.

    `of` has the voices that divide its share, where these differ; otherwise its members are copies.
    """

    members: tuple[int, ...]
    cells: Integers
    parts: Array
    of: tuple[Voice, ...] = ()

    @property
    def votes(self) -> Array:
        return np.rint(self.parts * VOTE)


def member_votes(
    ballot: Ballot | Listed | Mapping[str, Listed], settings: Settings
) -> dict[str, dict[Hashable, float]]:
    """The answers of each member of a ballot's panel, each with its part of the member's own vote.

    The parts sum to less than 1 if some outputs have no answer.
    """
    ballot = as_ballot(ballot)
    candidates, voters = (ballot.candidates, ballot.voters) if isinstance(ballot, Ballot) else (ballot, None)
    original = Hypotheses.of(candidates) if voters is None else Hypotheses.of(voters, role="voters")
    electors = prepare(original, settings.normalize, settings.merge)
    if electors.members is None:
        raise DataError(
            "has no members; shares by agreement need the member of every output.", field=original.role
        )
    measure = (settings.with_tool_calls() if electors.tool_calls is not None else settings).measure
    keys = measure.keys(electors)
    votes: dict[str, dict[Hashable, float]] = {}
    if len(set(electors.members)) == len(keys):  # one output each: that is its vote
        for member, key in zip(electors.members, keys, strict=True):
            votes[member] = {} if key is None else {key: 1.0}
        return votes
    for indices, _, column in weigh_members(electors, settings.weights, settings.vote_temperature, original):
        parts: dict[Hashable, list[float]] = {}
        for i, weight in zip(indices, column.tolist(), strict=True):
            if keys[i] is not None:
                parts.setdefault(keys[i], []).append(weight)
        votes[electors.members[indices[0]]] = {key: math.fsum(weights) for key, weights in parts.items()}
    return votes


@with_option_names
def agreement_shares(
    ballots: Iterable[Ballot | Listed | Mapping[str, Listed]], **options: Unpack[ElectionOptions]
) -> Agreement:
    """The shares of the members of a panel by their agreement over all these ballots; options as in `elect`.

    >>> ballots = [{"a": ["1"], "b": ["1"], "c": ["1"]}, {"a": ["2"], "b": ["2"], "c": ["7"]}] * 5
    >>> agreement = agreement_shares([*ballots, {"a": ["3"], "b": ["9"], "c": ["3"]}], similarity="exact")
    >>> {name: round(share, 2) for name, share in agreement.shares.items()}
    {'a': 0.4, 'b': 0.4, 'c': 0.2}
    """
    settings = settings_of({**options, "shares": "agreement"})
    table = AgreementTable()
    for ballot in ballots:
        table.add(member_votes(ballot, settings))
    return table.shares()


class AgreementTable:
    """The answers of all members to all ballots, as small numbers; `shares` are found from them."""

    def __init__(self) -> None:
        self.ballots = 0
        # a cell is an answer to a ballot: each member's cells and parts, and each ballot's first cell
        self._votes: dict[str, tuple[array[int], array[int]]] = {}
        self._starts, self._size = array("q"), 0

    def add(self, votes: Mapping[str, Mapping[Hashable, float]]) -> None:
        """One ballot: each member's answers with their parts of its own vote; none where it abstains."""
        self.ballots += 1
        numbers: dict[Hashable, int] = {}
        for name, answers in votes.items():
            cells, parts = self._votes.setdefault(name, (array("q"), array("i")))
            for answer, part in answers.items():
                if part > 0:
                    cells.append(self._size + numbers.setdefault(answer, len(numbers)))
                    parts.append(round(part * PART))
        if numbers:
            self._starts.append(self._size)
            self._size += len(numbers)

    def shares(self) -> Agreement:
        """The shares by agreement. Raises where they cannot be found; warns where they say little."""
        names = sorted(self._votes)
        self._check(names)
        voices = []
        for number, name in enumerate(names):
            cells, counted = map(np.array, self._votes[name])
            order = cells.argsort()
            voices.append(Voice((number,), cells[order], counted[order] / PART))
        count = _Count(voices, np.array(self._starts), self._size)
        overlap, met = count.overlap()
        if not np.triu(met, 1).any():
            raise DataError(
                "no two members answer the same ballot, so their agreement is unknown; join their files "
                "by the ids of their ballots, or leave shares out for equal shares."
            )
        count.merge_twins()
        shares, rounds, converged = _fixed_point(count)
        by_member = dict[int, float]()
        for voice, share in zip(count.voices, shares, strict=True):
            parts = voice.of or (voice,)
            by_member |= {m: share / len(parts) / len(part.members) for part in parts for m in part.members}
        agreement = count.agreements(shares)
        result = Agreement(
            {name: by_member.get(m, 0.0) for m, name in enumerate(names)},
            {name: agreement.get(m, math.nan) for m, name in enumerate(names)},
            tuple(tuple(names[m] for m in voice.members) for voice in count.voices if len(voice.members) > 1),
            rounds,
            converged,
            self.ballots,
            overlap,
        )
        _report(result, len(count.voices))
        return result

    def _check(self, names: Sequence[str]) -> None:
        if not self.ballots:
            raise DataError("there are no ballots, so shares by agreement cannot be found.")
        if len(names) < 2:
            only = f"{names[0]!r} is the only member of the panel" if names else "no ballot has a panel"
            raise DataError(
                f"{only}, and agreement needs two; give each output its member, or leave shares out."
            )
        if not self._size:
            raise DataError(
                "no member gives an answer to any ballot: all abstain. Check that the similarity finds the "
                "answers; exact:last_number and exact:choice are two that do."
            )


class _Count:
    """The votes of voices on the answers (cells) of all ballots; `starts` has each ballot's first cell."""

    def __init__(self, voices: list[Voice], starts: Integers, size: int) -> None:
        self.members, self.voices, self._starts = voices, voices, starts
        self._ballots = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, size)))  # (cells,)

    def votes(self, shares: Sequence[float]) -> Array:
        """The votes for each cell, (cells,): whole numbers, whose sum is the same in any order."""
        votes = np.zeros(len(self._ballots))
        for voice, share in zip(self.voices, shares, strict=True):
            votes[voice.cells] += np.rint(share * voice.votes)
        return votes

    def agreement(self, index: int, votes: Array, shares: Sequence[float], who: Voice) -> tuple[float, float]:
        """How much of `who`'s vote is on what the voices but `index` elect, of how much; ties count in part.
        Where the shares of the others are all 0 they elect with equal ones."""
        voice = self.voices[index]
        if not any(share for i, share in enumerate(shares) if i != index):
            shares = [1.0 / len(shares)] * len(shares)
            votes = self.votes(shares)
        votes = votes.copy()
        votes[voice.cells] -= np.rint(shares[index] * voice.votes)
        top = np.maximum.reduceat(votes, self._starts)  # (ballots,)
        least = np.where(top > TIE, top - TIE, np.inf)  # where nobody votes nobody is elected
        elected = self._ballots[votes >= least[self._ballots]]
        tied = np.bincount(elected, minlength=len(top))  # (ballots,), how many are elected
        there, parts = self._ballots[who.cells], np.rint(who.parts * PART)
        agree = votes[who.cells] >= least[there]
        by_ties = np.bincount(tied[there][agree], weights=parts[agree])  # whole numbers, exact in any order
        agreed = math.fsum(number / ties for ties, number in enumerate(by_ties.tolist()) if number)
        return agreed / PART, float(parts[tied[there] > 0].sum()) / PART

    def estimates(self, shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
        """The agreement of each voice with the others under these shares."""
        votes = self.votes(shares)
        return tuple(self.agreement(i, votes, shares, voice) for i, voice in enumerate(self.voices))

    def agreements(self, shares: Sequence[float]) -> dict[int, float]:
        """How often each member agrees with the others than its voice."""
        votes, agreements = self.votes(shares), dict[int, float]()
        for index, voice in enumerate(self.voices):
            for member in voice.members:
                agreed, of = self.agreement(index, votes, shares, self.members[member])
                agreements[member] = agreed / of if of else math.nan
        return agreements

    def _distribution(self, voice: Voice) -> tuple[Array, Array]:
        """Its answers as parts of what it answers to a ballot, (its cells,), and their sums, (ballots,)."""
        there = self._ballots[voice.cells]
        sums = np.bincount(there, voice.parts, len(self._starts))
        parts = np.rint(voice.parts / sums[there] * PART) / PART  # so that their sums are exact
        return parts, np.bincount(there, parts, len(self._starts)).astype(np.float64)

    def _same(self, voices: Sequence[Voice], counted: Flags) -> tuple[Array, Array]:
        """How much two of these voices answer the same at the counted cells, and on how many of the ballots
        there both answer, (voices, voices)."""
        there = np.logical_or.reduceat(counted, self._starts)
        distributions = [self._distribution(voice) for voice in voices]
        same, met = np.zeros((2, len(voices), len(voices)))
        for i, (parts, sums) in enumerate(distributions):
            table = np.zeros(len(counted))
            table[voices[i].cells] = parts
            table[~counted] = 0.0
            for j, (other_parts, other_sums) in enumerate(distributions):
                same[i, j] = np.minimum(table[voices[j].cells], other_parts).sum()
                met[i, j] = sums[there & (other_sums > 0)].sum()
        return same, (met + met.T) / 2

    def overlap(self) -> tuple[Array, Array]:
        """How often two voices give the same answer, and on how many ballots they meet, (voices, voices)."""
        same, met = self._same(self.voices, np.full(len(self._ballots), True))
        with np.errstate(invalid="ignore"):
            return same / met, met

    def merge_twins(self) -> None:
        """Join members that make the same mistakes into one voice.

        Those that give the same answers most often are compared first, as a group, since copies must not
        decide what a mistake of one of them is.
        """
        copies: dict[bytes, list[Voice]] = {}
        for voice in (voice for voice in self.voices if len(voice.cells)):  # who says nothing has no vote
            digest = blake2b(voice.cells.tobytes() + voice.parts.tobytes()).digest()
            copies.setdefault(digest, []).append(voice)
        self.voices = [
            equal[0]._replace(members=tuple(m for voice in equal for m in voice.members))
            for equal in copies.values()
        ]
        while len(self.voices) > 1:
            overlap, _ = self.overlap()
            levels = np.unique(overlap[np.triu_indices(len(overlap), 1)])
            tested: dict[tuple[int, ...], bool] = {}
            for level in levels[levels >= TWINS][::-1].tolist():
                for group in _connected(overlap >= level):
                    if group not in tested:
                        tested[group] = level == 1.0 or self._same_mistakes(group) >= TWINS
                twins = [group for group, alike in tested.items() if alike]
                if twins:
                    break
            else:
                return
            apart = [(i,) for i in range(len(self.voices)) if not any(i in group for group in twins)]
            groups = [[self.voices[i] for i in group] for group in sorted([*twins, *apart])]
            self.voices = [group[0] if len(group) == 1 else _together(group) for group in groups]

    def _same_mistakes(self, group: Sequence[int]) -> float:
        """How often two of these voices give the same answer where not both give that of most others: of more
        than half of them, and of more than one."""
        equal = 1.0 / len(self.voices)
        votes = self.votes([0.0 if i in group else equal for i in range(len(self.voices))])
        top, all_votes = (op.reduceat(votes, self._starts) for op in (np.maximum, np.add))
        decided = (top > all_votes / 2 + TIE) & (top > equal * VOTE + TIE)
        elected = (votes >= top[self._ballots]) & decided[self._ballots]
        voices = [self.voices[i] for i in group]
        (same, met), (agreed, _) = (self._same(voices, cells) for cells in (decided[self._ballots], elected))
        pairs = np.triu_indices(len(voices), 1)
        mistakes, all_mistakes = ((part - agreed)[pairs].sum() for part in (same, met))
        return float(mistakes / all_mistakes) if all_mistakes > 0 else 0.0


def _together(voices: Sequence[Voice]) -> Voice:
    """One voice, whose vote is the mean of the votes of these; copies count once."""
    parts = tuple(part for voice in voices for part in voice.of or (voice,))
    cells, place = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
    sums = np.bincount(place, np.concatenate([np.rint(part.parts * PART) for part in parts]))
    members = tuple(sorted(member for part in parts for member in part.members))
    return Voice(members, cells, sums / (len(parts) * PART), parts)


def _connected(near: Flags) -> list[tuple[int, ...]]:
    """Groups of two and more that are connected, in their order."""
    group = list(range(len(near)))
    for i, j in np.argwhere(np.triu(near, 1)).tolist():
        kept, gone = sorted((group[i], group[j]))
        group = [kept if number == gone else number for number in group]
    groups = [tuple(i for i, number in enumerate(group) if number == kept) for kept in sorted(set(group))]
    return [members for members in groups if len(members) > 1]


def _fixed_point(count: _Count) -> tuple[list[float], int, bool]:
    """Shares of the voices that lead to an agreement from which the same shares follow; the number of rounds,
    and whether they were found. Agreement takes finitely many values, so the rounds end or repeat."""
    equal = [1.0 / len(count.voices)] * len(count.voices)
    shares, seen = equal, dict[tuple[tuple[float, float], ...], int]()
    history: list[list[float]] = []
    while len(history) < MOST_ROUNDS and len(count.voices) > 1:
        estimates = count.estimates(shares)
        if estimates in seen:
            circle = history[seen[estimates] :]
            mean = [math.fsum(column) / len(circle) for column in zip(*circle, strict=True)]
            return mean, len(history), len(circle) == 1
        seen[estimates] = len(history)
        weights = [_weight(agreed, of) for agreed, of in estimates]
        total = math.fsum(weights)
        shares = [weight / total for weight in weights] if total else equal
        history.append(shares)
    return shares, len(history), len(count.voices) == 1


def _weight(agreed: float, of: float) -> float:
    """log(p (K - 1) / (1 - p)), from 0; p is known to half a ballot."""
    if not of:
        return 0.0
    p = min(agreed / of, 1.0 - 0.5 / max(of, 1.0))
    return max(0.0, math.log(p * (ANSWERS - 1) / (1.0 - p))) if p > 0 else 0.0


def _report(result: Agreement, voices: int) -> None:
    """Warn of members that agree with nobody, and of shares that say little."""
    if voices == 1:
        warn("all members always give the same answers, so they have equal shares.")
        return
    far = [name for name, p in result.agreement.items() if not p > 1 / ANSWERS]
    if len(far) == len(result.shares):
        warn("no member agrees with the others more often than by chance, so all have equal shares.")
    elif far:
        names = ", ".join(f"{name!r} ({_percent(result.agreement[name])})" for name in far)
        warn(f"these members agree with the others no more often than by chance: {names}. Their share is 0.")
    if not result.converged:
        warn(f"the shares by agreement did not settle in {result.rounds} rounds; their mean is taken.")


def _percent(p: float) -> str:
    return "no answers in common" if math.isnan(p) else f"{p:.0%} of the ballots"
