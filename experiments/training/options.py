"""What can be set for a training run: one flat, frozen set of options for each system, readable from TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from experiments.show_and_tell import ShowAndTellOptions
from experiments.training.schedules import SCHEDULES
from experiments.transformer import PRESETS
from rangevote.errors import UsageError, choose

Chosen = TypeVar("Chosen", bound="TrainingOptions")

PRECISIONS = ("float32", "bfloat16")

#: option -> least and greatest value
LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**31),
    "epochs": (1, 10**6),
    "batch_tokens": (1, 10**9),
    "learning_rate": (0, 10),
    "warmup": (0, 10**9),
    "beta2": (0, 0.999999),
    "weight_decay": (0, 10),
    "clip": (0, 10**6),
    "label_smoothing": (0, 0.99),
    "patience": (0, 10**6),
    "evaluate_every": (0, 10**9),
    "save_every": (0, 10**9),
    "log_every": (1, 10**9),
    "dropout": (0, 0.99),
    "vocabulary_size": (1, 10**7),
    "max_length": (1, 10**6),
    "copy_share": (0, 1),
    "units": (1, 10**6),
    "embedding": (1, 10**6),
}


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What both systems have.

    `batch_tokens` bounds a batch's examples times its longest one, padding included. The `learning_rate` is
    the highest one; `schedule` and `warmup` (steps) say how it goes up and down. `clip` bounds the norm of
    the gradient (0: no bound). After `patience` evaluations in a row without a better development loss
    training stops (0: never). An evaluation follows every epoch, or every `evaluate_every` steps; the state
    of the run is saved then, and every `save_every` steps (0: only then). `precision` other than float32 is
    for GPUs.
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
    device: str = "cpu"
    precision: str = "float32"

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(type(self).__name__, field.name, str(field.type), getattr(self, field.name))
        choose("schedule", self.schedule, SCHEDULES)
        choose("precision", self.precision, dict.fromkeys(PRECISIONS))

    @classmethod
    def read(cls: type[Chosen], section: Mapping[str, Any]) -> Chosen:
        """From a section of a TOML file."""
        known = {field.name: field for field in fields(cls)}
        for name in section:
            choose(f"option of {cls.__name__}", name, known)
        return cls(**section)


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


def _check(owner: str, name: str, kind: str, value: Any) -> None:
    """Whether a value is of its option's kind (the annotation's text) and within its limits."""
    if value is None and "None" in kind:
        return
    simple = kind.partition(" ")[0]
    allowed: Any = {"int": int, "float": (int, float), "str": str, "bool": bool}[simple]
    if not isinstance(value, allowed) or (simple != "bool" and isinstance(value, bool)):
        raise UsageError(f"{owner}: {name} must be of type {kind}, got {value!r}.")
    least, most = LIMITS.get(name, (0, 0))
    if name in LIMITS and not least <= value <= most:
        raise UsageError(f"{owner}: {name} must lie between {least:g} and {most:g}, got {value!r}.")
