"""What the election page shows of one ballot, as plain data: the same from the server and in an export.

Every answer is one JSON object, under the path at which the server gives it (`app.py`). Indices are positions
in the ballot's own lists; a number that is not finite or not known is null.

    api/election                        {version, lists: [{name, ballots}], ballots, kept, page, measure,
                                        measures}
    api/ballots?page=P                  {page, pages, total, ballots: [{number, id, title, candidates, winner,
                                        likely, changed, margin, near_tie, tried, same, gain, error}]}: `gain`
                                        is how much better the winner is than the most likely one, by chrF
                                        against the references; what is not known is null
    api/find?id=ID                      {number}, null where there is none
    api/ballots/N?list=L                the election:
        ballot        {number, id, source, references, image}
        signature, rule, winner, elected, most_likely, score, margin, near_tie, no_support
        no_winner     null, or why nobody is elected; then `elected` is empty and `winner` who would have won
        answers       {answer, votes: {answer: {count, share}}, abstained, entropy}, null where none are
                      compared
        why           [[text, quoted]]: the sentence that says why it won, see `election/summary.py`
        groups        [{candidates, share, answer}], best first; share of the vote and answer where answers
                      are compared, else null
        stability     without single voters: see `clusters.py`
        quality       {metric, winner, most_likely} against the references, or null
        settings      {temperature, likelihood, weights, known}: what a reader can turn
        before        {winner, ranks}: the page's own election, where a reader turned something; else null
        measure       {name, orders, unit, lowest}
        length_in     "words" or "tokens"
        candidates    {total, rows: [{index, text, more, units, logprob, share, likelihood, score, rank,
                      likelihood_rank, length, supporters, finished}]}, by rank
        voters        {total, same, rows: [{index, text, more, units, weight}]}, by weight; where `same`, the
                      candidates vote: the rows are in the candidates' order, and without the texts
    api/ballots/N/grades?list=L         {voters: [index], candidates: [index], grades: [[number]], families:
                                        [{name, members}]}: a row for each voter; the lists by rank and by
                                        weight, the order of families in `by_family: {voters, candidates}`.
                                        In an export a row may be packed: `packed_grades`
    api/ballots/N/candidates/C?list=L   {index, score, likelihood, earned: {begin, size, order, score} or
                                        null, fields: [[path, value, agree, of, share]] or null, of JSON,
                                        votes: [[voter, weight, grade]], votes_rest: {count, score}}:
                                        `earned` has columns, a row for each n-gram: where it stands among
                                        the units of the text, and what it earned. An export leaves out votes
                                        that follow from grades and weights: `static/votes.js` puts them in
    api/ballots/N/text?list=L&role=R&index=I      {text, units}, whole; R is candidates or voters
    api/ballots/N/winners?list=L        {name, candidates, measures: [...]}: see `clusters.py`

A query may turn settings, on all of a ballot's answers: see `what_if.py`. `text` is cut, `more` is the number
of characters cut. `units` is null where a text's n-grams are made of its words or characters as they are
there (`measure.unit`), else the list of what they are made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rangevote.election.elect import elect_ballot
from rangevote.election.explain import NgramVotes, field_agreement
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.election.summary import Quote, most_likely, probability_shares, why
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Array, Ballot, Hypotheses
from rangevote.similarity import get_similarity
from rangevote.similarity.base import Similarity, keys_of
from rangevote.similarity.combined import Mixture
from rangevote.similarity.ngram import Chrf, IndexMeasure
from rangevote.similarity.pairwise import SequenceMeasure
from rangevote.similarity.units import Reader, Tokenise
from rangevote.text import finite
from rangevote.web import families

Json = dict[str, Any]

#: Characters of a text that come with the election, at least, and of all texts together; the rest on request.
CUT = 1000
ALL_TEXTS = 1_000_000
#: Candidates and voters that are listed, best first.
LISTED = 1000
#: Rows and columns of grades that are shown.
GRADED = 300
#: Digits of a grade after the point: more than are shown.
DIGITS = 9
#: Signs for the distinct grades of a row in an export.
SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: Votes of one candidate that are listed.
PARTS = 200
#: Pairs of voter and candidate that are graded as soon as a ballot is opened.
PAIRS = 2_000_000
#: What an election adds to a ballot in the list.
OUTCOME = ("winner", "likely", "changed", "margin", "near_tie", "tried", "same", "gain", "error")
#: Characters of a ballot's title in the list.
TITLE = 120


class ElectedBallot:
    """An election that is looked at, with what several of its answers need."""

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

    @cached_property
    def ngram_votes(self) -> NgramVotes:
        return NgramVotes(self.result)


def election(elected: ElectedBallot, number: int) -> Json:
    """The election of one ballot: the winner, why it won, all candidates and voters."""
    ballot, result = elected.ballot, elected.result
    candidates, voters = result.candidates, result.voters
    units = TextUnits(result.similarity, candidates)
    likely = likely_order(candidates)
    return {
        "ballot": {
            "number": number,
            "id": ballot.id,
            "source": ballot.source,
            "references": list(ballot.references),
        },
        "signature": result.signature,
        "rule": elected.settings.rule,
        "winner": result.leader,
        "elected": list(result.elected),
        "most_likely": likely[0] if likely else None,
        "score": finite(result.score),
        "margin": finite(result.margin),
        "near_tie": result.near_tie,
        "no_support": result.no_support,
        "no_winner": result.no_winner,
        "answers": result.answer_fields() or None,
        "why": [[str(part), isinstance(part, Quote)] for part in why(result)],
        "groups": _groups(result),
        "quality": quality(ballot, result),
        "settings": {
            "temperature": elected.settings.vote_temperature,
            "likelihood": elected.settings.own_likelihood,
            "weights": next((p[2:] for p in result.signature.split("|") if p.startswith("w:")), "none"),
            "known": candidates.complete,
        },
        "measure": _measure(result.similarity, units.name),
        "length_in": "tokens" if candidates.texts is None else "words",
        "candidates": {"total": len(candidates), "rows": _candidates(elected, units, likely)},
        "voters": {"total": len(voters), "same": voters is candidates, "rows": _voters(result, units)},
    }


def summary(ballot: Ballot, number: int) -> Json:
    """What the list of ballots shows before an election: nothing is known yet."""
    first = ballot.candidates[0].content if ballot.candidates else ""
    title = ballot.source or (first if isinstance(first, str) else " ".join(map(str, first)))
    unknown = dict.fromkeys(OUTCOME)
    return {
        "number": number,
        "id": ballot.id,
        "title": title[:TITLE],
        "candidates": len(ballot.candidates),
        **unknown,
    }


def outcome(elected: ElectedBallot) -> Json:
    """What the list of ballots shows of an election."""
    result = elected.result
    likely = most_likely(result.candidates)
    compared = quality(elected.ballot, result)
    known = compared is not None and compared["most_likely"] is not None
    text = readable(result.candidates, result.leader)
    other = None if likely is None else readable(result.candidates, likely)
    return {
        "winner": text[:TITLE],
        "likely": None if other is None else other[:TITLE],
        "changed": None if other is None else other != text,
        "margin": finite(result.margin),
        "near_tie": result.near_tie,
        "gain": compared["winner"] - compared["most_likely"] if compared is not None and known else None,
    }


def quality(ballot: Ballot, result: Result) -> Json | None:
    """chrF of the winner and of the most likely one against the nearest reference, from 0 to 100."""
    references = [text for text in ballot.references if text.strip()]
    if not references or result.candidates.texts is None:
        return None
    likely = most_likely(result.candidates)
    chosen = [result.leader] if likely is None else [result.leader, likely]
    grades = get_similarity("chrf").matrix(
        result.candidates.pick(chosen), Hypotheses.of(references, role="references")
    )
    best = (100 * grades.max(axis=0)).tolist()
    return {"metric": "chrF", "winner": best[0], "most_likely": None if likely is None else best[1]}


def _groups(result: Result) -> list[Json]:
    label = getattr(result.similarity, "label", None)
    keys = None if label is None else keys_of(result.similarity, result.candidates)
    groups = []
    for group in result.groups[:LISTED]:
        key = None if keys is None else keys[group.candidates[0]]
        groups.append(
            {
                "candidates": list(group.candidates),
                "share": None if keys is None else group.share,
                "answer": None if key is None or label is None else str(label(key))[:TITLE],
            }
        )
    return groups


def _measure(similarity: Similarity, unit: str) -> Json:
    counted = list(_ngram_measures(similarity))
    return {
        "name": similarity.name,
        "orders": sorted({order for measure in counted for order in measure.orders}),
        "bag": any(measure.bag for measure in counted),
        "short": any(measure.short for measure in counted),
        "unit": unit,
        "lowest": float(getattr(similarity, "lowest", -1.0)),
    }


def _candidates(elected: ElectedBallot, units: TextUnits, likely: Sequence[int]) -> list[Json]:
    result = elected.result
    candidates = result.candidates
    supporters = _supporters(elected)
    likelihood_ranks = {index: rank for rank, index in enumerate(likely, 1)}
    shares = probability_shares(candidates)
    cut = _cut(len(candidates))
    rows = []
    for rank, index in enumerate(result.ranking, 1):
        if rank > LISTED and index not in (*result.elected, *likely[:1]):
            continue
        rows.append(
            {
                "index": index,
                **_text(candidates, index, units, cut),
                "logprob": finite(candidates.logprob(index)),
                "share": None if shares is None else float(shares[index]),
                "likelihood": None if result.likelihood is None else finite(float(result.likelihood[index])),
                "score": finite(float(result.scores[index])),
                "rank": rank,
                "likelihood_rank": likelihood_ranks.get(index),
                "length": _length(candidates, index),
                "supporters": None if supporters is None else supporters[index],
                "finished": candidates[index].finished,
            }
        )
    return rows


def _voters(result: Result, units: TextUnits) -> list[Json]:
    """The voters, in the order in which they are shown; without texts where these are the candidates'."""
    voters, weights = result.voters, result.weights
    same, cut = voters is result.candidates, _cut(len(voters))
    return [
        {
            "index": index,
            **({} if same else _text(voters, index, units, cut)),
            "weight": float(weights[index]),
        }
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


def _supporters(elected: ElectedBallot) -> list[int] | None:
    """How many voters that count grade each candidate above 0; None where that takes too many pairs."""
    if elected.matrix is None:
        return None
    counts: list[int] = (elected.matrix[np.flatnonzero(elected.result.weights)] > 0).sum(axis=0).tolist()
    return counts


def _cut(number: int) -> int:
    """Characters that are shown of each of so many texts."""
    return max(CUT, ALL_TEXTS // max(1, min(number, LISTED)))


def _text(hypotheses: Hypotheses, index: int, units: TextUnits, cut: int) -> Json:
    text = readable(hypotheses, index)
    listed = units.listed(hypotheses, index) if len(text) <= cut else None
    return {"text": text[:cut], "more": max(0, len(text) - cut), "units": listed}


def whole_text(result: Result, role: str, index: int) -> Json:
    """One text in full, with what its n-grams are made of."""
    hypotheses = result.candidates if role == "candidates" else result.voters
    units = TextUnits(result.similarity, result.candidates)
    return {"text": readable(hypotheses, index), "units": units.listed(hypotheses, index)}


def readable(hypotheses: Hypotheses, index: int) -> str:
    """The text, or the token ids where there is none."""
    content = hypotheses.content(index)
    return content if isinstance(content, str) else " ".join(map(str, content))


def _length(candidates: Hypotheses, index: int) -> int:
    content = candidates.content(index)
    return len(content.split()) if isinstance(content, str) else len(content)


def grades(elected: ElectedBallot, digits: int = DIGITS) -> Json:
    """How each voter grades each candidate: the first `GRADED` of both, rows are voters."""
    result = elected.result
    rows, columns = voter_order(result)[:GRADED], list(result.ranking[:GRADED])
    same = result.voters is result.candidates
    few = result.candidates.pick(columns)
    matrix: Array = np.zeros((0, len(columns)))
    if rows and elected.matrix is not None:
        matrix = elected.matrix[np.ix_(rows, columns)]
    elif rows:
        matrix = result.similarity.matrix(few, few if same else result.voters.pick(rows))
    listed, order = (
        _families(matrix if same else result.similarity.matrix(few, few), few) if rows else ([], [])
    )
    if same:
        by_voter = order
    else:  # beside the family that they support most
        place = {candidate: at for at, candidate in enumerate(order)}
        favourite = matrix.argmax(axis=1).tolist()
        by_voter = sorted(range(len(rows)), key=lambda row: place[favourite[row]])
    for family in listed:
        family["members"] = [columns[member] for member in family["members"]]
    return {
        "voters": rows,
        "candidates": columns,
        "grades": np.round(matrix, digits).tolist(),
        "families": listed,
        "by_family": {"voters": by_voter, "candidates": order},
    }


def packed_grades(row: Sequence[float]) -> list[Any]:
    """A row of grades as [its distinct grades, a sign for each grade]; `static/votes.js` reads it.

    >>> packed_grades([0.5, 0.0, 0.5, 1.0])
    [[0.0, 0.5, 1.0], 'BABC']
    """
    distinct = sorted(set(row))
    if len(distinct) > len(SIGNS):
        return list(row)
    signs = dict(zip(distinct, SIGNS, strict=False))
    return [distinct, "".join(signs[grade] for grade in row)]


def _families(alike: Array, candidates: Hypotheses) -> tuple[list[Json], list[int]]:
    found, order = families.families((alike + alike.T) / 2)
    words = [readable(candidates, i).split() for i in range(len(candidates))]
    return families.named(found, words), order


def score_parts(elected: ElectedBallot, index: int) -> Json:
    """What each n-gram and each voter gave a candidate; with its own likelihood both sum to its score."""
    result = elected.result
    score, likelihood = float(result.scores[index]), result.likelihood
    parts: Json = {
        "index": index,
        "score": finite(score),
        "likelihood": None if likelihood is None else finite(float(likelihood[index])),
        "earned": None,
        "fields": None,
        "votes": [],
        "votes_rest": {"count": 0, "score": 0.0},
    }
    if not len(result.voters):
        return parts
    earned = elected.ngram_votes.earned(index)
    if earned is not None:
        names = ("begin", "size", "order", "score")
        parts["earned"] = {name: [getattr(one, name) for one in earned] for name in names}
    if (fields := field_agreement(result, index)) is not None:
        parts["fields"] = [list(field) for field in fields[:PARTS]]
    if elected.matrix is not None:
        given = elected.matrix[:, index]
    else:
        given = result.similarity.matrix(result.candidates.only(index), result.voters)[:, 0]
    # in the order in which static/votes.js finds them from `grades`
    votes = sorted(
        ([v, w, g] for v, (w, g) in enumerate(zip(result.weights.tolist(), given.tolist(), strict=True))),
        key=lambda vote: (-vote[1] * round(vote[2], DIGITS), vote[0]),
    )
    left = votes[PARTS:]
    rest = {"count": len(left), "score": math.fsum(weight * grade for _, weight, grade in left)}
    return {**parts, "votes": votes[:PARTS], "votes_rest": rest}


def shows_votes(graded: Json, election: Json, index: int) -> bool:
    """Whether the grades of a ballot hold what every voter gave this candidate."""
    everybody = len(graded.get("voters", ())) == election["voters"]["total"] > 0
    return everybody and index in graded.get("candidates", ())


class TextUnits:
    """What the n-grams of one election are made of, so that a page can mark those that two texts share.

    `name` is "words" or "chars" where a page finds them in the text by itself, else "listed".
    """

    def __init__(self, similarity: Similarity, candidates: Hypotheses) -> None:
        tokenize = next(_tokenisations(similarity), "words")
        self._reader: Reader | None = None
        self.name = str(tokenize)
        if candidates.texts is None or tokenize not in ("words", "chars"):
            self.name, self._reader = "listed", Reader(tokenize, candidates)

    def listed(self, hypotheses: Hypotheses, index: int) -> list[str] | None:
        """The units of one hypothesis as a person reads them; None where its text shows them."""
        if self._reader is None:
            return None
        try:
            [read] = self._reader.read(hypotheses.only(index))
        except RangevoteError:  # no tokens here, under a measure that needs none
            return []
        items: list[Any] = read.split() if isinstance(read, str) else list(read)
        return [self._reader.spell([item]) if not isinstance(read, str) else item for item in items]


def chosen_tokenisation(similarity: Similarity) -> Tokenise:
    """The tokenisation that was asked for: chrF has characters whatever it is."""
    return next(_tokenisations(similarity, but=Chrf), "words")


def _tokenisations(similarity: Similarity, but: type | tuple[()] = ()) -> Iterator[Tokenise]:
    """What a measure compares; of a mixture, each of its parts."""
    if isinstance(similarity, Mixture):
        for _, part in similarity.parts:
            yield from _tokenisations(part, but)
    elif isinstance(similarity, (IndexMeasure, SequenceMeasure)) and not isinstance(similarity, but):
        yield similarity.tokenize


def _ngram_measures(similarity: Similarity) -> Iterator[IndexMeasure]:
    """The measure, or the parts of a mixture, that count n-grams."""
    if isinstance(similarity, Mixture):
        for _, part in similarity.parts:
            yield from _ngram_measures(part)
    elif isinstance(similarity, IndexMeasure):
        yield similarity
