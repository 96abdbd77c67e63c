"""The searches once more, straight from their definitions: lists and dictionaries, one input at a time.

They ask `model.predict` for one prefix after the other, and know nothing of rows, batches or arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

import numpy as np

from tests.models.table import Prefix, TableModel

#: In place of the token that a hypothesis was just given, where that does not matter.
OLD = -1
#: (score, length with the end) -> what hypotheses compete by
Worth = Callable[[float, int], float]


class Found(NamedTuple):
    """A hypothesis of a twin: tokens without the end, log P, what it was ranked by, and whether it ended."""

    tokens: Prefix
    logprob: float
    score: float
    finished: bool


class Way(NamedTuple):
    """A live hypothesis, or one more token on it. `stops`: it goes no further; `ends`: by an end token."""

    tokens: Prefix
    logprob: float
    score: float
    stops: bool = False
    ends: bool = False


def extensions(
    model: TableModel,
    input: Hashable,
    way: Way,
    limit: int,
    minimum: int = 0,
    allowed: Callable[[Prefix], bool] = lambda prefix: True,
) -> Iterator[Way]:
    """A live hypothesis with every possible token, the end included."""
    log_probs, _ = model.predict(input, way.tokens)
    bends = model.bend(input, way.tokens) if hasattr(model, "bend") else np.zeros(model.vocab)
    for token in range(model.vocab):
        gain, bend, ends = float(log_probs[token]), float(bends[token]), token in model.ends
        if gain + bend == -np.inf or (ends and len(way.tokens) < minimum):
            continue
        tokens = way.tokens if ends else (*way.tokens, token)
        if not allowed(tokens):
            continue
        stops = ends or len(way.tokens) + 1 == limit
        yield Way(tokens, way.logprob + gain, way.score + gain + bend, stops, ends)


def stopped(way: Way, score: float) -> Found | Way:
    """A hypothesis that goes no further is finished, with this score."""
    return Found(way.tokens, way.logprob, score, way.ends) if way.stops else way


def best(pool: list[tuple[float, int, Found | Way]], k: int) -> tuple[list[Found], list[Way], list[int]]:
    """Of (value, token, hypothesis), the k best: the finished ones, the live ones, and their new tokens."""
    chosen = sorted(pool, key=lambda triple: -triple[0])[:k]
    finished = [one for _, _, one in chosen if isinstance(one, Found)]
    live = [one for _, _, one in chosen if isinstance(one, Way)]
    return finished, live, [token for _, token, _ in chosen if token != OLD]


def beam(
    model: TableModel,
    input: Hashable,
    k: int,
    limit: int,
    minimum: int = 0,
    worth: Worth = lambda score, length: score,
    allowed: Callable[[Prefix], bool] = lambda prefix: True,
) -> list[Found]:
    """At every length the k best among the finished and all extensions of the live ones are kept."""
    finished: list[Found] = []
    live = [Way((), 0.0, 0.0)]
    length = 0
    while live:
        length += 1
        pool: list[tuple[float, int, Found | Way]] = [(one.score, OLD, one) for one in finished]
        for way in live:
            for longer in extensions(model, input, way, limit, minimum, allowed):
                value = worth(longer.score, length)
                pool.append((value, OLD, stopped(longer, value)))
        finished, live, _ = best(pool, k)
    return finished


def siblings(model: TableModel, input: Hashable, k: int, limit: int, gamma: float) -> list[Found]:
    """Extensions lose gamma for each better one of the same parent, in that step alone; then as in `beam`."""
    finished: list[Found] = []
    live = [Way((), 0.0, 0.0)]
    while live:
        pool: list[tuple[float, int, Found | Way]] = [(one.score, OLD, one) for one in finished]
        for way in live:
            family = sorted(extensions(model, input, way, limit), key=lambda one: -one.score)
            for rank, one in enumerate(family):
                pool.append((one.score - gamma * rank, OLD, stopped(one, one.score)))
        finished, live, _ = best(pool, k)
    return sorted(finished, key=lambda one: -one.score)


def groups(model: TableModel, input: Hashable, k: int, limit: int, parts: int, penalty: float) -> list[Found]:
    """Diverse beam search: groups take turns at each length; tokens that earlier ones chose are dearer."""
    size, end = k // parts, model.ends[0]
    finished: list[list[Found]] = [[] for _ in range(parts)]
    live = [[Way((), 0.0, 0.0)] for _ in range(parts)]
    while any(live):
        chosen: Counter[int] = Counter()
        for part in range(parts):
            pool: list[tuple[float, int, Found | Way]] = [(one.score, OLD, one) for one in finished[part]]
            for way in live[part]:
                for one in extensions(model, input, way, limit):
                    token = end if one.ends else one.tokens[-1]
                    score = one.score - penalty * chosen[token]
                    pool.append((score, token, stopped(one._replace(score=score), score)))
            finished[part], live[part], tokens = best(pool, size)
            chosen.update(tokens)
    return sorted((one for part in finished for one in part), key=lambda one: -one.logprob)


def copies(source: tuple[int, ...], share: float, ends: tuple[int, ...] = (0,)) -> Callable[[Prefix], bool]:
    """Whether a hypothesis may stay: it has less than the share of the source's distinct unigrams."""
    unigrams = set(source) - set(ends)
    return lambda tokens: not unigrams or len(unigrams & set(tokens)) / len(unigrams) < share - 1e-12


def distribution(
    model: TableModel,
    input: Hashable,
    limit: int,
    minimum: int = 0,
    allowed: Callable[[Prefix], bool] = lambda prefix: True,
    shape: Callable[[np.ndarray], np.ndarray] = lambda probabilities: probabilities,
) -> dict[tuple[Prefix, bool], float]:
    """P of every (tokens, finished) where each token is drawn from what is allowed, renormalised and shaped.

    `shape` maps the probabilities of the tokens (vocab,) to those that are drawn from.
    """
    found: dict[tuple[Prefix, bool], float] = {}
    open_ = [(Way((), 0.0, 0.0), 1.0)]
    while open_:
        way, mass = open_.pop()
        masses, ways = np.zeros(model.vocab), {}
        for one in extensions(model, input, way, limit, minimum, allowed):
            # all ends lead to the same sequence, but are tokens of their own
            for token in model.ends if one.ends else one.tokens[-1:]:
                if one.ends and token in ways:
                    continue
                masses[token], ways[token] = np.exp(one.score - way.score), one
                break
        probabilities = shape(masses / masses.sum())
        for token, one in ways.items():
            chance = mass * float(probabilities[token])
            if one.stops:
                key = (one.tokens, one.ends)
                found[key] = found.get(key, 0.0) + chance
            elif chance > 0:
                open_.append((one, chance))
    return found
