"""How lists of hypotheses are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rangevote.hypothesis import Hypothesis

#: A right implementation fails a test of chance with less than this probability.
ALPHA = 1e-6


def ranking(found: Sequence[Hypothesis]) -> list[tuple[tuple[int, ...], bool]]:
    """Tokens, and whether the end came, in order."""
    return [(tuple(one.tokens), one.finished) for one in found]


def assert_same(found: Sequence[Hypothesis], twin: Sequence[Any], *, scores: bool = True) -> None:
    """The same hypotheses in the same order, with the same log P, ranked by the same numbers."""
    assert ranking(found) == [(tuple(one.tokens), one.finished) for one in twin]
    assert [one.logprob for one in found] == pytest.approx([one.logprob for one in twin], abs=1e-9)
    if scores:
        ours = [one.logprob if one.ranked_by is None else one.ranked_by for one in found]
        assert ours == pytest.approx([one.score for one in twin], abs=1e-9)


def chi_square(counts: Sequence[float], probabilities: Sequence[float]) -> float:
    """The p-value of the counts; cells that expect fewer than 8 are put together.

    What happened although its probability is 0 makes the p-value 0.
    """
    total = sum(counts)
    large: list[tuple[float, float]] = []
    rest = [0.0, 0.0]
    for count, probability in zip(counts, probabilities, strict=True):
        if probability <= 0:
            if count:
                return 0.0
        elif probability * total >= 8:
            large.append((count, probability * total))
        else:
            rest = [rest[0] + count, rest[1] + probability * total]
    if rest[1] >= 8 or not large:
        large.append((rest[0], rest[1]))
    elif rest[1] > 0:
        count, expected = large.pop()
        large.append((count + rest[0], expected + rest[1]))
    assert len(large) > 1, "a test of one cell can not fail"
    statistic = sum((count - expected) ** 2 / expected for count, expected in large)
    return float(stats.chi2.sf(statistic, len(large) - 1))


def assert_mean(values: Iterable[float], truth: float) -> None:
    """Independent numbers whose mean is `truth`: a two-sided z-test."""
    drawn = list(values)
    found = stats.ttest_1samp(drawn, truth)
    assert found.pvalue > ALPHA, f"mean {sum(drawn) / len(drawn)}, expected {truth}, p = {found.pvalue}"


def warped(*names_and_values):
    """Transformers' warpers one after the other, on probabilities."""
    torch = pytest.importorskip("torch")
    process = pytest.importorskip("transformers.generation.logits_process")
    warpers = [getattr(process, f"{name}LogitsWarper")(value) for name, value in names_and_values]

    def shape(probabilities):
        with np.errstate(divide="ignore"):
            logits = torch.from_numpy(np.log(probabilities)[None])
        for warper in warpers:
            logits = warper(None, logits)
        return logits.softmax(dim=1)[0].numpy()

    return shape
