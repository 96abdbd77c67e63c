"""The result of an election: the winner, all scores, and a signature that names how it was held."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from rangevote.election.merge import SHARE_SLACK
from rangevote.election.rules import ranked
from rangevote.hypothesis import Array, Hypotheses, Hypothesis
from rangevote.similarity.base import number_text, same_content
from rangevote.text import finite

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rangevote.election.explain import Explanation
    from rangevote.election.merge import Merged
    from rangevote.election.settings import Settings
    from rangevote.election.weights import PanelShares
    from rangevote.similarity.base import Measure
    from rangevote.similarity.tool_calls import TextOrToolCalls


class CandidateGroup(NamedTuple):
    """Candidates that the similarity cannot tell apart, best first, with the score of the best.

    `share` is the weight of the voters that it cannot tell from them, those that abstain left out.
    """

    candidates: tuple[int, ...]
    score: float
    share: float


@dataclass(frozen=True)
class AnswerVotes:
    """How many voters gave an answer, and their share of the whole vote."""

    count: int
    share: float


class AnswerCount(NamedTuple):
    """The answers of all voters, most votes first, with how many gave none, and the entropy over answers.

    Shares are of the whole vote, that of voters without an answer included. The entropy is in nats, over
    those who gave one: 0 where they agree.
    """

    votes: dict[str, AnswerVotes]
    abstained: int
    entropy: float


NO_SUPPORT = (
    "no voter supports any candidate but itself (no_support), so the weights or the order of ties decided; a "
    "similarity that compares smaller parts, such as overlap_1 or chrf, may find more in common."
)
#: A margin below this is flagged as a near-tie: rounding could have decided it.
NEAR_TIE = 1e-9


#: What an election in one call says: winner, score, margin, whether anybody got a vote, whether the weights
#: are probabilities (otherwise counts), and the float64 of scores, weights and own likelihoods in a row.
Answer = tuple[int, float, float | None, bool, bool, bytes]


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of one election. `str(result)` and `result.winner` are the winning text.

    `scores` has one number for each candidate. `ranking` has the candidates' indices, best first: higher
    score, then higher own log-probability, then first in the list. `elected` has the winners' indices, and
    `groups` the groups of candidates that the similarity cannot tell apart. `evidence` is the part of each
    score that comes from `likelihood` or `scores` instead of votes; None if only votes counted. In a panel,
    `member` is the member whose candidate won, `panel.shares` has each member's share of the vote,
    `panel.left_out` names members without outputs, and `voters[i].member` is the member of a voter.

    With `min_score` or `min_share` there may be no winner. Then `no_winner` says why, `elected` is empty,
    `winner` and `index` are None, and `score` and `margin` are those of the best candidate, `leader`.
    If answers are compared (`exact` with a key, tool calls), `answer` is the winner's, and `answers` counts
    those of all voters. Under rule="merge", `winner` is the merged object as JSON, `merged` has the share of
    each field, and `index` is the candidate that equals it, or the best whole candidate if none does
    (`merged.equal` is None). `settings` are the options of the election, and `weighting` names how the
    voters were weighted.
    """

    candidates: Hypotheses
    voters: Hypotheses
    weights: Array  # (voters,)
    scores: Array  # (candidates,)
    elected: tuple[int, ...]
    settings: Settings
    weighting: str
    evidence: Array | None = None  # (candidates,)
    panel: PanelShares | None = None
    no_winner: str | None = None
    no_support: bool = False  # no voter supports any candidate but itself: weights and the tie order decided
    all_weights: Array | None = None  # (voters,), before a rule left some out
    merged: Merged | None = None  # what rule="merge" merged

    @property
    def similarity(self) -> Measure:
        """The measure by which the voters graded."""
        return self.settings.measure

    @property
    def signature(self) -> str:
        """Names all that can change the result."""
        return self.settings.signature(self.weighting, self.candidates, len(self.voters), self.panel)

    @property
    def index(self) -> int | None:
        """The winner's index in the list of candidates; None where nobody is elected."""
        return self.elected[0] if self.elected else None

    @property
    def leader(self) -> int:
        """The index of the winner, or of who would have won."""
        return self.elected[0] if self.elected else self.ranking[0]

    @property
    def hypothesis(self) -> Hypothesis | None:
        """The winner, with all that is known of it; of a merged object only its text."""
        if self.merged is not None and self.merged.equal is None and self.merged.text is not None:
            return Hypothesis(self.merged.text)
        return self.candidates[self.elected[0]] if self.elected else None

    @property
    def winner(self) -> str | Sequence[int] | None:
        """The winner's text, or its token ids where it has no text; None where nobody is elected."""
        return self._content(self.elected[0]) if self.elected else None

    @property
    def winners(self) -> tuple[str | Sequence[int], ...]:
        """The texts of all that were elected, in order."""
        return tuple(map(self._content, self.elected))

    @property
    def member(self) -> str | None:
        """The member of a panel whose candidate won; None where nobody is elected or there are no members."""
        return None if self.index is None else self._member(self.index)

    @property
    def members(self) -> tuple[str, ...]:
        """All members with a candidate of the winner's group, by name: as the similarity sees it, they said
        the same, whichever of them `member` is."""
        if self.candidates.members is None or not self.elected:
            return ()
        return tuple(sorted({str(self._member(i)) for i in self._winning_group}))

    def _member(self, index: int) -> str | None:
        return None if self.candidates.members is None else self.candidates.members[index]

    def _content(self, index: int) -> str | Sequence[int]:
        if self.merged is not None and self.merged.text is not None:
            return self.merged.text
        return self.candidates.content(index)

    @cached_property
    def score(self) -> float:
        """The winner's score."""
        return float(self.scores[self.leader])

    @cached_property
    def ranking(self) -> tuple[int, ...]:
        """All candidates' indices, best first."""
        return tuple(ranked(self.scores, self.candidates).tolist())

    @cached_property
    def groups(self) -> tuple[CandidateGroup, ...]:
        """The candidates in groups that the similarity tells apart, best first.

        What is in a group has the same n-grams, the same answer, ...; where nobody voted, the same text.
        """
        keys = self._keys(self.candidates)
        electors = keys if self.voters is self.candidates else self._keys(self.voters)
        weights: dict[Hashable, list[float]] = {}
        for key, weight in zip(electors, self._all_weights(), strict=True):
            weights.setdefault(key, []).append(weight if key is not None else 0.0)
        members: dict[Hashable, list[int]] = {}
        for index in self.ranking:
            members.setdefault(keys[index], []).append(index)
        return tuple(
            CandidateGroup(tuple(some), float(self.scores[some[0]]), math.fsum(weights.get(key, ())))
            for key, some in members.items()
        )

    def _all_weights(self) -> list[float]:
        weights: list[float] = (self.weights if self.all_weights is None else self.all_weights).tolist()
        return weights

    def _keys(self, hypotheses: Hypotheses) -> list[Hashable]:
        return self.similarity.keys(hypotheses) if len(self.voters) else same_content(hypotheses)

    @cached_property
    def margin(self) -> float | None:
        """How far the winner's score is above the best of another group; None where there is no other.

        Where tools are called, an election has stages, and it is the smallest lead of all of them; under
        rule="merge" the smallest lead of a field.
        """
        if self.merged is not None:
            return self.merged.margin
        if self.similarity.staged:
            measure = cast("TextOrToolCalls", self.similarity)
            return measure.margin(self.candidates, self.voters, self.weights)
        scores, best = self.scores.tolist(), self.score
        for i in reversed(self._winning_group):
            del scores[i]
        if not scores:
            return None
        second = max(scores)
        return 0.0 if best == second else best - second  # both may be -inf

    @cached_property
    def _winning_group(self) -> list[int]:
        """The candidates that the similarity cannot tell from the leader, in their order."""
        scores, best = self.scores.tolist(), self.score
        every = not len(self.voters) or self.evidence is not None
        same = [i for i, score in enumerate(scores) if every or score == best]
        if len(same) > 1:  # only equal scores can be of one group, where voters alone gave them
            keys = self._keys(self.candidates.pick(same))
            group = keys[same.index(self.leader)]
            same = [i for i, key in zip(same, keys, strict=True) if key == group]
        return same

    @property
    def answer(self) -> str | None:
        """The winner's answer; None where there is no winner, or it has none, or answers are not compared."""
        label = self.similarity.label
        if label is None or not self.elected:
            return None
        [key] = self.similarity.keys(self.candidates.only(self.elected[0]))
        return None if key is None else label(key)

    @property
    def votes(self) -> dict[str, AnswerVotes] | None:
        """Each answer with its votes, most first; None where answers are not compared."""
        return None if self.answers is None else self.answers.votes

    @cached_property
    def answers(self) -> AnswerCount | None:
        """The answers of all voters; None where answers are not compared."""
        label = self.similarity.label
        if label is None or not len(self.voters):
            return None
        keys = self.similarity.keys(self.voters)
        names: dict[Hashable, str] = {}
        weights: dict[str, list[float]] = {}
        for key, weight in zip(keys, self._all_weights(), strict=True):
            if key is not None:
                weights.setdefault(names.setdefault(key, label(key)), []).append(weight)
        votes = {name: AnswerVotes(len(some), math.fsum(some)) for name, some in weights.items()}
        total = math.fsum(vote.share for vote in votes.values())
        parts = [vote.share / total for vote in votes.values() if vote.share > 0]
        return AnswerCount(
            dict(sorted(votes.items(), key=lambda item: (-item[1].share, -item[1].count))),
            keys.count(None),
            max(0.0, -math.fsum(part * math.log(part) for part in parts)),
        )

    @property
    def near_tie(self) -> bool:
        """Whether the margin over other groups is so small that rounding could have decided."""
        return self.margin is not None and self.margin < NEAR_TIE

    def to_dict(self, *, scores: bool = False, explain: bool = False) -> dict[str, Any]:
        """The fields that `rangevote vote` writes of a result, as values that JSON has: minus infinity, the
        log of a probability of 0, is None. Those that say nothing are left out."""
        fields: dict[str, Any] = {
            "winner": self.winner,
            "index": self.index,
            "score": finite(self.score),
            "margin": finite(self.margin),
            "signature": self.signature,
        }
        if len(self.elected) > 1:
            fields["winners"] = self._winner_fields()
        if self.near_tie:
            fields["near_tie"] = True
        if self.no_support:
            fields["no_support"] = True
        if self.no_winner is not None:
            fields["no_winner"] = self.no_winner
        if self.similarity.label is not None and (answers := self.answers) is not None:
            fields["answer"] = self.answer
            fields["votes"] = {name: asdict(vote) for name, vote in answers.votes.items()}
            fields["abstained"], fields["entropy"] = answers.abstained, answers.entropy
        if members := self.members:
            fields["member"] = self.member
            if len(members) > 1:
                fields["members"] = list(members)
        if self.merged is not None:
            fields["merged"] = self.merged.to_dict()
        if self.panel is not None and self.panel.left_out:
            fields["left_out"] = list(self.panel.left_out)
        if scores:
            fields["scores"] = [finite(score) for score in self.scores.tolist()]
        if explain:
            fields["explanation"] = self.explain().to_dict()
        return fields

    def fields(self) -> dict[str, Any]:
        """The same with what says nothing too, and with the answers and the panel in fields of their own."""
        fields = {"near_tie": False, "no_support": False, "no_winner": None, "merged": None, **self.to_dict()}
        names = ("answer", "votes", "abstained", "entropy")
        return fields | {
            "winners": self._winner_fields(),
            "member": self.member,
            "members": list(self.members),
            "answers": {name: fields[name] for name in names} if "votes" in fields else None,
            "panel": self.panel and {"shares": self.panel.shares, "left_out": list(self.panel.left_out)},
            "candidates": len(self.candidates),
            "voters": len(self.voters),
        }

    def _winner_fields(self) -> list[dict[str, Any]]:
        return [{"index": i, "winner": self._content(i)} for i in self.elected]

    def explain(self, index: int | None = None) -> Explanation:
        """Which n-grams and which voters earned the winner (or the candidate `index`) its score, what of it
        is its own evidence, and how many voters agree with each field of JSON."""
        from rangevote.election.explain import explain

        return explain(self, self.leader if index is None else index)

    def _repr_html_(self) -> str:
        """The candidates as a table, in a notebook."""
        from rangevote.election.display import html

        return html(self)

    def __rich__(self) -> RenderableType:
        """The candidates as a table, in a terminal: `rich.print(result)`."""
        from rangevote.election.display import table

        return table(self)

    def __repr__(self) -> str:
        margin = None if self.margin is None else round(self.margin, 6)
        facts = {"winner": self.winner, "score": round(self.score, 6), "margin": margin, "index": self.index}
        flags = ("no_winner", "no_support", "near_tie")
        facts |= {name: getattr(self, name) for name in ("member", *flags) if getattr(self, name)}
        facts["signature"] = self.signature
        return f"Result({', '.join(f'{name}={value!r}' for name, value in facts.items())})"

    def __str__(self) -> str:
        winner = "" if self.winner is None else self.winner
        return winner if isinstance(winner, str) else " ".join(map(str, winner))


def with_thresholds(result: Result, min_score: float | None, min_share: float | None) -> Result:
    """The same without those of the elected whose score, or whose group's share of the vote, is below."""
    shares = {i: group.share for group in result.groups for i in group.candidates} if min_share else {}
    failures = {
        i: f"score {float(result.scores[i]):.4g} is below min_score={number_text(min_score)}"
        for i in result.elected
        if min_score is not None and not result.scores[i] >= min_score
    }
    for i in result.elected if min_share else ():
        if shares[i] < min_share - SHARE_SLACK:  # type: ignore[operator]
            failures[i] = f"share {shares[i]:.4g} is below min_share={number_text(min_share)}"  # type: ignore[arg-type]
    halves = [group for group in result.groups if group.share >= 0.5 - SHARE_SLACK] if min_share else []
    if len(halves) == 2 and len(result.elected) == 1 and min_share >= 0.5 - SHARE_SLACK:  # type: ignore[operator]
        failures[result.elected[0]] = "share 0.5 is tied with another one, and a tie is not a majority"
    if not failures:
        return result
    kept = tuple(i for i in result.elected if i not in failures)
    why = None if kept else f"the best candidate's {failures[result.elected[0]]}"
    return replace(result, elected=kept, no_winner=why)


def first(result: Result, number: int) -> tuple[int, ...]:
    """The elected, and where there are fewer groups than `number`, the best of the others."""
    if len(result.elected) >= number:
        return result.elected[:number]
    others = (index for index in result.ranking if index not in result.elected)
    return (*result.elected, *others)[:number]


def counted_result(
    answer: Answer,
    candidates: Hypotheses,
    voters: Hypotheses | None,
    settings: Settings,
    panel: PanelShares | None,
) -> Result:
    """The result of an election in one call (`Settings.one_call`)."""
    index, score, margin, supported, by_probability, numbers = answer
    electors = candidates if voters is None else voters
    column, first = np.frombuffer(numbers), len(candidates)
    last = first + len(electors)
    result = Result.__new__(Result)
    made = result.__dict__  # filled name by name, which takes a third of the time of `Result(...)`
    made["candidates"] = candidates
    made["voters"] = electors
    made["scores"] = column[:first]
    made["weights"] = column[first:last]
    made["elected"] = (index,)
    made["settings"] = settings
    made["weighting"] = "probability" if by_probability else "count"
    made["panel"] = panel
    made["no_support"] = not supported
    made["score"] = score
    made["margin"] = margin
    if settings.own_likelihood:
        made["evidence"] = column[last:]
    return result
