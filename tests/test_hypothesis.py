"""Hypotheses and ballots: frozen, read from JSON, and held as columns."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import LOGPROB_SLACK, Ballot, Hypotheses, Hypothesis, check


@pytest.mark.parametrize(
    ("hypothesis", "content"),
    [
        (Hypothesis(text="a", tokens=(1,)), "a"),
        (Hypothesis(text="", tokens=(1,)), ""),
        (Hypothesis(tokens=(1, 2)), (1, 2)),
        (Hypothesis(tokens=()), ()),
        (Hypothesis(), ()),
    ],
)
def test_the_content_is_the_text_where_there_is_one(hypothesis, content):
    assert hypothesis.content == content


def test_the_shape_of_the_ballot_file_is_read_as_it_stands():
    line = (
        b'{"id": "42", "source": "ein Hund", "references": ["a dog"], "candidates": [{"text": "a dog", '
        b'"logprob": -12.3, "tokens": [5, 9], "state": [0.1, 0.2], "finished": true}, {"text": "dogs"}], '
        b'"voters": [{"text": "a dog", "sampled": true}]}'
    )
    ballot = msgspec.json.decode(line, type=Ballot)
    assert ballot.id == "42"
    assert ballot.source == "ein Hund"
    assert list(ballot.references) == ["a dog"]
    assert ballot.candidates[0].logprob == -12.3
    assert list(ballot.candidates[0].tokens) == [5, 9]
    assert ballot.voters[0].sampled
    assert rv.elect(ballot).winner == "a dog"
    assert msgspec.json.decode(msgspec.json.encode(ballot), type=Ballot) == ballot


def test_an_unknown_field_of_a_hypothesis_is_not_swallowed():
    with pytest.raises(msgspec.ValidationError, match="unknown field `log_prob`"):
        msgspec.json.decode(b'{"text": "a", "log_prob": -1.0}', type=Hypothesis)


def test_fields_that_say_nothing_are_not_written():
    assert msgspec.json.encode(Hypothesis(text="a", logprob=-1.0)) == b'{"text":"a","logprob":-1.0}'


def test_columns_hold_what_the_hypotheses_say():
    rows = [Hypothesis(text="a", logprob=-1.0, tokens=(1,)), Hypothesis(text="b", tokens=(2,))]
    columns = Hypotheses.of(rows)
    assert list(columns.texts) == ["a", "b"]
    assert list(columns.tokens) == [(1,), (2,)]
    assert columns.states is None
    assert columns.weights is None
    assert not columns.complete
    assert [columns.logprob(0), columns.logprob(1)] == [-1.0, None]
    assert math.isnan(columns.logprobs[1])


@pytest.mark.parametrize(
    "usual", [{"logprob": -1.0}, {"logprob": -math.inf, "tokens": [1, 2]}, {"member": "a"}, {}]
)
@pytest.mark.parametrize("sampled", [False, True])
def test_columns_of_the_kernels_are_those_of_python(usual, sampled):
    rows = [Hypothesis("x", **usual), Hypothesis("y", sampled=sampled, **usual)]
    kernels, python = Hypotheses.of(rows), Hypotheses.of([*rows, Hypothesis("z", scores={"r": 1.0}, **usual)])
    for name in ("texts", "numbers", "tokens", "states", "members", "tool_calls"):
        ours, theirs = getattr(kernels, name), getattr(python, name)
        assert (ours and list(ours)) == (theirs and list(theirs[:2])), name
    assert kernels.sampled == python.sampled == sampled
    assert list(kernels) == list(python)[:2]


def test_columns_of_texts_are_a_sequence_of_hypotheses():
    columns = Hypotheses.of(["a", "b", "c"], [-1.0, None, -3.0])
    assert len(columns) == 3
    assert columns[0] == Hypothesis(text="a", logprob=-1.0)
    assert columns[-1] == Hypothesis(text="c", logprob=-3.0)
    assert columns[1:] == [Hypothesis(text="b"), Hypothesis(text="c", logprob=-3.0)]
    assert [h.text for h in columns] == ["a", "b", "c"]
    assert columns.content(1) == "b"
    assert columns.only(2)[0] == Hypothesis(text="c", logprob=-3.0)
    with pytest.raises(IndexError, match="out of range"):
        columns[3]


def test_columns_without_texts_hold_token_ids():
    columns = Hypotheses.of([[1, 2], np.array([3]), ()])
    assert columns.texts is None
    assert [columns.content(i) for i in range(3)] == [(1, 2), (3,), ()]


def test_columns_are_taken_as_they_are_and_may_be_empty():
    columns = Hypotheses.of([])
    assert Hypotheses.of(columns) is columns
    assert (len(columns), list(columns), columns.logprobs, columns.complete) == (0, [], None, False)


@pytest.mark.parametrize("logprobs", [None, {"b": [-1.0], "a": [-2.0, -0.5]}, {"b": [-1], "a": [None, -0.5]}])
def test_lists_by_member_are_one_list_in_which_each_has_its_member(logprobs):
    columns = Hypotheses.of({"b": ["x"], "none": [], "a": ["y", "z"]}, logprobs)
    numbers = [*logprobs["b"], *logprobs["a"]] if logprobs else [None] * 3
    rows = zip("xyz", numbers, "baa", strict=True)
    assert list(columns) == [Hypothesis(text, logprob=number, member=name) for text, number, name in rows]
    with pytest.raises(rv.DataError, match=r"^candidates\['a'\]\[1\]\.logprob: 0\.5 is not a log-prob"):
        Hypotheses.of({"b": ["x"], "a": ["y", "z"]}, {"b": [-1.0], "a": [-1.0, 0.5]})


def test_a_log_probability_may_exceed_0_by_a_rounding_and_is_then_0():
    columns = Hypotheses.of(["a", "b"], [LOGPROB_SLACK, -1.0])
    assert columns.logprobs.tolist() == [0.0, -1.0]
    with pytest.raises(rv.DataError, match=r"candidates\[0\]\.logprob: 2e-06 is not a log-probability"):
        Hypotheses.of(["a", "b"], [2 * LOGPROB_SLACK, -1.0])


def test_the_callers_lists_are_not_changed():
    texts, logprobs = ["a", "b"], np.array([-1.0, 1e-7])
    Hypotheses.of(texts, logprobs)
    assert texts == ["a", "b"]
    assert logprobs.tolist() == [-1.0, 1e-7]


@pytest.mark.parametrize(
    ("hypothesis", "message"),
    [
        (Hypothesis(), r"^voters\[1\]: has neither text nor tokens"),
        (Hypothesis("a", logprob=math.nan), r"^voters\[1\].logprob: nan is not a log-probability"),
        (Hypothesis("a", logprob=2.0), r"^voters\[1\].logprob: 2.0 is not a log-probability"),
        (Hypothesis("a", weight=-1.0), r"^voters\[1\].weight: -1.0 is not an importance weight"),
        (Hypothesis("a", weight=math.inf), r"^voters\[1\].weight: inf is not"),
        (Hypothesis("a", weight=math.nan), r"^voters\[1\].weight: nan is not"),
        (Hypothesis("a", token_logprobs=[-1.0, 2.0]), r"\[1\].token_logprobs\[1\]: 2.0 is not the log-prob"),
        (Hypothesis("a", ranked_by=-math.inf), r"^voters\[1\].ranked_by: expected a finite number, got -inf"),
        (Hypothesis("a", state=[0.0, math.nan]), r"^voters\[1\].state\[1\]: expected a finite number"),
        (Hypothesis("a", state=[1.0]), r"^voters\[1\].state: has 1 numbers while others have 2"),
    ],
)
def test_a_value_that_cannot_be_voted_on_is_named(hypothesis, message):
    good = Hypothesis("a", logprob=-1.0, state=np.array([0.5, 1.0]))
    check(Ballot([good, good]))
    with pytest.raises(rv.DataError, match=message):
        check(Ballot([good], [good, hypothesis]))
    if hypothesis.state is None:  # the same rules for an election, where measures look at the states
        with pytest.raises(rv.DataError, match=message):
            Hypotheses.of([good, hypothesis], role="voters")
