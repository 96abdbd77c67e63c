"""JSON by its leaves, and calls of tools in stages."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rangevote as rv
from rangevote.similarity.json_leaves import canonical, json_leaves, leaves, read_json
from rangevote.similarity.tool_calls import TextOrToolCalls


def call(name: str, arguments: object = "{}", **more: object) -> rv.Hypothesis:
    return rv.Hypothesis(tool_calls=[rv.ToolCall(name, arguments)], sampled=True, **more)


def text(content: str) -> rv.Hypothesis:
    return rv.Hypothesis(content, sampled=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [2]}', '{ "b":[2.0],\n"a":1e0 }'),
        ('"é"', '"\\u00e9"'),
        ("[]", "[ ]"),
        ("1e22", "10000000000000000000000"),
        ('{"a": 12.50}', '```json\n{"a": 12.5}\n```'),
    ],
)
def test_texts_that_mean_the_same_json_are_equal(one, other):
    assert canonical(read_json(one)) == canonical(read_json(other))
    assert json_leaves(one) == json_leaves(other) != []


@pytest.mark.parametrize(
    ("one", "other"),
    [("[1, 2]", "[2, 1]"), ("[]", "{}"), ('"1"', "1"), ("null", "0"), ('{"a.b": 1}', '{"a": {"b": 1}}')],
)
def test_texts_that_mean_other_json_are_not_equal(one, other):
    assert canonical(read_json(one)) != canonical(read_json(other))
    assert json_leaves(one) != json_leaves(other)


@pytest.mark.parametrize("broken", ["", "{", "{'a': 1}", "NaN", "[1,]", "yes", "[" * 100_000, '"\ud800"'])
def test_what_is_no_json_has_no_leaves(broken):
    assert json_leaves(broken) == []


def test_a_leaf_is_named_by_its_path():
    value = {"items": [{"price": 12.50}, {}], "two words": True}
    assert leaves(value) == [("items[0].price", "12.5"), ("items[1]", "{}"), ('"two words"', "true")]


def test_the_larger_party_wins_then_the_names_then_the_arguments():
    candidates = [
        text("I can look that up."),
        text("I can look that up."),
        call("weather", {"city": "Rome"}),
        call("search", '{"q": "rome weather", "n": 5}'),
        call("search", '{"n": 5.0, "q": "rome weather"}'),
        call("search", '{"q": "rome"}'),
        call("weather", '{"city": "Rome"}'),
    ]
    result = rv.elect(candidates, similarity="overlap_1")
    assert result.index == 3
    assert result.hypothesis.tool_calls[0].name == "search"
    assert result.winner == '[{"name":"search","arguments":{"n":5,"q":"rome weather"}}]'
    assert result.scores.tolist() == pytest.approx([-math.inf] * 3 + [2 / 7] * 2 + [1 / 7, -math.inf])
    assert result.margin == pytest.approx(1 / 7)  # 3 against 2 searches; 2 against 1 arguments
    assert "|calls:name,arguments|" in result.signature


def test_more_texts_than_calls_elect_a_text():
    candidates = [text("a b"), call("f"), call("f"), text("a c"), text("a b")]
    result = rv.elect(candidates, similarity="overlap_1")
    assert (result.index, result.winner) == (0, "a b")
    alone = rv.elect(["a b", "a c", "a b"], similarity="overlap_1")
    assert result.scores[[0, 3, 4]] * 5 / 3 == pytest.approx(alone.scores)


def test_calls_with_broken_arguments_abstain():
    candidates = [call("f", "{broken"), call("f", "{broken"), call("f", '{"x": 1}'), text("hm")]
    result = rv.elect(candidates, similarity="exact")
    assert result.index == 2  # one valid call against one text: the first of the two parties that stands
    result = rv.elect(candidates[:2], similarity="exact")
    assert result.no_support


def test_texts_that_abstain_do_not_make_their_party_larger():
    candidates = [text("no JSON"), text("none either"), text("nor here"), call("f"), call("f")]
    assert rv.elect(candidates, similarity="exact", tokenize="json").index == 3
    assert rv.elect(candidates, similarity="exact").index == 0


def test_several_calls_are_one_answer_in_their_order():
    def calls(*names: str) -> rv.Hypothesis:
        return rv.Hypothesis(tool_calls=[rv.ToolCall(name) for name in names])

    assert rv.elect([calls("a", "b"), calls("b", "a"), calls("b", "a")]).index == 1


def test_voters_may_call_tools_that_no_candidate_calls():
    voters = [call("g"), call("g"), call("g"), call("f", '{"x": 2}')]
    result = rv.elect([call("f", '{"x": 1}'), call("f", '{"x": 2}')], voters=voters)
    assert (result.index, result.score) == (1, 0.25)


def test_an_electorate_learns_of_calls_as_they_come():
    batches = [[text("a b")], [call("f", '{"x": 1}'), call("f", '{"x": 1.0}')]]
    candidates = [text("a b"), call("f", '{"x": 1}')]
    electorate = rv.Electorate(candidates, similarity="overlap_1")
    for batch in batches:
        electorate.add(batch)
    whole = rv.elect(candidates, voters=[*batches[0], *batches[1]], similarity="overlap_1")
    assert electorate.result().scores.tobytes() == whole.scores.tobytes()
    late = rv.Electorate(["a b"], similarity="overlap_1").add(["a c"]).add(batches[1])
    assert late.result().winner == "a b"


def test_several_winners_come_from_other_groups_and_parties():
    candidates = [call("f"), call("f"), call("g"), text("a b"), text("a c")]
    for rule in ("range", "reweighted"):
        result = rv.elect(candidates, similarity="overlap_1", rule=rule, winners=4)
        assert len({str(winner) for winner in result.winners}) == 4
        assert result.index == 0


def test_grades_across_parties_are_zero_and_explain_the_score():
    candidates = rv.Hypotheses.of([text("a b"), call("f"), call("f"), text("a c")])
    measure = TextOrToolCalls(rv.get_similarity("overlap_1"))
    grades = measure.matrix(candidates, candidates)
    assert grades.tolist() == [[1, 0, 0, 0.5], [0, 1, 1, 0], [0, 1, 1, 0], [0.5, 0, 0, 1]]
    result = rv.elect(candidates, similarity="overlap_1")
    assert np.isclose(sum(vote.score for vote in result.explain().voters), result.score)


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ("f", "expected a list of ToolCall"),
        ([{"name": "f"}], "expected a list of ToolCall"),
        ([rv.ToolCall("")], r"tool_calls\[0\].name: is empty"),
        ([rv.ToolCall("f", 3)], r"tool_calls\[0\].arguments: expected an object"),
        ([rv.ToolCall("f", {"x": {1}})], "expected an object that JSON can hold"),
    ],
)
def test_what_is_no_call_is_refused(calls, problem):
    with pytest.raises(rv.DataError, match=problem):
        rv.elect([rv.Hypothesis(tool_calls=calls)])


@pytest.mark.parametrize("standing", [True, False])
def test_calls_that_agree_are_decided_early_and_divided_ones_are_not(standing):
    candidates = [call("f", '{"x": 1}'), call("f", '{"x": 2}'), call("g"), text("hm")] if standing else None

    def decided(*samples: rv.Hypothesis) -> bool:
        electorate = rv.Electorate(candidates, similarity="exact")
        for sample in samples:
            electorate.add(sample)
        return electorate.decided(0.95)

    agreeing, other = call("f", '{"x": 1}'), call("f", '{"x": 2}')
    assert not decided(agreeing, agreeing)
    assert decided(*[agreeing] * 40)
    assert not decided(*[agreeing, other] * 20)  # which arguments?
    assert not decided(*[agreeing, call("g")] * 20)  # which tool?
    assert not decided(*[agreeing, text("hm")] * 20)  # a tool at all?
    assert decided(*[text("hm")] * 40)


def test_a_wrong_call_is_declared_no_more_often_than_allowed():
    candidates = [call("f", '{"x": 1}'), call("f", '{"x": 2}'), call("g"), text("hm")]
    draws, wrong = np.random.default_rng(1), 0
    for _ in range(60):
        electorate = rv.Electorate(candidates, similarity="exact")
        for _ in range(12):  # f is called by 0.55, mostly with 1; g, by 0.3, alike
            drawn = draws.choice(4, size=5, p=[0.3, 0.25, 0.3, 0.15])
            electorate.add([candidates[i] for i in drawn])
            if electorate.decided(0.8):
                wrong += electorate.result().index != 0
                break
    assert wrong <= 0.2 * 60
