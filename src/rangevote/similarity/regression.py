"""Learned metrics that are one number of a transformer: `bleurt:MODEL` and `metricx:MODEL`.

The packages are the user's, `bleurt-pytorch` and `metricx24`; the latter is a clone of Google's repository.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rangevote.errors import SetupError, UsageError
from rangevote.hypothesis import Array
from rangevote.models.hub import is_cached, quiet, refuse_unreachable
from rangevote.similarity.neural import (
    LazyModel,
    NeuralMeasure,
    Scored,
    has_gpu,
    import_package,
    one_line,
    shared_model,
)
from rangevote.similarity.units import Tokenise


class RegressionMeasure(NeuralMeasure):
    """A model of transformers that gives one number, and its tokenizer; both by the user's package."""

    #: The module, the package that brings it, its model's class, and the name of the model's output.
    module: str
    package: str
    model_class: str
    output: str
    batch_size = 16

    def __init__(self, model: str, *, source: str | None = None) -> None:
        self.model, self.source = model, source
        self.name = f"{type(self).__name__.lower()}:{model}"

    @cached_property
    def _lazy(self) -> LazyModel:
        return shared_model(type(self).__name__, self.model)

    def about(self, source: str | None) -> RegressionMeasure:
        """The same measure, and the same loaded model, for this source."""
        if not self.reads_source or source is None or source == self.source:
            return self
        bound = type(self)(self.model, source=source)
        bound._lazy = self._lazy
        return bound

    @abstractmethod
    def tokenizer(self, library: ModuleType, path: str) -> Any:
        """What reads texts for the model."""

    @abstractmethod
    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        """Tensors of a batch, padded."""

    def scores(self, texts: Sequence[Scored], vectors: dict[str, Any]) -> Array:
        with self._lazy.lock:
            network, tokenizer = self._lazy.get(self.name, self._load)
            import torch

            numbers: list[float] = []
            with torch.inference_mode():
                for start in range(0, len(texts), self.batch_size):
                    inputs = self.encoded(tokenizer, texts[start : start + self.batch_size])
                    given = network(**{name: tensor.to(network.device) for name, tensor in inputs.items()})
                    numbers += getattr(given, self.output).flatten().tolist()
        return np.array(numbers, dtype=np.float64)

    def _load(self) -> tuple[Any, Any]:
        library = import_package(self.module, self.package, self.name)
        folder = Path(self.model).expanduser()
        if not folder.is_dir() and not is_cached(self.model):
            refuse_unreachable(self.model, self.name)
        path = str(folder) if folder.is_dir() else self.model
        try:
            with quiet():
                network = getattr(library, self.model_class).from_pretrained(path)
                tokenizer = self.tokenizer(library, path)
        except Exception as error:
            raise SetupError(f"{self.name}: the model cannot be loaded ({one_line(error)}).") from error
        return network.eval().to("cuda" if has_gpu() else "cpu"), tokenizer


class Bleurt(RegressionMeasure):
    """BLEURT of the candidate with the voter as its reference; asymmetric.

    `model` is a folder or a name on the hub. BLEURT-20 scores about from 0 to 1, which is the grade; what
    lies beyond -1 and 1 is cut.
    """

    module, package = "bleurt_pytorch", "bleurt-pytorch"
    model_class, output = "BleurtForSequenceClassification", "logits"

    def tokenizer(self, library: ModuleType, path: str) -> Any:
        return library.BleurtTokenizer.from_pretrained(path)

    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        references, candidates = ([getattr(t, side) for t in texts] for side in ("reference", "candidate"))
        return tokenizer(
            references, candidates, padding="longest", truncation=True, max_length=512, return_tensors="pt"
        )


class Metricx(RegressionMeasure):
    """1 - MetricX / 25 of the candidate, with the voter as its reference and the ballot's source.

    `model` is a MetricX-24 model, a folder or a name on the hub; a folder may have its tokenizer with it,
    else that of mT5 is taken (`tokenizer_name`). MetricX counts errors, from 0 to 25.
    """

    module, package = "metricx24.models", "metricx24"
    model_class, output = "MT5ForRegression", "predictions"
    reads_source, higher_is_better = True, False
    worst = 25.0
    tokenizer_name = "google/mt5-xl"
    longest = 1536

    def tokenizer(self, library: ModuleType, path: str) -> Any:
        from transformers import AutoTokenizer

        own = Path(path).is_dir() and any(Path(path).glob("*token*"))
        return AutoTokenizer.from_pretrained(path if own else self.tokenizer_name)

    def encoded(self, tokenizer: Any, texts: Sequence[Scored]) -> Any:
        lines = [f"source: {t.source} candidate: {t.candidate} reference: {t.reference}" for t in texts]
        read = tokenizer(lines, max_length=self.longest, truncation=True)
        # the model was trained without the end of the sequence
        kept = {name: [ids[:-1] for ids in read[name]] for name in ("input_ids", "attention_mask")}
        return tokenizer.pad(kept, padding="longest", return_tensors="pt")

    def grades(self, scores: Array) -> Array:
        return 1.0 - np.clip(scores, 0.0, self.worst) / self.worst


def bleurt(argument: str, tokenize: Tokenise) -> Bleurt:
    if not argument:
        raise UsageError("bleurt needs a model: a name or folder, as bleurt:lucadiliello/BLEURT-20.")
    return Bleurt(argument)


def metricx(argument: str, tokenize: Tokenise) -> Metricx:
    if not argument:
        example = "metricx:google/metricx-24-hybrid-large-v2p6"
        raise UsageError(f"metricx needs a model: a name or folder, as {example}.")
    return Metricx(argument)
