"""Scores that are no log-probabilities, weighed by softmax."""

from __future__ import annotations

import io
import math

from rangevote.formats import ReadOptions, read


def test_a_scale_cannot_weigh_infinite_scores() -> None:
    data = b"0 ||| a ||| x= 1 ||| inf\n"
    entry = next(read(io.BytesIO(data), ReadOptions(score_scale=1.0)))
    assert "scores cannot be weighed: the highest is inf" in str(entry.error)


def test_steep_weights_of_equal_scores_are_equal_shares() -> None:
    data = b"0 ||| a ||| x= 1 ||| 0.5\n0 ||| b ||| x= 1 ||| 0.5\n"
    entry = next(read(io.BytesIO(data), ReadOptions(score_scale=1e300)))
    assert [h.logprob for h in entry.get().candidates] == [math.log(0.5)] * 2
