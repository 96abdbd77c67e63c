"""What the election page shows of a ballot: the numbers of the library and of the paper's equations."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

import rangevote as rv
from rangevote.election.result import Result
from rangevote.election.settings import Settings
from rangevote.web import api as page
from rangevote.web import clusters
from rangevote.web.api import ElectedBallot, TextUnits
from tests.election.equations import overlap
from tests.figure1 import CAPTIONS, LOGPROBS, PROBABILITIES, TOTAL, WINNER
from tests.web.samples import BALLOTS, DECOMPOSING, EVERY, FIGURE, MIXTURE, ballot


def shown(one: rv.Ballot, **options: Any) -> tuple[Result, dict[str, Any]]:
    elected = ElectedBallot(one, Settings(**options))
    view = page.election(elected, 0, None, clusters.stability(elected), None)
    return elected.result, msgspec.to_builtins(view)


def row_of(one: rv.Ballot, **options: Any) -> page.BallotRow:
    elected = ElectedBallot(one, Settings(**options))
    return page.ballot_row(elected, 0, clusters.stability(elected))


def test_figure_1_is_shown_as_the_paper_has_it():
    _, view = shown(FIGURE, similarity="overlap_2")
    rows = view["candidates"]["rows"]
    assert rows[0]["text"] == WINNER
    assert rows[0]["index"] == view["winner"] == CAPTIONS.index(WINNER)
    assert view["most_likely"] == 0
    by_index = {row["index"]: row for row in rows}
    assert [math.exp(by_index[i]["logprob"]) for i in range(10)] == pytest.approx(PROBABILITIES)
    assert [by_index[i]["share"] for i in range(10)] == pytest.approx([p / TOTAL for p in PROBABILITIES])
    # the figure lists the captions by falling probability
    assert [by_index[i]["likelihood_rank"] for i in range(10)] == list(range(1, 11))
    assert [by_index[i]["length"] for i in range(10)] == [len(text.split()) for text in CAPTIONS]
    assert view["length_in"] == "words"


def test_a_merged_object_is_shown_beside_the_best_whole_candidate():
    listed = ['{"a": 1, "b": 1, "c": 1}', '{"a": 1, "b": 2, "c": 2}', '{"a": 2, "b": 2, "c": 3}']
    result, view = shown(ballot(listed), rule="merge")
    assert view["merged"] == {
        "text": '{\n  "a": 1,\n  "b": 2\n}',
        "shares": pytest.approx({"a": 2 / 3, "b": 2 / 3}),
        "left_out": ("c",),
        "equal": None,
    }
    assert view["winner"] == result.index == 1
    assert view["stability"]["tried"] == 0  # fields are elected, not whole candidates
    _, view = shown(ballot(['{"a": 1}', '{"a": 2}']), rule="merge")
    assert view["merged"] is None
    assert view["no_winner"] is not None


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


@pytest.mark.parametrize("similarity", [*DECOMPOSING, "bleu_4", "0.5*overlap_2+0.5*chrf"])
@settings(max_examples=25)
@given(one=BALLOTS)
def test_what_n_grams_and_voters_gave_sums_to_the_score(similarity, one):
    elected = ElectedBallot(one, Settings(similarity=similarity, weights="probability", likelihood=0.3))
    for index, score in enumerate(elected.result.scores):
        parts = page.score_parts(elected, index)
        assert (parts.score, parts.likelihood) == (score, elected.result.evidence[index])
        gave = [math.fsum(weight * grade for _, weight, grade in parts.votes)]
        assert (parts.earned is None) == (similarity not in DECOMPOSING)
        if parts.earned is not None:
            gave.append(math.fsum(part.score for part in parts.earned))
        for one_sum in gave:
            assert one_sum + parts.likelihood == pytest.approx(score, abs=1e-12)


def test_lists_that_are_cut_keep_the_sum_in_their_rest(monkeypatch):
    monkeypatch.setattr(page, "VOTES", 3)
    elected = ElectedBallot(FIGURE, Settings())
    parts = page.score_parts(elected, elected.result.index)
    assert (len(parts.votes), parts.votes_rest.count) == (3, 7)
    listed = math.fsum(weight * grade for _, weight, grade in parts.votes)
    assert listed + parts.votes_rest.score == pytest.approx(elected.result.score, abs=1e-12)


def test_more_fields_of_json_are_listed_than_votes():
    text = json.dumps({f"field {i}": i for i in range(page.VOTES + 10)})
    parts = page.score_parts(ElectedBallot(ballot([text, text]), Settings(similarity="exact:json")), 0)
    assert [(field.agree, field.of) for field in parts.fields] == [(2, 2)] * (page.VOTES + 10)


def test_each_n_gram_stands_where_its_words_are():
    elected = ElectedBallot(
        ballot(["a b a b c"], voters=ballot(["a b", "b c"]).candidates), Settings(similarity="overlap_2")
    )
    # "a b" earns the first voter's half, once and where it stands first; "b c" the other's
    assert page.score_parts(elected, 0).earned == [(0, 2, 2, 0.5), (1, 2, 2, 0.0), (3, 2, 2, 0.5)]


def test_grades_are_the_papers_equation_voters_in_rows():
    elected = ElectedBallot(FIGURE, Settings(similarity="overlap_2"))
    result, found = elected.result, clusters.grades(elected)
    assert found.voters == found.candidates == list(result.ranking)
    for row, voter in zip(found.grades, found.voters, strict=True):
        for grade, candidate in zip(row, found.candidates, strict=True):
            expected = overlap(CAPTIONS[voter].split(), CAPTIONS[candidate].split(), 2)
            assert grade == pytest.approx(expected, abs=5.1e-5)


def test_grades_of_large_ballots_are_those_of_the_first_by_rank_and_by_weight(monkeypatch):
    monkeypatch.setattr(clusters, "GRADED", 4)
    voters = [rv.Hypothesis(text=t, logprob=p) for t, p in zip(CAPTIONS[::-1], LOGPROBS[::-1], strict=True)]
    one = rv.Ballot(FIGURE.candidates, voters)
    elected = ElectedBallot(one, Settings())
    result, found = elected.result, clusters.grades(elected)
    assert found.candidates == list(result.ranking[:4])
    assert found.voters == [9, 8, 7, 6]  # the most probable come last here
    whole = result.similarity.matrix(result.candidates, result.voters)
    assert found.grades == pytest.approx(np.round(whole[found.voters][:, found.candidates], 4))


def test_long_texts_and_lists_are_cut_but_come_whole_when_asked_for(monkeypatch):
    monkeypatch.setattr(page, "ALL_TEXTS", 0)
    monkeypatch.setattr(page, "LISTED", 1)
    long = "wörd " * 1000
    result, view = shown(ballot(["wörd x", "wörd x y", long], [-3.0, -4.0, -2.0]), weights="count")
    first, likely = view["candidates"]["rows"]  # the most likely one is always listed
    assert (first["index"], likely["index"], view["candidates"]["total"]) == (1, 2, 3)
    assert (len(likely["text"]), likely["more"]) == (page.CUT, len(long) - page.CUT)
    assert page.whole_text(result, "candidates", 2).text == long


def test_numbers_that_json_has_not_or_nobody_knows_are_null():
    _, view = shown(ballot(["a", "b"], [-1.0, -math.inf]), rule="most_likely")
    first, second = view["candidates"]["rows"]
    assert (first["score"], second["score"]) == (-1.0, None)
    assert (second["logprob"], second["share"]) == (None, 0.0)
    assert view["voters"] == {"total": 0, "same": False, "rows": []}
    _, view = shown(ballot(["a b", "a c"]))
    assert view["most_likely"] is None
    for row in view["candidates"]["rows"]:
        assert row["logprob"] is row["share"] is row["likelihood_rank"] is None


def test_candidates_without_text_are_shown_by_their_token_ids():
    one = rv.Ballot([rv.Hypothesis(tokens=[5, 9, 7]), rv.Hypothesis(tokens=[5, 9])])
    _, view = shown(one)
    row = view["candidates"]["rows"][0]
    assert (row["text"], row["units"], row["length"]) == ("5 9 7", ["5", "9", "7"], 3)
    assert (view["measure"]["unit"], view["length_in"]) == ("listed", "tokens")


@pytest.mark.parametrize(
    ("text", "options", "name", "units"),
    [
        ("Hello, you!", {"tokenize": "space"}, "space", ["Hello,", "you!"]),
        ("Hello, you!", {"tokenize": "chars"}, "chars", list("Hello,you!")),
        ("Olá, VOCÊ!", {"tokenize": "words"}, "words", ["Olá", ",", "VOCÊ", "!"]),  # as they stand there
        ("Hello, you!", {"tokenize": "13a"}, "listed", ["Hello", ",", "you", "!"]),
        ("Hi you", {"tokenize": "13a", "similarity": "bleu_4"}, "listed", ["Hi", "you"]),
        ("Hi you", {"tokenize": "13a", "similarity": "0.5*states+0.5*overlap_2"}, "listed", ["Hi", "you"]),
        ("Hi", {"tokenize": "13a", "similarity": "chrf"}, "chars", ["H", "i"]),  # whatever is asked for
        ("Hi", {"tokenize": "13a", "similarity": "0.5*chrf+0.5*overlap_2"}, "chars", ["H", "i"]),
        ("Hi", {"tokenize": "13a", "similarity": "states"}, "words", ["Hi"]),
    ],
)
def test_the_units_are_those_of_the_measure(text, options, name, units):
    candidates = rv.Hypotheses.of([text])
    found = TextUnits(Settings(**options).measure, candidates)
    assert (found.name, found.of(candidates, 0)) == (name, units)


@pytest.mark.parametrize(("similarity", "orders"), [(MIXTURE, [1, 2]), ("exact", [])])
def test_the_orders_of_a_mixture_are_those_of_its_parts(similarity, orders):
    assert shown(FIGURE, similarity=similarity)[1]["measure"]["orders"] == orders


def test_the_sentence_comes_in_parts_and_says_which_are_quoted():
    _, view = shown(FIGURE, similarity="overlap_2")
    quoted = [text for text, is_quote in view["why"] if is_quote]
    assert quoted[0] == "sitting on a bench"
    assert view["why"][0][0].startswith("Elected because 5 of 9 other outputs (71 % of the vote) also say ")


def test_groups_have_their_answers_where_answers_are_compared():
    texts = ["so it is 4", "it is 5", "I think 4", "no idea"]
    _, view = shown(ballot(texts), similarity="exact:last_number")
    assert [(g["answer"], g["candidates"], g["share"]) for g in view["groups"]] == [
        ("4", [0, 2], 0.5),
        ("5", [1], 0.25),
        (None, [3], 0.0),
    ]
    _, view = shown(ballot(texts), similarity="overlap_1")
    assert {group["answer"] for group in view["groups"]} == {None}


def test_winner_and_most_likely_are_judged_by_the_nearest_reference():
    texts = ["a cat sits", "a dog sits", "a dog sits down", "a dog"]
    one = ballot(texts, [-1.0, -1.2, -1.3, -1.2], references=["a dog sits down", "x"])
    result, view = shown(one, similarity="overlap_1")
    assert str(result.winner) == "a dog sits down"
    chrf = rv.elect(["a cat sits"], voters=["a dog sits down"], similarity="chrf").score  # sacrebleu's number
    assert view["quality"]["winner"] == pytest.approx(100)
    assert view["quality"]["most_likely"] == pytest.approx(100 * chrf)
    row = row_of(one, similarity="overlap_1")
    assert (row.changed, row.gain) == (True, pytest.approx(100 - 100 * chrf))


def test_clusters_stand_together_and_are_named_by_what_they_share():
    texts = ["a red bus stops", "a red bus waits", "two dogs run", "two dogs run fast", "a red bus", "snow"]
    found = clusters.grades(ElectedBallot(ballot(texts), Settings(similarity="overlap_2")))
    named = {cluster.name: sorted(cluster.members) for cluster in found.clusters}
    assert named == {"a red bus": [0, 1, 4], "two dogs run": [2, 3]}
    shown_order = [found.candidates[column] for column in found.by_cluster.candidates]
    places = [shown_order.index(i) for i in (0, 1, 4)]
    assert max(places) - min(places) == 2
    assert sorted(shown_order) == list(range(6))


@pytest.mark.parametrize(
    ("one", "options"),
    [(FIGURE, {"min_score": 2.0}), (ballot(["no idea", "none"]), {"similarity": "exact:last_number"})],
)
def test_without_a_winner_the_reason_is_told_and_nothing_is_called_changed(one, options):
    result, view = shown(one, **options)
    assert view["elected"] == []
    assert view["no_winner"] == result.no_winner
    assert result.no_winner in view["why"][0][0]
    row = row_of(one, **options)
    assert row.winner is row.changed is row.gain is row.margin is row.near_tie is None
    assert row.no_winner == result.no_winner
