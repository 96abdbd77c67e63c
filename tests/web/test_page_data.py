"""What the election page shows of a ballot: the numbers of the library and of the paper's equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import rangevote as rv
from rangevote.election.elect import elect_ballot
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.web import page_data as page
from rangevote.web.page_data import TextUnits, chosen_tokenisation
from tests.election.equations import overlap
from tests.figure1 import CAPTIONS, LOGPROBS, PROBABILITIES, WINNER
from tests.web.samples import BALLOTS, DECOMPOSING, EVERY, FIGURE, MIXTURE, ballot


def shown(one: rv.Ballot, **options: Any) -> tuple[Result, dict[str, Any]]:
    chosen = Settings(**options)
    result = elect_ballot(one, chosen)
    return result, page.election(one, 0, result, chosen.rule)


def test_figure_1_is_shown_as_the_paper_has_it():
    _, view = shown(FIGURE)
    rows = view["candidates"]["rows"]
    assert rows[0]["text"] == WINNER
    assert rows[0]["index"] == view["winner"] == CAPTIONS.index(WINNER)
    assert view["most_likely"] == 0
    by_index = {row["index"]: row for row in rows}
    assert [by_index[i]["probability"] for i in range(10)] == pytest.approx(PROBABILITIES)
    # the figure lists the captions by falling probability
    assert [by_index[i]["likelihood_rank"] for i in range(10)] == list(range(1, 11))
    assert [by_index[i]["length"] for i in range(10)] == [len(text.split()) for text in CAPTIONS]
    assert view["length_in"] == "words"


@pytest.mark.parametrize("similarity", EVERY)
def test_scores_ranks_and_margin_are_those_of_elect(similarity):
    expected = rv.elect(FIGURE, similarity=similarity)
    _, view = shown(FIGURE, similarity=similarity)
    rows = view["candidates"]["rows"]
    assert [row["index"] for row in rows] == list(expected.ranking)
    assert [row["rank"] for row in rows] == list(range(1, 11))
    assert [row["score"] for row in rows] == [expected.scores[i] for i in expected.ranking]
    assert (view["score"], view["margin"], view["signature"]) == (
        expected.score,
        expected.margin,
        expected.signature,
    )
    assert view["elected"] == list(expected.elected)


def test_a_vote_for_a_candidate_is_a_grade_above_zero_of_a_voter_that_counts():
    result, view = shown(
        ballot(["a b", "a c", "x", "x"], [-1.0, -2.0, -3.0, -math.inf]), similarity="overlap_1"
    )
    found = {row["index"]: row["supporters"] for row in view["candidates"]["rows"]}
    assert result.weights[3] == 0
    assert found == {0: 2, 1: 2, 2: 1, 3: 1}


@pytest.mark.parametrize("similarity", DECOMPOSING)
@settings(max_examples=25)
@given(one=BALLOTS)
def test_what_n_grams_and_voters_gave_sums_to_the_score(similarity, one):
    result = elect_ballot(one, Settings(similarity=similarity, weights="probability"))
    for index, score in enumerate(result.scores):
        parts = page.score_parts(result, index)
        assert parts["score"] == score
        given_by_ngrams = math.fsum(part[2] for part in parts["ngrams"]) + parts["ngrams_rest"]["score"]
        given_by_voters = math.fsum(vote[3] for vote in parts["votes"]) + parts["votes_rest"]["score"]
        assert given_by_ngrams == pytest.approx(score, abs=1e-12)
        assert given_by_voters == pytest.approx(score, abs=1e-12)


def test_lists_that_are_cut_keep_the_sum_in_their_rest(monkeypatch):
    monkeypatch.setattr(page, "PARTS", 3)
    result = elect_ballot(FIGURE, Settings(preset="paper"))
    parts = page.score_parts(result, result.index)
    whole = result.explain()
    assert whole.ngrams is not None
    assert len(parts["ngrams"]) == len(parts["votes"]) == 3
    assert parts["ngrams_rest"]["count"] == len(whole.ngrams) - 3
    listed = math.fsum(part[2] for part in parts["ngrams"])
    assert listed + parts["ngrams_rest"]["score"] == pytest.approx(result.score, abs=1e-12)


def test_measures_that_do_not_decompose_have_no_n_grams_but_votes():
    for similarity in ("bleu_4", "0.5*overlap_2+0.5*chrf"):
        result = rv.elect(FIGURE, similarity=similarity)
        parts = page.score_parts(result, 3)
        assert parts["ngrams"] is None
        assert math.fsum(vote[3] for vote in parts["votes"]) == pytest.approx(result.scores[3], abs=1e-12)


def test_grades_are_the_papers_equation_voters_in_rows():
    result = elect_ballot(FIGURE, Settings(preset="paper"))
    found = page.grades(result)
    assert found["voters"] == found["candidates"] == list(result.ranking)
    for row, voter in zip(found["grades"], found["voters"], strict=True):
        for grade, candidate in zip(row, found["candidates"], strict=True):
            expected = overlap(CAPTIONS[voter].split(), CAPTIONS[candidate].split(), 2)
            assert grade == pytest.approx(expected, abs=1e-9)


def test_grades_of_large_ballots_are_those_of_the_first_by_rank_and_by_weight(monkeypatch):
    monkeypatch.setattr(page, "GRADED", 4)
    voters = [rv.Hypothesis(text=t, logprob=p) for t, p in zip(CAPTIONS[::-1], LOGPROBS[::-1], strict=True)]
    one = rv.Ballot(FIGURE.candidates, voters)
    result = elect_ballot(one, Settings())
    found = page.grades(result)
    assert found["candidates"] == list(result.ranking[:4])
    assert found["voters"] == [9, 8, 7, 6]  # the most probable come last here
    whole = result.similarity.matrix(result.candidates, result.voters)
    assert found["grades"] == pytest.approx(np.round(whole[found["voters"]][:, found["candidates"]], 9))


def test_long_texts_are_cut_and_come_whole_when_asked_for():
    long = "wörd " * 1000
    result, view = shown(ballot([long, "wörd x"], [-1.0, -2.0]))
    row = next(row for row in view["candidates"]["rows"] if row["index"] == 0)
    assert (len(row["text"]), row["more"]) == (page.CUT, len(long) - page.CUT)
    assert page.whole_text(result, "candidates", 0)["text"] == long


def test_long_lists_are_cut_but_keep_the_most_likely(monkeypatch):
    monkeypatch.setattr(page, "LISTED", 1)
    _, view = shown(FIGURE)
    assert [row["index"] for row in view["candidates"]["rows"]] == [CAPTIONS.index(WINNER), 0]
    assert view["candidates"]["total"] == 10


def test_numbers_that_json_has_not_or_nobody_knows_are_null():
    _, view = shown(ballot(["a", "b"], [-1.0, -math.inf]), rule="most_likely")
    first, second = view["candidates"]["rows"]
    assert (first["score"], second["score"]) == (-1.0, None)
    assert (second["logprob"], second["probability"]) == (None, 0.0)
    assert view["voters"] == {"total": 0, "same": False, "rows": []}
    _, view = shown(ballot(["a b", "a c"]))
    assert view["most_likely"] is None
    for row in view["candidates"]["rows"]:
        assert row["probability"] is row["likelihood_rank"] is None


def test_candidates_without_text_are_shown_by_their_token_ids():
    one = rv.Ballot([rv.Hypothesis(tokens=[5, 9, 7]), rv.Hypothesis(tokens=[5, 9])])
    _, view = shown(one)
    row = view["candidates"]["rows"][0]
    assert (row["text"], row["units"], row["length"]) == ("5 9 7", ["5", "9", "7"], 3)
    assert (view["measure"]["unit"], view["length_in"]) == ("listed", "tokens")


def test_units_are_listed_where_they_do_not_stand_in_the_text():
    for tokenize, name, units in (
        ("words", "words", None),
        ("chars", "chars", None),
        ("13a", "listed", ["Hello", ",", "you", "!"]),
    ):
        result = elect_ballot(ballot(["Hello, you!"]), Settings(tokenize=tokenize))
        found = TextUnits(result.similarity, result.candidates)
        assert (found.name, found.listed(result.candidates, 0)) == (name, units)


def test_the_tokenisation_is_found_in_mixtures_and_chrf_has_characters_whatever_is_asked_for():
    def names(similarity: str) -> tuple[str, Any]:
        measure = Settings(similarity=similarity, tokenize="13a").measure
        return TextUnits(measure, rv.Hypotheses.of(["a"])).name, chosen_tokenisation(measure)

    assert names("bleu_4") == names("0.5*states+0.5*overlap_2") == ("listed", "13a")
    assert names("chrf") == ("chars", "words")
    assert names("0.5*chrf+0.5*overlap_2") == ("chars", "13a")
    assert names("states") == ("words", "words")


def test_the_orders_of_a_mixture_are_those_of_its_parts():
    _, view = shown(FIGURE, similarity=MIXTURE)
    assert view["measure"]["orders"] == [1, 2]
    _, view = shown(FIGURE, similarity="exact")
    assert view["measure"]["orders"] == []
