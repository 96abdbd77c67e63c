"""Step "train": a model in a folder; an interrupted training goes on where it last saved its state."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.items import read_items
from experiments.training.captioner import train_captioner
from experiments.training.options import CaptionerOptions, TranslatorOptions
from experiments.training.translator import train_translator


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
