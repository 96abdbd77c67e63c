"""The two-tailed exact sign test that the paper uses for human judgements."""

from __future__ import annotations

from rangevote.errors import UsageError


def sign_test(better: int, worse: int) -> float:
    """P(a split at least as uneven | better and worse are equally likely); ties are to be left out before.

    p = min(1, 2 * sum over i = 0..min(better, worse) of C(n, i) / 2^n),    n = better + worse, counted in
    whole numbers. Without any judgement that is not a tie it is 1.

    >>> round(sign_test(106, 73), 4)  # captions rated better and worse, section 4.1.4 of the paper
    0.0165
    """
    for name, count in (("better", better), ("worse", worse)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise UsageError(f"{name} must be a whole number from 0, got {count!r}.")
    total = better + worse
    tail, ways = 0, 1  # ways = C(total, i)
    for i in range(min(better, worse) + 1):
        tail += ways
        ways = ways * (total - i) // (i + 1)
    return min(1.0, 2 * tail / (1 << total))  # whole numbers of any size divide exactly
