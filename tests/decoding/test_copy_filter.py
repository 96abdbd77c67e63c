"""The copy filter removes exactly what its definition says, alive or finished, in every search."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rangevote.decoding import search
from rangevote.decoding.beam import Beam
from rangevote.errors import DataError
from tests.decoding import twins
from tests.decoding.compare import ranking
from tests.decoding.every import BEAMS, EVERY, SAMPLINGS
from tests.decoding.models import InTorch, Written
from tests.models.table import TableModel, enumerate_sequences

SOURCES = [
    (1, 2, 3),
    (1, 2, 3, 4),
    (2, 2, 2, 4, 4),  # repeated: two unigrams
    (3,),
    (),
    (0, 1, 2),  # the end is no unigram
    (1, 2, 9, 11, 12),  # some that the model never says
]


@pytest.mark.parametrize("share", [0.25, 0.5, 2 / 3, 1.0])
@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize("limit", [2, 64])
def test_exactly_the_copies_are_missing_from_the_beam_of_all(source, share, limit):
    model = TableModel(13 if 9 in source else 5, 2 if 9 in source else 3, seed=1)
    listed = enumerate_sequences(model, source, limit)
    (found,) = search(model, [source], Beam(len(listed), copy_filter=share, max_new_tokens=limit))
    unigrams = set(source) - {0}
    left = [
        one
        for one in listed
        if not unigrams or len(unigrams & set(one.tokens)) < share * len(unigrams) - 1e-9
    ]
    assert ranking(found) == [(one.tokens, one.finished) for one in left]
    assert [one.logprob for one in found] == pytest.approx([one.logprob for one in left], abs=1e-12)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("source", SOURCES[:6], ids=str)
def test_exactly_the_finished_copies_are_missing_where_those_alone_are_pruned(source, share):
    model = TableModel(5, 3, seed=1)
    listed = enumerate_sequences(model, source, 64)
    method = Beam(len(listed), copy_filter=share, copy_prunes="finished", max_new_tokens=64)
    (found,) = search(model, [source], method)
    allowed = twins.copies(source, share)
    left = [one for one in listed if not one.finished or allowed(tuple(one.tokens))]
    assert ranking(found) == [(one.tokens, one.finished) for one in left]


def test_a_share_that_floating_point_makes_a_little_too_large():
    # 0.28 * 25 = 7.000000000000001 and 0.56 * 25 = 14.000000000000002, but 7 and 14 of 25 are the share
    source = tuple(range(1, 26))
    for share, enough in ((0.28, 7), (0.56, 14)):
        assert share * 25 > enough
        chain = {source[:i]: tuple(float(token == i + 1) for token in range(27)) for i in range(enough)}
        model = Written(27, chain)  # says so many tokens of the source, then ends
        (plain,) = search(model, [source], Beam(1))
        assert plain[0].tokens == source[:enough]
        assert search(model, [source], Beam(1, copy_filter=share)) == [[]]
        assert search(model, [source], Beam(1, copy_filter=share + 0.01)) == [plain]


def test_live_copies_are_pruned_so_that_run_ons_do_not_survive():
    # the copy never ends within the limit: pruning finished hypotheses alone would return it
    model = Written(4, {(): (0.0, 0.9, 0.0, 0.1), (1,): (0.0, 0.0, 1.0, 0.0), (1, 2): (0.0, 0.0, 1.0, 0.0)})
    (plain,) = search(model, [(1, 2)], Beam(2, max_new_tokens=3))
    assert ranking(plain) == [((1, 2, 2), False), ((3,), True)]
    (found,) = search(model, [(1, 2)], Beam(2, max_new_tokens=3, copy_filter=1.0))
    assert ranking(found) == [((3,), True)]


@pytest.mark.parametrize("method", EVERY, ids=str)
@pytest.mark.parametrize(("share", "kind"), [(0.5, TableModel), (1.0, InTorch)])
def test_no_search_returns_a_copy(method, share, kind):
    if kind is InTorch:
        pytest.importorskip("torch")
    model = kind(6, None, seed=3)
    inputs = [(1, 2, 3), (5,), (), (4, 4, 2, 2), (1, 2, 3, 4, 5)]
    plain = search(model, inputs, replace(method, max_new_tokens=6))
    found = search(model, inputs, replace(method, max_new_tokens=6, copy_filter=share))
    missing = 0
    for source, before, after in zip(inputs, plain, found, strict=True):
        allowed = twins.copies(source, share)
        assert len(after) == len(before)
        assert all(allowed(tuple(one.tokens)) for one in after)
        missing += sum(not allowed(tuple(one.tokens)) for one in before)
    assert missing or method.size == 1  # or the filter had nothing to do
    assert ranking(found[2]) == ranking(plain[2])  # an empty source filters nothing


@pytest.mark.parametrize("kind", [TableModel, InTorch])
@pytest.mark.parametrize("method", BEAMS, ids=str)
def test_an_input_for_which_everything_is_a_copy_has_no_hypotheses(method, kind):
    if kind is InTorch:
        pytest.importorskip("torch")
    # (1, 2) has every token but the end, and the end may not come first
    model, inputs = kind(3, 3, seed=1), [(1, 1), (1, 2), ()]
    found = search(model, inputs, replace(method, copy_filter=0.5, min_new_tokens=1))
    assert [len(listed) > 0 for listed in found] == [True, False, True]
    alone = search(model, inputs[:1], replace(method, copy_filter=0.5, min_new_tokens=1))
    assert ranking(found[0]) == ranking(alone[0])
    assert all(set(one.tokens) == {2} for one in found[0])


@pytest.mark.parametrize("method", SAMPLINGS, ids=str)
def test_where_everything_is_a_copy_no_sample_can_be_drawn(method):
    model, inputs = TableModel(3, 3, seed=1), [(1, 1), (1, 2), ()]
    with pytest.raises(
        DataError, match=r"inputs\[1\]: nothing can be drawn after 0 tokens.*all are forbidden"
    ):
        search(model, inputs, replace(method, copy_filter=0.5, min_new_tokens=1))
