"""Features of images and their captions -> Show and Tell in a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.training.examples import Captions, checked_captions
from experiments.training.options import CaptionerOptions
from experiments.training.record import fingerprint
from experiments.training.session import train
from experiments.vocabulary import Words, plain_words

Texts = Sequence[Sequence[str]]


def train_captioner(
    features: NDArray[Any],
    captions: Texts,
    dev_features: NDArray[Any],
    dev_captions: Texts,
    options: CaptionerOptions,
    folder: str | os.PathLike[str],
    *,
    quiet: bool = False,
) -> ShowAndTell:
    """Train on features (images, features) and the captions of each image; see `train_translator`."""
    features, dev_features = np.asarray(features), np.asarray(dev_features)
    checked_captions(features, captions, "features")
    checked_captions(dev_features, dev_captions, "dev_features")
    shape = ShowAndTellOptions(features.shape[1], options.units, options.embedding, options.dropout)

    def prepare() -> tuple[ShowAndTell, Captions, Captions]:
        texts, dev_texts = as_written(captions, options.plain), as_written(dev_captions, options.plain)
        vocabulary = Words.train((text for one in texts for text in one), options.vocabulary_size)
        learned = Captions(features, texts, vocabulary)
        return ShowAndTell(shape, vocabulary), learned, Captions(dev_features, dev_texts, vocabulary)

    lists = [[list(texts) for texts in part] for part in (captions, dev_captions)]
    known = fingerprint(options, features, dev_features, lists)
    found = train(prepare, options, Path(folder), known, quiet=quiet)
    assert isinstance(found, ShowAndTell)
    return found


def as_written(captions: Texts, plain: bool) -> list[list[str]]:
    """The captions as the model is to write them."""
    return [[plain_words(text) if plain else text for text in texts] for texts in captions]
