"""Beams that are made to differ, against examples worked by hand and naive twins."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rangevote.decoding import search
from rangevote.decoding.beam import Beam
from rangevote.decoding.diverse import DiverseBeam, DiverseDecoding
from tests.decoding import twins
from tests.decoding.compare import assert_same, ranking
from tests.decoding.models import Bent, Written
from tests.models.table import TableModel

INPUTS = ["a", "b", (3, 1), 7]
A, B = 1, 2

#: P(aa) = .300, P(ab) = .288, P(ba) = .270; log -1.204, -1.245, -1.309
CLOSE = Written(3, {(): (0.1, 0.6, 0.3), (A,): (0.02, 0.5, 0.48), (B,): (0.05, 0.9, 0.05)})


def two_tokens(method):
    (found,) = search(CLOSE, [0], method)
    return {"".join("?ab"[token] for token in one.tokens): one for one in found}


def test_without_a_penalty_both_hypotheses_have_one_parent():
    assert list(two_tokens(Beam(2, max_new_tokens=2))) == ["aa", "ab"]


def test_the_sibling_penalty_brings_the_other_parents_child():
    # gamma = 0.1: ab, second among its siblings, falls to -1.345, below ba at -1.309
    found = two_tokens(DiverseDecoding(2, gamma=0.1, max_new_tokens=2))
    assert list(found) == ["aa", "ba"]
    assert found["ba"].logprob == pytest.approx(log(0.27))
    assert found["ba"].ranked_by is None  # the penalty is forgotten


@given(
    st.integers(2, 8),
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(1, 6),
    st.floats(0, 3),
    st.sampled_from([TableModel, Bent]),
)
def test_any_sibling_penalty_is_what_its_definition_says(vocab, seed, k, limit, gamma, kind):
    model = kind(vocab, 4, seed)
    (found,) = search(model, ["x"], DiverseDecoding(k, gamma=gamma, max_new_tokens=limit))
    assert_same(found, twins.siblings(model, "x", k, limit, gamma))


def test_what_an_earlier_group_chose_is_dearer():
    # group 1 takes a (-0.511). In group 2, a costs 1 more (-1.511): b (-1.204) is better.
    # Then group 1 takes aa; in group 2, ba falls to log .27 - 1 = -2.309, above bb at log .015 = -4.2
    found = two_tokens(DiverseBeam(2, groups=2, penalty=1.0, max_new_tokens=2))
    assert list(found) == ["aa", "ba"]
    assert found["aa"].ranked_by is None
    assert found["ba"].logprob == pytest.approx(log(0.27))
    assert found["ba"].ranked_by == pytest.approx(log(0.27) - 1.0)


def test_an_end_that_an_earlier_group_chose_is_dearer_too():
    model = Written(3, {(): (0.5, 0.4, 0.1)})
    (found,) = search(model, [0], DiverseBeam(2, groups=2, penalty=0.5))
    assert ranking(found) == [((), True), ((A,), True)]
    (found,) = search(model, [0], DiverseBeam(2, groups=2, penalty=0.2))  # -0.893 is still above -0.916
    assert ranking(found) == [((), True), ((), True)]


@given(
    st.integers(2, 8),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 5),
    st.floats(0, 3),
)
def test_any_groups_are_what_their_definition_says(vocab, seed, size, parts, limit, penalty):
    model = TableModel(vocab, 4, seed)
    k = size * parts
    method = DiverseBeam(k, groups=parts, penalty=penalty, max_new_tokens=limit)
    inputs = ["x", "y", "z"]
    for found, input in zip(search(model, inputs, method), inputs, strict=True):
        twin = twins.groups(model, input, k, limit, parts, penalty)
        pairs = sorted((one.tokens, one.finished) for one in twin)
        assert sorted(ranking(found)) == pairs  # a sequence can come from two groups: an exact tie
        assert_logprobs(found, twin)


def assert_logprobs(found, twin):
    assert [one.logprob for one in found] == pytest.approx([one.logprob for one in twin], abs=1e-9)
    ours = sorted(one.logprob if one.ranked_by is None else one.ranked_by for one in found)
    assert ours == pytest.approx(sorted(one.score for one in twin), abs=1e-9)
