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
    for method, *arguments in METHODS:
        if method.startswith(("bleu", "chrf")) and (
            orders != list(range(1, len(orders) + 1)) or not bag or short
        ):
            continue  # what BLEU and chrF are made of
        for votes, itself in ((weights, False), (own, True)):
            given = (votes, *arguments, itself) if method.endswith("tally") else (*arguments, itself)
            left, right = (getattr(index, method)(*given) for index in ours)
            assert left.shape == right.shape, (method, arguments, itself)
            assert left.tobytes() == right.tobytes(), (method, arguments, itself)


METHODS: list[tuple[Any, ...]] = [
    *[(method, a) for method in ("tally", "grades") for a in (0.0, 0.25, 1.0)],
    *[(method, smooth) for method in ("bleu_tally", "bleu_grades") for smooth in (False, True)],
    *[(method, beta) for method in ("chrf_tally", "chrf_grades") for beta in (0.0, 2.0)],
]
