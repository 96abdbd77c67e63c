"""Things that a tiny model learns in seconds."""

from __future__ import annotations

import numpy as np
from experiments.training import CaptionerOptions, TranslatorOptions

#: Enough to learn `reversals`.
TRANSLATOR = TranslatorOptions(
    preset="tiny",
    vocabulary_size=270,
    epochs=10,
    batch_tokens=256,
    learning_rate=3e-3,
    schedule="cosine",
    warmup=40,
)
#: Enough to learn `animals`.
CAPTIONER = CaptionerOptions(
    units=32, embedding=16, dropout=0.1, epochs=12, batch_tokens=64, learning_rate=1e-2
)

COLOURS = ["red", "green", "blue", "white", "black"]
ANIMALS = ["dog", "cat", "horse", "cow"]


def reversals(number, seed=0):
    """Pairs such as ("a c b", "b c a")."""
    rng = np.random.default_rng(seed)
    words = [rng.choice(list("abcdef"), size=rng.integers(2, 6)).tolist() for _ in range(number)]
    return [(" ".join(one), " ".join(reversed(one))) for one in words]


def animals(number, seed=0):
    """Features that say a colour and an animal, with noise, and two captions of each."""
    rng = np.random.default_rng(seed)
    colours, kinds = rng.integers(len(COLOURS), size=number), rng.integers(len(ANIMALS), size=number)
    features = rng.normal(scale=0.1, size=(number, len(COLOURS) + len(ANIMALS)))
    features[np.arange(number), colours] += 1
    features[np.arange(number), len(COLOURS) + kinds] += 1
    told = [f"{COLOURS[c]} {ANIMALS[k]}" for c, k in zip(colours, kinds, strict=True)]
    return features, [[f"A {one} .", f"The {one} , again !"] for one in told]
