"""A tiny Transformer learns to turn words around; copies in the training data; what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'rangevote[models]'")

from experiments.training.examples import Pairs
from experiments.training.translator import train_translator, with_copies

from rangevote.decoding.run import search
from rangevote.errors import DataError, UsageError
from tests.experiments.tasks import TRANSLATOR, reversals

DEV = reversals(60, seed=1)


def translated(model, method="greedy"):
    return [found[0].text for found in search(model, [source for source, _ in DEV], method)]


def test_a_transformer_learns_to_reverse(tmp_path):
    model = train_translator(reversals(1200), DEV, TRANSLATOR, tmp_path, quiet=True)
    for method in ("greedy", "beam:4"):
        right = [out == target for out, (_, target) in zip(translated(model, method), DEV, strict=True)]
        assert sum(right) >= 0.95 * len(DEV)


def test_a_share_of_the_pairs_become_copies_by_chance_and_the_rest_stays():
    pairs = [(f"source {i}", f"target {i}") for i in range(1000)]
    found = with_copies(pairs, 0.25, seed=1)
    copies = [i for i, (source, target) in enumerate(found) if source == target]
    assert len(copies) == 250
    assert max(copies) > 900
    assert all(found[i] == pairs[i] for i in set(range(1000)) - set(copies))
    assert [source for source, _ in found] == [source for source, _ in pairs]
    assert found == with_copies(pairs, 0.25, seed=1) != with_copies(pairs, 0.25, seed=2)
    assert with_copies(pairs, 0.0, seed=1) == pairs


def test_copies_are_learned_from_and_never_evaluated_on(tmp_path, monkeypatch):
    made = []

    def prepared(prepare, *_, **__):
        made.append(prepare())
        return made[0][0]

    monkeypatch.setattr("experiments.training.translator.train", prepared)
    train_translator(reversals(200), DEV, dataclasses.replace(TRANSLATOR, copy_share=0.5), tmp_path)
    ((_, learned, dev),) = made

    def copies(examples):
        pairs = (examples.take(np.array([i])) for i in range(len(examples.lengths)))
        return sum(source[0].tolist() == target[0, 1:].tolist() for source, target in pairs)

    turned = sum(source == target for source, target in reversals(200))  # the same from both ends
    assert 100 <= copies(learned) <= 100 + turned
    assert copies(dev) == sum(source == target for source, target in DEV)


class Letters:
    """A token for each letter."""

    def encode(self, text):
        return [ord(letter) for letter in text]


def test_pairs_that_are_too_long_on_a_side_are_left_out():
    pairs = Pairs.encode([("ab", "abc"), ("abcdef", "a"), ("a", "abcdef")], Letters())
    assert pairs.lengths.tolist() == [[3, 5], [7, 3], [2, 8]]  # with END, and with START and END
    assert pairs.within(7).lengths.tolist() == [[3, 5], [7, 3]]


def test_what_is_no_pairs_is_refused(tmp_path):
    with pytest.raises(DataError, match="pairs: there are no pairs"):
        train_translator([], DEV, TRANSLATOR, tmp_path)
    with pytest.raises(DataError, match="dev_pairs: there are no pairs"):
        train_translator(DEV, [], TRANSLATOR, tmp_path)
    with pytest.raises(UsageError, match=r"pairs\[1\] must be a source and a target, got \('a',\)"):
        train_translator([("a", "b"), ("a",)], DEV, TRANSLATOR, tmp_path)
    with pytest.raises(DataError, match="no pair is within max_length 1 tokens"):
        train_translator(DEV, DEV, dataclasses.replace(TRANSLATOR, max_length=1), tmp_path)
