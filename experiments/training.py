"""Training of the paper's two systems: their options, and from texts and features to a model in a folder."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from experiments.data import read_items
from experiments.show_and_tell import ShowAndTell, ShowAndTellOptions
from experiments.training_loop import SCHEDULES, Captions, Pair, Pairs, train
from experiments.training_record import fingerprint
from experiments.transformer import PRESETS, Transformer
from experiments.vocabulary import Bpe, Words, plain_words
from rangevote.errors import DataError, UsageError, choose

Chosen = TypeVar("Chosen", bound="TrainingOptions")

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What both systems have.

    `batch_tokens` bounds a batch's examples times its longest one, padding included. The `learning_rate` is
    the highest one; `schedule` and `warmup` (steps) say how it goes up and down. `clip` bounds the norm of
    the gradient (0: no bound). After `patience` evaluations in a row without a better development loss
    training stops (0: never). An evaluation follows every epoch, or every `evaluate_every` steps; the state
    of the run is saved then, and every `save_every` steps (0: only then). `mixed` batches have examples of
    all lengths, others of about one. `precision` bfloat16 is for GPUs, and for CPUs that have its products.
    """

    seed: int = 1
    epochs: int = 10
    batch_tokens: int = 1024
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    warmup: int = 0
    beta2: float = 0.999
    weight_decay: float = 0.0
    clip: float = 1.0
    label_smoothing: float = 0.0
    patience: int = 3
    evaluate_every: int = 0
    save_every: int = 500
    log_every: int = 50
    mixed: bool = False
    device: str = "cpu"
    precision: str = "float32"

    def __post_init__(self) -> None:
        choose("schedule", self.schedule, SCHEDULES)
        choose("precision", self.precision, dict.fromkeys(PRECISIONS))

    @classmethod
    def read(cls: type[Chosen], section: Mapping[str, Any]) -> Chosen:
        """From a section of a TOML file."""
        known = {field.name: field for field in fields(cls)}
        for name in section:
            choose(f"option of {cls.__name__}", name, known)
        try:
            return msgspec.convert(section, cls)
        except msgspec.ValidationError as error:
            raise UsageError(f"{cls.__name__}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions(TrainingOptions):
    """A Transformer for translation.

    `preset` is its shape ("small", "base", "big", "tiny"), with another `dropout` where that is given. The
    joint BPE has `vocabulary_size` tokens. Pairs with more than `max_length` tokens on a side are left out.
    `copy_share` of the training pairs get the source as their target, as happens in text from the web (Ott et
    al. 2018).
    """

    preset: str = "small"
    dropout: float | None = None
    vocabulary_size: int = 4000
    max_length: int = 200
    copy_share: float = 0.0
    batch_tokens: int = 2048
    learning_rate: float = 2e-3
    schedule: str = "inverse_sqrt"
    warmup: int = 1000
    beta2: float = 0.98

    def __post_init__(self) -> None:
        super().__post_init__()
        choose("preset", self.preset, PRESETS)


@dataclass(frozen=True, kw_only=True)
class CaptionerOptions(TrainingOptions):
    """Show and Tell for captions.

    The vocabulary is the `vocabulary_size` most frequent words; `plain`: of the captions in lower case,
    without punctuation.
    """

    units: int = ShowAndTellOptions.units
    embedding: int = ShowAndTellOptions.embedding
    dropout: float = ShowAndTellOptions.dropout
    vocabulary_size: int = 5000
    plain: bool = True
    batch_tokens: int = 832


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


def train_captions(output: Path, *, training: Mapping[str, Any], items: Path, dev: Path) -> None:
    """Show and Tell, with the options of the section `training`."""
    learned, held = read_items(items), read_items(dev)
    assert learned.features is not None
    assert held.features is not None
    options = CaptionerOptions.read(training)
    train_captioner(
        learned.features, learned.references, held.features, held.references, options, output, quiet=_quiet()
    )


def train_translation(output: Path, *, training: Mapping[str, Any], items: Path, dev: Path) -> None:
    """A Transformer, with the options of the section `training`."""
    options = TranslatorOptions.read(training)
    train_translator(read_items(items).pairs, read_items(dev).pairs, options, output, quiet=_quiet())


def _quiet() -> bool:
    """Two trainings side by side would write over each other's line; their log.jsonl tells the same."""
    return multiprocessing.parent_process() is not None


#: experiment -> how its models are trained
TRAIN = {"captions": train_captions, "translation": train_translation}
