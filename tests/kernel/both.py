"""The two kernels side by side; tests of the compiled one are skipped where it was not built."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rangevote.kernel import plain

try:
    compiled: ModuleType | None = importlib.import_module("rangevote._kernels")
except ImportError:
    compiled = None

needs_compiled = pytest.mark.skipif(
    compiled is None, reason="rangevote._kernels was not built here (no C++ compiler at install time)"
)
#: The kernels there are, for tests of what each must do by itself.
KERNELS: list[Any] = [plain] if compiled is None else [plain, compiled]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__.rpartition(".")[2])


def same_bits(
    candidates: Any,
    voters: Any,
    unit: str,
    orders: list[int],
    bag: bool,
    short: bool,
    weights: np.ndarray[Any, Any],
    batches: int = 1,
) -> None:
    """Every method of both kernels on the same election: own and added voters, equal to the last bit."""
    assert compiled is not None
    ours = [k.Index(candidates, unit, orders, bag, short) for k in (plain, compiled)]
    for index in ours:
        for part in np.array_split(np.arange(len(voters)), batches):
            index.add([voters[i] for i in part])
    assert ours[0].voters == ours[1].voters == len(voters)
    own = np.full(len(candidates), 1 / max(1, len(candidates)))
    whole = bag and not short and orders == list(range(1, len(orders) + 1))  # what BLEU and chrF are made of
    for formula, parameter in FAMILY + OF_BAGS if whole else FAMILY:
        for votes, itself in ((weights, False), (own, True)):
            tallies = [index.tally(votes, parameter, itself, formula).tobytes() for index in ours]
            assert tallies[0] == tallies[1], (formula, parameter, itself)
            left, right = (index.grades(parameter, itself, formula) for index in ours)
            assert left.shape == right.shape, (formula, parameter, itself)
            assert left.tobytes() == right.tobytes(), (formula, parameter, itself)


FAMILY = [("family", 0.0), ("family", 0.25), ("family", 1.0)]
OF_BAGS = [("bleu", 0.0), ("smoothed_bleu", 0.0), ("chrf", 0.0), ("chrf", 2.0)]
