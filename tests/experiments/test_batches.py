"""Batches: everything once, nothing too large, little padding, and the same for the same seed."""

from __future__ import annotations

import numpy as np
from experiments.training.batches import batches
from hypothesis import given
from hypothesis import strategies as st

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=60).map(
    lambda found: np.array(found, dtype=np.int64).reshape(-1, 2)
)


@given(LENGTHS, st.integers(1, 100), st.integers(0, 5))
def test_every_example_is_in_one_batch_and_no_batch_is_too_large(lengths, tokens, seed):
    found = batches(lengths, tokens, np.random.default_rng(seed))
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) * lengths[batch].max() <= tokens or len(batch) == 1


@given(LENGTHS, st.integers(1, 100))
def test_the_number_of_batches_does_not_depend_on_chance(lengths, tokens):
    counts = {len(batches(lengths, tokens, np.random.default_rng(seed))) for seed in range(4)}
    assert counts == {len(batches(lengths, tokens))}


def test_chance_changes_the_order_and_a_seed_repeats_it():
    lengths = np.random.default_rng(0).integers(1, 9, size=(200, 1))
    one, same, other = (
        [batch.tolist() for batch in batches(lengths, 64, np.random.default_rng(seed))] for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other
    assert {frozenset(batch) for batch in one} != {
        frozenset(batch) for batch in other
    }  # and who goes with whom


def test_examples_of_like_lengths_go_together():
    rng = np.random.default_rng(0)
    source = rng.integers(5, 40, size=4000)
    lengths = np.stack([source, source + rng.integers(-3, 4, size=4000)], axis=1)
    found = batches(lengths, 1000, np.random.default_rng(0))
    padded = sum(len(batch) * lengths[batch].max(axis=0) for batch in found)
    assert (padded / lengths.sum(axis=0) < 1.1).all()


def test_without_chance_they_go_from_short_to_long():
    lengths = np.array([[3], [1], [2], [1]])
    assert [batch.tolist() for batch in batches(lengths, 2)] == [[1, 3], [2], [0]]
