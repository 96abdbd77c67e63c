"""overlap_n and precision_n in plain Python: linear time, sets and a dict, nothing installed.

What a good Python programmer would write from the paper's equations. It follows the rules of
rangevote (a text shorter than n is its own n-gram, the empty text abstains), so both elect alike.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import partial

Items = Iterable[Hashable]


def elect(
    texts: list[str], logprobs: list[float], items: Callable[[list[str]], Items]
) -> tuple[int, list[float]]:
    """Return the winner's index and all scores, given what a text consists of."""
    held = [set(items(text.split())) for text in texts]
    votes: dict[Hashable, float] = defaultdict(float)  # item -> sum of P(v) / |v|
    for weight, has in zip(softmax(logprobs), held, strict=True):
        if has:
            worth = weight / len(has)
            for item in has:
                votes[item] += worth
    scores = [sum(map(votes.__getitem__, has)) for has in held]
    winner = max(range(len(texts)), key=lambda i: (scores[i], logprobs[i]))  # first of equals
    return winner, scores


def ngrams(words: list[str], n: int) -> Items:
    """The n-grams of a text."""
    if len(words) <= n:
        return [tuple(words)] if words else []
    return zip(*(words[i:] for i in range(n)), strict=False)


def numbered_ngrams(words: list[str], n: int) -> Items:
    """The n-grams of a text, each with its occurrence number: a multiset as a set."""
    seen: Counter[Hashable] = Counter()
    for gram in ngrams(words, n):
        seen[gram] += 1
        yield gram, seen[gram]


def softmax(logprobs: list[float]) -> list[float]:
    """Probabilities normalised to sum to 1."""
    top = max(logprobs)
    weights = [math.exp(p - top) for p in logprobs]
    total = sum(weights)
    return [w / total for w in weights]


def overlap_2(texts: list[str], logprobs: list[float]) -> tuple[int, list[float]]:
    """The set measure (equation 3) over bigrams."""
    return elect(texts, logprobs, partial(ngrams, n=2))


def precision_2(texts: list[str], logprobs: list[float]) -> tuple[int, list[float]]:
    """The bag measure (equation 2) over bigrams."""
    return elect(texts, logprobs, partial(numbered_ngrams, n=2))
