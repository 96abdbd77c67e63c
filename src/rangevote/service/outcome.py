"""What came of a request: who stood, who was elected, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.errors import DataError
from rangevote.hypothesis import Ballot, Hypothesis
from rangevote.service.problem import Problem
from rangevote.sources.openai.messages import Usage


@dataclass(frozen=True)
class Outcome:
    """One election. `counts` tells what became of the samples, `saved` how many were not needed;
    `certain` whether sampling stopped because the winner was; `seconds` is the time of counting."""

    ballot: Ballot
    result: Result
    settings: Settings
    usage: Usage
    asked: int
    counts: Mapping[str, int] = field(default_factory=dict)
    saved: int = 0
    certain: bool = False
    reasons: Sequence[str] = ()
    seconds: float = 0.0

    def finish_reason(self, index: int) -> str:
        """Why candidate `index` ended."""
        if self.reasons:
            return self.reasons[index]
        return "stop" if self.ballot.candidates[index].finished else "length"

    @property
    def votes(self) -> int:
        """How many voted; where nobody does, how many stood."""
        return len(self.result.voters) or len(self.ballot.candidates)

    @property
    def winner_is_mode(self) -> bool:
        """Whether no text was proposed more often than the winner's."""
        times = Counter(
            one.content for one in self.ballot.voters or self.ballot.candidates if one.text is not None
        )
        return bool(times) and times[str(self.result)] == max(times.values())

    def told(self, explain: bool) -> dict[str, Any]:
        """What the reply says of the election."""
        result = self.result
        told: dict[str, Any] = {
            "signature": result.signature,
            "votes": self.votes,
            "candidates": len(result.candidates),
            "score": _finite(result.score),
            "margin": _finite(result.margin),
            "near_tie": result.near_tie,
            "no_support": result.no_support,
            "samples": {"asked": self.asked, "saved": self.saved, **self.counts},
            "certain": self.certain,
        }
        if explain:
            told["scores"] = [
                {"text": str(result.candidates.content(i)), "score": _finite(float(result.scores[i]))}
                for i in result.ranking
            ]
        return told


def count_votes(ballot: Ballot, settings: Settings) -> Result:
    """The election; where samples cannot be voted on as asked, the request is at fault."""
    known = all(one.logprob is not None for one in ballot.voters or ballot.candidates)
    if settings.weights == "probability" and not known:
        settings = settings.replace(weights="count")  # the signature says so
    settings = settings.replace(winners=min(settings.winners, len(ballot.candidates)))
    try:
        return elect_ballot(ballot, settings)
    except DataError as error:
        raise Problem(
            400,
            "the samples cannot be voted on in this way; choose another similarity, rule or weights",
            code="election_impossible",
            param="rangevote",
            note=str(error),
        ) from None


def finished(hypotheses: Sequence[Hypothesis]) -> Sequence[Hypothesis]:
    """Those that the model ended itself; all, where it ended none."""
    return [one for one in hypotheses if one.finished] or hypotheses


def too_few(usable: int, asked: int, least: int) -> Problem:
    """No quorum."""
    message = f"{usable} of {asked} samples are usable, and {least} are needed"
    return Problem(502, message, code="insufficient_votes")


def _finite(number: float | None) -> float | None:
    return None if number is None or number in (float("inf"), float("-inf")) else number
