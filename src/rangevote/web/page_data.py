"""What the election page shows of one ballot, as plain data: the same from the server and in an export.

Every answer is one JSON object, under the path at which the server gives it (`app.py`). Indices are positions
in the ballot's own lists; a number that is not finite or not known is null.

    api/election                        {version, lists: [{name, ballots}], ballots, kept, page, measure}
    api/ballots?page=P                  {page, pages, total, ballots: [{number, id, title, candidates}]}
    api/find?id=ID                      {number}, null where there is none
    api/ballots/N?list=L                the election:
        ballot        {number, id, source, references}
        signature, rule, winner, elected, most_likely, score, margin, near_tie, no_support
        no_winner     null, or why nobody is elected; then `elected` is empty and `winner` who would have won
        answers       {answer, votes: {answer: {count, share}}, abstained, entropy}, null where none are
                      compared
        measure       {name, orders, bag, short, unit, lowest}
        length_in     "words" or "tokens"
        candidates    {total, rows: [{index, text, more, units, logprob, probability, score, rank,
                      likelihood_rank, length, supporters, finished}]}, by rank
        voters        {total, same, rows: [{index, text, more, units, weight}]}, by weight; where `same`, the
                      candidates vote: the rows are in the candidates' order, and without the texts
    api/ballots/N/grades?list=L         {voters: [index], candidates: [index], grades: [[number]]}, one row
                                        for each voter
    api/ballots/N/candidates/C?list=L   {index, score, ngrams: [[text, order, score]] or null, ngrams_rest,
                                        fields: [[path, value, agree, of, share]] or null, of JSON,
                                        votes: [[voter, weight, grade, score]], votes_rest}; a rest is
                                        {count, score} of what is not listed: list and rest sum to the score.
                                        An export leaves out votes that follow from grades and weights:
                                        `static/votes.js` puts them in
    api/ballots/N/text?list=L&role=R&index=I      {text, units}, whole; R is candidates or voters
    api/ballots/N/winners?list=L        {name, candidates, measures: [...]} and
    api/ballots/N/stability?list=L      {...}: see `robustness.py`

`text` is cut after `CUT` characters, `more` is the number of characters cut. `units` is null where a text's
n-grams are made of its words or characters as they are there (`measure.unit`), else the list of what they are
made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rangevote.election.explain import explain
from rangevote.election.result import Result
from rangevote.errors import RangevoteError
from rangevote.hypothesis import Array, Ballot, Hypotheses
from rangevote.similarity.base import Similarity
from rangevote.similarity.mixture import Mixture
from rangevote.similarity.ngram import Chrf, IndexMeasure
from rangevote.similarity.pairwise import SequenceMeasure
from rangevote.similarity.tokens import Reader, Tokenise

Json = dict[str, Any]

#: Characters of a text that come with the election; the rest on request.
CUT = 1000
#: Candidates and voters that are listed, best first.
LISTED = 1000
#: Rows and columns of grades that are shown.
GRADED = 300
#: Digits of a grade after the point: more than are shown.
DIGITS = 9
#: n-grams and votes of one candidate that are listed.
PARTS = 200
#: Pairs of voter and candidate that are graded to count a candidate's supporters.
SUPPORT_PAIRS = 2_000_000


def election(ballot: Ballot, number: int, result: Result, rule: str) -> Json:
    """The election of one ballot: the winner, all candidates and voters."""
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
        "rule": rule,
        "winner": result.leader,
        "elected": list(result.elected),
        "most_likely": likely[0] if likely else None,
        "score": finite(result.score),
        "margin": finite(result.margin),
        "near_tie": result.near_tie,
        "no_support": result.no_support,
        "no_winner": result.no_winner,
        "answers": result.answer_fields() or None,
        "measure": _measure(result.similarity, units.name),
        "length_in": "tokens" if candidates.texts is None else "words",
        "candidates": {"total": len(candidates), "rows": _candidates(result, units, likely)},
        "voters": {"total": len(voters), "same": voters is candidates, "rows": _voters(result, units)},
    }


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


def _candidates(result: Result, units: TextUnits, likely: Sequence[int]) -> list[Json]:
    candidates = result.candidates
    supporters = _supporters(result)
    likelihood_ranks = {index: rank for rank, index in enumerate(likely, 1)}
    rows = []
    for rank, index in enumerate(result.ranking, 1):
        if rank > LISTED and index not in (*result.elected, *likely[:1]):
            continue
        logprob = candidates.logprob(index)
        rows.append(
            {
                "index": index,
                **_text(candidates, index, units),
                "logprob": finite(logprob),
                "probability": None if logprob is None else math.exp(min(logprob, 0.0)),
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
    same = voters is result.candidates
    return [
        {"index": index, **({} if same else _text(voters, index, units)), "weight": float(weights[index])}
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


def _supporters(result: Result) -> list[int] | None:
    """How many voters that count grade each candidate above 0; None where that takes too many pairs."""
    voting = np.flatnonzero(result.weights)
    if not len(voting) or len(result.voters) * len(result.candidates) > SUPPORT_PAIRS:
        return None
    grades = result.similarity.matrix(result.candidates, result.voters)  # (voters, candidates)
    counts: list[int] = (grades[voting] > 0).sum(axis=0).tolist()
    return counts


def _text(hypotheses: Hypotheses, index: int, units: TextUnits) -> Json:
    text = readable(hypotheses, index)
    listed = units.listed(hypotheses, index) if len(text) <= CUT else None
    return {"text": text[:CUT], "more": max(0, len(text) - CUT), "units": listed}


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


def grades(result: Result) -> Json:
    """How each voter grades each candidate: the first `GRADED` of both, rows are voters."""
    rows, columns = voter_order(result)[:GRADED], list(result.ranking[:GRADED])
    matrix: Array = np.zeros((0, len(columns)))
    if rows:
        same = result.voters is result.candidates
        few = result.candidates.pick(columns)
        voters = few if same and rows == columns else result.voters.pick(rows)
        matrix = result.similarity.matrix(few, voters)
    return {"voters": rows, "candidates": columns, "grades": np.round(matrix, DIGITS).tolist()}


def score_parts(result: Result, index: int) -> Json:
    """What each n-gram and each voter gave a candidate; both sum to its score."""
    if not len(result.voters):
        return {"index": index, "score": finite(float(result.scores[index])), "ngrams": None, "votes": []}
    explained = explain(result, index)
    ngrams = None if explained.ngrams is None else [list(part) for part in explained.ngrams]
    # in the order in which static/votes.js finds them from `grades`
    by_voter = sorted(explained.voters, key=lambda one: (-one.weight * round(one.grade, DIGITS), one.voter))
    votes = [list(vote)[:4] for vote in by_voter]  # without the member of a panel
    return {
        "index": index,
        "score": finite(explained.score),
        "ngrams": None if ngrams is None else ngrams[:PARTS],
        "ngrams_rest": _rest(ngrams or []),
        "votes": votes[:PARTS],
        "votes_rest": _rest(votes),
        "fields": None if explained.fields is None else [list(field) for field in explained.fields[:PARTS]],
    }


def shows_votes(graded: Json, election: Json, index: int) -> bool:
    """Whether the grades of a ballot hold what every voter gave this candidate."""
    everybody = len(graded.get("voters", ())) == election["voters"]["total"] > 0
    return everybody and index in graded.get("candidates", ())


def _rest(listed: Sequence[Sequence[Any]]) -> Json:
    left = listed[PARTS:]
    return {"count": len(left), "score": math.fsum(part[-1] for part in left)}


def finite(number: float | None) -> float | None:
    """JSON knows no infinities."""
    return None if number is None or not math.isfinite(number) else float(number)


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
