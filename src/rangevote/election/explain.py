"""Why a candidate has its score: what each voter and, where the measure allows, each n-gram gave it.

Both lists sum to the score, together with the candidate's own likelihood where that counts. Measures of
single n-grams decompose over n-grams:

    contribution(g, c) = sum over voters v with g of P(v) |v|^(a-1) |c|^-a / number of orders

BLEU, chrF, edit distance and cosines do not; then `ngrams` is None, and the voters remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rangevote.errors import UsageError
from rangevote.hypothesis import Hypotheses
from rangevote.kernel import plain
from rangevote.similarity.base import Similarity
from rangevote.similarity.exact import Exact
from rangevote.similarity.mixture import Mixture
from rangevote.similarity.ngram import Ngrams
from rangevote.similarity.structured import Parties, json_leaves
from rangevote.similarity.tokens import Reader

if TYPE_CHECKING:
    from rangevote.election.result import AnswerCount, Result
    from rangevote.hypothesis import Array


class Contribution(NamedTuple):
    """What one n-gram earned: the n-gram as text, its order, its part of the score."""

    ngram: str
    order: int
    score: float


class Vote(NamedTuple):
    """What one voter gave: its index in the list, its weight, its grade, and their product; in a panel also
    whose voter it is."""

    voter: int
    weight: float
    grade: float
    score: float
    member: str | None = None


class FieldAgreement(NamedTuple):
    """One value of a JSON output, and how many of the voters whose output is JSON have it there."""

    path: str
    value: str
    agree: int
    of: int
    share: float

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.agree} of {self.of} say {self.value}"


@dataclass(frozen=True)
class Explanation:
    """The parts of one candidate's score, largest first; its own `likelihood`, x log P(c) / |c|, apart.

    `fields`, where JSON is compared, has what the voters say of each of the candidate's values. `answers`,
    where answers are compared, has the votes of each.
    """

    index: int
    score: float
    voters: tuple[Vote, ...]
    ngrams: tuple[Contribution, ...] | None
    likelihood: float | None = None  # None where only votes count
    fields: tuple[FieldAgreement, ...] | None = None
    answers: AnswerCount | None = None

    def __str__(self) -> str:
        lines = [f"score {self.score:.6f} of candidate {self.index}"]
        for part in self.ngrams or ():
            lines.append(f"  {part.score:.6f}  {part.ngram}")
        if self.ngrams is None:
            lines.append("  (this measure does not decompose over n-grams; what each voter gave:)")
            lines += [
                f"  {v.score:.6f}  voter {v.voter}{'' if v.member is None else f' of {v.member}'}: "
                f"{v.weight:.4f} x {v.grade:.4f}"
                for v in self.voters
            ]
        if self.likelihood is not None:
            lines.append(f"  {self.likelihood:.6f}  (its own likelihood)")
        lines += [f"  {field}" for field in self.fields or ()]
        if self.answers is not None:
            votes = self.answers.votes.items()
            lines += [f"  answer {name}: {vote.count} voters, share {vote.share:.4f}" for name, vote in votes]
            if self.answers.abstained:
                lines.append(f"  no answer: {self.answers.abstained} voters")
        return "\n".join(lines)


def explain(result: Result, index: int) -> Explanation:
    """The parts of the score of the candidate `index`."""
    if not -len(result.scores) <= index < len(result.scores):
        raise UsageError(f"there is no candidate {index}; indices go from 0 to {len(result.scores) - 1}.")
    if not len(result.voters):
        raise UsageError("nobody voted in this election, so there is nothing to explain.")
    index %= len(result.scores)
    alone = result.candidates.only(index)
    grades = result.similarity.matrix(alone, result.voters)[:, 0].tolist()
    members: Sequence[str | None] = result.voters.members or [None] * len(grades)
    votes = [
        Vote(v, w, g, w * g, member)
        for v, (w, g, member) in enumerate(zip(result.weights.tolist(), grades, members, strict=True))
    ]
    votes.sort(key=lambda vote: (-vote.score, vote.voter))
    ngrams = _ngrams(result.similarity, alone, result.voters, result.weights)
    if ngrams is not None:
        ngrams.sort(key=lambda part: (-part.score, part.order, part.ngram))
    return Explanation(
        index,
        float(result.scores[index]),
        tuple(votes),
        None if ngrams is None else tuple(ngrams),
        None if result.likelihood is None else float(result.likelihood[index]),
        _fields(result.similarity, alone, result.voters, result.weights),
        result.answers,
    )


def _fields(
    measure: Similarity, candidate: Hypotheses, voters: Hypotheses, weights: Array
) -> tuple[FieldAgreement, ...] | None:
    """How many voters have each value of the one candidate; None where it is not JSON that is compared."""
    structured = isinstance(measure, Parties) and candidate.tool_calls is not None
    if not structured and measure.name != "exact:json" and getattr(measure, "tokenize", None) != "json":
        return None
    [own] = _leaves(candidate)
    others = [
        (leaves, weight) for leaves, weight in zip(_leaves(voters), weights.tolist(), strict=True) if leaves
    ]
    fields = []
    for path, value in own.items():
        same = [weight for leaves, weight in others if leaves.get(path) == value]
        fields.append(FieldAgreement(path, value, len(same), len(others), math.fsum(same)))
    return tuple(fields)


def _leaves(hypotheses: Hypotheses) -> Iterator[dict[str, str]]:
    """The values of each by their paths; of one call of a tool those are its name and its arguments."""
    calls = hypotheses.tool_calls or [None] * len(hypotheses)
    for i, some in enumerate(calls):
        text = str(hypotheses.content(i))
        yield dict(json_leaves(text[1:-1] if some and len(some) == 1 else text))


def _ngrams(
    measure: Similarity, candidate: Hypotheses, voters: Hypotheses, weights: Array
) -> list[Contribution] | None:
    """What each n-gram of the one candidate earned, or None where the measure does not decompose."""
    if isinstance(measure, Exact):
        score = float(measure.tally(candidate, voters, weights)[0])
        [key] = measure.keys(candidate)
        shown = candidate.content(0) if measure.label is None or key is None else measure.label(key)
        return [Contribution(str(shown), 0, score)]
    if isinstance(measure, Mixture):
        parts: list[Contribution] = []
        for coefficient, part in measure.parts:
            inner = _ngrams(part, candidate, voters, weights)
            if inner is None:
                return None
            parts += [c._replace(score=coefficient * c.score) for c in inner]
        return parts
    return _counted(measure, candidate, voters, weights) if isinstance(measure, Ngrams) else None


def _counted(
    measure: Ngrams, candidate: Hypotheses, voters: Hypotheses, weights: Array
) -> list[Contribution]:
    reader = Reader(measure.tokenize, candidate)
    index = plain.Index(reader.read(candidate), reader.unit, measure.orders, measure.bag, measure.short)
    index.add(reader.read(voters))
    parts: dict[tuple[int, str], float] = {}
    for order, n in enumerate(measure.orders):
        votes, bits = index.votes(order, weights.tolist(), measure.a, False)
        items = index.candidate_items(order, 0)
        for item in items:
            part = math.ldexp(float(votes.get(item, 0)), -bits) / len(measure.orders)
            part = part if measure.a == 0 else part * math.pow(len(items), -measure.a)
            key = (n, reader.spell(plain.gram_of(item, measure.bag)))
            parts[key] = parts.get(key, 0.0) + part  # later occurrences of a gram are one line
    return [Contribution(text, n, score) for (n, text), score in parts.items()]
