"""Pairs of sentences -> a Transformer in a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.training.examples import Pair, Pairs, checked_pairs
from experiments.training.options import TranslatorOptions
from experiments.training.record import fingerprint
from experiments.training.session import train
from experiments.transformer import PRESETS, Transformer
from experiments.vocabulary import Bpe
from rangevote.errors import DataError


def train_translator(
    pairs: Sequence[Pair],
    dev_pairs: Sequence[Pair],
    options: TranslatorOptions,
    folder: str | os.PathLike[str],
    *,
    quiet: bool = False,
) -> Transformer:
    """Train on (source, target) texts; returns the model that was best on the development pairs.

    A run that was interrupted in `folder` goes on; one that has ended there, with the same options and data,
    is loaded. The folder is then a checkpoint for `load_checkpoint`.
    """
    pairs, dev_pairs = checked_pairs(pairs, "pairs"), checked_pairs(dev_pairs, "dev_pairs")
    shape = PRESETS[options.preset]
    if options.dropout is not None:
        shape = replace(shape, dropout=options.dropout)

    def prepare() -> tuple[Transformer, Pairs, Pairs]:
        vocabulary = Bpe.train((text for pair in pairs for text in pair), options.vocabulary_size)
        noisy = with_copies(pairs, options.copy_share, options.seed)
        learned = Pairs.encode(noisy, vocabulary).within(options.max_length)
        if not len(learned.lengths):
            raise DataError(f"no pair is within max_length {options.max_length} tokens", field="pairs")
        return Transformer(shape, vocabulary), learned, Pairs.encode(dev_pairs, vocabulary)

    found = train(prepare, options, Path(folder), fingerprint(options, pairs, dev_pairs), quiet=quiet)
    assert isinstance(found, Transformer)
    return found


def with_copies(pairs: Sequence[Pair], share: float, seed: int) -> list[Pair]:
    """The pairs; this share of them, by chance, has the source as target (Ott et al. 2018, section 5)."""
    copied = set(
        np.random.default_rng([seed, 1]).permutation(len(pairs))[: round(share * len(pairs))].tolist()
    )
    return [(source, source if i in copied else target) for i, (source, target) in enumerate(pairs)]
