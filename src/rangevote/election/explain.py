"""Why a candidate has its score: what each voter and, where the measure allows, each n-gram gave it.

Both lists sum to the score, together with the candidate's own likelihood where that counts. Measures of
single n-grams decompose over n-grams:

    contribution(g, c) = sum over voters v with g of P(v) |v|^(a-1) |c|^-a / number of orders

BLEU, chrF, edit distance and cosines do not; then `ngrams` is None, and the voters remain.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rangevote.errors import UsageError
from rangevote.hypothesis import Hypotheses
from rangevote.kernel import plain
from rangevote.similarity.json_leaves import json_leaves
from rangevote.similarity.ngram import Reader
from rangevote.text import finite

if TYPE_CHECKING:
    from rangevote.election.result import AnswerCount, Result
    from rangevote.similarity.ngram import Ngrams


class Contribution(NamedTuple):
    """One n-gram as text, its order, and its part of the score."""

    ngram: str
    order: int
    score: float


class Vote(NamedTuple):
    """The index of a voter, its weight, its grade, and their product; in a panel also its member."""

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
    """The parts of one candidate's score, largest first; `evidence`, its own likelihood or scores, apart.

    `fields`, where JSON is compared, has what the voters say of each of the candidate's values. `answers`,
    where answers are compared, has the votes of each.
    """

    index: int
    score: float
    voters: tuple[Vote, ...]
    ngrams: tuple[Contribution, ...] | None
    evidence: float | None = None  # None where only votes count
    fields: tuple[FieldAgreement, ...] | None = None
    answers: AnswerCount | None = None
    member: str | None = None  # whose candidate it is, in a panel

    def __str__(self) -> str:
        whose = "" if self.member is None else f", which is {self.member}'s"
        lines = [f"score {self.score:.6f} of candidate {self.index}{whose}"]
        for part in self.ngrams or ():
            lines.append(f"  {part.score:.6f}  {part.ngram}")
        if self.ngrams is None:
            lines.append("  (this similarity does not decompose over n-grams; what each voter gave:)")
            lines += [
                f"  {v.score:.6f}  voter {v.voter}{'' if v.member is None else f' of {v.member}'}: "
                f"{v.weight:.4f} x {v.grade:.4f}"
                for v in self.voters
            ]
        if self.evidence is not None:
            lines.append(f"  {self.evidence:.6f}  (evidence beside the votes)")
        lines += [f"  {field}" for field in self.fields or ()]
        if self.answers is not None:
            votes = self.answers.votes.items()
            lines += [f"  answer {name}: {vote.count} voters, share {vote.share:.4f}" for name, vote in votes]
            if self.answers.abstained:
                lines.append(f"  no answer: {self.answers.abstained} voters")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The parts as values that JSON has."""
        fields: dict[str, Any] = {
            "ngrams": None if self.ngrams is None else [part._asdict() for part in self.ngrams],
            "voters": [
                {name: value for name, value in vote._asdict().items() if value is not None}
                for vote in self.voters
            ],
        }
        if self.member is not None:
            fields["member"] = self.member
        if self.evidence is not None:
            fields["evidence"] = finite(self.evidence)
        return fields | (
            {} if self.fields is None else {"fields": [field._asdict() for field in self.fields]}
        )


def explain(result: Result, index: int) -> Explanation:
    """The parts of the score of the candidate `index`."""
    if not -len(result.scores) <= index < len(result.scores):
        raise UsageError(f"there is no candidate {index}; indices go from 0 to {len(result.scores) - 1}.")
    if not len(result.voters):
        raise UsageError("nobody voted in this election, so there is nothing to explain.")
    index %= len(result.scores)
    grades = result.similarity.matrix(result.candidates.only(index), result.voters)[:, 0].tolist()
    members: Sequence[str | None] = result.voters.members or [None] * len(grades)
    votes = [
        Vote(v, w, g, w * g, member)
        for v, (w, g, member) in enumerate(zip(result.weights.tolist(), grades, members, strict=True))
    ]
    votes.sort(key=lambda vote: (-vote.score, vote.voter))
    ngrams = NgramVotes(result).contributions(index)
    return Explanation(
        index,
        float(result.scores[index]),
        tuple(votes),
        None if ngrams is None else tuple(ngrams),
        None if result.evidence is None else float(result.evidence[index]),
        field_agreement(result, index),
        result.answers,
        result.candidates[index].member,
    )


def field_agreement(result: Result, index: int) -> tuple[FieldAgreement, ...] | None:
    """How many voters have each value of a candidate; None where it is not JSON that is compared."""
    measure, candidate = result.similarity, result.candidates.only(index)
    structured = measure.staged and candidate.tool_calls is not None
    if not structured and measure.name != "exact:json" and measure.tokenize != "json":
        return None
    [leaves_of_candidate] = _leaves(candidate)
    weighed = zip(_leaves(result.voters), result.weights.tolist(), strict=True)
    others = [(leaves, weight) for leaves, weight in weighed if leaves]
    fields = []
    for path, value in leaves_of_candidate.items():
        same = [weight for leaves, weight in others if leaves.get(path) == value]
        fields.append(FieldAgreement(path, value, len(same), len(others), math.fsum(same)))
    return tuple(fields)


def _leaves(hypotheses: Hypotheses) -> Iterator[dict[str, str]]:
    """The values of each by their paths; of one call of a tool those are its name and its arguments."""
    calls = hypotheses.tool_calls or [None] * len(hypotheses)
    for i, tool_calls in enumerate(calls):
        text = str(hypotheses.content(i))
        yield dict(json_leaves(text[1:-1] if tool_calls and len(tool_calls) == 1 else text))


class Earned(NamedTuple):
    """What one n-gram of a candidate earned, and where it stands: `size` tokens from `begin`.

    In a set an n-gram earns once, at its first occurrence; the order of a whole text (`exact`) is 0.
    """

    begin: int
    size: int
    order: int
    score: float


class NgramVotes:
    """What the n-grams of an election's candidates earned; the voters are read once for all candidates."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self.decomposes = result.similarity.decomposes and len(result.voters) > 0
        parts = result.similarity.parts() if self.decomposes else []
        self._whole = [(share, part) for share, part in parts if part.answers]
        self._counted = [
            CountedVotes(cast("Ngrams", part), share, result) for share, part in parts if not part.answers
        ]

    def contributions(self, index: int) -> list[Contribution] | None:
        """What each n-gram earned, largest first; None where the measure does not decompose."""
        if not self.decomposes:
            return None
        scores: defaultdict[tuple[int, str], float] = defaultdict(float)  # by order and n-gram
        for earned, gram in self._parts(index):  # later occurrences of a gram are one line
            scores[earned.order, gram] += earned.score
        contributions = [Contribution(gram, order, score) for (order, gram), score in scores.items()]
        return sorted(contributions, key=lambda part: (-part.score, part.order, part.ngram))

    def earned(self, index: int) -> list[Earned] | None:
        """The same by where each n-gram stands; None where parts of a mixture have different tokens, too."""
        if not self.decomposes or len({str(counted.tokenize) for counted in self._counted}) > 1:
            return None
        return [earned for earned, _ in self._parts(index)]

    def _parts(self, index: int) -> Iterator[tuple[Earned, str]]:
        """What the voters with the same answer, or the same text, gave, and what each n-gram earned; with the
        answer or n-gram as text."""
        candidate = self._result.candidates.only(index)
        for share, measure in self._whole:
            mass = measure.tally(candidate, self._result.voters, self._result.weights)[0]
            [key] = measure.keys(candidate)
            answer = self._content(index) if measure.label is None or key is None else measure.label(key)
            yield Earned(0, len(self._tokens(index)), 0, share * float(mass)), answer
        for counted in self._counted:
            tokens = counted.tokens(index)
            for earned in counted.earned(tokens):
                yield earned, counted.reader.spell(tokens[earned.begin : earned.begin + earned.size])

    def words(self, index: int) -> list[tuple[str, float]] | None:
        """Each token of a candidate with what it earned: an equal part of each n-gram over it; None as above,
        and where texts are compared as a whole."""
        grams = self.earned(index)
        if grams is None or not self._counted:
            return None
        tokens, spell = self._tokens(index), self._counted[0].reader.spell
        votes = [0.0] * len(tokens)
        for gram in grams:
            for position in range(gram.begin, gram.begin + gram.size):
                votes[position] += gram.score / gram.size
        return [(spell([token]), vote) for token, vote in zip(tokens, votes, strict=True)]

    def _tokens(self, index: int) -> Sequence[Hashable]:
        return self._counted[0].tokens(index) if self._counted else tuple(self._content(index).split())

    def _content(self, index: int) -> str:
        content = self._result.candidates.content(index)
        return content if isinstance(content, str) else " ".join(map(str, content))


class CountedVotes:
    """The votes of all n-grams under one measure of `Ngrams`, which has a share of the whole score."""

    def __init__(self, measure: Ngrams, share: float, result: Result) -> None:
        self._measure, self._share, self._candidates = measure, share, result.candidates
        self.tokenize, self.reader = measure.tokenize, Reader(measure.tokenize, result.candidates)
        self._index = plain.Index([], self.reader.unit, measure.orders, measure.bag, measure.short)
        self._index.add(self.reader.read(result.voters))
        weights = result.weights.tolist()
        self._votes = [
            self._index.votes(order, weights, measure.a, False) for order in range(len(measure.orders))
        ]

    def tokens(self, index: int) -> tuple[Hashable, ...]:
        [sequence] = self.reader.read(self._candidates.only(index))
        return self._index.tokens(sequence)

    def earned(self, tokens: Sequence[Hashable]) -> list[Earned]:
        measure, result = self._measure, []
        for n, (votes, bits) in zip(measure.orders, self._votes, strict=True):
            items = list(plain.items_of(tokens, n, measure.bag, measure.short))
            size = min(n, len(tokens))
            scale = 1.0 if measure.a == 0 else math.pow(len(items), -measure.a) if items else 1.0
            begins = iter(range(len(tokens) - size + 1))
            for item in items:  # in the order of the text; of a set, what repeats an earlier one is not there
                gram = item[0] if measure.bag else item
                begin = next(i for i in begins if tuple(tokens[i : i + size]) == gram)
                part = math.ldexp(float(votes.get(item, 0)), -bits) / len(measure.orders)
                result.append(Earned(begin, size, n, self._share * (part * scale)))
        return result
