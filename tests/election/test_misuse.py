"""Ballots that cannot be meant, and how that is said; ballots that are odd and fine."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import rangevote as rv
from rangevote.hypothesis import Ballot, Hypotheses, Hypothesis

BAD_LISTS = {
    "a dict": ({"a": -1.0, "b": -2.0}, rv.UsageError, r"^candidates is one dict, not a list: .* logprobs="),
    "one text": ("a dog", rv.UsageError, r"^candidates is one str, not a list: pass a list of texts"),
    "None inside": (["a", None], rv.DataError, r"^candidates\[1\]: expected a text, .* got NoneType"),
    "a truth value inside": ([True, "a"], rv.DataError, r"^candidates\[0\]: expected a text, .* got bool"),
    "an unknown field": ([{"txt": "a"}], rv.DataError, r"^candidates\[0\]: .*unknown field `txt`"),
    "a wrong field": ([{"text": 5}], rv.DataError, r"^candidates\[0\]: Expected `str \| null`"),
    "floats as token ids": ([[1.5, 2.0]], rv.DataError, r"^candidates\[0\].* token ids"),
    "bools as token ids": ([[True, False]], rv.DataError, r"^candidates\[0\].* token ids"),
    "a float array": ([np.array([0.5])], rv.DataError, r"^candidates\[0\].* token ids"),
    "text or tokens": (
        [Hypothesis(tokens=(1,)), Hypothesis(text="a")],
        rv.DataError,
        r"^candidates\[0\]: has no text while others have no token ids; give all of them texts, or all",
    ),
    "empty": ([], rv.DataError, r"^candidates: there are no candidates, so nobody can be elected"),
    "token ids too large": ([[2**63]], rv.DataError, r"^candidates\[0\].*9223372036854775808"),
    "no text": ([Hypothesis(text=5)], rv.DataError, r"^candidates\[0\]\.text.*int"),
    "tokens that are text": ([Hypothesis(tokens="ab")], rv.DataError, r"^candidates\[0\]\.tokens"),
    "tokens that are floats": ([Hypothesis(tokens=(1.5,))], rv.DataError, r"^candidates\[0\]\.tokens"),
}


@pytest.mark.parametrize(("candidates", "error", "message"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_candidates_that_are_no_list_of_sequences_are_refused(candidates, error, message):
    with pytest.raises(error, match=message):
        rv.elect(candidates)


@pytest.mark.parametrize("name", [name for name in BAD_LISTS if name not in ("empty", "a dict")])
def test_voters_are_checked_like_candidates_and_named_as_voters(name):
    voters, error, message = BAD_LISTS[name]
    with pytest.raises(error, match=message.replace("candidates", "voters")):
        rv.elect([[1]] if "token" in name else ["a"], voters=voters)


def test_an_empty_list_of_voters_is_refused():
    with pytest.raises(rv.DataError, match=r"^voters: there are no voters; leave the list out"):
        rv.elect(["a"], voters=[])
    with pytest.raises(rv.DataError, match=r"^voters: there are no voters"):
        rv.elect(Ballot(candidates=[Hypothesis(text="a")], voters=[]))


BAD_LOGPROBS = {
    "too few": ([-1.0], rv.UsageError, r"^2 candidates but 1 log-probabilities; give exactly one for each"),
    "none": ([], rv.UsageError, r"^2 candidates but 0 log-probabilities"),
    "NaN": ([-1.0, math.nan], rv.DataError, r"^candidates\[1\]\.logprob: nan is not a log-probability"),
    "+inf": ([math.inf, -1.0], rv.DataError, r"^candidates\[0\]\.logprob: inf is not a log-probability"),
    "a probability": ([0.4, 0.3], rv.DataError, r"candidates\[0\]\.logprob: 0\.4 is not .* from -inf to 0"),
    "just above 0": ([-1.0, 1.1e-6], rv.DataError, r"^candidates\[1\]\.logprob: 1\.1e-06 is not a log-prob"),
    "True": ([True, -1.0], rv.DataError, r"^candidates\[0\]\.logprob: expected a number, got bool True"),
    "text": (["-1.0", -2.0], rv.DataError, r"^candidates\[0\]\.logprob: expected a number, got str '-1\.0'"),
    "a matrix": (np.zeros((2, 2)), rv.DataError, r"^candidates\[0\]\.logprob: expected a number, got list"),
    "one number": (-1.0, rv.UsageError, r"log-probabilities"),
}


@pytest.mark.parametrize(("logprobs", "error", "message"), BAD_LOGPROBS.values(), ids=BAD_LOGPROBS)
def test_log_probabilities_that_are_none_are_refused(logprobs, error, message):
    with pytest.raises(error, match=message):
        rv.elect(["a", "b"], logprobs)
    with pytest.raises(error, match=message.replace("candidates", "voters")):
        rv.elect(["a"], voters=["a", "b"], voter_logprobs=logprobs)


GOOD_LOGPROBS = {
    "list": [-1.0, -2.0],
    "tuple": (-1.0, -2.0),
    "integers": [-1, -2],
    "array": np.array([-1.0, -2.0]),
    "float32 array": np.array([-1.0, -2.0], dtype=np.float32),
    "integer array": np.array([-1, -2]),
    "numpy numbers": [np.float32(-1.0), np.int64(-2)],
    "dict values": {0: -1.0, 1: -2.0}.values(),
}


@pytest.mark.parametrize("logprobs", GOOD_LOGPROBS.values(), ids=GOOD_LOGPROBS)
def test_log_probabilities_may_come_in_any_list_of_numbers(logprobs):
    expected = rv.elect(["a", "b"], [-1.0, -2.0]).weights.tolist()
    assert rv.elect(["a", "b"], logprobs).weights.tolist() == expected
    assert rv.elect(["a", "b"], iter([-1.0, -2.0])).weights.tolist() == expected


GOOD_LISTS = {
    "generator": lambda: (t for t in ["a b", "a c", "a b"]),
    "tuple": lambda: ("a b", "a c", "a b"),
    "array of texts": lambda: np.array(["a b", "a c", "a b"]),
    "hypotheses": lambda: [Hypothesis(text=t) for t in ("a b", "a c", "a b")],
    "mixed": lambda: ["a b", Hypothesis(text="a c"), "a b"],
    "columns": lambda: Hypotheses.of(["a b", "a c", "a b"]),
    "ballot": lambda: Ballot([Hypothesis(text=t) for t in ("a b", "a c", "a b")]),
}


@pytest.mark.parametrize("make", GOOD_LISTS.values(), ids=GOOD_LISTS)
def test_candidates_may_come_in_any_list_of_sequences(make):
    result = rv.elect(make(), preset="paper")
    assert result.winner == "a b"
    assert result.scores.tolist() == pytest.approx([2 / 3, 1 / 3, 2 / 3])


def test_log_probabilities_are_given_once():
    with pytest.raises(rv.UsageError, match=r"log-probabilities of the candidates are given twice"):
        rv.elect([Hypothesis(text="a", logprob=-1.0)], [-1.0])
    with pytest.raises(rv.UsageError, match=r"log-probabilities of the voters are given twice"):
        rv.elect(["a"], voters=[Hypothesis(text="a", logprob=-1.0)], voter_logprobs=[-1.0])


@pytest.mark.parametrize("extra", ["logprobs", "voters", "voter_logprobs"])
def test_a_ballot_stands_alone(extra):
    with pytest.raises(rv.UsageError, match=r"a Ballot brings its own voters and log-probabilities"):
        rv.elect(Ballot([Hypothesis(text="a")]), **{extra: [-1.0]})


def test_log_probabilities_of_voters_need_voters():
    with pytest.raises(rv.UsageError, match=r"voter_logprobs without voters; give the voters"):
        rv.elect(["a"], voter_logprobs=[-1.0])


@pytest.mark.parametrize(
    ("candidates", "options", "winner"),
    [
        ([{"text": "a b", "logprob": -2.0}, {"text": "a c", "logprob": -1.0}], {}, "a c"),
        ([{"role": "assistant", "content": "so 4"}, {"role": "assistant", "content": "5"}], {}, "so 4"),
        ([7, 5, 5.0], {"similarity": "exact"}, "5"),
        (np.array([7.5, 5, 7.5]), {"similarity": "exact"}, "7.5"),
    ],
    ids=["fields", "messages", "numbers", "an array"],
)
def test_candidates_may_be_fields_messages_or_numbers(candidates, options, winner):
    assert rv.elect(candidates, **options).winner == winner


def test_a_dict_of_a_ballot_files_shape_is_a_ballot():
    ballot = {
        "id": 7,
        "source": "x",
        "candidates": [{"text": "a b"}, "a c"],
        "voters": [{"text": "a c"}],
        "more": 1,
    }
    result = rv.elect(ballot, similarity="exact")
    assert (result.winner, result.member, len(result.voters)) == ("a c", None, 1)
    assert [result.winner for result in rv.elect_many([ballot] * 2, similarity="exact")] == ["a c"] * 2
    panel = {"candidates": [{"text": "5", "member": name} for name in "ab"]}
    with pytest.warns(rv.RangevoteWarning, match="always give the same answers"):
        assert rv.agreement_shares([panel], similarity="exact").shares == {"a": 0.5, "b": 0.5}
    with pytest.raises(rv.UsageError, match="a Ballot brings its own voters"):
        rv.elect(ballot, voters=["a b"])


def test_a_message_with_tool_calls_votes_by_them():
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert rv.elect([message, message]).answer == 'add({"a":1})'


class Table:
    """What looks like a table of pandas."""

    columns = ("text",)


Table.__module__ = "pandas.core.frame"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rv.elect(Table()), r'candidates is a Table; .*df\["text"\]'),
        (lambda: rv.elect(["a"], "overlap_2"), "Did you mean similarity='overlap_2'"),
        (lambda: rv.Electorate(["a"], "overlap_2"), "Did you mean similarity='overlap_2'"),
        (lambda: rv.elect(["a"], temperatur=2), "no option 'temperatur'. Did you mean 'temperature'"),
        (lambda: rv.elect(["a"], logprob=[-1.0]), "no option 'logprob'. Did you mean 'logprobs'"),
        (lambda: rv.Electorate(["a"], simlarity="exact"), "Did you mean 'similarity'"),
        (lambda: rv.Elect(simlarity="exact"), "Did you mean 'similarity'"),
        (lambda: list(rv.generate("m", ["a"], simlarity="exact")), "Did you mean 'similarity'"),
    ],
)
def test_a_mistake_names_what_was_probably_meant(call, message):
    with pytest.raises(rv.UsageError, match=message):
        call()


def test_a_tensor_is_refused_with_the_function_that_reads_it():
    torch = pytest.importorskip("torch")
    with pytest.raises(rv.UsageError, match=r"engines\.transformers\.hypotheses_of"):
        rv.elect(torch.tensor([[1, 2], [1, 3]]))


@pytest.mark.parametrize("options", [{}, {"similarity": "exact"}])
def test_probabilities_that_sum_to_more_than_1_are_warned_of_at_the_callers_line(options):
    ballot = Ballot([Hypothesis(text=text, logprob=-0.1) for text in ("a b", "a c")])
    for call in (
        lambda: rv.elect(["a b", "a c"], [-0.1, -0.2], **options),
        lambda: rv.elect(ballot, **options),
        lambda: list(rv.elect_many([ballot], **options)),
    ):
        with pytest.warns(
            rv.RangevoteWarning, match=r"sum to 1\.\d+, more than 1.*weights='count'"
        ) as caught:
            call()
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rv.elect(["a b", "a c"], [-0.1, -0.2], weights="count")
        rv.elect(["a b", "a b"], [-0.1, -0.1000001], weights="probability")


def test_the_repr_begins_with_winner_score_and_margin():
    result = rv.elect(["a b", "a c"], [-1.0, -2.0], similarity="overlap_1")
    assert repr(result).startswith("Result(winner='a b', score=0.865529, margin=0.231059, index=0, ")
