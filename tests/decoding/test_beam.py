"""Beam search, with and without length normalisation, against enumeration and against a naive twin."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangevote.decoding import search
from rangevote.decoding.beam import Beam, LengthNormalised
from tests.decoding import twins
from tests.decoding.compare import assert_same, ranking
from tests.decoding.every import EVERY
from tests.decoding.models import Bent, InTorch, Roomy, SeveralEnds, Written
from tests.models.table import TableModel, enumerate_sequences

INPUTS = ["a", "b", (3, 1), 7, "long", None, "g"]


@pytest.mark.parametrize(("vocab", "length", "limit"), [(3, 4, 3), (4, 3, 64), (2, 8, 9), (7, 1, 1)])
def test_a_beam_as_wide_as_there_are_sequences_gives_the_true_ranking(vocab, length, limit):
    seed = vocab
    model = TableModel(vocab, length, seed, sharp=1.5)
    listed = {input: enumerate_sequences(model, input, limit) for input in INPUTS}
    k = max(len(sequences) for sequences in listed.values())
    for found, input in zip(search(model, INPUTS, Beam(k, max_new_tokens=limit)), INPUTS, strict=True):
        assert ranking(found) == [(one.tokens, one.finished) for one in listed[input]]
        assert sum(np.exp(one.logprob) for one in found) == pytest.approx(1)


def worth(form, alpha):
    """What hypotheses compete by: log P over the length, or over Wu et al.'s equation 14."""
    if form == "length":
        return lambda score, length: score / length**alpha
    return lambda score, length: score / ((5 + length) ** alpha / (5 + 1) ** alpha)


@given(data=st.data(), vocab=st.integers(2, 9), k=st.integers(1, 20), limit=st.integers(1, 6))
@settings(max_examples=150)
def test_any_beam_over_any_model_is_what_its_definition_says(data, vocab, k, limit):
    kind, sharp = data.draw(st.sampled_from([TableModel, Bent])), data.draw(st.floats(0.2, 4))
    model = kind(vocab, data.draw(st.integers(1, 4)), data.draw(st.integers(0, 10**6)), sharp=sharp)
    source = tuple(data.draw(st.lists(st.integers(0, vocab - 1), max_size=6)))
    share = data.draw(st.sampled_from([None, 0.1, 0.25, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.75, 0.9, 1.0]))
    minimum = data.draw(st.integers(0, 3))
    options = {"max_new_tokens": limit, "min_new_tokens": minimum, "copy_filter": share}
    method, asked = Beam(k, **options), {}
    if data.draw(st.booleans()):
        form, alpha = data.draw(st.sampled_from(["length", "wu"])), data.draw(st.floats(-1, 3))
        method, asked["worth"] = LengthNormalised(k, alpha=alpha, form=form, **options), worth(form, alpha)
    if share is not None:
        asked["allowed"] = twins.copies(source, share)
    (found,) = search(model, [source], method)
    assert_same(found, twins.beam(model, source, k, limit, minimum, **asked))


def test_a_finished_hypothesis_holds_its_place_only_while_it_is_among_the_best():
    # after one token: end .4, a .35, b .25; then "b" is followed by its end, "a" by one of two
    model = Written(3, {(): (0.4, 0.35, 0.25), (1,): (0.5, 0.5, 0.0), (1, 1): (1.0, 0.0, 0.0)})
    (two,) = search(model, [0], Beam(2))
    assert ranking(two) == [((), True), ((1,), True)]
    (three,) = search(model, [0], Beam(3))
    assert ranking(three) == [((), True), ((2,), True), ((1,), True)]
    assert [one.logprob for one in three] == pytest.approx(np.log([0.4, 0.25, 0.175]))

    # the end (.3) is among the 2 best at first; then two live ones (.37, .33) push it out, and end worse
    pushed = {(): (0.3, 0.7, 0.0), (1,): (0.0, 0.53, 0.47), (1, 1): (0.5, 0.5, 0.0), (1, 2): (0.5, 0.5, 0.0)}
    (found,) = search(Written(3, pushed), [0], Beam(2, max_new_tokens=3))
    assert [one.tokens[:2] for one in found] == [(1, 1), (1, 1)]
    assert [one.logprob for one in found] == pytest.approx(np.log([0.1855, 0.1855]))


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_a_batch_gives_what_one_input_at_a_time_gives(method):
    model = TableModel(6, 5, seed=2)
    method = replace(method, max_new_tokens=5)
    whole = search(model, INPUTS, method, states=True)
    for max_rows in (1, 8, 17):
        assert search(model, INPUTS, method, states=True, max_rows=max_rows) == whole


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_min_new_tokens_forbids_the_end_before(method):
    model = TableModel(4, None, seed=3)
    plain = search(model, INPUTS, replace(method, max_new_tokens=5))
    assert min(len(one.tokens) for found in plain for one in found) < 3
    bound = search(model, INPUTS, replace(method, max_new_tokens=5, min_new_tokens=3))
    lengths = [len(one.tokens) for found in bound for one in found]
    assert min(lengths) == 3
    assert any(len(one.tokens) == 3 and one.finished for found in bound for one in found)


@pytest.mark.parametrize("method", EVERY, ids=str)
@pytest.mark.parametrize("limit", [3, 64])
def test_log_probability_state_and_text_are_the_models_own_for_every_search(method, limit):
    model = TableModel(5, 4, seed=11)
    found = search(model, INPUTS, replace(method, max_new_tokens=limit), states=True)
    for listed, input in zip(found, INPUTS, strict=True):
        assert listed
        for one in listed:
            assert one.finished == (len(one.tokens) < limit)  # or it is cut
            steps = [*one.tokens, *([0] if one.finished else [])]
            said = [model.predict(input, tuple(steps[:i])) for i in range(len(steps))]
            total = sum(log_probs[token] for (log_probs, _), token in zip(said, steps, strict=True))
            assert one.logprob == pytest.approx(total, abs=1e-12)
            assert one.state == pytest.approx(np.mean([state for _, state in said], axis=0), abs=1e-9)
            assert one.text == " ".join(map(str, one.tokens))
    assert {one.finished for listed in found for one in listed} == {True, limit > 5}


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_every_input_has_the_room_its_model_gives_it(method):
    model = Roomy(4, None, seed=0)
    inputs = [("a", 1), ("b", 2), ("c", 30), ("d", 5), ("e", 1)]
    found = search(model, inputs, replace(method, max_new_tokens=4, min_new_tokens=3))
    for listed, (_, room) in zip(found, inputs, strict=True):
        for one in listed:
            assert (len(one.tokens), one.finished) in (
                [(3, True), (4, False)] if room > 3 else [(room, False)]
            )


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("ends", [(3, 0), (0, 1, 2)])
def test_every_end_token_ends(k, ends):
    model = SeveralEnds(5, None, seed=4, ends=ends)
    for found, input in zip(search(model, INPUTS, Beam(k, max_new_tokens=3)), INPUTS, strict=True):
        assert_same(found, twins.beam(model, input, k, 3))
        assert not any(set(one.tokens) & set(ends) for one in found)


@pytest.mark.parametrize("method", EVERY, ids=str)
def test_a_model_in_torch_gives_what_the_same_in_numpy_gives(method):
    pytest.importorskip("torch")
    limited = replace(method, max_new_tokens=3)
    plain = search(TableModel(7, 4, seed=12), INPUTS, limited, states=True)
    torch = search(InTorch(7, 4, seed=12), INPUTS, limited, states=True)
    for ours, theirs in zip(torch, plain, strict=True):
        assert ranking(ours) == ranking(theirs)
        assert [one.logprob for one in ours] == pytest.approx([one.logprob for one in theirs], abs=1e-9)
        for one, other in zip(ours, theirs, strict=True):
            assert one.state == pytest.approx(other.state, abs=1e-6)
            for name in ("ranked_by", "weight"):
                value, wanted = getattr(one, name), getattr(other, name)
                assert value is wanted is None or value == pytest.approx(wanted, abs=1e-5)


def test_sums_are_kept_in_float64_though_the_model_computes_in_float32():
    pytest.importorskip("torch")

    class Single(InTorch):
        dtype = "float32"

    (found,) = search(Single(3, 60, seed=2, sharp=0.1), ["a"], Beam(3, max_new_tokens=61, min_new_tokens=60))
    for one in found:
        steps = [*one.tokens, 0]
        model = TableModel(3, 60, seed=2, sharp=0.1)
        gains = [model.predict("a", tuple(steps[:i]))[0][token] for i, token in enumerate(steps)]
        assert one.logprob == pytest.approx(float(np.sum(np.float32(gains), dtype=np.float64)), abs=1e-12)


def test_the_longer_hypothesis_wins_when_normalised():
    # "end" has 0.4 at once, "a end" 0.6 * 0.6 = 0.36: -0.916 / 1 against -1.022 / 2
    model = Written(2, {(): (0.4, 0.6), (1,): (0.6, 0.4)})
    (plain,) = search(model, [0], Beam(2, max_new_tokens=2))
    (found,) = search(model, [0], LengthNormalised(2, max_new_tokens=2))
    assert [one.tokens for one in plain] == [(), (1,)]
    assert [one.tokens for one in found] == [(1,), (1, 1)]
    assert [one.ranked_by for one in found] == pytest.approx([log(0.36) / 2, log(0.24) / 2])
    assert [one.logprob for one in found] == pytest.approx([log(0.36), log(0.24)])
    (found,) = search(model, [0], LengthNormalised(2, form="wu", alpha=2.0, max_new_tokens=2))
    # Wu: -0.916 / 1 against -1.022 / (7/6)^2 = -0.751 and -1.427 / (7/6)^2 = -1.049
    assert [one.tokens for one in found] == [(1,), ()]
    assert found[0].ranked_by == pytest.approx(log(0.36) * 36 / 49)
