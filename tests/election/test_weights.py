"""How much each voter counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rangevote as rv
from rangevote.hypothesis import Hypothesis

THREE = ["a", "b", "c"]


def weights_of(*arguments, **options) -> list[float]:
    return rv.elect(*arguments, similarity="exact", **options).weights.tolist()


@given(st.lists(st.floats(-300, 0), min_size=1, max_size=8, unique=True), st.floats(0.1, 50))
def test_a_temperature_raises_probabilities_to_the_power_of_its_inverse(logprobs, temperature):
    powers = [math.exp(lp / temperature - max(logprobs) / temperature) for lp in logprobs]
    expected = [power / math.fsum(powers) for power in powers]
    texts = [str(i) for i in range(len(logprobs))]
    assert weights_of(texts, logprobs, temperature=temperature) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("offset", [-700, -746, -1000, -1e6, -1e300])
def test_log_probabilities_far_below_what_exp_can_say_still_vote(offset):
    logprobs = [offset, offset - 1, offset]
    first = 1.0 / (2.0 + math.exp(logprobs[1] - offset))
    assert weights_of(THREE, logprobs)[0] == pytest.approx(first, rel=1e-9)


def test_minus_infinity_weighs_nothing_and_may_still_be_elected():
    result = rv.elect(["a b", "a c", "a b c"], [-1.0, -2.0, -math.inf], similarity="overlap_1")
    assert result.weights[2] == 0.0
    assert result.winner == "a b c"


@pytest.mark.parametrize("temperature", [1, 3])
def test_when_every_probability_is_0_nobody_votes(temperature):
    with pytest.raises(rv.DataError, match=r"candidates: all voters have weight 0.*use weights='count'"):
        rv.elect(THREE, [-math.inf] * 3, temperature=temperature)
    assert weights_of(THREE, [-math.inf] * 3, weights="count") == pytest.approx([1 / 3] * 3)


def test_importance_weights_are_the_voters_own_normalised():
    voters = [Hypothesis(text=t, weight=w, logprob=-5.0) for t, w in zip(THREE, (2.0, 0.0, 6.0), strict=True)]
    assert weights_of(THREE, voters=voters, weights="importance") == [0.25, 0.0, 0.75]


# Duplicates: each distinct sequence votes once with its probability.


def test_where_tokens_are_known_they_decide_who_is_a_duplicate():
    rows = [(1, 2), (1, 2), (3,), (3,)]
    texts = ["ab", "ab", "ab", "c"]  # the last: other text, same tokens (special tokens dropped)
    hypotheses = [Hypothesis(text=t, tokens=r, logprob=-2.0) for t, r in zip(texts, rows, strict=True)]
    assert weights_of(hypotheses, weights="probability") == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize("other", [-0.5, -1000.0])
def test_of_equal_tokens_with_very_different_log_probabilities_the_first_votes(other):
    rows = [((1, 2), -900.0), ((1, 2), other), ((3,), -900.0)]
    hypotheses = [Hypothesis(tokens=tokens, logprob=logprob) for tokens, logprob in rows]
    assert weights_of(hypotheses, weights="probability") == [0.5, 0.0, 0.5]


REPEATING = (["a", "a", "b"], [-1.0, -1.0, -2.0])
SOME_UNKNOWN = (["a", "b", "c"], [-1.0, None, -2.0])


@pytest.mark.parametrize(
    ("voters", "message"),
    [
        (REPEATING, "some {} repeat others and count once, by their probability; if they are samples"),
        (SOME_UNKNOWN, "the log-probability of some {} is not known, so all of them count the same"),
    ],
    ids=["repeating", "some unknown"],
)
def test_a_choice_of_weights_that_may_be_wrong_is_pointed_out_where_nobody_made_it(voters, message):
    named = dict(zip(("voters", "voter_logprobs"), voters, strict=True))
    with pytest.warns(rv.RangevoteWarning, match=message.format("voters") + r".*weights='count'"):
        rv.elect(THREE, **named)
    with pytest.warns(rv.RangevoteWarning, match=message.format("candidates")):
        rv.elect(*voters)
    with pytest.warns(rv.RangevoteWarning, match=message.format("candidates")):
        rv.elect(rv.Ballot([Hypothesis(text, logprob=p) for text, p in zip(*voters, strict=True)]))
    # said, or known to be samples: no warning, which would be an error here
    rv.elect(THREE, **named, weights="count")
    rv.elect(*voters, weights="count")
    rv.elect([Hypothesis(text, logprob=p, sampled=True) for text, p in zip(*voters, strict=True)])
    rv.elect(*REPEATING, weights="probability")


def test_what_groups_of_a_search_found_twice_are_no_samples():
    rv.elect([Hypothesis("a", logprob=-1.0), Hypothesis("a", logprob=-1.0, ranked_by=-1.5)])


def test_what_has_no_log_probability_at_all_counts_without_a_warning():
    rv.elect(["a", "a", "b"])
    rv.elect(["a", "b"], [None, None])
    rv.elect(["a", "b"], voters=["a", "a"])
    rv.elect(["a", "a"], [-1.0, -1.0], voters=["a", "b"])


# The default: importance where voters have such weights; count for samples and unknown
# log-probabilities; else probability.

DEFAULTS = {
    "importance": [
        Hypothesis(text="a", logprob=-1.0, weight=2.0),
        Hypothesis(text="b", logprob=-1.0, weight=1.0),
    ],
    "count": [Hypothesis(text="a", logprob=-1.0, sampled=True), Hypothesis(text="b", logprob=-2.0)],
    "probability": [Hypothesis(text="a", logprob=-1.0), Hypothesis(text="b", logprob=-2.0)],
}


@pytest.mark.parametrize(("name", "voters"), DEFAULTS.items(), ids=DEFAULTS)
def test_the_default_weighting_follows_from_the_voters(name, voters):
    assert f"|w:{name}|" in rv.elect(voters).signature
    assert f"|w:{name}|" in rv.elect(["a", "b"], [-1.0, -2.0], voters=voters).signature
    assert f"|w:{name}|" in rv.Electorate(["a"]).add(voters).result().signature
    (result,) = rv.elect_many([rv.Ballot(candidates=voters)])
    assert f"|w:{name}|" in result.signature


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": "probability"}, rv.DataError, r"candidates\[0\]\.logprob: .*use weights='count'"),
        ({"logprobs": [-1, None, -2], "weights": "probability"}, rv.DataError, r"candidates\[1\]\.logprob: "),
        ({"weights": "importance"}, rv.DataError, r"candidates\[0\]\.weight: is missing.*field `weight`"),
        (
            {"voters": [Hypothesis("a", weight=1.0), Hypothesis("b")]},
            rv.DataError,
            r"voters\[1\]\.weight: .* is not an importance weight",
        ),
        ({"weights": [1, 2]}, rv.UsageError, r"3 voters but 2 weights; give exactly one for each"),
        ({"weights": [1, 2, 3, 4]}, rv.UsageError, r"3 voters but 4 weights"),
        ({"weights": [1, -2, 3]}, rv.DataError, r"weights\[1\]: -2\.0 is not a weight"),
        ({"weights": [1, 2, math.nan]}, rv.DataError, r"weights\[2\]: nan is not a weight"),
        ({"weights": [math.inf, 2, 1]}, rv.DataError, r"weights\[0\]: inf is not a weight"),
        ({"weights": [0, 0, 0]}, rv.DataError, r"all voters have weight 0"),
        ({"weights": ["x", 0, 0]}, rv.RangevoteError, r"weights\[0\].*'x'"),
        ({"weights": 5}, rv.UsageError, r"weights"),
        ({"weights": "probabilities"}, rv.UnknownName, "Did you mean 'probability'"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        rv.elect(THREE, **options)


# Confidence: how sure the model was of its own tokens.


def confident(*lists, **options) -> list[float]:
    voters = [Hypothesis("a", token_logprobs=logprobs) for logprobs in lists]
    return weights_of(["a"], voters=voters, **options)


def test_confidence_is_the_mean_probability_of_a_token():
    lists = [-1.0, -3.0], [-2.0], [-0.5, -0.5, -0.5]
    expected = [math.exp(-2.0), math.exp(-2.0), math.exp(-0.5)]
    shares = [one / sum(expected) for one in expected]
    assert confident(*lists, weights="confidence") == pytest.approx(shares)
    sharper = [one**2 / sum(other**2 for other in expected) for one in expected]
    assert confident(*lists, weights="confidence", temperature=0.5) == pytest.approx(sharper)


def test_confidence_may_be_that_of_the_least_sure_or_of_the_last_tokens():
    doubt, unsure_end = [-0.1] * 20 + [-3.0] * 16 + [-0.1] * 20, [-0.1] * 40 + [-1.0] * 16
    lowest = confident(doubt, unsure_end, weights="lowest_confidence")
    assert lowest[0] / lowest[1] == pytest.approx(math.exp(-3.0 + 1.0))
    last = confident(doubt, unsure_end, weights="last_confidence")
    assert last[0] / last[1] == pytest.approx(math.exp(-0.1 + 1.0))


def test_mean_confidence_is_known_of_log_probabilities_and_their_lengths_too():
    voters = [Hypothesis("a b c", tokens=[1, 2, 3], logprob=-4.0), Hypothesis("a", tokens=[1], logprob=-4.0)]
    weights = weights_of(["a"], voters=voters, weights="confidence")
    assert weights[0] / weights[1] == pytest.approx(math.exp(-1.0 + 2.0))  # the end of the sequence counts


def test_confidence_is_off_unless_asked_for_and_named_in_the_signature():
    voters = [Hypothesis(t, sampled=True, token_logprobs=[-1.0]) for t in THREE]
    assert "|w:count|" in rv.elect(voters).signature
    assert "|w:confidence|T:1|" in rv.elect(voters, weights="confidence", preset="blend").signature
    assert (
        "|w:last_confidence|T:0.5|" in rv.elect(voters, weights="last_confidence", temperature=0.5).signature
    )


@pytest.mark.parametrize("scheme", ["confidence", "lowest_confidence", "last_confidence"])
def test_confidence_that_is_not_known_is_refused(scheme):
    with pytest.raises(rv.DataError, match=rf"logprobs?: is missing; weights='{scheme}' needs"):
        rv.elect(["a", "b"], weights=scheme)
