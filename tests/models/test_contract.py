"""The table model of the other tests keeps the contract, and its sequences can be enumerated."""

from __future__ import annotations

import pytest

from tests.models.contract import ModelContract
from tests.models.table import TableModel

INPUTS = [(1, 2), "b", 3, (4, 1, 1)]


class TestTable(ModelContract):
    @pytest.fixture
    def model(self):
        return TableModel(vocab=6, length=None, seed=1)

    @pytest.fixture
    def inputs(self):
        return INPUTS
