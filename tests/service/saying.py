"""Upstreams that say what a test wants to hear."""

from __future__ import annotations

from collections.abc import Callable

from tests.sources.openai.upstream import Asked, Reply, choice, completion


def ending(*reasons: str) -> Callable[[Asked], Reply]:
    """An upstream whose samples end for these reasons."""

    def answer(asked: Asked) -> Reply:
        return completion(asked, [{**choice(asked, i), "finish_reason": reasons[i]} for i in range(asked.n)])

    return answer


def texts(*said: str) -> Callable[[Asked], Reply]:
    """An upstream whose samples say this, over and over."""

    def answer(asked: Asked) -> Reply:
        first = int(asked.body.get("seed", 0))
        choices = [choice(asked, i) for i in range(asked.n)]
        for i, one in enumerate(choices):
            one["message"]["content"] = said[(first + i) % len(said)]
        return completion(asked, choices)

    return answer
