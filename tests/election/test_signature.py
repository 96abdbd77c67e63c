"""Every result names all that can change it."""

from __future__ import annotations

import pytest

import rangevote as rv
from rangevote.hypothesis import Hypothesis

TEXTS, LOGPROBS = ["a b", "a c", "d"], [-1.0, -2.0, -3.0]
END = "cand:3|vot:3|tie:score,logprob,first"

BLEND, PAPER = "overlap_1-4@0.25|on:words|w:probability", "overlap_2|on:space|w:probability|T:1"
#: options -> what stands between the version and the numbers of candidates and voters
SIGNATURES = {
    "nothing": ({}, f"{BLEND}|T:2"),
    "similarity": ({"similarity": "bleu_4"}, "bleu_4|on:words|w:probability|T:1"),
    "count": ({"preset": "paper", "weights": "count"}, "overlap_2|on:space|w:count"),
    "given": ({"preset": "paper", "weights": [1, 2, 3]}, "overlap_2|on:space|w:given"),
    "temperature": ({"preset": "paper", "temperature": 0.5}, "overlap_2|on:space|w:probability|T:0.5"),
    "likelihood": ({"preset": "paper", "likelihood": 0.8}, f"{PAPER}|L:0.8"),
    "tokenize": ({"preset": "paper", "tokenize": "13a"}, "overlap_2|on:13a|w:probability|T:1"),
    "function": ({"preset": "paper", "tokenize": str.split}, "overlap_2|on:split|w:probability|T:1"),
    "preset": ({"preset": "blend"}, f"{BLEND}|T:2"),
    "preset by name": ({"similarity": "blend"}, f"{BLEND}|T:2"),
    "preset with temperature": ({"preset": "blend", "temperature": 3}, f"{BLEND}|T:3"),
    "preset with the usual temperature": ({"preset": "blend", "temperature": 1.0}, f"{BLEND}|T:1"),
    "preset by name with temperature": ({"similarity": "blend", "temperature": 1}, f"{BLEND}|T:1"),
    "preset with similarity": ({"preset": "blend", "similarity": "chrf"}, "chrf|on:chars|w:probability|T:2"),
    "not given": ({"similarity": None, "preset": None, "temperature": None}, f"{BLEND}|T:2"),
    "a preset's default beside a given option": ({"temperature": 1.0}, f"{BLEND}|T:1"),
    "consensus": ({"preset": "consensus", "voters": TEXTS}, "overlap_1-4|on:words|w:count|L:0.4"),
    "consensus with another likelihood": (
        {"preset": "consensus", "likelihood": 0.0, "voters": TEXTS},
        "overlap_1-4|on:words|w:count",
    ),
    "chrf": ({"similarity": "chrf"}, "chrf|on:chars|w:probability|T:1"),
    "exact": ({"similarity": "exact:plain"}, "exact:plain|w:probability|T:1"),
    "rule": ({"preset": "paper", "rule": "reweighted", "winners": 2}, f"{PAPER}|rule:reweighted|win:2"),
    "normalize": ({"preset": "paper", "normalize": "NFC"}, f"{PAPER}|norm:NFC"),
    "merge": ({"preset": "paper", "merge": True}, f"{PAPER}|merge:text"),
    "voters": ({"preset": "paper", "voters": TEXTS}, "overlap_2|on:space|w:count"),
}


@pytest.mark.parametrize(("options", "signature"), SIGNATURES.values(), ids=SIGNATURES)
def test_the_signature_names_every_option_that_was_chosen(options, signature):
    assert rv.elect(TEXTS, LOGPROBS, **options).signature == f"rv:0.3|sim:{signature}|{END}"


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
