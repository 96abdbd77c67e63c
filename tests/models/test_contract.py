"""The table model of the other tests keeps the contract, and its sequences can be enumerated."""

from __future__ import annotations

import math

import pytest

from tests.models.contract import ModelContract, chain
from tests.models.table import TableModel, enumerate_sequences

INPUTS = [(1, 2), "b", 3, (4, 1, 1)]


class TestTable(ModelContract):
    @pytest.fixture
    def model(self):
        return TableModel(vocab=6, length=None, seed=1)

    @pytest.fixture
    def inputs(self):
        return INPUTS


@pytest.mark.parametrize(
    ("length", "max_len", "listed"), [(2, 3, 13), (None, 2, 1 + 3 + 9), (None, 1, 1 + 3)]
)
def test_an_enumeration_lists_every_sequence_and_all_of_the_probability(length, max_len, listed):
    # three tokens besides the end: 1 + 3 + 9 sequences of up to two of them
    model = TableModel(4, length, seed=3)
    found = enumerate_sequences(model, "x", max_len)
    assert len(found) == len({(one.tokens, one.finished) for one in found}) == listed
    assert math.fsum(math.exp(one.logprob) for one in found) == pytest.approx(1, abs=1e-12)
    for one in found:
        tokens = [*one.tokens, model.end] if one.finished else list(one.tokens)
        log_probs = chain(model, "x", tokens).log_probs
        assert one.logprob == pytest.approx(sum(log_probs[i, t] for i, t in enumerate(tokens)), abs=1e-12)
        assert one.finished or len(one.tokens) == max_len
