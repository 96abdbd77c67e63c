"""Ballots to measure speed on: hypotheses of about 20 words that share most of their words.

    python benchmarks/generate.py --k 100 --ballots 3000 --seed 1 -o ballots.jsonl

A small grammar makes a base sentence of 16 to 24 words. Its variants grow as a tree: each is one
edit away from an earlier, rather probable one, and that much less probable. Texts are distinct
and come most probable first, as from beam search. Nothing here knows how any library counts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from typing import NamedTuple

GRAMMAR = {
    "the": "the a one this that another each every",
    "quality": "old young tall quiet red blue small large wooden wet bright narrow crowded empty "
    "warm grey heavy round broken clean",
    "thing": "man woman child dog horse musician farmer teacher boat bicycle table guitar ladder "
    "basket umbrella camera bridge market river garden street station window mountain field "
    "house wall crowd lamp tree",
    "does": "carries watches holds paints repairs follows pushes lifts photographs crosses leaves "
    "finds passes draws sells washes",
    "where": "in on near behind beside under above across along outside inside before",
    "and": "while and as because until",
    "how": "slowly carefully quickly quietly again together alone often today happily",
}
WORDS = {kind: words.split() for kind, words in GRAMMAR.items()}
OPTIONAL = ("quality", "how")


class Word(NamedTuple):
    """A word and its part of speech."""

    kind: str
    text: str


Sentence = tuple[Word, ...]


class Ballot(NamedTuple):
    """Distinct texts, most probable first, and their natural-log probabilities."""

    texts: list[str]
    logprobs: list[float]


def ballot(k: int, seed: int) -> Ballot:
    """Grow `k` hypotheses around one base sentence; the same seed gives the same ballot."""
    rng = random.Random(f"{seed}/{k}")
    base = _base(rng)
    grown = [(base, -0.45 * len(base) * rng.uniform(0.8, 1.2))]
    seen = {_text(base)}
    while len(grown) < k:
        parent, logprob = grown[int(len(grown) * rng.random() ** 2)]
        child = _edit(parent, rng)
        text = _text(child)
        if text not in seen and 8 <= len(child) <= 32:
            seen.add(text)
            grown.append((child, logprob - 0.2 - rng.expovariate(1 / 1.2)))
    grown.sort(key=lambda pair: -pair[1])
    return Ballot([_text(s) for s, _ in grown], [round(p, 6) for _, p in grown])


def ballots(k: int, count: int, seed: int = 1) -> list[Ballot]:
    """`count` different ballots of `k` hypotheses."""
    return [ballot(k, seed * 1_000_000 + i) for i in range(count)]


def _base(rng: random.Random) -> Sentence:
    """A sentence of 16 to 24 words."""
    while True:
        words = [*_clause(rng), _word("and", rng), *_clause(rng)]
        if 16 <= len(words) <= 24:
            return tuple(words)


def _clause(rng: random.Random) -> list[Word]:
    words = [*_noun_phrase(rng), _word("does", rng), *_noun_phrase(rng), *_place(rng)]
    return [*words, _word("how", rng)] if rng.random() < 0.3 else words


def _place(rng: random.Random) -> list[Word]:
    return [_word("where", rng), *_noun_phrase(rng)]


def _noun_phrase(rng: random.Random) -> list[Word]:
    qualities = [_word("quality", rng)] if rng.random() < 0.5 else []
    return [_word("the", rng), *qualities, _word("thing", rng)]


def _word(kind: str, rng: random.Random) -> Word:
    return Word(kind, rng.choice(WORDS[kind]))


def _edit(sentence: Sentence, rng: random.Random) -> Sentence:
    """Change one thing: a word, an added or dropped quality or manner, a place, or an order."""
    at = rng.randrange(len(sentence))
    word, draw = sentence[at], rng.random()
    if draw < 0.60:
        return (*sentence[:at], _word(word.kind, rng), *sentence[at + 1 :])
    if draw < 0.75:
        return sentence[:at] + sentence[at + 1 :] if word.kind in OPTIONAL else sentence
    if draw < 0.88:
        added = _word("quality" if word.kind == "thing" else "how", rng)
        if word.kind in ("thing", "where"):
            return (*sentence[:at], added, *sentence[at:])
        return sentence
    if draw < 0.95:
        return _move_place(sentence, rng)
    return sentence[:at] + tuple(_place(rng)) if at >= len(sentence) - 4 else sentence


def _move_place(sentence: Sentence, rng: random.Random) -> Sentence:
    """Swap what follows two of the sentence's prepositions."""
    starts = [i for i, word in enumerate(sentence) if word.kind == "where"]
    if len(starts) < 2:
        return sentence
    first, second = sorted(rng.sample(starts, 2))
    words = list(sentence)
    words[first], words[second] = words[second], words[first]
    return tuple(words)


def _text(sentence: Sentence) -> str:
    return " ".join(word.text for word in sentence)


def lines(made: list[Ballot]) -> Iterator[str]:
    """The ballots as the JSON Lines that `rangevote vote` reads."""
    for number, (texts, logprobs) in enumerate(made, start=1):
        candidates = [{"text": t, "logprob": p} for t, p in zip(texts, logprobs, strict=True)]
        yield json.dumps({"id": str(number), "candidates": candidates}, ensure_ascii=False) + "\n"


def main() -> None:
    """Write ballots to a file, or to stdout."""
    parser = argparse.ArgumentParser(description="Make ballots to measure speed on.")
    parser.add_argument("--k", type=int, default=100, help="hypotheses per ballot")
    parser.add_argument("--ballots", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="-", help="file to write; '-' is stdout")
    options = parser.parse_args()
    made = ballots(options.k, options.ballots, options.seed)
    if options.output == "-":
        sys.stdout.writelines(lines(made))
    else:
        with open(options.output, "w", encoding="utf-8") as file:
            file.writelines(lines(made))


if __name__ == "__main__":
    main()
