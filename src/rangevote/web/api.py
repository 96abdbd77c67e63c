"""The answers that the election page gets, from the server or in an exported file.

`app.py` names the path of each answer. Indices are positions in the ballot's own lists. A number that is
infinite or unknown is null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, json

from rangevote.election.elect import elect_ballot
from rangevote.election.explain import Earned, FieldAgreement, NgramVotes, field_agreement
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.election.summary import Quote, most_likely, probability_shares, why
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Array, Ballot, Hypotheses, Hypothesis
from rangevote.kernel.plain import UNITS, word_spans
from rangevote.similarity import get_similarity
from rangevote.similarity.base import Measure
from rangevote.similarity.ngram import DEFAULT_UNIT, Reader
from rangevote.text import finite

#: Characters that come with the election: at least of each text, and of all together. The rest is sent on
#: request.
CUT = 1000
ALL_TEXTS = 1_000_000
#: Candidates and voters that are listed, best first.
LISTED = 1000
#: Digits after the point of a grade, as the page shows it.
DIGITS = 4
#: Votes for one candidate, and fields of its JSON, that are listed.
VOTES, FIELDS = 20, 200
#: Pairs of voter and candidate that are graded as soon as a ballot is opened.
PAIRS = 2_000_000
#: Fields of a result that the page gets as they are.
SAME_FIELDS = ("signature", "score", "margin", "near_tie", "no_support", "no_winner", "answers")
#: Characters of a ballot's title in the list.
TITLE = 120


class NamedList(Struct):
    name: str
    ballots: int


class About(Struct):
    """The lists of ballots; `measures` are those that the reader can choose, `members` those of a panel."""

    version: str
    lists: list[NamedList]
    ballots: int
    kept: int
    page: int
    measure: str
    measures: list[str]
    members: list[str]


class BallotRow(Struct):
    """One ballot in the list. `stays`: the share of voters without whom the winner stays, one by one; `firm`
    is that of `Stability`. `gain`: chrF of the winner minus chrF of the most likely candidate, against the
    references."""

    number: int
    id: str | int | None
    title: str
    winner: str | None = None
    member: str | None = None
    no_winner: str | None = None
    likely: str | None = None
    changed: bool | None = None
    margin: float | None = None
    near_tie: bool | None = None
    stays: float | None = None
    firm: bool | None = None
    gain: float | None = None
    error: str | None = None


class BallotNumber(Struct):
    """The number of the ballot with a certain id."""

    number: int | None


class Text(Struct, kw_only=True):
    """`text` without its last `more` characters. `units` are what its n-grams are made of, in their order."""

    index: int
    text: str
    more: int = 0
    units: list[str]


class Voter(Text, kw_only=True):
    weight: float
    member: str | None


class Candidate(Voter, kw_only=True):
    """Its weight is 0 where it does not vote. `original_rank` is as `Election.original_winner`."""

    logprob: float | None
    share: float | None
    score: float | None
    rank: int
    original_rank: int | None
    likelihood_rank: int | None
    length: int
    supporters: int | None
    finished: bool


class Candidates(Struct):
    """By rank."""

    total: int
    rows: list[Candidate]


class Voters(Struct):
    """By weight; no rows where the candidates vote (`same`)."""

    total: int
    same: bool
    rows: list[Voter]


class PageMeasure(Struct):
    """`unit` is "words", whose case does not count, "space" or "chars"; "listed" where the units do not stand
    in the text as they are."""

    name: str
    orders: list[int]
    bag: bool
    short: bool
    unit: str


class Group(Struct):
    """Candidates that the measure cannot tell apart."""

    candidates: list[int]
    share: float | None
    answer: str | None


class Change(Struct):
    """Without this voter another candidate wins, or nobody."""

    voter: int
    weight: float
    winner: int | None
    margin: float | None


class Stability(Struct, kw_only=True):
    """The elections in which one of the `tried` voters of most weight is left out; `same` winners stay.

    `firm`: nearly all stay. `why` says why none was tried. `smallest_margin` is the winner's smallest in
    these elections.
    """

    voters: int
    tried: int = 0
    same: int = 0
    firm: bool | None = None
    changes: list[Change] = []
    smallest_margin: float | None = None
    why: str | None = None


class Quality(Struct):
    """Against the nearest reference, from 0 to 100."""

    metric: str
    winner: float
    most_likely: float | None


class PageSettings(Struct):
    """What a reader can change; `has_logprobs`: every candidate has a log-probability."""

    temperature: float
    likelihood: float
    weights: str
    has_logprobs: bool


class BallotFields(Struct):
    number: int
    id: str | int | None
    source: str | None
    references: list[str]
    image: str | None


class MergedObject(Struct):
    """What rule="merge" made of the candidates: JSON with line breaks, the share of each field by its path,
    the paths without a majority, and the candidate that says the same, None where none does."""

    text: str
    shares: dict[str, float]
    left_out: tuple[str, ...]
    equal: int | None


class Election(Struct, kw_only=True):
    """The election of one ballot. `no_winner` says why nobody is elected; then `elected` is empty and
    `winner` is the candidate with the highest score. Where there is a `merged` object, it is elected, and
    `winner` is the best whole candidate. `why` is a sentence in parts (text, is quoted). `original_winner`
    won the page's own election, where the reader changed a setting. `shares` are those of the members."""

    ballot: BallotFields
    signature: str
    rule: str
    winner: int
    elected: list[int]
    most_likely: int | None
    score: float | None
    margin: float | None
    near_tie: bool
    no_support: bool
    no_winner: str | None
    answers: dict[str, Any] | None
    merged: MergedObject | None
    why: list[tuple[str, bool]]
    groups: list[Group]
    stability: Stability
    quality: Quality | None
    settings: PageSettings
    original_winner: int | None
    shares: dict[str, float] | None
    measure: PageMeasure
    length_in: str
    candidates: Candidates
    voters: Voters


class VotesRest(Struct, frozen=True):
    count: int = 0
    score: float = 0.0


class Parts(Struct, kw_only=True):
    """What earned a candidate its score: n-grams by their place among the units of the text, fields of JSON,
    and votes as (voter, weight, grade), the largest first, with the sum of the rest."""

    index: int
    score: float | None
    likelihood: float | None
    earned: list[Earned] | None = None
    fields: list[FieldAgreement] | None = None
    votes: list[tuple[int, float, float]] = []
    votes_rest: VotesRest = VotesRest()


class Cluster(Struct):
    """Candidates that say much the same, and the passage that sets them apart."""

    name: str
    members: list[int]


class Order(Struct):
    voters: list[int]
    candidates: list[int]


class Grades(Struct):
    """How each voter (row) grades each candidate."""

    voters: list[int]
    candidates: list[int]
    grades: list[list[float]]
    clusters: list[Cluster]
    by_cluster: Order


class MeasureWinner(Struct):
    """The winner under one measure, or why there is none."""

    measure: str
    why: str | None = None
    winner: int | None = None
    text: str | None = None
    margin: float | None = None
    near_tie: bool = False
    signature: str | None = None


class MeasureWinners(Struct):
    """`candidates` is their number in the ballot."""

    candidates: int
    measures: list[MeasureWinner]


class ElectedBallot:
    """An election that is looked at, with what several answers need."""

    def __init__(self, ballot: Ballot, settings: Settings) -> None:
        self.ballot, self.settings = ballot, settings
        self.result = elect_ballot(ballot, settings)

    @cached_property
    def matrix(self) -> Array | None:
        """All grades, (voters, candidates); None where they are too many, or there are none."""
        voters, candidates = self.result.voters, self.result.candidates
        if not 0 < len(voters) * len(candidates) <= PAIRS:
            return None
        return self.result.similarity.matrix(candidates, voters)

    def grades(self, voters: Sequence[int], candidates: Sequence[int]) -> Array:
        """The grades that some voters (rows) give some candidates."""
        if self.matrix is not None:
            return self.matrix[np.ix_(voters, candidates)]
        chosen = self.result.candidates.pick(candidates)
        return self.result.similarity.matrix(chosen, self.result.voters.pick(voters))

    @cached_property
    def ngram_votes(self) -> NgramVotes:
        return NgramVotes(self.result)


def title(ballot: Ballot) -> str:
    """The beginning of the source, or of the first candidate."""
    text = ballot.source or (readable(ballot.candidates, 0) if ballot.candidates else "")
    return text[:TITLE]


def ballot_row(elected: ElectedBallot, number: int, stability: Stability) -> BallotRow:
    """A ballot in the list, with the outcome of its election."""
    ballot, result = elected.ballot, elected.result
    row = BallotRow(number, ballot.id, title(ballot), no_winner=result.no_winner, firm=stability.firm)
    if stability.tried:
        row.stays = stability.same / stability.tried
    if result.no_winner is not None:
        return row
    merged = _merged(result)
    text = readable(result.candidates, result.leader) if merged is None else str(result.winner)
    likely, compared = most_likely(result.candidates), quality(ballot, result)
    row.margin, row.near_tie = finite(result.margin), result.near_tie
    row.winner = text[:TITLE]
    if merged is None or merged.equal is not None:
        row.member = result.candidates[result.leader].member
    if likely is not None:
        other = readable(result.candidates, likely)
        row.likely, row.changed = other[:TITLE], other != text
    if compared is not None and compared.most_likely is not None:
        row.gain = compared.winner - compared.most_likely
    return row


def election(
    elected: ElectedBallot, number: int, image: str | None, stability: Stability, original: Result | None
) -> Election:
    """The election of one ballot: the winner, why it won, all candidates and voters. `original` is the page's
    own election where the reader changed a setting."""
    ballot, result, settings = elected.ballot, elected.result, elected.settings
    candidates, voters, fields = result.candidates, result.voters, result.fields()
    units = TextUnits(result.similarity, candidates)
    likely = likely_order(candidates)
    return Election(
        ballot=BallotFields(number, ballot.id, ballot.source, list(ballot.references), image),
        **{name: fields[name] for name in SAME_FIELDS},
        rule=settings.rule,
        winner=result.leader,
        elected=list(result.elected),
        most_likely=likely[0] if likely else None,
        merged=_merged(result),
        why=[(str(part), isinstance(part, Quote)) for part in why(result)],
        groups=_groups(result),
        stability=stability,
        quality=quality(ballot, result),
        settings=PageSettings(
            settings.vote_temperature,
            settings.own_likelihood,
            result.weighting,
            candidates.complete,
        ),
        original_winner=None if original is None else original.leader,
        shares=None if result.panel is None else result.panel.shares,
        measure=_measure(result.similarity, units.name),
        length_in="tokens" if candidates.texts is None else "words",
        candidates=Candidates(len(candidates), _candidates(elected, units, likely, original)),
        voters=Voters(len(voters), voters is candidates, _voters(result, units)),
    )


def quality(ballot: Ballot, result: Result) -> Quality | None:
    """chrF of the winner and of the most likely candidate."""
    references = [text for text in ballot.references if text.strip()]
    if not references or result.candidates.texts is None:
        return None
    likely = most_likely(result.candidates)
    chosen = result.candidates.pick([result.leader] if likely is None else [result.leader, likely])
    grades = get_similarity("chrf").matrix(chosen, Hypotheses.of(references, role="references"))
    best = (100 * grades.max(axis=0)).tolist()
    return Quality("chrF", best[0], None if likely is None else best[1])


def _merged(result: Result) -> MergedObject | None:
    merged = result.merged
    if merged is None or merged.text is None or result.no_winner is not None:
        return None
    text = json.format(merged.text, indent=2)
    return MergedObject(text, merged.shares, merged.left_out, merged.equal)


def _groups(result: Result) -> list[Group]:
    label = result.similarity.label
    keys = None if label is None else result.similarity.keys(result.candidates)
    groups = []
    for group in result.groups[:LISTED]:
        key = None if keys is None else keys[group.candidates[0]]
        answer = None if key is None or label is None else str(label(key))[:TITLE]
        groups.append(Group(list(group.candidates), None if keys is None else group.share, answer))
    return groups


def _measure(similarity: Measure, unit: str) -> PageMeasure:
    counted = [part for _, part in similarity.parts() if part.orders]
    return PageMeasure(
        similarity.name,
        sorted({order for measure in counted for order in measure.orders}),
        any(measure.bag for measure in counted),
        any(measure.short for measure in counted),
        unit,
    )


def _candidates(
    elected: ElectedBallot, units: TextUnits, likely: Sequence[int], original: Result | None
) -> list[Candidate]:
    result = elected.result
    candidates = result.candidates
    supporters: list[int] | None = None  # voters that count and grade the candidate above 0
    if elected.matrix is not None:
        supporters = (elected.matrix[np.flatnonzero(result.weights)] > 0).sum(axis=0).tolist()
    likelihood_ranks = {index: rank for rank, index in enumerate(likely, 1)}
    original_ranks = {index: rank for rank, index in enumerate(original.ranking if original else (), 1)}
    shares = probability_shares(candidates)
    weights = result.weights.tolist() if result.voters is candidates else [0.0] * len(candidates)
    return [
        Candidate(
            **_text(candidates, index, units),
            weight=weights[index],
            logprob=finite(candidates.logprob(index)),
            share=None if shares is None else float(shares[index]),
            score=finite(float(result.scores[index])),
            rank=rank,
            original_rank=original_ranks.get(index),
            likelihood_rank=likelihood_ranks.get(index),
            length=len(readable(candidates, index).split()),
            supporters=None if supporters is None else supporters[index],
            finished=candidates[index].finished,
            member=candidates[index].member,
        )
        for rank, index in enumerate(result.ranking, 1)
        if rank <= LISTED or index in (*result.elected, *likely[:1])
    ]


def _voters(result: Result, units: TextUnits) -> list[Voter]:
    voters = result.voters
    if voters is result.candidates:
        return []
    return [
        Voter(**_text(voters, index, units), weight=float(result.weights[index]), member=voters[index].member)
        for index in voter_order(result)[:LISTED]
    ]


def voter_order(result: Result) -> list[int]:
    """The candidates' ranking where they vote themselves, so that rows go with columns; else by weight."""
    if result.voters is result.candidates:
        return list(result.ranking)
    order: list[int] = np.argsort(-result.weights, kind="stable").tolist()
    return order


def likely_order(candidates: Hypotheses) -> list[int]:
    """Those with a known log-probability, most likely first; of equals the first in the list."""
    if candidates.logprobs is None:
        return []
    order = np.argsort(-candidates.logprobs, kind="stable")  # NaN, the unknown ones, come last
    return [int(i) for i in order if not math.isnan(candidates.logprobs[i])]


def _text(hypotheses: Hypotheses, index: int, units: TextUnits) -> dict[str, Any]:
    """The fields of `Text`; of few texts more characters are shown."""
    text = readable(hypotheses, index)
    cut = max(CUT, ALL_TEXTS // max(1, min(len(hypotheses), LISTED)))
    in_text = units.of(hypotheses, index, cut)
    return {"index": index, "text": text[:cut], "more": max(0, len(text) - cut), "units": in_text}


def whole_text(result: Result, role: str, index: int) -> Text:
    hypotheses = result.candidates if role == "candidates" else result.voters
    units = TextUnits(result.similarity, result.candidates)
    return Text(index=index, text=readable(hypotheses, index), units=units.of(hypotheses, index))


def readable(hypotheses: Sequence[Hypothesis], index: int) -> str:
    """The text, or the token ids where there is none."""
    content = hypotheses[index].content
    return content if isinstance(content, str) else " ".join(map(str, content))


def score_parts(elected: ElectedBallot, index: int) -> Parts:
    """What each n-gram and each voter gave a candidate; with its own likelihood both sum to its score."""
    result, evidence = elected.result, elected.result.evidence
    likelihood = None if evidence is None else finite(float(evidence[index]))
    parts = Parts(index=index, score=finite(float(result.scores[index])), likelihood=likelihood)
    if not len(result.voters):
        return parts
    parts.earned = elected.ngram_votes.earned(index)
    if (fields := field_agreement(result, index)) is not None:
        parts.fields = list(fields[:FIELDS])
    voters = range(len(result.voters))
    votes = sorted(
        zip(voters, result.weights.tolist(), elected.grades(voters, [index])[:, 0].tolist(), strict=True),
        key=lambda vote: -vote[1] * vote[2],
    )
    left = votes[VOTES:]
    parts.votes = votes[:VOTES]
    parts.votes_rest = VotesRest(len(left), math.fsum(weight * grade for _, weight, grade in left))
    return parts


class TextUnits:
    """The units of the n-grams of one election as a person reads them; `name` is `PageMeasure.unit`."""

    def __init__(self, similarity: Measure, candidates: Hypotheses) -> None:
        tokenize = next((part.tokenize for _, part in similarity.parts() if part.tokenize), DEFAULT_UNIT)
        in_text = candidates.texts is not None and tokenize in UNITS
        self.name = str(tokenize) if in_text else "listed"
        self._reader = None if in_text else Reader(tokenize, candidates)

    def of(self, hypotheses: Hypotheses, index: int, cut: int | None = None) -> list[str]:
        """The units of one hypothesis, or of its first `cut` characters."""
        whole = readable(hypotheses, index)
        text = whole[:cut]
        if self.name == "words":
            return [text[begin:end] for begin, end in word_spans(text)]
        if self._reader is None:
            return list(UNITS[self.name](text))
        if text != whole:
            return text.split()
        try:
            [read] = self._reader.read(hypotheses.only(index))
        except RangevoteError:  # no tokens here, under a measure that needs none
            return []
        return read.split() if isinstance(read, str) else [self._reader.spell([item]) for item in read]
