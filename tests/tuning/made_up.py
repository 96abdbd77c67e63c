"""Ballots by chance, with references."""

from __future__ import annotations

import random

import rangevote as rv

WORDS = "a the dog cat runs sits fast on mat big small and barks".split()  # noqa: SIM905


def ballots(
    number: int, k: int = 8, seed: int = 1, *, known: bool = True, voters: int = 0
) -> list[rv.Ballot]:
    """`number` ballots of `k` candidates, each near its reference; some are repeated, some are empty."""
    chance = random.Random(seed)

    def near(words: list[str]) -> str:
        kept = [word if chance.random() < 0.7 else chance.choice(WORDS) for word in words]
        return " ".join(kept[: chance.randint(0, len(kept) + 2)])

    def listed(words: list[str], size: int) -> list[rv.Hypothesis]:
        return [
            rv.Hypothesis(near(words), logprob=-chance.uniform(1, 9) if known else None) for _ in range(size)
        ]

    found = []
    for place in range(number):
        words = chance.choices(WORDS, k=chance.randint(4, 9))
        found.append(
            rv.Ballot(
                listed(words, k),
                listed(words, voters) if voters else None,
                id=str(place),
                references=[" ".join(words), near(words) or "a"],
            )
        )
    return found
