"""Results of elections among answers, and elections in which nobody is elected."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.formats.result_writer import ResultShape, result_line

SAMPLES = ["It is 42.", "so 41", "42", "I do not know", "6 * 7 = 42", "41!", "42.0", "no idea"]


def fields(result: rv.Result, **shape: bool) -> dict:
    return json.loads(result_line(rv.Ballot([], id="a"), result, ResultShape(**shape)).content)


def test_a_result_counts_the_votes_of_every_answer():
    result = rv.elect(SAMPLES, similarity="exact:last_number")
    assert (result.answer, result.winner) == ("42", "It is 42.")
    assert list(result.votes) == ["42", "41"]
    assert (result.votes["42"].count, result.votes["42"].share) == (4, 0.5)
    assert (result.votes["41"].count, result.votes["41"].share) == (2, 0.25)
    assert result.answers.abstained == 2
    assert result.margin == 0.25
    two_thirds = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert result.answers.entropy == pytest.approx(two_thirds)


@given(st.lists(st.sampled_from(["1", "2", "3", "x"]), min_size=1, max_size=20))
def test_votes_sum_to_those_who_answered_and_entropy_is_within_its_bounds(texts):
    result = rv.elect(texts, similarity="exact:last_number")
    answered = [text for text in texts if text != "x"]
    assert sum(vote.count for vote in result.votes.values()) == len(answered)
    assert math.fsum(v.share for v in result.votes.values()) == pytest.approx(len(answered) / len(texts))
    assert 0 <= result.answers.entropy <= math.log(max(1, len(set(answered)))) + 1e-12
    if answered:
        assert result.votes[result.answer].share == pytest.approx(result.score)


def test_voters_weigh_as_they_weigh_in_the_election():
    result = rv.elect(["1", "2", "2"], weights=[6, 1, 1], similarity="exact:last_number")
    assert (result.answer, result.votes["1"].share, result.votes["2"].count) == ("1", 0.75, 2)


def test_other_measures_have_no_answers_and_their_lines_are_as_before():
    for measure in ("exact", "overlap_1", "0.5*exact:last_number+0.5*overlap_1"):
        result = rv.elect(SAMPLES, similarity=measure)
        assert (result.answer, result.votes, result.answers) == (None, None, None)
        assert not {"answer", "votes", "entropy", "abstained", "no_winner"} & set(fields(result))


def test_calls_of_tools_are_answers():
    calls = [rv.Hypothesis(tool_calls=[rv.ToolCall("add", {"a": n})]) for n in (1, 1, 2)]
    result = rv.elect([*calls, rv.Hypothesis("hm")])
    assert result.answer == 'add({"a":1})'
    assert {name: vote.count for name, vote in result.votes.items()} == {
        'add({"a":1})': 2,
        'add({"a":2})': 1,
        "(text)": 1,
    }


def test_a_line_and_an_explanation_have_the_votes():
    result = rv.elect(SAMPLES, similarity="exact:last_number")
    line = fields(result, explain=True)
    assert (line["answer"], line["abstained"]) == ("42", 2)
    assert line["votes"] == {"42": {"count": 4, "share": 0.5}, "41": {"count": 2, "share": 0.25}}
    assert line["explanation"]["ngrams"] == [{"ngram": "42", "order": 0, "score": 0.5}]
    shown = str(result.explain())
    assert "answer 42: 4 voters, share 0.5000" in shown
    assert "no answer: 2 voters" in shown


def test_an_explanation_of_json_says_how_many_agree_with_each_field():
    texts = ['{"price": 12.50, "city": "Rome"}'] * 6 + [
        '{"city": "Rome", "price": 12.5}',
        '{"price": 11}',
        "?",
    ]
    for options in ({"similarity": "exact"}, {"similarity": "overlap_1"}):
        explained = rv.elect(texts, tokenize="json", **options).explain()
        assert [str(field) for field in explained.fields] == [
            'city: 7 of 8 say "Rome"',
            "price: 7 of 8 say 12.5",
        ]
        assert explained.fields[1].share == pytest.approx(7 / 9)
    assert "price: 7 of 8 say 12.5" in str(explained)
    assert rv.elect(texts, similarity="overlap_1").explain().fields is None


def test_an_explanation_of_a_call_says_how_many_agree_with_each_argument():
    calls = [rv.Hypothesis(tool_calls=[rv.ToolCall("f", {"a": 1, "b": b})]) for b in (1, 1, 2)]
    shown = [str(field) for field in rv.elect(calls).explain().fields]
    assert shown == ["arguments.a: 3 of 3 say 1", "arguments.b: 2 of 3 say 1", 'name: 3 of 3 say "f"']


# Nobody is elected


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"min_share": 0.51}, "the best candidate's share 0.5 is below min_share=0.51"),
        ({"min_score": 0.6}, "the best candidate's score 0.5 is below min_score=0.6"),
    ],
)
def test_below_a_threshold_nobody_is_elected_and_the_result_says_why(option, why):
    result = rv.elect(SAMPLES, similarity="exact:last_number", **option)
    assert (result.no_winner, result.winner, result.index, result.answer) == (why, None, None, None)
    assert (result.elected, result.hypothesis, str(result), result.winners) == ((), None, "", ())
    assert (result.leader, result.score, result.margin) == (0, 0.5, 0.25)
    [(name, value)] = option.items()
    assert f"|{name}:{value}|" in result.signature
    line = fields(result)
    assert (line["winner"], line["index"], line["no_winner"], line["score"]) == (None, None, why, 0.5)
    assert line["votes"]["42"]["count"] == 4
    assert "nobody is elected" in result._repr_html_()
    assert result.explain().index == 0


def test_a_share_that_is_reached_elects():
    texts = ["1", "1", "2"]
    assert rv.elect(texts, similarity="exact:last_number", min_share=2 / 3).answer == "1"
    assert rv.elect(texts, similarity="exact:last_number", min_share=0.67).answer is None
    assert rv.elect(texts, similarity="exact:last_number", min_share=0, min_score=-1).answer == "1"


def test_thresholds_hold_in_streams_in_many_and_for_each_of_several_winners():
    options = {"similarity": "exact:last_number", "min_share": 0.5}
    electorate = rv.Electorate(["1", "2"], **options).add(["1", "2", "3"])
    assert electorate.result().no_winner is not None
    assert electorate.add(["1", "1"]).result().answer == "1"
    assert [r.answer for r in rv.elect_many([["1", "1", "2"], ["1", "2", "3"]], **options)] == ["1", None]
    several = rv.elect(["1", "1", "1", "2", "2", "3"], similarity="exact", winners=3, min_share=1 / 3)
    assert several.winners == ("1", "2")


def test_a_share_of_voters_is_that_of_the_group_also_for_n_grams():
    texts = ["a b", "b a", "a c", "d"]
    assert rv.elect(texts, similarity="overlap_1", min_share=0.5).index == 0  # "a b" and "b a" are one group
    assert rv.elect(texts, similarity="overlap_1", min_share=0.6).index is None
    assert rv.elect(texts, similarity="overlap_1", min_score=0.9).index is None
