"""From a folder that may hold a run, under way or ended, to a trained model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from experiments.checkpoint import CARD, Model, is_checkpoint, load_checkpoint, read_card
from experiments.training.examples import Examples
from experiments.training.loop import Run
from experiments.training.options import TrainingOptions
from experiments.training.record import check_fingerprint, locked

#: Makes a model with random weights, and what it is trained and evaluated on.
Prepare = Callable[[], tuple[Model, Examples, Examples]]


def train(
    prepare: Prepare, options: TrainingOptions, folder: Path, fingerprint: str, *, quiet: bool = False
) -> Model:
    """The best model of the run with this `fingerprint`, which begins, goes on, or has ended already."""
    with locked(folder):
        if not _ended(folder, fingerprint):
            # The caller's own random numbers are left as they were.
            with torch.random.fork_rng():
                torch.manual_seed(options.seed)
                model, examples, dev = prepare()
            run = Run(model, examples, dev, options, folder, fingerprint)
            run.run(quiet=quiet)
            run.finish()
        return load_checkpoint(folder)


def _ended(folder: Path, fingerprint: str) -> bool:
    """Whether a run has ended here; refuses a folder with the model of another."""
    if not is_checkpoint(folder):
        return False
    facts = read_card(folder)["training"]
    check_fingerprint(facts.get("fingerprint"), fingerprint, folder / CARD)
    return bool(facts.get("finished"))
