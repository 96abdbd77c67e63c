"""Modified Kneser-Ney smoothing, interpolated: from a numbered text to probabilities of n-grams.

The estimator of lmplz (Heafield, Pouzyrevsky, Clark and Koehn 2013, Scalable Modified Kneser-Ney Language
Model Estimation), which is that of Chen and Goodman (1998). Counts are adjusted: an n-gram of fewer than N
words counts once for each different word before it, unless it starts with <s>, which nothing precedes:

    a(u) = c(u)                        if u has N words or starts with <s>
         = |{v : c(v u) > 0}|          otherwise

Each length has three discounts, from the numbers t_k of n-grams with a = k (Chen and Goodman, equation 26):

    D_k = k - (k + 1) t_1 t_{k+1} / ((t_1 + 2 t_2) t_k),   D(a) = D_min(a, 3),   D(0) = 0

and every context u passes on what it took away, down to the uniform distribution:

    P(w | u) = (a(u w) - D(a(u w))) / sum_x a(u x)  +  b(u) P(w | u'),   b(u) = sum_x D(a(u x)) / sum_x a(u x)
    P(w)     = the same for the empty u, with 1 / (words without <s>) in the place of P(w | u')

<unk> counts as often as it stands in the text, usually never, and so gets its share of the uniform part, as
in lmplz (--interpolate_unigrams, its default). Two differences:

* Where the discounts of a length cannot be estimated (t_1, t_2 or t_3 is 0, or a D_k is not above 0 and at
  most k), lmplz stops unless it was told --discount_fallback; here its fallbacks 0.5, 1 and 1.5 are taken.
* lmplz counts the last n-gram of each shorter length into t_k by c instead of a (kenlm issue 405). That is
  not repeated here; it shows in tiny texts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rangevote.models.backoff import Floats, Level
from rangevote.models.corpus import START
from rangevote.models.protocol import Integers

#: D_1, D_2 and D_3 where the text is too small or too odd to estimate them.
FALLBACK = (0.5, 1.0, 1.5)


@dataclass(frozen=True)
class Counts:
    """The n-grams of one length, all (ngrams,).

    `keys`: place of the context * words + last word, ascending. `shorter`: the place, one length down, of the
    n-gram without its first word. `counts`: the adjusted counts a.
    """

    keys: Integers
    shorter: Integers
    counts: Integers


def count_ngrams(tokens: Integers, size: int, order: int) -> list[Counts]:
    """Adjusted counts of the n-grams of 1 to `order` words in a text (tokens,) of `size` different words."""
    inside = tokens != START  # (tokens,)
    keys, shorter = np.arange(size), np.zeros(size, np.int64)
    counts = np.bincount(tokens[inside], minlength=size)  # (ngrams,), c
    starts = keys == START  # (ngrams,): does it start with <s>?
    places = tokens.copy()  # (tokens,): the place of the n-gram that ends here; -1: too near to <s>
    levels: list[Counts] = []
    for _ in range(1, order):
        ends = np.flatnonzero(inside[1:] & (places[:-1] >= 0)) + 1  # where an n-gram one longer ends
        longer, at, repeats = np.unique(
            places[ends - 1] * size + tokens[ends], return_inverse=True, return_counts=True
        )
        cut = np.empty(longer.size, np.int64)
        cut[at] = places[ends]
        levels.append(Counts(keys, shorter, np.where(starts, counts, np.bincount(cut, minlength=keys.size))))
        places[:] = -1
        places[ends] = at
        keys, shorter, counts, starts = longer, cut, repeats, starts[longer // size]
    return [*levels, Counts(keys, shorter, counts)]


def discounts(counts: Integers) -> Floats:
    """(4,): 0, D_1, D_2 and D_3 of one length, from its adjusted counts (ngrams,)."""
    t = np.bincount(np.minimum(counts, 5), minlength=6).astype(float)  # (6,)
    fallback = np.array([0.0, *FALLBACK])
    if not t[1:4].all():
        return fallback
    k = np.arange(1, 4)
    found = k - (k + 1) * t[1] / (t[1] + 2 * t[2]) * t[2:5] / t[1:4]  # (3,)
    return np.array([0.0, *found]) if ((found > 0) & (found <= k)).all() else fallback


def estimate(levels: Sequence[Counts], size: int, taken: Sequence[Floats] | None = None) -> list[Level]:
    """The probabilities and back-offs of every length; `taken`: its discounts, if not the estimated ones."""
    lower = np.array([1 / (size - 1)])  # the uniform distribution, of the one n-gram without words
    done: list[Level] = []
    for n, level in enumerate(levels):
        d = (discounts(level.counts) if taken is None else taken[n])[np.minimum(level.counts, 3)]  # (ngrams,)
        context = level.keys // size  # (ngrams,)
        total = np.bincount(context, level.counts, lower.size)  # (contexts,), sum_x a(u x)
        passed = np.bincount(context, d, lower.size)  # (contexts,)
        b = np.divide(passed, total, out=np.ones(lower.size), where=total > 0)  # 1: nothing follows u
        p = (level.counts - d) / total[context] + b[context] * lower[level.shorter]  # (ngrams,)
        if n == 0:
            p[START] = 0.0
        else:
            done[-1] = Level(done[-1].keys, done[-1].logprobs, np.log(b))
        with np.errstate(divide="ignore"):  # log 0 of <s>
            done.append(Level(level.keys, np.minimum(np.log(p), 0.0), np.zeros(p.size)))
        lower = p
    return done
