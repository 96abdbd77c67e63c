"""What is learned from, as numbers: examples with lengths, of which any can be taken as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.transformer import padded
from experiments.vocabulary import END, START, Vocabulary
from rangevote.errors import DataError, UsageError
from rangevote.models.protocol import Integers

Pair = tuple[str, str]


class Examples(Protocol):
    """`lengths` (examples, sides) in tokens."""

    lengths: Integers

    def take(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """The inputs, whatever the network takes, and the targets `START ... END` (batch, length), padded."""


class Pairs:
    """Sentences and their translations, as tokens: sources `... END` and targets `START ... END`."""

    def __init__(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> None:
        self._sources, self._targets = sources, targets
        sides = [[len(one) for one in side] for side in (sources, targets)]
        self.lengths = np.array(sides, dtype=np.int64).T  # (examples, 2)

    @classmethod
    def encode(cls, pairs: Sequence[Pair], vocabulary: Vocabulary) -> Pairs:
        """Texts as tokens."""
        sources = [[*vocabulary.encode(source), END] for source, _ in pairs]
        return cls(sources, [[START, *vocabulary.encode(target), END] for _, target in pairs])

    def within(self, length: int) -> Pairs:
        """Those with at most so many tokens on each side."""
        keep = np.flatnonzero(self.lengths.max(axis=1) <= length).tolist()
        return Pairs([self._sources[number] for number in keep], [self._targets[number] for number in keep])

    def take(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """See `Examples.take`; the inputs are source tokens (batch, length)."""
        chosen = numbers.tolist()
        return padded([self._sources[n] for n in chosen]), padded([self._targets[n] for n in chosen])


class Captions:
    """Images, as features (images, features), and the captions of each."""

    def __init__(
        self, features: NDArray[Any], captions: Sequence[Sequence[str]], vocabulary: Vocabulary
    ) -> None:
        self._features = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
        self._targets = [[START, *vocabulary.encode(text), END] for texts in captions for text in texts]
        self._image = np.repeat(np.arange(len(captions)), [len(texts) for texts in captions])  # (captions,)
        self.lengths = np.array([len(one) for one in self._targets], dtype=np.int64)[:, None]

    def take(self, numbers: Integers) -> tuple[Tensor, Tensor]:
        """See `Examples.take`; the inputs are features (batch, features)."""
        images = torch.from_numpy(self._image[numbers])
        return self._features[images], padded([self._targets[n] for n in numbers.tolist()])


def checked_pairs(pairs: Sequence[Pair], name: str) -> list[Pair]:
    """Pairs of texts, at least one."""
    found = [tuple(pair) for pair in pairs]
    for number, pair in enumerate(found):
        if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise UsageError(f"{name}[{number}] must be a source and a target, got {pair!r:.60}.")
    if not found:
        raise DataError("there are no pairs", field=name)
    return [(pair[0], pair[1]) for pair in found]


def checked_captions(features: NDArray[Any], captions: Sequence[Sequence[str]], name: str) -> None:
    """One row of numbers for each image, and captions for it."""
    if features.ndim != 2 or len(features) != len(captions):
        raise DataError(
            f"features of shape {features.shape} for the captions of {len(captions)} images; "
            f"give one row for each image",
            field=name,
        )
    if not np.isfinite(features).all():
        raise DataError("a feature is infinite or no number", field=name)
    for number, texts in enumerate(captions):
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise UsageError(f"{name}: captions[{number}] must be a list of texts, got {texts!r:.60}.")
    if not any(len(texts) for texts in captions):
        raise DataError("there are no captions", field=name)
