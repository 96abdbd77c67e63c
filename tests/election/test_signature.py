"""Every result names all that can change it; every option is checked."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.hypothesis import Hypothesis

TEXTS, LOGPROBS = ["a b", "a c", "d"], [-1.0, -2.0, -3.0]
END = "cand:3|vot:3|tie:score,logprob,first"

SIGNATURES = {
    "nothing": ({}, f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:2|{END}"),
    "similarity": ({"similarity": "bleu_4"}, f"rv:0.1|sim:bleu_4|on:space|w:probability|T:1|{END}"),
    "count": ({"preset": "paper", "weights": "count"}, f"rv:0.1|sim:overlap_2|on:space|w:count|{END}"),
    "given": ({"preset": "paper", "weights": [1, 2, 3]}, f"rv:0.1|sim:overlap_2|on:space|w:given|{END}"),
    "temperature": (
        {"preset": "paper", "temperature": 0.5},
        f"rv:0.1|sim:overlap_2|on:space|w:probability|T:0.5|{END}",
    ),
    "likelihood": (
        {"preset": "paper", "likelihood": 0.8},
        f"rv:0.1|sim:overlap_2|on:space|w:probability|T:1|L:0.8|{END}",
    ),
    "tokenize": (
        {"preset": "paper", "tokenize": "13a"},
        f"rv:0.1|sim:overlap_2|on:13a|w:probability|T:1|{END}",
    ),
    "function": (
        {"preset": "paper", "tokenize": str.split},
        f"rv:0.1|sim:overlap_2|on:split|w:probability|T:1|{END}",
    ),
    "preset": ({"preset": "blend"}, f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:2|{END}"),
    "preset by name": (
        {"similarity": "blend"},
        f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:2|{END}",
    ),
    "preset with temperature": (
        {"preset": "blend", "temperature": 3},
        f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:3|{END}",
    ),
    "preset with the usual temperature": (
        {"preset": "blend", "temperature": 1.0},
        f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:1|{END}",
    ),
    "preset by name with the usual temperature": (
        {"similarity": "blend", "temperature": 1},
        f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:1|{END}",
    ),
    "preset with another similarity": (
        {"preset": "blend", "similarity": "chrf"},
        f"rv:0.1|sim:chrf|on:chars|w:probability|T:2|{END}",
    ),
    "not given": (
        {"similarity": None, "preset": None, "temperature": None},
        f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:2|{END}",
    ),
    "a default of the preset beside a given one": (
        {"temperature": 1.0},
        f"rv:0.1|sim:overlap_1-4@0.25|on:space|w:probability|T:1|{END}",
    ),
    "consensus": (
        {"preset": "consensus", "voters": ["a", "b"]},
        "rv:0.1|sim:overlap_1-4|on:space|w:count|L:0.4|cand:3|vot:2|tie:score,logprob,first",
    ),
    "consensus with another likelihood": (
        {"preset": "consensus", "likelihood": 0.0, "voters": ["a", "b"]},
        "rv:0.1|sim:overlap_1-4|on:space|w:count|cand:3|vot:2|tie:score,logprob,first",
    ),
    "chrf": ({"similarity": "chrf"}, f"rv:0.1|sim:chrf|on:chars|w:probability|T:1|{END}"),
    "exact": ({"similarity": "exact:plain"}, f"rv:0.1|sim:exact:plain|w:probability|T:1|{END}"),
    "rule": (
        {"preset": "paper", "rule": "reweighted", "winners": 2},
        f"rv:0.1|sim:overlap_2|on:space|w:probability|T:1|rule:reweighted|win:2|{END}",
    ),
    "normalize": (
        {"preset": "paper", "normalize": "NFC"},
        f"rv:0.1|sim:overlap_2|on:space|w:probability|T:1|norm:NFC|{END}",
    ),
    "merge": (
        {"preset": "paper", "merge": True},
        f"rv:0.1|sim:overlap_2|on:space|w:probability|T:1|merge:text|{END}",
    ),
    "voters": (
        {"preset": "paper", "voters": ["a", "b"]},
        "rv:0.1|sim:overlap_2|on:space|w:count|cand:3|vot:2|tie:score,logprob,first",
    ),
}


@pytest.mark.parametrize(("options", "signature"), SIGNATURES.values(), ids=SIGNATURES)
def test_the_signature_names_every_option_that_was_chosen(options, signature):
    assert rv.elect(TEXTS, LOGPROBS, **options).signature == signature


@pytest.mark.parametrize("rule", ["most_likely", "length_normalised"])
@pytest.mark.parametrize("preset", [None, "consensus"])
def test_where_nobody_votes_the_signature_says_so(rule, preset):
    signature = rv.elect(TEXTS, LOGPROBS, rule=rule, preset=preset).signature
    assert f"|w:none|rule:{rule}|cand:3|vot:0|" in signature


def test_a_consensus_without_voters_of_its_own_is_warned_about():
    with pytest.warns(
        rv.RangevoteWarning, match=r"'consensus' is for sampled voters, .* give voters, or use"
    ):
        rv.elect(TEXTS, LOGPROBS, preset="consensus")


def test_token_ids_are_named_as_what_was_compared():
    assert "|on:tokens|" in rv.elect([[1, 2], [1]]).signature
    assert "|on:tokens|" in rv.elect([Hypothesis(text="a", tokens=(1,))], tokenize="tokens").signature


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"temperature": 1.0000001}, {"temperature": 1.0}),
        ({"temperature": 1234567.0}, {"temperature": 1234568.0}),
        ({"similarity": "overlap_2@0.12345678"}, {"similarity": "overlap_2@0.12345679"}),
        ({"similarity": rv.Chrf(6, 2.0000001)}, {"similarity": rv.Chrf(6, 2.0000002)}),
    ],
    ids=["temperature", "large temperature", "exponent", "beta"],
)
def test_settings_that_can_change_a_result_have_different_signatures(left, right):
    assert rv.elect(TEXTS, LOGPROBS, **left).signature != rv.elect(TEXTS, LOGPROBS, **right).signature


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, r"temperature must be a number above 0, got 0\."),
        ({"temperature": -1.0}, r"temperature must be a number above 0, got -1\.0"),
        ({"temperature": float("nan")}, r"temperature must be a number above 0, got nan"),
        ({"temperature": float("inf")}, r"temperature must be a number above 0, got inf"),
        ({"temperature": "2"}, r"temperature must be a number above 0, got '2'"),
        ({"winners": 0}, r"winners must be a whole number from 1, got 0\."),
        ({"winners": -1}, r"winners must be a whole number from 1, got -1\."),
        ({"winners": 1.5}, r"winners must be a whole number from 1, got 1\.5"),
        ({"winners": True}, r"winners must be a whole number from 1, got True"),
        (
            {"rule": "rang"},
            r"unknown rule 'rang'\. Did you mean 'range'\? Choose from: cluster, length_normalised, most_l",
        ),
        ({"rule": None}, r"unknown rule None"),
        ({"preset": "blnd"}, r"unknown preset 'blnd'\. Did you mean 'blend'\? Choose from: blend, "),
        ({"normalize": "nfc"}, r"unknown normalize 'nfc'"),
        ({"tokenize": None}, r"unknown tokenisation None"),
        ({"similarity": 2}, r"similarity must be a name.*got int"),
    ],
    ids=str,
)
def test_options_that_cannot_be_meant_are_refused(options, message):
    with pytest.raises(rv.UsageError, match=message):
        rv.elect(TEXTS, LOGPROBS, **options)
    with pytest.raises(rv.UsageError, match=message):
        rv.elect_many([TEXTS], **options)  # at once, before the first ballot is asked for
    with pytest.raises(rv.UsageError, match=message):
        rv.Electorate(TEXTS, **options)
